"""A study that is killed at random moments and restarted ends with the same trials as an undisturbed one.

CASCADA_KILLS is the number of kills.
"""

import os
import random
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

from cascada.store.database import Store
from cascada.store.event import Event
from cascada.study import Study, Trial
from tests.forked import Fork
from tests.kills import attacked, wrong_steps, wrong_with
from tests.starting import first_line
from tests.waiting import LONG

KILLS = int(os.environ.get("CASCADA_KILLS", "6"))
BUDGET = 30 if KILLS > 6 else 20
SCRIPT = """
import math, sys, time
from cascada.kernels import SquaredExponential
from cascada.network import Stage, chain
from cascada.space import Real
from cascada.study import Study

def heat(x, y):
    time.sleep(0.02)
    return 1.2 * math.exp(-0.5 * ((x - 0.4) ** 2 + (y + 0.3) ** 2))

def quench(heat):
    if heat > 1.0:
        raise RuntimeError("too hot")
    return 1.5 * math.exp(-0.5 * (heat - 0.9) ** 2)

controls = {"x": Real(-2, 2), "y": Real(-2, 2)}
SE = SquaredExponential(1.0)
network = chain(Stage("heat", controls=controls, kernel=SE, norm_bound=2.0), Stage("quench", kernel=SE, norm_bound=2.0))
url, budget = sys.argv[1:]
print("importing is over", flush=True)
study = Study.open(url, "alloy", network, seed=5)
result = study.optimise({"heat": heat, "quench": quench}, budget=int(budget), progress=False)
print(result.status, flush=True)
"""


def begun(script: Path, url: str) -> subprocess.Popen[str]:
    """Start the script and return its process, which is about to open the store."""
    process = Fork("python", [str(script), url, str(BUDGET)], env=os.environ | {"OMP_NUM_THREADS": "1"})
    assert first_line(process) == "importing is over\n"
    return process


def ended(process: subprocess.Popen[str]) -> str:
    said, errors = process.communicate(timeout=LONG)
    assert process.returncode == 0, errors
    return said.strip()


def check_log(study: Study) -> None:
    """Check that trials were begun in the order of their numbers, and that every output was recorded once."""
    begun = [event.trial for event in study.events if event.kind == "asked"]
    assert list(dict.fromkeys(begun)) == list(range(len(study.trials)))
    told = Counter(
        (event.trial, stage)
        for event in study.events
        if event.kind in ("observed", "told")
        for stage in event.data["outputs"]
    )
    assert set(told.values()) <= {1}
    assert set(told) == {(trial.number, stage) for trial in study.trials for stage in trial.outputs}


def check_kept(before: tuple[Trial, ...], after: tuple[Trial, ...]) -> None:
    """Check that no recorded trial or output was lost or changed."""
    assert len(after) >= len(before)
    for old, new in zip(before, after, strict=False):
        assert (new.number, new.controls) == (old.number, old.controls)
        assert old.outputs.items() <= new.outputs.items()


def test_a_killed_and_resumed_study_has_the_same_trials_as_an_undisturbed_one(tmp_path: Path) -> None:
    script = tmp_path / "run.py"
    script.write_text(SCRIPT)
    calm = f"sqlite:///{tmp_path}/calm.db"
    before = time.monotonic()
    assert ended(begun(script, calm)) == "budget"
    longest = 2.0 * (time.monotonic() - before) / KILLS
    expected = Study.open(calm, "alloy").trials
    assert {trial.state for trial in expected} == {"complete", "failed"}
    rng = random.Random(11)
    kills = rounds = 0
    trials: tuple[Trial, ...]
    while kills < KILLS:  # usually one round; another if the study ended before it was killed often enough
        url, trials, rounds = f"sqlite:///{tmp_path}/killed{rounds}.db", (), rounds + 1
        while kills < KILLS:
            process = begun(script, url)
            time.sleep(rng.uniform(0.0, longest))
            process.send_signal(signal.SIGKILL)
            process.communicate()
            if process.returncode == 0:  # the script ended before the signal
                break
            assert process.returncode == -signal.SIGKILL
            kills += 1
            if "alloy" in Store(url).studies():
                study = Study.open(url, "alloy")
                check_log(study)
                check_kept(trials, study.trials)
                trials = study.trials
        assert ended(begun(script, url)) == "budget"
        study = Study.open(url, "alloy")
        check_log(study)
        assert study.trials == expected
    assert kills == KILLS


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_runners_and_workers_that_are_killed_lose_and_double_nothing(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str
) -> None:
    """A short form of `python -m tests.kills`, with restarts of the server."""
    server = kind == "postgresql"
    url: str = request.getfixturevalue("postgres_url") if server else f"sqlite:///{tmp_path}/studies.db"
    running = request.getfixturevalue("server") if server else None
    tally = attacked(url, 3, seed=5, server=running, restarts=2)
    assert not tally.wrong
    assert (tally.kills, tally.restarts) == (3, 1 if server else 0)


