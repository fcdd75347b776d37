"""Many processes on one study: no point is chosen twice, no result is lost, and others run the trials of dead ones."""

import os
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cascada.errors import StoreError
from cascada.network import chain
from cascada.store.database import Store
from cascada.study import Study
from tests.forked import Fork
from tests.network.cases import X, Y, stage
from tests.starting import first_line
from tests.thorough import THOROUGH
from tests.waiting import LONG, wait_until

WORKERS, MORTALS, EACH = (8, 3, 40) if THOROUGH else (4, 2, 20)
NETWORK = chain(stage("f", controls=X | Y))
SCRIPT = """
import sys, time
from cascada.study import Study

url, worker, many, last = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
study = Study.open(url, "alloy", worker=worker)
done = 0
while done < many and (last == 0 or sum(t.state == "complete" for t in study.trials) < last):
    killed_here = worker.startswith("mortal") and done == 5
    trial = study.ask(lease=(0.1 if killed_here else 1000.0) if last else None)
    if killed_here:
        print("under way", trial.number, flush=True)
        time.sleep(1000)
    study.tell(trial, {"f": 0.25 * trial.controls["x"]})
    done += 1
print("done", done, flush=True)
"""


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the URL of a store with an empty study."""
    server = request.param == "postgresql"  # without one the test is skipped
    place: str = request.getfixturevalue("postgres_url") if server else f"sqlite:///{tmp_path}/studies.db"
    Study.open(place, "alloy", NETWORK, algorithm="random_search")
    return place


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Yield a function that starts a script with arguments; kill the processes that are left."""
    begun: list[subprocess.Popen[str]] = []
    root = str(Path(__file__).parents[2])

    def start(script: str, *arguments: object) -> subprocess.Popen[str]:
        path = tmp_path / f"script{len(begun)}.py"
        path.write_text(script)
        environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": root}
        begun.append(Fork("python", [str(path), *map(str, arguments)], env=environment))
        return begun[-1]

    yield start
    for process in begun:
        if process.returncode is None:
            process.kill()
            process.communicate()


Start = Callable[..., subprocess.Popen[str]]


def ended(process: subprocess.Popen[str]) -> int:
    """Wait for the end of a worker and return its number of trials."""
    output, errors = process.communicate(timeout=LONG)
    assert process.returncode == 0, errors
    return int(output.split()[-1])


def check(study: Study) -> None:
    """Check that all points are different and that each result was recorded once and unchanged."""
    trials, events = study.trials, study.events
    assert [event.number for event in events] == list(range(len(events)))
    assert [trial.number for trial in trials] == list(range(len(trials)))
    assert len({tuple(trial.controls.values()) for trial in trials}) == len(trials)
    results = Counter(event.trial for event in events if event.kind == "told")
    assert results == Counter(trial.number for trial in trials if trial.state == "complete")
    complete = [trial for trial in trials if trial.state == "complete"]
    assert all(trial.outputs == {"f": (0.25 * trial.controls["x"],)} for trial in complete)


def leased(store: Store, study: int) -> set[int]:
    """Return the trials whose lease has not expired."""
    return store.change(study, lambda log: log.leased())[0]


def test_many_processes_share_a_study(url: str, start: Start) -> None:
    workers = [start(SCRIPT, url, f"worker {i}", EACH, 0) for i in range(WORKERS)]
    assert [ended(worker) for worker in workers] == [EACH] * WORKERS
    study = Study.open(url, "alloy")
    check(study)
    assert [trial.state for trial in study.trials] == ["complete"] * (WORKERS * EACH)
    asked = Counter(event.data["worker"] for event in study.events if event.kind == "asked")
    assert asked == {f"worker {i}": EACH for i in range(WORKERS)}


def test_other_workers_run_the_trials_of_killed_ones(url: str, start: Start) -> None:
    last = WORKERS * EACH
    mortals = [start(SCRIPT, url, f"mortal {i}", 10**6, last) for i in range(MORTALS)]
    lost = []
    for worker in mortals:
        line = first_line(worker)
        assert line.startswith("under way"), worker.communicate()
        lost.append(int(line.split()[-1]))
        worker.send_signal(signal.SIGKILL)
        worker.communicate()
    store = Store(url)
    number = store.get("alloy")[0].study
    wait_until(lambda: not leased(store, number), "the leases of the killed workers have expired")
    workers = [start(SCRIPT, url, f"worker {i}", 10**6, last) for i in range(MORTALS, WORKERS)]
    ran = [ended(worker) for worker in workers]
    study = Study.open(url, "alloy")
    check(study)
    assert len(lost) == MORTALS
    assert {study.trials[number].state for number in lost} == {"complete"}
    assert set(lost) <= {event.trial for event in study.events if event.kind == "expired"}
    complete = sum(trial.state == "complete" for trial in study.trials)
    assert (
        last <= complete <= last + len(ran)
    )  # a worker that checks before the last result is recorded may run one more
    assert complete == sum(ran) + 5 * MORTALS


