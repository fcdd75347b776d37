"""`cascada worker`: several processes on one study in PostgreSQL, some of which are killed and restarted."""

import json
import os
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from cascada.study import Study
from tests.forked import Fork
from tests.thorough import THOROUGH
from tests.waiting import LONG, wait_until

BUDGET = 24 if THOROUGH else 12
PROCESS = """
import math, os, time
from pathlib import Path
import cascada as cd

folder = Path(__file__).parent
workers = int(os.environ["WORKERS"])  # no run ends before this many workers have begun one

def heat(x, y):
    with open(folder / "runs", "a") as file:
        file.write(f"{x!r} {y!r} {os.getpid()}\\n")
    while len(set(Path(folder / "runs").read_text().split()[2::3])) < workers:
        time.sleep(0.01)
    return 1.2 * math.exp(-0.5 * ((x - 0.4) ** 2 + (y + 0.3) ** 2))

def quench(heat):
    return 1.5 * math.exp(-0.5 * (heat - 0.9) ** 2)

kernel = cd.SquaredExponential(1.0)
controls = {"x": cd.Real(-2, 2), "y": cd.Real(-2, 2)}
network = cd.chain(
    cd.Stage("heat", controls, kernel=kernel, norm_bound=2.0, function=heat),
    cd.Stage("quench", kernel=kernel, norm_bound=2.0, function=quench),
)
"""

Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Yield a function that starts a worker; kill the workers that are left."""
    (tmp_path / "alloy.py").write_text(PROCESS)
    begun: list[subprocess.Popen[str]] = []

    def start(url: str, *options: str, workers: int = 1) -> subprocess.Popen[str]:
        arguments = ["worker", f"{tmp_path / 'alloy.py'}:network", "--storage", url, "--study", "alloy", "--json"]
        environment = os.environ | {"OMP_NUM_THREADS": "1", "WORKERS": str(workers)}
        begun.append(Fork("cascada", [*arguments, *options], env=environment))
        return begun[-1]

    yield start
    for process in begun:
        if process.returncode is None:
            process.kill()
            process.communicate()


def runs(folder: Path) -> list[list[str]]:
    file = folder / "runs"
    return [line.split() for line in file.read_text().split("\n")[:-1]] if file.exists() else []


def begun(worker: subprocess.Popen[str], folder: Path) -> bool:
    assert worker.poll() is None, worker.communicate()
    return str(worker.pid) in {pid for *_, pid in runs(folder)}


def test_four_workers_complete_a_study_although_two_are_killed_and_restarted(
    postgres_url: str, start: Start, tmp_path: Path
) -> None:
    names = ["north", "east", "south", "west"]
    workers = {name: start(postgres_url, "--worker", name, "--budget", str(BUDGET), workers=4) for name in names}
    for name in names[:2]:
        wait_until(partial(begun, workers[name], tmp_path), f"worker {name} has begun a run")
        workers[name].send_signal(signal.SIGKILL)
        workers[name].communicate()
        workers[name] = start(postgres_url, "--worker", name, workers=4)  # the budget is that of the study
    results = []
    for worker in workers.values():
        output, errors = worker.communicate(timeout=LONG)
        assert worker.returncode == 0, errors
        results.append(json.loads(output))
    study = Study.open(postgres_url, "alloy")
    assert [trial.state for trial in study.trials] == ["complete"] * BUDGET
    points = [(repr(trial.controls["x"]), repr(trial.controls["y"])) for trial in study.trials]
    assert len(set(points)) == BUDGET
    asked = Counter(event.trial for event in study.events if event.kind == "asked")
    times = Counter((x, y) for x, y, _ in runs(tmp_path))
    for number, point in enumerate(points):
        assert 1 <= times[point] <= asked[number]  # a point that was run again was asked for again
    best = study.best_trial
    assert best is not None
    assert all(result["best"]["value"] == best.value for result in results)
    assert len({pid for *_, pid in runs(tmp_path)}) >= 4  # all workers took part


def test_a_worker_takes_over_the_last_trial_of_a_dead_one(postgres_url: str, start: Start) -> None:
    """The dead worker holds the last trial under a lease that expires."""
    first = start(postgres_url, "--study", "bronze", "--budget", "5", "--jobs", "2")
    output, errors = first.communicate(timeout=LONG)
    assert first.returncode == 0, errors
    assert len(json.loads(output)["trials"]) == 5
    lost = Study.open(postgres_url, "bronze", worker="far away").ask(lease=2.0)
    assert lost is not None
    second = start(postgres_url, "--study", "bronze", "--budget", "6")
    output, errors = second.communicate(timeout=LONG)
    assert second.returncode == 0, errors
    trials = json.loads(output)["trials"]
    assert [trial["state"] for trial in trials] == ["complete"] * 6
    assert trials[5]["controls"] == dict(lost.controls)