def test_runners_and_workers_of_steps_that_are_killed_lose_and_double_nothing(tmp_path: Path) -> None:
    """A short form of `python -m tests.kills --steps`."""
    tally = attacked(f"sqlite:///{tmp_path}/studies.db", 2, seed=7, steps=True)
    assert not tally.wrong
    assert tally.kills == 2


def test_the_check_of_steps_notices_wrong_values_charges_and_portions() -> None:
    x = {"controls": {"x": 1.0}}
    log = [Event(0, "created", None, {}, 0.0), Event(1, "asked", 0, {**x, "steps": ["heat"]}, 1.0)]
    log += [Event(2, "observed", 0, {"outputs": {"heat": [0.3]}}, 2.0)]
    for number in (1, 2, 3):
        went_on = {**x, "steps": ["quench"], "from": {"heat": 0}}
        log += [Event(len(log), "asked", number, went_on, 3.0)]
        log += [Event(len(log), "told", number, {"outputs": {"quench": [0.2]}}, 4.0)]
    assert [text.partition(":")[0] for text in wrong_steps(log)] == ["more portions were taken than there were"]
    log = log[:-2]
    assert list(wrong_steps(log)) == []
    log[2] = Event(2, "observed", 0, {"outputs": {"heat": [0.31]}}, 2.0)
    assert next(wrong_steps(log)).startswith("trial 0: heat is (0.31,)")
    log[2] = Event(2, "observed", 0, {"outputs": {"heat": [0.3]}, "tries": {"heat": 2}}, 2.0)
    assert next(wrong_steps(log)) == "trial 0 gave ['heat'] and was charged {'heat': 6.0}"


def test_the_check_of_a_log_notices_what_is_lost_doubled_or_changed() -> None:
    log = [
        Event(0, "created", None, {}, 0.0),
        Event(1, "asked", 0, {"controls": {"x": 1.0}}, 1.0),
        Event(2, "observed", 0, {"outputs": {"heat": [0.3]}}, 2.0),
        Event(3, "told", 0, {"outputs": {"quench": [0.2]}}, 3.0),
    ]
    told = {(0, "heat", 0.3), (0, "quench", 0.2)}
    again = Event(4, "observed", 0, {"outputs": {"heat": [0.3]}}, 4.0)
    other = Event(3, "told", 0, {"outputs": {"quench": [0.25]}}, 3.0)
    second = Event(1, "asked", 1, {"controls": {"x": 1.0}}, 1.0)
    assert not list(wrong_with(log[:2], log, told))
    assert "not there any more" in next(wrong_with(log, log[:3], set()))
    assert "told are not in the log" in next(wrong_with([], log[:3], told))
    assert "in the log twice" in next(wrong_with([], [*log, again], told))
    assert "quench is 0.25" in next(wrong_with([], [*log[:3], other], set()))
    assert "order of their numbers" in next(wrong_with([], [log[0], second], set()))
    assert "0, 1, 2" in next(wrong_with([], log[1:], set()))
