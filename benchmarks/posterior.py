"""Speed of `cascada.gp.Posterior` relative to scikit-learn's `GaussianProcessRegressor` with the same kernel and data.

    python -m benchmarks.posterior [--quick] [--fresh] [--write docs/performance.md]

Letters: t observations, n queries, both uniform on the unit cube of d = 4 dimensions.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from statistics import median

import numpy as np
from scipy.linalg.blas import dtrsv
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import Matern as PeerMatern

from benchmarks.environment import description, require_one_thread
from benchmarks.markdown import NONE, Target, duration, table, times, write_section
from benchmarks.timing import Contestant, Effort, Timing, race
from cascada.arrays import Array
from cascada.gp import Posterior, TrackedPosterior
from cascada.kernels import Matern

NAME = "benchmarks.posterior"
OBSERVATIONS = (50, 200, 1000)
QUERIES = (1, 50, 2500)
DIMENSION = 4
NU = 2.5
LENGTHSCALE = 0.5
JITTER = 1e-10

FULL = Effort(rounds=15, turn_seconds=0.02, clock=time.process_time)
QUICK = Effort(rounds=3, turn_seconds=0.002, clock=time.process_time)

ONE_POINT = Target(3.0, at_least=True)  # scikit-learn's time over ours at n = 1
BLAS_BOUND = Target(1 / 1.2, at_least=True)  # the same if both spend their time in BLAS
BLAS_BOUND_SIZES = ((200, 2500), (1000, 50), (1000, 2500))
GRADIENT = Target(2.5, at_least=False)  # mean, sd and gradients over mean and sd
APPEND = Target(8.0, at_least=True)  # refit over append, at t = 1000
APPEND_SIZE = 1000

ALLOCATOR = {
    True: "The memory allocator is warmed up first. With `--fresh` it is not; then calls with arrays of megabytes take "
    "either library longer, or not, depending on the call before, and targets may be missed that are met here.",
    False: "The memory allocator is not warmed up.",
}
PREDICTION_HEADER = (
    *("t", "n", "predict", "scikit-learn", "scikit-learn / predict", "target"),
    *("predict_gradient / predict", "target", "jet / predict"),
)


@dataclass
class Record:
    """The summary of a whole run."""

    missed: list[str] = field(default_factory=list)
    judged: int = 0
    noise: list[float] = field(default_factory=list)

    def race(self, contestants: list[Contestant], effort: Effort) -> dict[str, Timing]:
        timings = race(contestants, effort)
        self.noise += [timing.noise for timing in timings.values()]
        return timings

    def verdict(self, target: Target | None, value: float, what: str) -> str:
        if target is None:
            return NONE
        self.judged += 1
        if not target.met_by(value):
            self.missed.append(f"{what} is {times(value)}, not {target}")
        return target.verdict(value)


@dataclass(frozen=True)
class Case:
    """Data of t observations and more to append, with both posteriors of the first t."""

    inputs: Array  # (t + more, d)
    outputs: Array  # (t + more,)
    ours: Posterior
    peer: GaussianProcessRegressor

    @classmethod
    def of(cls, t: int, more: int) -> "Case":
        inputs = np.random.default_rng(t).random((t + more, DIMENSION))
        outputs = np.sin(3.0 * inputs).sum(axis=1)
        ours = Posterior.fit(Matern(NU, LENGTHSCALE), inputs[:t], outputs[:t], JITTER)
        return cls(inputs, outputs, ours, fitted_peer(inputs[:t], outputs[:t]))


def fitted_peer(X: Array, y: Array) -> GaussianProcessRegressor:
    kernel = PeerMatern(length_scale=LENGTHSCALE, nu=NU)
    return GaussianProcessRegressor(kernel, alpha=JITTER, optimizer=None).fit(X, y)


def queries(n: int) -> Array:
    return np.random.default_rng(n).random((n, DIMENSION))


def check_agreement(case: Case, Z: Array) -> None:
    """Exit unless both give the same answer; beyond 459 rows our jitter is slightly larger."""
    ours, (mean, sd) = case.ours.predict(Z), case.peer.predict(Z, return_std=True)
    if not (np.allclose(ours.mean[:, 0], mean, rtol=0, atol=1e-7) and np.allclose(ours.sd, sd, rtol=0, atol=1e-7)):
        raise SystemExit("cascada and scikit-learn disagree: their times cannot be compared.")


# ---- predictions


def prediction_tables(effort: Effort, record: Record) -> Iterator[str]:
    """Mean and sd, with gradients, with sds of derivatives; then the smallest possible time at n = 1."""
    rows, floor = [], []
    for t in OBSERVATIONS:
        case = Case.of(t, more=0)
        for n in QUERIES:
            timings = race_predictions(case, n, effort, record)
            rows.append(prediction_row(t, n, timings, record))
            if n == 1:
                floor.append(floor_row(t, timings))
    yield "### Mean and standard deviation at n points, after t observations"
    yield table(PREDICTION_HEADER, rows)
    yield (
        "`predict` is compared with `predict(return_std=True)`; within 1.2× of it is ≥ 0.83× here. `predict_gradient` "
        "adds the input gradients of mean and sd, `jet` the means and posterior sds of the derivatives: d more "
        "triangular solves, and no target."
    )
    yield "#### The floor at n = 1"
    yield table(["t", "dtrsv", "predict / dtrsv", "scikit-learn / dtrsv"], floor)
    yield (
        "One query needs one triangular solve, which reads the whole factor and is bound by memory. `dtrsv` is that "
        "solve alone, with the same factor; the last column is the speed-up of a `predict` that did nothing else."
    )


def race_predictions(case: Case, n: int, effort: Effort, record: Record) -> dict[str, Timing]:
    Z = queries(n)
    check_agreement(case, Z)
    contestants = [
        Contestant("predict", lambda: case.ours.predict(Z)),
        Contestant("peer", lambda: case.peer.predict(Z, return_std=True)),
        Contestant("gradient", lambda: case.ours.predict_gradient(Z)),
        Contestant("jet", lambda: case.ours.jet(Z)),
    ]
    if n == 1:
        contestants.append(Contestant("dtrsv", lambda: dtrsv(case.ours.factor, case.outputs, lower=1)))
    return record.race(contestants, effort)


def prediction_row(t: int, n: int, timings: dict[str, Timing], record: Record) -> list[str]:
    predict, peer = timings["predict"], timings["peer"]
    speedup, gradient = peer.over(predict), timings["gradient"].over(predict)
    target = ONE_POINT if n == 1 else BLAS_BOUND if (t, n) in BLAS_BOUND_SIZES else None
    return [
        str(t),
        str(n),
        duration(predict.median),
        duration(peer.median),
        times(speedup),
        record.verdict(target, speedup, f"scikit-learn / predict at t = {t}, n = {n}"),
        times(gradient),
        record.verdict(GRADIENT, gradient, f"predict_gradient / predict at t = {t}, n = {n}"),
        times(timings["jet"].over(predict)),
    ]


def floor_row(t: int, timings: dict[str, Timing]) -> list[str]:
    floor = timings["dtrsv"]
    ratios = [times(timings[name].over(floor)) for name in ("predict", "peer")]
    return [str(t), duration(floor.median), *ratios]


# ---- one more observation


def append_table(effort: Effort, record: Record) -> Iterator[str]:
    """Appending one row to t rows, compared with fitting t + 1 rows."""
    yield "### One more observation, after t"
    yield table(
        ["t", "append", "fit", "scikit-learn's fit", "fit / append", "target", "scikit-learn's fit / append"],
        [append_row(t, effort, record) for t in OBSERVATIONS],
    )
    yield (
        "`append` adds one row to a posterior of t; both fits start anew with t + 1 rows. scikit-learn's computes the "
        "log marginal likelihood as well, for which it factorises twice."
    )


def append_row(t: int, effort: Effort, record: Record) -> list[str]:
    case = Case.of(t, more=1)
    X, y = case.inputs, case.outputs
    timings = record.race(
        [
            Contestant("append", lambda: case.ours.append(X[t:], y[t:])),
            Contestant("fit", lambda: Posterior.fit(case.ours.kernel, X, y, JITTER)),
            Contestant("peer", lambda: fitted_peer(X, y)),
        ],
        effort,
    )
    append, fit, peer = timings["append"], timings["fit"], timings["peer"]
    speedup = fit.over(append)
    return [
        str(t),
        *(duration(timing.median) for timing in (append, fit, peer)),
        times(speedup),
        record.verdict(APPEND if t == APPEND_SIZE else None, speedup, f"fit / append at t = {t}"),
        times(peer.over(append)),
    ]


# ---- a fixed set of points


class Chain:
    """Append one observation after the other, as in a study; appending twice to one state would copy shared rows."""

    def __init__(self, case: Case, Z: Array, start: int) -> None:
        first = Posterior.fit(case.ours.kernel, case.inputs[:start], case.outputs[:start], JITTER)
        self._state, self._case, self._numbers = TrackedPosterior.at(first, Z), case, count(start)

    def __call__(self) -> None:
        i = next(self._numbers)
        self._state = self._state.append(self._case.inputs[i : i + 1], self._case.outputs[i : i + 1])


def tracked_table(effort: Effort, record: Record) -> Iterator[str]:
    """Updating a posterior at fixed points, compared with predicting again."""
    n = QUERIES[-1]
    yield f"### One more observation, and mean and sd at {n} fixed points"
    yield table(
        ["t", "TrackedPosterior.append", "predict", "predict / append"],
        [tracked_row(t, n, effort, record) for t in OBSERVATIONS],
    )
    yield (
        "Consecutive appends around t. `append` includes that of the posterior itself; now and then, not in the "
        "median, it also doubles the room for its rows."
    )


def tracked_row(t: int, n: int, effort: Effort, record: Record) -> list[str]:
    half = effort.rounds // 2 + 1  # including the warm-up call
    case, Z = Case.of(t, more=half), queries(n)
    timings = record.race(
        [
            Contestant("append", Chain(case, Z, start=t - half), repeatable=False),
            Contestant("predict", lambda: case.ours.predict(Z)),
        ],
        effort,
    )
    append, predict = timings["append"], timings["predict"]
    return [str(t), duration(append.median), duration(predict.median), times(predict.over(append))]


# ---- the report


def report(command: str, effort: Effort) -> str:
    record = Record()
    tables = [
        *prediction_tables(effort, record),
        *append_table(effort, record),
        *tracked_table(effort, record),
    ]
    return "\n\n".join([*introduction(command, effort, record), *tables])


def introduction(command: str, effort: Effort, record: Record) -> Iterator[str]:
    yield "## The posterior against scikit-learn's GaussianProcessRegressor"
    yield f"```sh\n{command}\n```"
    yield description(["numpy", "scipy", "scikit-learn"])
    yield (
        f"Matérn kernel with ν = {NU:g} and lengthscale {LENGTHSCALE:g}, d = {DIMENSION}, jitter {JITTER:g} on both "
        f"sides, no hyperparameter search; both give the same means and sds to 1e-7. Times are processor time, medians "
        f"of {effort.rounds} rounds in which the contestants take turns; a ratio is the median of the ratios within a "
        f"round, so it need not equal the quotient of two medians. {ALLOCATOR[effort.settled]} Noise, median "
        f"over fastest: {times(median(record.noise))} for half of the measurements, {times(max(record.noise))} for "
        f"the worst."
    )
    yield f"**{record.judged - len(record.missed)} of {record.judged} targets met.**" + (
        " Not met:\n\n" + "\n".join(f"- {line}" for line in record.missed) if record.missed else ""
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog=f"python -m {NAME}", description="Time cascada's posterior against a peer.")
    parser.add_argument("--quick", action="store_true", help="few and short rounds: does it run at all?")
    parser.add_argument("--fresh", action="store_true", help="leave the memory allocator as a new process finds it")
    parser.add_argument("--write", type=Path, metavar="FILE", help="also put the report into this Markdown file")
    arguments = parser.parse_args()
    require_one_thread()
    effort = replace(QUICK if arguments.quick else FULL, settled=not arguments.fresh)
    text = report(" ".join(["python -m", NAME, *sys.argv[1:]]), effort)
    print(text)
    if arguments.write:
        write_section(arguments.write, NAME, text)


if __name__ == "__main__":
    main()
