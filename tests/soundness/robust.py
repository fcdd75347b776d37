"""Soundness of worst cases over uncertain controls.

Every process is one of `problems.certified`, with one or two controls that deviate by up to 0.3, or one with a narrow
and a broad peak, where the best setting without deviations loses a third in its worst case. Worst cases are computed at
many shifts. The true worst case can be less than that, by at most `_BETWEEN`.
"""

from collections.abc import Sequence

import numpy as np

from cascada.arrays import Array
from cascada.confidence import Boxes
from cascada.kernels import SquaredExponential
from cascada.network import Stage, chain
from cascada.problems import Problem, certified
from cascada.search.robust import Deviations, RobustBounds, worst_case
from cascada.space import Control, Real
from cascada.study import Study
from tests.soundness.contexts import with_controls
from tests.soundness.harness import Ledger
from tests.soundness.truths import BOX, NORM

PEAKS = "peaks"
STRUCTURES = ("chain", "controls", "join", "feed-forward", PEAKS)
DEVIATION = 0.3
_SETTINGS, _CELLS = 40, 16
_SHIFTS = 201
# A minimum between two shifts that are h apart is less by at most h²/8·max|g''|: here 0.003²/8·20.
_BETWEEN = 2.5e-5


def run(steps: int, seed: int, structures: Sequence[str] = STRUCTURES) -> Ledger:
    """Check one search of `steps` runs for every structure; some are minimised, some have two uncertain controls."""
    ledger = Ledger()
    for s, structure in enumerate(structures):
        problem = two_peaks(seed) if structure == PEAKS else certified(structure, seed)
        names = problem.network.domain.names
        uncertain = names[:2] if (seed + s) % 4 == 3 and structure != PEAKS else names[:1]
        controls: dict[str, Control] = {name: Real(-BOX, BOX, deviation=DEVIATION) for name in uncertain}
        minimised = (seed + s) % 3 == 2 and structure != PEAKS
        changed = with_controls(problem, controls, minimised=minimised)
        check_search(ledger, f"{structure}, seed {seed}", changed, steps, np.random.default_rng([seed, s, 25]))
        if structure == PEAKS:
            lost = lost_by_the_nominal_optimum(changed)
            ledger["nominal optimum loses a quarter"].verdict(lost > 0.25, f"seed {seed}: it loses {lost}")
    return ledger


def two_peaks(seed: int) -> Problem:
    """A narrow peak and a broad one that is hardly lower, of exactly the stated norm; a seed moves and scales them."""
    rng = np.random.default_rng([seed, 26])
    centres = np.array([-1.0, 0.5, 0.8, 1.1, 1.4])[:, None] + rng.uniform(-0.2, 0.2)
    heights = np.array([1.0, 0.55, 0.35, 0.35, 0.55]) * rng.uniform(0.4, 0.6)
    kernel = SquaredExponential(0.3)
    norm = float(np.sqrt(heights @ kernel(centres, centres) @ heights))
    network = chain(Stage("s1", {"x": Real(-BOX, BOX)}, kernel=kernel, norm_bound=norm))

    def values(points: Array) -> Array:
        return np.column_stack([points, kernel(points, centres) @ heights])

    return Problem("two-peaks", "x → s1", network, values)


def lost_by_the_nominal_optimum(problem: Problem) -> float:
    """What the best setting without deviations loses against the best worst case, as a part of the nominal optimum."""
    domain, network = Deviations.of(problem.network.domain).settings, problem.network
    settings = np.linspace(domain.lower[0], domain.upper[0], 2001)[:, None]
    nominal = network.sign * problem.values(settings)[:, network.objective_column]
    worst = shifted(problem, settings).min(axis=1)
    return float((worst.max() - worst[nominal.argmax()]) / np.abs(nominal).max())


def shifted(problem: Problem, settings: Array) -> Array:
    """Values (n, k) of what is maximised at settings (n, d) with many shifts."""
    deviations, network = Deviations.of(problem.network.domain), problem.network
    axis = np.linspace(-1.0, 1.0, _SHIFTS if len(deviations.uncertain) == 1 else 31)
    shifts = deviations._grid([axis] * len(deviations.uncertain))
    points = (settings[:, None] + shifts).reshape(-1, settings.shape[1])
    values = network.sign * problem.values(np.clip(points, -BOX, BOX))[:, network.objective_column]
    return values.reshape(len(settings), -1)


def check_search(ledger: Ledger, name: str, problem: Problem, steps: int, rng: np.random.Generator) -> None:
    """Check bounds, worst cases and certificates after every run."""
    study, network = Study(problem.network), problem.network
    deviations = Deviations.of(network.domain)
    two = len(deviations.uncertain) > 1  # whose shifts are a coarse grid: no true worst case is known
    domain = deviations.settings
    for step in range(steps):
        note = f"{name}, run {step}"
        trial = ledger["suggestion"].attempt(study.ask, note)
        if trial is None:
            continue
        values = problem.values(network.domain.row(trial.controls)[None])[0]
        study.tell(trial, {node.stage.name: values[list(node.columns)].tolist() for node in network.nodes})
        certificate = ledger["certificate"].attempt(study.certificate, note)
        if certificate is None:
            continue
        ledger["not refuted"].verdict(certificate.kind == "proven", f"{note}: {certificate}")
        settings = rng.uniform(domain.lower, domain.upper, (_SETTINGS, domain.dimension))
        setting = certificate.recommended
        if setting is not None:
            row = network.domain.row(setting.controls)[None]
            near = row + 0.05 * rng.standard_normal((_SETTINGS, row.shape[1]))
            settings = np.concatenate([settings, row, np.clip(near, domain.lower, domain.upper)])
        every = shifted(problem, settings)
        lower, _ = worst_case(study.beliefs, settings)
        ledger["worst case of a setting"].add((every - lower[:, None]) / NORM, np.zeros(1), note)
        if not two:
            check_bounds(ledger, problem, study, rng, note)
        if setting is None or certificate.gap is None or certificate.bound is None:
            continue
        own = every[_SETTINGS]
        ledger["value of the recommended setting"].add(
            (own - network.sign * setting.at_least) / NORM, np.array([certificate.gap]) / NORM, note
        )
        if not two:
            truths = every.min(axis=1) - _BETWEEN
            width = np.array([certificate.gap]) / NORM
            ledger["bound of worst cases"].add((network.sign * certificate.bound - truths) / NORM, width, note)
            ledger["gap of worst cases"].add((certificate.gap - (truths - own.min())) / NORM, width, note)


def check_bounds(ledger: Ledger, problem: Problem, study: Study, rng: np.random.Generator, note: str) -> None:
    """Check the bounds of random cells against the worst cases of settings in them."""
    domain = Deviations.of(problem.network.domain).settings
    centre = rng.uniform(domain.lower, domain.upper, (_CELLS, domain.dimension))
    half = 0.5 * 10.0 ** rng.uniform(-3, 0, (_CELLS, 1))
    lower, upper = np.maximum(centre - half, domain.lower), np.minimum(centre + half, domain.upper)
    bounds, _ = RobustBounds(study.beliefs, Deviations.of(problem.network.domain).corners)(Boxes(lower, upper))
    inside = lower[:, None] + rng.uniform(size=(_CELLS, 3, domain.dimension)) * (upper - lower)[:, None]
    worst = shifted(problem, inside.reshape(-1, domain.dimension)).min(axis=1).reshape(_CELLS, 3)
    ledger["bound of a cell"].add((bounds[:, None] - (worst - _BETWEEN)) / NORM, np.zeros(1), note)
