"""Runs in a pool of processes, some of which die or hang: only the stage that was running is tried again."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from cascada.algorithms import GPNUCB, NonAdaptive, RandomSearch
from cascada.errors import ArgumentError
from cascada.network import Network, Stage, chain
from cascada.process import Command
from cascada.study import Result, Study, maximise
from tests.execution.processes import KERNEL, broken, calls, counted, die, heat, network, once, quench, too_hot
from tests.forked import Fork
from tests.starting import gone
from tests.waiting import LONG, wait_until

NETWORK = network()
LIMIT = 4.0  # seconds that a stage may take in tests of a stage that hangs: far more than other stages need


def timed(timeout: float | None = None, retries: int = 0) -> Network:
    """Return the network with a timeout and retries on its second stage."""
    return chain(NETWORK.stages[0], Stage("quench", kernel=KERNEL, norm_bound=2.0, timeout=timeout, retries=retries))


def states(result: Result) -> list[str]:
    return [trial.state for trial in result.trials]


# ---- the same results


@pytest.mark.parametrize("algorithm", [NonAdaptive(), RandomSearch()], ids=str)
def test_a_design_has_the_same_result_in_a_pool_as_in_the_calling_thread(algorithm: Any) -> None:
    plain = maximise(NETWORK, [heat, too_hot], budget=7, algorithm=algorithm, seed=2)
    other = maximise(NETWORK, [heat, too_hot], budget=7, algorithm=algorithm, seed=2, jobs=3)
    assert other.trials == plain.trials
    assert (other.status, other.gap, other.recommended) == (plain.status, plain.gap, plain.recommended)


def test_an_adaptive_algorithm_runs_in_parallel_with_functions_that_are_not_importable() -> None:
    offset = 0.1
    result = maximise(NETWORK, [lambda x, y: heat(x, y) + offset, quench], budget=10, jobs=2)
    assert (states(result), result.status, result.gap_kind) == (["complete"] * 10, "budget", "proven")
    assert len({tuple(trial.controls.values()) for trial in result.trials}) == 10
    assert all(trial.outputs["heat"][0] == heat(**trial.controls) + offset for trial in result.trials)


def test_two_jobs_run_at_the_same_time(tmp_path: Path) -> None:
    def meets(x: float, y: float) -> float:
        (tmp_path / f"{x}").touch()
        wait_until(lambda: len(list(tmp_path.iterdir())) >= 2, "both runs are under way")
        return heat(x, y)

    assert states(maximise(NETWORK, [meets, quench], budget=2, jobs=2)) == ["complete"] * 2


def test_output_of_stages_does_not_mix_with_messages_and_their_input_is_empty() -> None:
    def talks(x: float, y: float) -> float:
        os.write(1, b"\x80garbage\n" * 1000)
        assert sys.stdin.read() == ""
        return heat(x, y)

    assert states(maximise(NETWORK, [talks, quench], budget=3, jobs=2)) == ["complete"] * 3


@pytest.mark.parametrize(("chosen", "seen"), [(None, 1.0), ("2", 2.0)])
def test_a_worker_has_one_blas_thread_unless_the_user_chose_a_number(
    chosen: str | None, seen: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if chosen is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", chosen)
    result = maximise(NETWORK, [lambda **_: float(os.environ["OMP_NUM_THREADS"]), quench], budget=2, jobs=2)
    assert [trial.outputs["heat"] for trial in result.trials] == [(seen,)] * 2


# ---- workers that die


def test_after_the_death_of_a_worker_only_its_stage_is_tried_again(tmp_path: Path) -> None:
    functions: Any = [partial(counted, tmp_path, heat), partial(once, tmp_path, die)]
    result = maximise(NETWORK, functions, budget=6, jobs=2, algorithm=RandomSearch())
    assert (states(result), result.status) == (["complete"] * 6, "budget")
    assert len(calls(tmp_path, "heat")) == 6  # finished stages were not run again
    assert len(calls(tmp_path, "quench")) == 7


def test_a_stage_that_always_ends_its_worker_fails_only_its_own_run(tmp_path: Path) -> None:
    def deadly(heat: float) -> float:
        if heat > 0.5:
            die()
        return quench(heat)

    functions: Any = [partial(counted, tmp_path, heat), deadly]
    result = maximise(NETWORK, functions, budget=4, jobs=2, algorithm=NonAdaptive())
    hot = [heat(**trial.controls) > 0.5 for trial in result.trials]
    assert 0 < sum(hot) < 4
    assert states(result) == ["failed" if it else "complete" for it in hot]
    failed = result.trials[hot.index(True)]
    assert failed.outputs == {"heat": (heat(**failed.controls),)}  # kept
    assert failed.reason is not None
    assert "stage 'quench' ended its worker process (killed by signal SIGKILL)" in failed.reason
    assert "2 tries" in failed.reason
    assert len(calls(tmp_path, "heat")) == 4


def test_a_stage_that_exits_fails_with_the_exit_code_of_its_worker() -> None:
    result = maximise(NETWORK, [heat, lambda **_: os._exit(7)], budget=2, jobs=2)
    assert states(result) == ["failed"] * 2
    assert all("exit code 7" in (trial.reason or "") for trial in result.trials)


def test_a_worker_killed_by_another_process_is_replaced(tmp_path: Path) -> None:
    def waits(x: float, y: float) -> float:
        value = counted(tmp_path, heat, x=x, y=y)
        wait_until(lambda: len(set(calls(tmp_path, "heat"))) >= 3, "another worker replaces the first")
        return value

    def kill() -> None:
        wait_until(lambda: len(calls(tmp_path, "heat")) >= 2, "two workers are running")
        os.kill(calls(tmp_path, "heat")[0], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    result = maximise(NETWORK, [waits, quench], budget=8, jobs=2, algorithm=RandomSearch())
    killer.join()
    assert states(result) == ["complete"] * 8


# ---- stages that hang or raise


def test_a_stage_that_hangs_is_stopped_and_fails_only_its_own_run(tmp_path: Path) -> None:
    functions: Any = [heat, partial(once, tmp_path, partial(time.sleep, 1000))]
    result = maximise(timed(LIMIT), functions, budget=5, jobs=2, algorithm=RandomSearch())
    assert sorted(states(result)) == ["complete"] * 4 + ["failed"]
    failed = next(trial for trial in result.trials if trial.state == "failed")
    assert f"stage 'quench' took longer than its time-out of {LIMIT:g} s" in (failed.reason or "")
    assert failed.outputs == {"heat": (heat(**failed.controls),)}
    assert all(map(gone, calls(tmp_path, "quench")))


def test_a_stage_that_hangs_once_is_tried_again(tmp_path: Path) -> None:
    functions: Any = [partial(counted, tmp_path, heat), partial(once, tmp_path, partial(time.sleep, 1000))]
    result = maximise(timed(LIMIT, retries=1), functions, budget=4, jobs=2, algorithm=RandomSearch())
    assert states(result) == ["complete"] * 4
    assert (len(calls(tmp_path, "heat")), len(calls(tmp_path, "quench"))) == (4, 5)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_stage_that_raises_is_tried_again_while_retries_are_left(tmp_path: Path, jobs: int) -> None:
    def raises() -> None:
        raise OSError("the licence server is away")

    functions: Any = [heat, partial(once, tmp_path, raises)]
    assert states(maximise(timed(), functions, budget=2, jobs=jobs)).count("failed") == 1
    (tmp_path / "done").unlink()
    assert states(maximise(timed(retries=1), functions, budget=2, jobs=jobs)) == ["complete"] * 2
    result = maximise(timed(retries=2), [heat, broken], budget=2, jobs=jobs)
    assert states(result) == ["failed"] * 2
    assert "raised RuntimeError: broken (in the last of 3 tries)" in (result.trials[0].reason or "")


def test_a_stage_that_hangs_in_the_calling_thread_fails_its_run_but_keeps_running(tmp_path: Path) -> None:
    ended = threading.Event()
    functions: Any = [heat, partial(once, tmp_path, ended.wait)]
    result = maximise(timed(LIMIT), functions, budget=3, algorithm=RandomSearch())
    ended.set()
    assert sorted(states(result)) == ["complete"] * 2 + ["failed"]
    assert f"took longer than its time-out of {LIMIT:g} s" in str(result)


def test_the_time_limit_applies_to_each_try(tmp_path: Path) -> None:
    tries = 9  # in total they take longer than the limit, but each takes only a small part of it

    def slow(heat: float) -> float:
        time.sleep(1.1 * LIMIT / tries)
        value = counted(tmp_path, quench, heat=heat)
        assert len(calls(tmp_path, "quench")) == tries, "not yet"
        return value

    assert states(maximise(timed(LIMIT, retries=tries - 1), [heat, slow], budget=1, jobs=2)) == ["complete"]


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_command_is_ended_at_the_time_limit_of_its_stage(jobs: int) -> None:
    result = maximise(timed(0.3), [heat, Command(["sleep", "1000"])], budget=2, jobs=jobs)
    assert states(result) == ["failed"] * 2
    assert "timed out after 0.3 s" in (result.trials[0].reason or "")


def test_processes_that_a_stage_started_end_with_it(tmp_path: Path) -> None:
    def starts(heat: float) -> float:
        child = subprocess.Popen(["sleep", "1000"])
        (tmp_path / "child").write_text(str(child.pid))
        child.wait()
        return heat

    assert states(maximise(timed(LIMIT), [heat, starts], budget=1, jobs=2)) == ["failed"]
    child = int((tmp_path / "child").read_text())
    wait_until(lambda: gone(child), "the child is gone")


def test_a_dead_worker_is_replaced_while_its_children_still_run(tmp_path: Path) -> None:
    """The children hold the pipes of their worker open; the pool does not wait until they end."""

    def forks(heat: float) -> float:
        child = os.fork()
        if child == 0:
            time.sleep(LONG)
            os._exit(0)
        with open(tmp_path / "children", "a") as file:
            file.write(f"{child}\n")
        die()
        return heat

    try:
        assert states(maximise(NETWORK, [heat, forks], budget=1, jobs=2)) == ["failed"]
        assert not any(map(gone, calls(tmp_path, "children")))
    finally:
        for child in calls(tmp_path, "children"):
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_stage_that_calls_sys_exit_fails_its_run(jobs: int) -> None:
    result = maximise(NETWORK, [heat, lambda **_: sys.exit(3)], budget=2, jobs=jobs)
    assert states(result) == ["failed"] * 2
    assert "raised SystemExit: 3" in (result.trials[0].reason or "")


def test_one_function_for_all_stages_cannot_have_timeouts_or_retries() -> None:
    with pytest.raises(ArgumentError, match=r"stage 'quench' has a timeout or retries, which evaluate\(\) cannot keep"):
        maximise(timed(1.0), lambda **_: {}, budget=2)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_timeout_longer_than_the_system_supports_is_valid(jobs: int) -> None:
    assert states(maximise(timed(1e12), [heat, quench], budget=2, jobs=jobs)) == ["complete"] * 2


# ---- invalid functions


def test_functions_that_cannot_be_pickled_raise_an_argument_error() -> None:
    lock = threading.Lock()

    def locked(x: float, y: float) -> float:
        with lock:
            return heat(x, y)

    with pytest.raises(ArgumentError, match=r"could not be sent to worker processes: .*lock"):
        maximise(NETWORK, [locked, quench], budget=3, jobs=2)


class Unreadable:
    """A function that can be pickled but not unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return int, ("no number",)

    def __call__(self, heat: float) -> float:
        return heat


