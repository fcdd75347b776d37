"""Soundness of bounds from readings with sub-Gaussian errors.

They hold with a probability, at all times at once. So a process counts as broken if any bound is ever violated, and the
share of broken processes must not exceed the risk. Whole networks are far from it, because the bounds have slack in
every stage. The adaptive test has little: one stage, a risk of one half, inputs that are chosen where the fit is worst,
and true inputs that differ from the nominal ones on the side that raises the function.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from cascada.arrays import Array
from cascada.confidence.averages import (
    AveragedFit,
    ScatteredOutput,
    ScatteredRows,
    averaged_fits,
    first_weight,
)
from cascada.kernels import Expansion, SquaredExponential, random_expansion
from cascada.network import Bounded, SubGaussian
from cascada.network.error import as_error
from cascada.network.stage import Stage
from tests.soundness import readings
from tests.soundness.harness import Ledger

KERNEL = SquaredExponential(1.0)
GRID = np.linspace(-2, 2, 41)[:, None]
RISK = 0.5
#: The scale of the scatter and the distance between nominal and true inputs, for a norm of 1.
CASES = ((0.5, 0.0), (0.05, 0.1), (0.01, 0.2))
READINGS = 60


@dataclass(frozen=True)
class Reading:
    """A nominal input, a reading, and what is known of the difference that the true input makes."""

    place: Array  # (1,)
    value: float
    bias: float


#: A reading of a function from (function, nominal input, scale, distance of the true input, random numbers).
Reader = Callable[[Expansion, Array, float, float, np.random.Generator], list[Reading]]


def _scatter(scale: float, rng: np.random.Generator) -> float:
    """Normal, or ±scale."""
    return scale * float(rng.standard_normal() if rng.random() < 0.5 else rng.choice([-1.0, 1.0]))


def honest(truth: Expansion, place: Array, scale: float, away: float, rng: np.random.Generator) -> list[Reading]:
    """One reading at the true input, on the side of the nominal one where the function is larger."""
    change = (truth(np.array([place - away, place + away])) - truth(place[None]))[:, 0]
    value = float(truth(place[None])[0, 0] + change.max() + _scatter(scale, rng))
    return [Reading(place, value, float(np.abs(change).max()) * (1 + 1e-12) + 1e-15)]


def counted_again(truth: Expansion, place: Array, scale: float, away: float, rng: np.random.Generator) -> list[Reading]:
    """One reading that counts as many, such as that of an item from stock that many runs use."""
    return 32 * honest(truth, place, scale, away, rng)


def placed_afterwards(
    truth: Expansion, _place: Array, scale: float, _away: float, rng: np.random.Generator
) -> list[Reading]:
    """Nominal inputs that are chosen by the sign of the error; the differences that they make are known exactly."""
    errors = [_scatter(scale, rng) for _ in range(8)]
    places = [np.array([1.0 if error > 0 else -1.0]) for error in errors]
    return [Reading(C, float(truth(C[None])[0, 0]) + e, 1e-15) for C, e in zip(places, errors, strict=True)]


def adaptive(scale: float, away: float, processes: int, read: Reader = honest, seed: int = 0) -> float:
    """The share of processes in which a bound of one stage was ever violated, or a true assumption refuted."""
    rng, broken = np.random.default_rng(seed), 0
    output = ScatteredOutput(KERNEL, 1.0, scale, first_weight(scale, 1.0, 1.0), RISK, 0, 1)
    for _ in range(processes):
        truth = random_expansion(KERNEL, [-2], [2], norm=1.0, rng=rng)
        values, miss = truth(GRID)[:, 0], np.zeros(len(GRID))
        found: list[Reading] = []
        for t in range(READINGS):
            place = rng.uniform(-2, 2, 1) if t < 3 else GRID[rng.choice(np.argsort(-np.abs(miss))[:3])]
            found += read(truth, place, scale, away, rng)
            if t % 10 == 9 or t < 3:
                fits = averaged_fits(output, _rows(found))
                miss = fits[0].belief.posterior.mean(GRID)[:, 0] - values
                if any(map(partial(_is_broken, truth), fits)):
                    broken += 1
                    break
    return broken / processes


def _rows(found: list[Reading]) -> ScatteredRows:
    return ScatteredRows(
        np.array([one.place for one in found]),
        np.array([one.value for one in found]),
        np.array([one.bias for one in found]),
    )


def _is_broken(truth: Expansion, fit: AveragedFit) -> bool:
    """Whether a fit excludes the function, by its radius, or its values or slopes at the points of the grid."""
    if fit.refuted:
        return True
    bounds, h = fit.at_points(GRID, slopes=True), 1e-5
    slope = (truth(GRID + h) - truth(GRID - h)) / (2 * h)
    assert bounds.low_slope is not None, "slopes were asked for"
    assert bounds.high_slope is not None, "slopes were asked for"
    wrong = (truth(GRID) < bounds.lower) | (truth(GRID) > bounds.upper)
    wrong |= (slope < bounds.low_slope[:, :, 0] - 1e-8) | (slope > bounds.high_slope[:, :, 0] + 1e-8)
    return bool(wrong.any())


# ---- whole networks

STRUCTURES = ("chain", "controls", "feed-forward", "join", "known", "copies")
KINDS = ("normal", "signs")


class Case(readings.Case):
    """A process whose stages have scatter, beside bounded errors or without."""

    def _errors(self, stage: Stage, rng: np.random.Generator) -> Array:
        size, scale = stage.error_bound, stage.error_scale
        scatter = rng.standard_normal(len(scale)) if self.kind == "normal" else rng.choice([-1.0, 1.0], len(scale))
        return size * rng.uniform(-1, 1, len(size)) + scale * scatter


def case(structure: str, kind: str, rng: np.random.Generator) -> Case:
    """A random process of a structure; some outputs are read with bounded errors, most with scatter."""
    found = with_scatter(readings.case(structure, KERNEL, "uniform", rng), kind, rng)
    return found if found.network.scattered else case(structure, kind, rng)


def with_scatter(plain: readings.Case, kind: str, rng: np.random.Generator) -> Case:
    """The same process with scatter beside its bounded errors; with luck at no output."""
    stages = {}
    for stage in plain.network.stages:
        changed = stage.assuming(stage.norm_bound, stage.lipschitz, stage.norm_bounds)  # a copy
        if stage.modelled:
            scales = 10 ** rng.uniform(-3, -1, len(stage.modelled)) * (rng.random(len(stage.modelled)) < 0.8)
            error = Bounded(tuple(stage.error_bound)) + SubGaussian(tuple(scales))
            object.__setattr__(changed, "error", as_error(error, len(stage.modelled)))
        stages[stage.name] = changed
    return Case(plain.problem, plain.network.assuming(stages), kind)


def run(
    points: int,
    seed: int,
    processes: int = 1,
    counts: tuple[int, ...] = readings.COUNTS,
    structures: tuple[str, ...] = STRUCTURES,
) -> list[Ledger]:
    """Check processes of every structure, by turns with both kinds of scatter; a ledger for each of them."""
    ledgers = []
    for s, structure in enumerate(structures):
        for i in range(processes):
            rng, ledger = np.random.default_rng([seed, s, i]), Ledger()
            one = case(structure, KINDS[(s + i) % len(KINDS)], rng)
            readings.check(ledger, structure, one, points, rng, counts)
            ledgers.append(ledger)
    return ledgers
