"""Runs on a Dask cluster, also when a stage kills its worker."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.forked import Fork
from tests.missing import need_module
from tests.starting import first_line
from tests.waiting import LONG

# ruff: noqa: E402  (the imports below may be missing)
need_module("distributed", "dask")

import dask
import distributed

from cascada.algorithms import NonAdaptive, RandomSearch
from cascada.cli.default_tolerance import stored_tolerance
from cascada.cli.main import app
from cascada.errors import ArgumentError, CascadaError
from cascada.integrations.dask import dask_executor
from cascada.study import Study, maximise
from tests.execution.processes import calls, counted, heat, network, once, quench

NETWORK = network()


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """Yield the address of a cluster of two processes."""
    settings = {"distributed.scheduler.allowed-failures": 1, "distributed.nanny.pre-spawn-environ": {}}
    make: Any = distributed.LocalCluster  # has no types
    with (
        dask.config.set(settings),
        make(2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address="127.0.0.1:0") as made,
    ):
        yield str(made.scheduler_address)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def sometimes_deadly(heat: float) -> float:
    if heat > 1.0:
        die()
    return quench(heat)


def test_a_cluster_has_the_same_result_as_the_calling_thread(cluster: str) -> None:
    plain = maximise(NETWORK, [heat, quench], budget=6, algorithm=NonAdaptive())
    with dask_executor(cluster) as (executor, capacity):
        assert capacity == 2
        other = maximise(NETWORK, [heat, quench], budget=6, algorithm=NonAdaptive(), executor=executor)
        assert other.trials == plain.trials
        adaptive = maximise(NETWORK, [heat, quench], budget=6, executor=executor, jobs=capacity)
    assert (adaptive.status, adaptive.gap_kind, len(adaptive.trials)) == ("budget", "proven", 6)


def test_the_run_of_a_killed_worker_is_repeated(cluster: str, tmp_path: Path) -> None:
    functions: list[Callable[..., float]] = [partial(counted, tmp_path, heat), partial(once, tmp_path, die)]
    study = Study.open(f"sqlite:///{tmp_path}/alloy.db", "alloy", NETWORK, algorithm="random_search")
    with dask_executor(cluster) as (executor, capacity):
        result = study.optimise(functions, budget=6, executor=executor, jobs=capacity)
    assert (result.status, [trial.state for trial in study.trials]) == ("budget", ["complete"] * 6)
    kinds = [event.kind for event in study.events]
    assert kinds.count("told") == 6
    assert 7 <= len(calls(tmp_path, "quench")) <= 8  # the other worker's run may have been moved as well


def test_a_run_that_kills_every_worker_fails_and_others_complete(cluster: str) -> None:
    with dask_executor(cluster) as (executor, capacity):
        result = maximise(
            NETWORK,
            [heat, sometimes_deadly],
            budget=5,
            executor=executor,
            jobs=capacity,
            algorithm=RandomSearch(),
            seed=6,
        )
    hot = [heat(**trial.controls) > 1.0 for trial in result.trials]
    assert sum(hot) == 1
    assert [trial.state for trial in result.trials] == ["failed" if it else "complete" for it in hot]
    assert "the executor lost it: KilledWorker" in (result.trials[hot.index(True)].reason or "")


def alloy(folder: Path, body: str = "") -> str:
    """Write a process of one stage, whose function begins with `body`, and return its SPEC."""
    process = folder / "alloy.py"
    process.write_text(
        "import math, os, signal\n"
        "import cascada as cd\n"
        "kernel = cd.SquaredExponential(1.0)\n"
        "def bump(x):\n"
        f"    {body or 'pass'}\n"
        "    return 1.2 * math.exp(-0.5 * (x - 0.4) ** 2)\n"
        "f = cd.Stage('f', {'x': cd.Real(-1, 1)}, kernel=kernel, norm_bound=2.0, function=bump)\n"
        "network = cd.chain(f)\n"
    )
    return f"{process}:network"


def test_cascada_run_uses_a_cluster(cluster: str, tmp_path: Path) -> None:
    arguments = ["run", alloy(tmp_path), "--budget", "4", "--tolerance", "0", "--dask", cluster, "--json"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert '"status": "budget"' in result.stdout


def test_the_default_tolerance_ends_a_run_on_a_cluster(cluster: str, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/alloy.db"
    result = CliRunner().invoke(app, ["run", alloy(tmp_path), "--storage", url, "--dask", cluster])
    assert result.exit_code == 0, result.output
    assert "The gap is within the tolerance." in result.stdout
    assert result.stderr.count("No --tolerance was given, so it ends at a proven gap of") == 1
    study = Study.open(url, "alloy")
    stored = stored_tolerance(study)
    assert stored is not None
    assert study.gap is not None
    assert study.gap <= stored
    study.close()


def test_a_scheduler_that_dies_ends_the_run_with_one_sentence_and_loses_no_finished_run(tmp_path: Path) -> None:
    # The worker is a thread of the scheduler's process, so that the stage can kill the scheduler in its fourth call.
    calls = tmp_path / "calls"
    kill = (
        f"with open({str(calls)!r}, 'a') as file: file.write('x')\n"
        f"    if os.path.getsize({str(calls)!r}) == 4: os.kill(os.getpid(), signal.SIGKILL)"
    )
    code = (
        "import sys\n"
        "from distributed import LocalCluster\n"
        "with LocalCluster(1, threads_per_worker=1, processes=False, host='127.0.0.1',\n"
        "                  dashboard_address='127.0.0.1:0', protocol='tcp') as made:\n"
        "    print(made.scheduler_address, flush=True)\n"
        "    sys.stdin.read()\n"
    )
    process = Fork("-c", [code])
    address = first_line(process).strip()
    arguments = ["run", alloy(tmp_path, kill), "--storage", f"sqlite:///{tmp_path}/alloy.db", "--budget", "5"]
    lost = CliRunner().invoke(app, [*arguments, "--dask", address])
    assert process.wait(LONG) == -signal.SIGKILL
    assert lost.exit_code == 1, lost.output
    assert lost.stderr == (
        "cascada: the Dask scheduler was lost during the run; the study keeps every run that had ended. "
        "Start a scheduler and repeat the command.\n"
    )
    assert "runs        4 (1 waiting)" in lost.stdout
    dead = CliRunner().invoke(app, [*arguments, "--dask", address])
    assert (dead.exit_code, dead.stdout, dead.stderr.count("\n")) == (1, "", 1)
    assert f"cascada: there is no Dask scheduler at '{address}'" in dead.stderr
    calls.unlink()
    rest = CliRunner().invoke(app, [*arguments, "--tolerance", "0"])
    assert rest.exit_code == 0, rest.output
    assert calls.stat().st_size == 2  # the run that was lost, and the fifth one
    for pipe in (process.stdin, process.stdout, process.stderr):
        assert pipe is not None
        pipe.close()


def test_a_module_missing_on_the_workers_fails_the_run_and_kills_no_worker(cluster: str, tmp_path: Path) -> None:
    (tmp_path / "elsewhere.py").write_text("def quench(heat): return heat\n")
    sys.path.insert(0, str(tmp_path))
    try:
        from elsewhere import quench as unknown  # type: ignore[import-not-found]
    finally:
        sys.path.remove(str(tmp_path))
    with dask_executor(cluster) as (executor, capacity):
        result = maximise(NETWORK, [heat, unknown], budget=2, executor=executor, jobs=capacity)
        again = maximise(NETWORK, [heat, quench], budget=2, executor=executor, jobs=capacity)
    assert [trial.state for trial in result.trials] == ["failed"] * 2
    assert "No module named 'elsewhere'" in (result.trials[0].reason or "")
    assert [trial.state for trial in again.trials] == ["complete"] * 2


def test_an_address_without_a_scheduler_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cascada.integrations.dask._TIMEOUT", 1)
    with pytest.raises(CascadaError, match="there is no Dask scheduler at"), dask_executor("tcp://127.0.0.1:9"):
        pass
    with pytest.raises(ArgumentError, match="is no address of a Dask scheduler"), dask_executor("nonsense://nowhere"):
        pass
