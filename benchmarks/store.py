"""Cost of a store: ask and tell without a suggestion, and what is done with studies of many trials.

    python -m benchmarks.store [--trials 200] [--many 2000,20000]

In the first table both libraries write to a SQLite file in the same folder. The points are enqueued in advance, so that
neither library computes suggestions. Optuna (`pip install optuna`) is the baseline and omitted if it is not installed.
Times are wall clock, most of it waiting for the disk.

In the second table every row is one process that opens a stored study of two stages, as a command does. Times are CPU
seconds after the imports, and memory is the most that the process had (Linux only). The baseline is to read all rows of
the log and to parse their JSON, without the library.
"""

import argparse
import json
import math
import multiprocessing
import sqlite3
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import cascada as cd
from benchmarks.environment import description, require_one_thread
from benchmarks.markdown import table, times

MANY = (2_000, 20_000)


def network() -> cd.Network:
    """Two stages of one control."""
    kernel = cd.SquaredExponential(1.0)
    f = cd.Stage("f", controls={"x": cd.Real(-2, 2)}, kernel=kernel, norm_bound=50.0)
    return cd.chain(f, cd.Stage("g", kernel=kernel, norm_bound=50.0))


def ours(folder: Path, trials: int) -> float:
    """Seconds per trial of an ask and a tell of all outputs."""
    study = cd.Study.open(f"sqlite:///{folder / 'cascada.db'}", "bench", network(), algorithm="random_search")
    for i in range(trials):
        study.enqueue_trial({"x": -2 + 4 * i / trials})
    started = time.perf_counter()
    for _ in range(trials):
        trial = study.ask()
        assert trial is not None
        f = math.sin(trial.controls["x"])
        study.tell(trial, {"f": f, "g": f * f})
    return (time.perf_counter() - started) / trials


def optuna_storage(folder: Path, trials: int) -> float:
    """The same with Optuna's relational storage."""
    import optuna  # type: ignore[import-not-found, unused-ignore]

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(
        storage=f"sqlite:///{folder / 'optuna.db'}", sampler=optuna.samplers.RandomSampler(seed=0)
    )
    space: dict[str, optuna.distributions.BaseDistribution] = {"x": optuna.distributions.FloatDistribution(-2.0, 2.0)}
    for i in range(trials):
        study.enqueue_trial({"x": -2 + 4 * i / trials})
    started = time.perf_counter()
    for _ in range(trials):
        trial = study.ask(space)
        study.tell(trial, math.sin(trial.params["x"]) ** 2)
    return (time.perf_counter() - started) / trials


def filled(folder: Path, trials: int, algorithm: str) -> Path:
    """The file of a study of many trials."""
    path = folder / f"{algorithm}-{trials}.db"
    study = cd.Study.open(f"sqlite:///{path}", "many", network(), algorithm=algorithm)
    xs = [-2 + 4 * (i + 0.5) / trials for i in range(trials)]
    study.add_trials([({"x": x}, {"f": math.sin(x), "g": math.sin(x) ** 2}, f"run {x}") for x in xs])
    study.close()
    return path


def read_log(path: Path) -> None:
    """Read the log without the library."""
    with sqlite3.connect(path) as connection:
        assert all(json.loads(data) is not None for (data,) in connection.execute("SELECT data FROM cascada_events"))


def find_best(path: Path) -> None:
    """What `cascada best` does."""
    assert cd.Study.open(f"sqlite:///{path}", "many").best_trial is not None


def certify(path: Path) -> None:
    """What `cascada status` does."""
    assert cd.Study.open(f"sqlite:///{path}", "many").certificate().gap is not None


def ask(path: Path) -> None:
    """What `cascada ask` does."""
    assert cd.Study.open(f"sqlite:///{path}", "many").ask() is not None


def measured(task: Callable[[Path], None], path: Path) -> tuple[float, float]:
    """CPU seconds of a task in this process, and the most memory that the process ever had, in MB."""
    started = time.process_time()
    task(path)
    used = time.process_time() - started
    # Unlike `resource.getrusage`, this does not count the memory of the process that started this one.
    peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return used, int(peak.split()[1]) / 1024


def many_rows(folder: Path, trials: int) -> list[list[str]]:
    """The rows of the second table for a number of trials."""
    searched, designed = filled(folder, trials, "gpn_ucb"), filled(folder, trials, "random_search")
    tasks = {
        "read the log": (read_log, searched),
        "best": (find_best, searched),
        "status": (certify, searched),
        "ask, random search": (ask, designed),
        "ask, GPN-UCB": (ask, searched),
    }
    found = {}
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), max_tasks_per_child=1) as pool:
        for name, (task, path) in tasks.items():
            found[name] = pool.submit(measured, task, path).result()
    baseline = found["read the log"][0]
    return [
        [f"{trials:,}", name, f"{cpu:.2f}", times(cpu / baseline), f"{memory:.0f}"]
        for name, (cpu, memory) in found.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--many", default=",".join(map(str, MANY)), help="trials of the studies in the second table")
    options = parser.parse_args()
    trials = options.trials
    require_one_thread()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        mine = ours(folder, trials)
        rows = [["cascada, SQLite", f"{1e3 * mine:.1f}", "1"]]
        if find_spec("optuna") is not None:
            theirs = optuna_storage(folder, trials)
            rows.append(["Optuna, SQLite", f"{1e3 * theirs:.1f}", f"{theirs / mine:.1f}"])
        print(description(["sqlalchemy"]))
        print(table(["store", "ms for an ask and a tell", "times ours"], rows))
        header = ["trials", "task", "CPU seconds", "times reading", "MB"]
        print("\n" + table(header, [row for count in options.many.split(",") for row in many_rows(folder, int(count))]))


if __name__ == "__main__":
    main()
