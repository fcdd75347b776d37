"""Beliefs by which estimated gaps are judged: runs that crowd at a kink widen nothing elsewhere."""

import math
from itertools import product
from typing import Any

import numpy as np
import pytest

import cascada as cd
from cascada.calibration import Calibration, calibrate
from cascada.calibration.beliefs import held_out
from cascada.calibration.gap_beliefs import gap_beliefs
from cascada.network import Beliefs, Network, run_values
from cascada.search.ascent import highest
from cascada.search.joint import Joint

UNIT = {"x": cd.Real(-1, 1)}


def kink(x: float) -> float:
    return -math.sqrt(abs(x))


def chain() -> Network:
    return cd.chain(cd.Stage("f", UNIT), cd.Stage("g", {"y": cd.Real(0, 1)}))


def judged(network: Network, points: np.ndarray, outputs: list[dict[str, Any]]) -> tuple[Beliefs, Beliefs]:
    """The beliefs that are tested, and those of the gap."""
    data = run_values(network, points, outputs)
    found = calibrate(network, data, Calibration(), 1e-10)
    return found.judging, gap_beliefs(network, found.judging, data, found.fits)


def at_a_kink(crowd: int) -> tuple[Beliefs, Beliefs]:
    network = cd.chain(cd.Stage("f", UNIT))
    near = np.array([(-1) ** i * 10.0 ** (-2 - 0.12 * i) for i in range(crowd)])
    points = np.concatenate([np.linspace(-1, 1, 9) + 0.013, near]).clip(-1, 1)[:, None]
    return judged(network, points, [{"f": [kink(x)]} for x in points[:, 0]])


def test_runs_that_crowd_at_a_kink_widen_nothing_elsewhere() -> None:
    few, many = at_a_kink(4), at_a_kink(16)
    tested, gap, before = (beliefs.stages[0].per_output for beliefs in (*many, few[1]))
    assert tested is not None
    assert gap is not None
    assert before is not None
    assert tested.radius[0] > 4 * gap.radius[0]
    assert gap.radius[0] <= before.radius[0]
    assert gap.posterior.jitter > 1e-10  # near the crowd the function is as rough as that


def test_all_runs_are_within_the_width_of_their_prediction() -> None:
    rng = np.random.default_rng(0)
    points = rng.uniform([-1, 0], [1, 1], (20, 2))
    outputs: list[dict[str, Any]] = [{"f": [math.sin(3 * x)], "g": [math.sin(3 * x) * y]} for x, y in points]
    for stage in judged(chain(), points, outputs)[1].stages:
        belief = stage.per_output
        assert belief is not None
        assert held_out(belief.posterior)[0] <= belief.radius[0]
        assert belief.radius[0] >= 2 * (1 + 20 / belief.posterior.count) * (1 - 1e-9)


@pytest.mark.parametrize("mirrored", [False, True])
def test_no_grid_of_controls_and_deviations_is_above_the_bound(mirrored: bool) -> None:
    network = chain().mirrored() if mirrored else chain()
    rng = np.random.default_rng(1)
    points = rng.uniform([-1, 0], [1, 1], (12, 2))
    outputs: list[dict[str, Any]] = [{"f": [math.sin(3 * x)], "g": [math.sin(3 * x) + y]} for x, y in points]
    beliefs = judged(network, points, outputs)[1]
    value, point = highest(beliefs, np.random.default_rng(0), points[:1])
    x = np.array(list(product(np.linspace(-1, 1, 41), np.linspace(0, 1, 21))))
    eta = np.array(list(product(np.linspace(-1, 1, 9), (-1.0, 1.0))))
    values = Joint(beliefs).values_of(x, np.broadcast_to(eta, (len(x), *eta.shape)))
    assert value >= values.max() - 1e-3 * values.std()
    assert (network.domain.lower <= point).all()
    assert (point <= network.domain.upper).all()


def test_the_estimated_gap_does_not_depend_on_the_search_over_cells() -> None:
    """A search that stops after few cells used to leave a gap of a multiple of what the bounds say."""
    network = cd.chain(
        cd.Stage("f", UNIT, function=lambda x: math.sin(3 * x)),
        cd.Stage("g", {"y": cd.Real(0, 1), "z": cd.Real(0, 1)}, function=lambda f, y, z: f * y - (z - 0.3) ** 2),
    )
    study = cd.Study(network)
    study.optimise(budget=20, progress=False)
    gap = study.gap
    assert gap is not None
    assert study.certificate(cells=50).gap == gap == study.certificate(cells=5000).gap
    best = study.best_trial
    assert best is not None
    assert best.value is not None
    assert 1.0 - best.value <= gap