def test_processes_that_create_the_same_study_at_once_share_it(url: str, start: Start) -> None:
    script = """
import sys
from cascada.study import Study
from tests.study.test_many_processes import NETWORK

study = Study.open(sys.argv[1], "bronze", NETWORK, algorithm="random_search")
study.tell(study.ask(), {"f": 0.5})
print(1)
"""
    makers = [start(script, url) for _ in range(3)]
    assert [ended(maker) for maker in makers] == [1] * 3
    study = Study.open(url, "bronze")
    assert [event.kind for event in study.events].count("created") == 1
    assert len({tuple(trial.controls.values()) for trial in study.trials}) == 3
    assert Store(url).studies() == ["alloy", "bronze"]


def test_a_worker_does_not_take_over_trials_of_a_live_one_with_its_name(url: str, start: Start) -> None:
    script = """
import sys, time
from cascada.study import Study

print(Study.open(sys.argv[1], "alloy", worker="one").ask(lease=600.0).number, flush=True)
time.sleep(1000)
"""
    holder = start(script, url)
    assert first_line(holder) == "0\n"
    study = Study.open(url, "alloy", worker="one")
    events = study.events
    with pytest.raises(StoreError, match="a worker named 'one' is running trial 0"):
        study.take_up()
    assert study.events == events
    holder.kill()
    holder.communicate()
    assert study.take_up() == 1
    trial = study.ask()
    assert trial is not None
    assert trial.number == 0


GIVEN_UP = """
import sys, time
from cascada.study import Study

print(Study.open(sys.argv[1], "alloy", worker="one").ask(lease=600.0).number, flush=True)
time.sleep(1000)
"""


def test_others_take_up_the_trials_of_a_process_that_is_gone_whatever_its_name(url: str, start: Start) -> None:
    holders = []
    for number in range(2):
        holders.append(start(GIVEN_UP, url))
        assert first_line(holders[-1]) == f"{number}\n"
    holders[0].kill()
    holders[0].communicate()
    study = Study.open(url, "alloy", worker="two")
    trials = study.ask(2, lease=600.0)
    assert [trial.number for trial in trials] == [0, 2]  # the other process is alive
    assert [event.trial for event in study.events if event.kind == "expired"] == [0]
    assert [trial.number for trial in study.ask(1)] == [3]  # what this process runs is not given up
    holders[1].kill()
    holders[1].communicate()
    assert [trial.number for trial in study.ask(1)] == [1]


def test_a_trial_asked_for_by_a_command_stays_under_its_lease_when_the_command_has_ended(
    url: str, start: Start
) -> None:
    script = "import sys; from cascada.cli.main import app; app(sys.argv[1:])"
    command = start(script, "ask", "--study", "alloy", "--lease", 600, "--storage", url)
    command.communicate(timeout=LONG)
    assert command.returncode == 0
    study = Study.open(url, "alloy")
    assert [trial.number for trial in study.ask(1)] == [1]
    assert study.correct(0, controls={"x": 0.5}).controls["x"] == 0.5  # but no live process runs it


@pytest.mark.parametrize("name", ["Légierung № 7 — αβγ 合金", "'; DROP TABLE cascada_events; --", '%s {} \\ "x"'])
def test_names_and_reasons_of_any_characters_round_trip(url: str, name: str) -> None:
    study = Study.open(url, name, NETWORK)
    study.note("'; DROP TABLE cascada_events; -- \x00 \ud800")
    study.fail(study.enqueue_trial({"x": 0.1, "y": 1e-300}), "naïve \x00 'reason'")
    again = Study.open(url, name)
    assert again.trials == study.trials
    assert again.trials[0].reason == "naïve \x00 'reason'"
    assert Store(url).studies() == ["alloy", name]
