"""Cost of a store: ask and tell without a suggestion, and opening a study of ten thousand trials.

    python -m benchmarks.store [--trials 200]

Both libraries write to a SQLite file in the same folder. The points are enqueued in advance, so that neither library
computes suggestions. Optuna (`pip install optuna`) is the baseline and omitted if it is not installed. Times are wall
clock, most of it waiting for the disk.
"""

import argparse
import math
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import cascada as cd
from benchmarks.environment import description, require_one_thread
from benchmarks.markdown import table

MANY = 10_000


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


def opening(folder: Path) -> float:
    """CPU seconds to open a study of `MANY` trials and find the best one."""
    url = f"sqlite:///{folder / 'many.db'}"
    study = cd.Study.open(url, "many", network(), algorithm="random_search")
    xs = [-2 + 4 * (i + 0.5) / MANY for i in range(MANY)]
    study.add_trials([({"x": x}, {"f": math.sin(x), "g": math.sin(x) ** 2}, f"run {x}") for x in xs])
    started = time.process_time()
    assert cd.Study.open(url, "many").best_trial is not None
    return time.process_time() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=200)
    trials = parser.parse_args().trials
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
        print(f"\nA study of {MANY:,} trials opens in {opening(folder):.2f} s of CPU.")


if __name__ == "__main__":
    main()
