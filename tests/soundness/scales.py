"""Soundness of outputs, norms, offsets and inputs in units from 1e-90 to 1e90.

A change of units must not change what is proven: with powers of two all bounds scale exactly, with powers of ten to a
few roundings, and in all units true runs are accepted, bounds contain the truth, and impossible values are refused.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np

from cascada.arrays import Array
from cascada.confidence import Belief, Boxes
from cascada.errors import ArgumentError
from cascada.gp import Posterior
from cascada.kernels import Additive, Matern, SquaredExponential, Stationary, random_expansion
from cascada.network import Beliefs, Form, prior_beliefs
from cascada.problems import Problem
from tests.soundness import scaled, truths
from tests.soundness.harness import Ledger, Tally
from tests.soundness.scaled import Units

STRUCTURES = ("chain", "controls", "feed-forward", "multi-output", "join", "known")
KERNELS: tuple[Stationary, ...] = (SquaredExponential(1.0), Matern(2.5, 0.5), Matern(1.5), Additive(Matern(2.5)))
FORMS: tuple[Form, ...] = ("union", "hull")
LARGEST = 90  # powers of ten
FARTHEST = 12  # the largest offset, as a power of ten over the norm bound
COUNTS = (0, 5, 40)

# 10^90 as a power of two, minus the share of a variance.
_TWOS, _VARIANCE_TWOS = 289, 8


def run(points: int, seed: int, structures: Sequence[str] = STRUCTURES) -> Ledger:
    """Check structures in random units, decimal and binary, with and without offsets."""
    ledger = Ledger()
    for s, structure in enumerate(structures):
        for k, kernel in enumerate(KERNELS):
            rng = np.random.default_rng([seed, s, k, 2])
            number = int(rng.integers(1 << 30))
            check_decimal(ledger, structure, kernel, number, points, rng)
            check_binary(ledger, structure, kernel, number, points, rng)
    for k, kernel in enumerate(KERNELS):
        check_stage(ledger, kernel, points, np.random.default_rng([seed, k, 3]))
    check_beyond(ledger, np.random.default_rng([seed, 4]))
    return ledger


def decimal_units(structure: str, rng: np.random.Generator) -> Units:
    """Scales of any magnitude, and for half of the processes offsets of up to 1e12 norm bounds."""
    plain = Units.plain(structure)
    n = len(plain.outputs)
    far = rng.uniform() < 0.5
    return Units(
        {name: float(10 ** rng.uniform(-LARGEST, LARGEST)) for name in plain.controls},
        10 ** rng.uniform(-LARGEST + FARTHEST * far, LARGEST - FARTHEST * far, n),
        far * rng.choice([-1.0, 1.0], n) * 10 ** rng.uniform(0, FARTHEST, n),
        10 ** rng.uniform(-4, 4, n),
    )


def binary_units(base: Units, rng: np.random.Generator) -> Units:
    """The base in units that are powers of two."""
    n = len(base.outputs)
    return base.times(
        {name: 2.0 ** int(rng.integers(-_TWOS, _TWOS)) for name in base.controls},
        np.asarray(2.0 ** rng.integers(-_TWOS, _TWOS, n), dtype=np.float64),
        np.asarray(4.0 ** rng.integers(-_VARIANCE_TWOS, _VARIANCE_TWOS, n), dtype=np.float64),
    )


def check_decimal(
    ledger: Ledger, structure: str, kernel: Stationary, number: int, points: int, rng: np.random.Generator
) -> None:
    """Check that true runs are accepted and bounds contain the truth, in any units."""
    units = decimal_units(structure, rng)
    problem = scaled.process(structure, number, kernel, units)
    note = f"{structure}, {kernel}, seed {number}, {units}"
    scale = truths.NORM * scaled.column_scales(problem, structure, units)
    kind = "large offsets" if units.offsets.any() else "decimal units"
    for count in COUNTS:
        beliefs = believed(ledger[f"{kind}: true runs accepted"], problem, count, note, rng)
        if beliefs is not None:
            check_bounds(ledger, kind, problem, beliefs, scale, points, note, rng)


def believed(tally: Tally, problem: Problem, count: int, note: str, rng: np.random.Generator) -> Beliefs | None:
    """Beliefs after true runs; None, and a violation, if they are refused."""
    domain = problem.network.domain
    runs = problem.values(rng.uniform(domain.lower, domain.upper, (count, domain.dimension)))

    return tally.attempt(partial(_accepted, problem, runs), f"{note}, {count} runs")


def check_bounds(
    ledger: Ledger,
    kind: str,
    problem: Problem,
    beliefs: Beliefs,
    scale: Array,
    points: int,
    note: str,
    rng: np.random.Generator,
) -> None:
    """Check every output over points and cells, in both forms."""
    domain = problem.network.domain
    d = domain.dimension
    Z = rng.uniform(domain.lower, domain.upper, (points, d))
    truth = problem.values(Z)[:, d:]
    for where, cells in (("points", Boxes(Z, Z)), ("cells", truths.cells_around(Z, domain.upper, rng))):
        for form in FORMS:
            compute = partial(truths.output_boxes, beliefs, cells, form)
            ledger[f"{kind}: {where}"].try_boxes(compute, truth, scale[d:], f"{note}, {form}")


def check_binary(
    ledger: Ledger, structure: str, kernel: Stationary, number: int, points: int, rng: np.random.Generator
) -> None:
    """Check that bounds in units that are powers of two are exact multiples of those in plain units."""
    offsets = rng.choice([0.0, 1.0]) * 2.0 ** rng.integers(0, 40, len(Units.plain(structure).outputs))
    base = Units.plain(structure, offsets)
    units = binary_units(base, rng)
    plain, other = (scaled.process(structure, number, kernel, chosen) for chosen in (base, units))
    factors = scaled.column_scales(other, structure, units)
    d, note = plain.network.domain.dimension, f"{structure}, {kernel}, seed {number}, {units}"
    Z = rng.uniform(-truths.BOX, truths.BOX, (points, d))
    cells = truths.cells_around(Z, truths.BOX, rng)
    for count in COUNTS:
        X = rng.uniform(-truths.BOX, truths.BOX, (count, d))
        runs = plain.values(X)
        before = prior_beliefs(plain.network).append(runs)
        after = ledger["binary units: true runs accepted"].attempt(
            partial(_accepted, other, runs * factors), f"{note}, {count} runs"
        )
        if after is None:
            continue
        truth = plain.values(Z)[:, d:] * factors[d:]
        for form in FORMS:
            for over in (Boxes(Z, Z), cells):
                there = Boxes(over.lower * factors[:d], over.upper * factors[:d])
                bounds = truths.output_boxes(before, over, form)
                again = ledger["binary units: bounds computed"].attempt(
                    partial(truths.output_boxes, after, there, form), note
                )
                if again is not None:
                    ledger["binary units: bounds"].boxes(again, truth, truths.NORM * factors[d:], note)
                    same = (again.lower == bounds.lower * factors[d:]) & (again.upper == bounds.upper * factors[d:])
                    equal = np.where(same, 0.0, -1.0)
                    ledger["binary units: bounds scale exactly"].add(equal, np.zeros(1), f"{note}, {form}")


def _accepted(problem: Problem, runs: Array) -> Beliefs:
    beliefs = prior_beliefs(problem.network).append(runs)
    beliefs.check()
    return beliefs


def check_stage(ledger: Ledger, kernel: Stationary, points: int, rng: np.random.Generator) -> None:
    """Check that with outputs times 10^k the bounds are 10^k times as large, to a millionth of the norm bound."""
    for _ in range(4):
        d, t = int(rng.integers(1, 4)), int(rng.integers(1, 30))
        f = random_expansion(kernel, -np.ones(d), np.ones(d), norm=truths.NORM, rng=rng, outputs=2)
        X, Z = rng.uniform(-1, 1, (t, d)), rng.uniform(-1, 1, (points, d))
        factor = float(10 ** rng.uniform(-LARGEST, LARGEST))
        base, note = _bounds(kernel, X, Z, f(X), 1.0), f"{kernel}, {t} runs, outputs times {factor!r}"
        there = ledger["decimal units: one stage"].attempt(partial(_bounds, kernel, X, Z, f(X), factor), note)
        if there is not None:
            apart = np.maximum(np.abs(there.lower / factor - base.lower), np.abs(there.upper / factor - base.upper))
            margin = 1e-6 - apart / truths.NORM
            ledger["decimal units: bounds scale"].add(margin, np.full(1, 1e-6), note)


def _bounds(kernel: Stationary, X: Array, Z: Array, y: Array, factor: float) -> Boxes:
    return Belief(Posterior.fit(kernel, X, factor * y), factor * truths.NORM).bounds(Z)


def check_beyond(ledger: Ledger, rng: np.random.Generator) -> None:
    """Check that norm bounds beyond 1e±90, whose squares may underflow or overflow, are refused or sound."""
    kernel = SquaredExponential(1.0)
    for _ in range(20):
        f = random_expansion(kernel, [-2], [2], norm=1.0, rng=rng, terms=5)
        X, Z = rng.uniform(-2, 2, (3, 1)), rng.uniform(-2, 2, (50, 1))
        factor = float(10 ** (rng.choice([-1.0, 1.0]) * rng.uniform(LARGEST, 300)))
        note = f"B = {factor!r}"
        tally = ledger["units beyond 1e±90: refused or sound"]
        try:
            bounds = Belief(Posterior.fit(kernel, X, factor * f(X)), factor).bounds(Z)
        except ArgumentError:
            tally.verdict(True, note)
            continue
        except Exception as error:  # any other error would not help the user
            tally.verdict(False, f"{note}: {type(error).__name__}: {error}")
            continue
        right = np.all(np.isfinite(bounds.upper)) and bool(np.all(truths.contained(bounds, factor * f(Z))))
        tally.verdict(bool(right), note)