def test_functions_that_cannot_be_unpickled_raise_an_argument_error() -> None:
    with pytest.raises(ArgumentError, match=r"could not be sent to a worker process: ValueError: invalid literal"):
        maximise(NETWORK, [heat, Unreadable()], budget=3, jobs=2)


# ---- in a store: interrupted and killed

SCRIPT = """
import os, signal, sys, time
from pathlib import Path
from cascada import Study
from tests.execution.processes import heat, network, quench

url, folder, seconds = sys.argv[1], Path(sys.argv[2]), float(sys.argv[3])

def first(x, y):
    with open(folder / "heat", "a") as file:
        file.write(f"{os.getpid()}\\n")
    return heat(x, y)

def second(heat):
    with open(folder / "quench", "a") as file:
        file.write(f"{os.getpid()}\\n")
    time.sleep(seconds)
    return quench(heat)

study = Study.open(url, "alloy", network(), algorithm="random_search")
print(study.optimise([first, second], budget=4, jobs=2).status, flush=True)
"""


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[float], subprocess.Popen[str]]]:
    """Yield a function that starts the script with a second stage that takes this many seconds."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    begun: list[subprocess.Popen[str]] = []

    def begin(seconds: float) -> subprocess.Popen[str]:
        arguments = [str(script), f"sqlite:///{tmp_path}/alloy.db", str(tmp_path), str(seconds)]
        process = Fork("python", arguments, env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])})
        begun.append(process)
        return process

    yield begin
    for process in begun:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_study_continues_with_the_stages_that_were_running(
    tmp_path: Path, start: Callable[[float], subprocess.Popen[str]], how: signal.Signals
) -> None:
    process = start(1000.0)
    wait_until(lambda: len(calls(tmp_path, "quench")) == 2, "both runs are at their second stage")
    study = Study.open(f"sqlite:///{tmp_path}/alloy.db", "alloy", NETWORK)
    # Workers continue before their outputs are stored.
    wait_until(lambda: sum("heat" in trial.outputs for trial in study.trials) == 2, "the first stages are stored")
    process.send_signal(how)
    output, _ = process.communicate(timeout=LONG)
    assert output.strip() == ("interrupted" if how == signal.SIGINT else "")
    wait_until(lambda: all(map(gone, calls(tmp_path, "quench"))), "the workers are gone")
    state = "waiting" if how == signal.SIGINT else "running"  # a killed process cannot release its trials
    assert [(trial.state, set(trial.outputs)) for trial in study.trials] == [(state, {"heat"})] * 2
    output, _ = start(0.0).communicate(timeout=LONG)
    assert output.strip() == "budget"
    assert [trial.state for trial in study.trials] == ["complete"] * 4
    assert (len(calls(tmp_path, "heat")), len(calls(tmp_path, "quench"))) == (4, 6)


def test_a_stored_study_in_a_pool_records_every_stage(tmp_path: Path) -> None:
    study = Study.open(f"sqlite:///{tmp_path}/alloy.db", "alloy", NETWORK, algorithm=GPNUCB())
    result = study.optimise([heat, quench], budget=6, jobs=2)
    assert (states(result), result.gap_kind) == (["complete"] * 6, "proven")
    kinds = [event.kind for event in study.events]
    assert (kinds.count("observed"), kinds.count("told")) == (6, 6)  # stage by stage
