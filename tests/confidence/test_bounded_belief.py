"""Beliefs from rows with bounded errors, compared with the best bound that the norm and the errors imply."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, NonlinearConstraint, minimize

from cascada.arrays import Array
from cascada.confidence import Boxes, cell_bounds
from cascada.confidence.bounded_belief import MOST_POINTS, Assumption, BoundedBelief, WeightedFit
from cascada.confidence.read_rows import ReadRows
from cascada.confidence.reading_evidence import smallest_norm, witness
from cascada.confidence.steepness import steepness
from cascada.confidence.weights import best_weights, common_weights
from cascada.errors import ArgumentError
from cascada.gp import SeparablePosterior
from cascada.kernels import Expansion, Matern, Separable, SquaredExponential, Stationary, random_expansion

NORM = 2.0


@dataclass(frozen=True)
class Scene:
    """A function of norm 2, its readings, and the belief from them."""

    truth: Expansion
    rows: ReadRows
    belief: BoundedBelief


def scene(n: int, d: int, error: float, seed: int = 0, kernel: Stationary | None = None, outputs: int = 1) -> Scene:
    rng = np.random.default_rng([seed, n, d])
    kernel = kernel or SquaredExponential(1.0)
    truth = random_expansion(kernel, [-2] * d, [2] * d, norm=NORM, rng=rng, outputs=outputs)
    X = rng.uniform(-2, 2, (n, d))
    y = truth(X) + error * rng.uniform(-1, 1, (n, outputs))
    reach = error * (1 + 1e-12) + 1e-14
    rows = ReadRows(X, Boxes(y - reach, y + reach), tuple(range(n)))
    where = rng.uniform(-2, 2, (24, d))
    return Scene(truth, rows, BoundedBelief(Assumption(kernel, np.full(outputs, NORM), None, d), rows, where))


def largest_value(kernel: Stationary, rows: ReadRows, point: Array) -> float:
    """The largest f(point) of all f with norm ≤ 2 within the tubes, by a general solver: f = Σ c_i k(·, place i)."""
    places = np.vstack([rows.places, point[None]])
    gram = kernel(places, places) + 1e-10 * np.eye(len(places))
    factor = np.linalg.cholesky(gram)  # f(places) = factor·b with ‖f‖ = ‖b‖
    tubes = LinearConstraint(factor[:-1], rows.values.lower[:, 0], rows.values.upper[:, 0])
    ball = NonlinearConstraint(lambda b: b @ b, -np.inf, NORM**2, jac=lambda b: 2 * b[None])
    start = np.linalg.solve(factor[:-1, :-1], rows.middle[:, 0])
    options = {"maxiter": 500, "ftol": 1e-12}
    solve: Any = minimize
    result = solve(
        lambda b: -(factor[-1] @ b),
        np.append(start, 0.0),
        jac=lambda _: -factor[-1],
        constraints=[tubes, ball],
        method="SLSQP",
        options=options,
    )
    return -float(result.fun)


@pytest.mark.parametrize(("n", "d", "error"), [(5, 1, 0.1), (6, 2, 0.05), (8, 2, 0.2)])
def test_chosen_weights_give_almost_the_best_bound(n: int, d: int, error: float) -> None:
    one = scene(n, d, error, seed=1)
    for z in np.random.default_rng(2).uniform(-1.5, 1.5, (3, d)):
        best = largest_value(one.belief.kernel, one.rows, z)
        at = Boxes(z[None], z[None])
        common, chosen = (cell_bounds(b, at).upper.item() for b in (one.belief, one.belief.refined(z)))
        assert best - 1e-4 <= chosen <= common + 1e-12
        half = best - cell_bounds(one.belief.refined(z), at).lower.item()
        assert chosen - best <= 0.05 * half


def test_chosen_weights_lower_the_bound_and_leave_far_rows_out() -> None:
    one = scene(20, 2, 0.02)
    z = np.array([0.3, -0.4])
    lam = common_weights(one.belief.kernel, one.rows, one.belief.norm_bound, one.belief.where)
    chosen = best_weights(one.belief.kernel, one.rows, NORM, 0, z, 1, lam)
    before, after = (
        WeightedFit(one.belief.assumption, one.rows, w).bounds(z[None]).upper.item() for w in (lam, chosen)
    )
    assert after < before
    assert chosen.max() > 1e3 * chosen.min()  # some rows hardly matter at a point


@pytest.mark.parametrize("kernel", [SquaredExponential(1.0), Matern(2.5), Matern(1.5), Matern(0.5)], ids=str)
def test_values_slopes_and_cells_are_bounded(kernel: Stationary) -> None:
    one, rng = scene(15, 2, 0.05, kernel=kernel, outputs=2), np.random.default_rng(0)
    belief = one.belief.refined(np.zeros(2)).refined(np.ones(2))
    centre, half = rng.uniform(-2, 2, (60, 2)), 10 ** rng.uniform(-4, 0, (60, 2))
    bounds = cell_bounds(belief, Boxes.around(centre, half))
    steepest = steepness(belief, Boxes.around(centre, half))
    for corner in rng.uniform(-1, 1, (5, 60, 2)):
        value = one.truth(centre + half * corner)
        assert np.all(bounds.lower <= value)
        assert np.all(value <= bounds.upper)
        change = np.abs(value - one.truth(centre))
        assert np.all(change <= np.einsum("npd,nd->np", steepest, half) + 1e-12)
        assert np.all(change <= belief.shift(centre, half) + 1e-12)


def test_points_of_interest_are_kept_up_to_a_number_and_survive_new_rows() -> None:
    one = scene(10, 1, 0.05)
    belief = one.belief
    for z in np.linspace(-1, 1, MOST_POINTS + 3):
        belief = belief.refined(np.array([z]))
    assert len(belief.further) == 2 * MOST_POINTS
    assert belief.learned(scene(12, 1, 0.05).rows).further == belief.further


def test_exact_rows_have_the_smallest_weights() -> None:
    one = scene(5, 1, 0.0)
    assert np.all(one.belief.posterior.noise <= 2e-10)
    assert np.max(cell_bounds(one.belief, Boxes(one.rows.places, one.rows.places)).half) < 1e-9


def test_a_belief_without_rows_is_the_prior() -> None:
    belief = BoundedBelief(Assumption(SquaredExponential(1.0), np.array([NORM]), None, 1))
    bounds = cell_bounds(belief.refined(np.zeros(1)), Boxes(np.zeros((1, 1)), np.ones((1, 1))))
    assert bounds.upper.item() == pytest.approx(NORM)


def test_rows_are_not_appended() -> None:
    with pytest.raises(ArgumentError, match="`append` is for exact data"):
        scene(3, 1, 0.1).belief.append([[0.0]], [0.0])


# ---- joint norms


def test_a_joint_norm_of_one_output_is_that_output_s_norm() -> None:
    one = scene(8, 2, 0.05)
    prior = SeparablePosterior.empty(Separable(SquaredExponential(1.0)), 2, 1)
    joint = BoundedBelief(Assumption.of_joint(prior, NORM, None), one.rows, one.belief.where)
    at = Boxes(one.rows.places + 0.3, one.rows.places + 0.3)
    np.testing.assert_allclose(cell_bounds(joint, at).upper, cell_bounds(one.belief, at).upper, rtol=1e-9)


def test_a_component_within_its_error_is_left_out() -> None:
    """The second output is almost a copy of the first: their difference is not divided by its tiny variance."""
    matrix = ((1.0, 1.0), (1.0, 1.0 + 1e-12))
    prior = SeparablePosterior.empty(Separable(SquaredExponential(1.0), matrix), 1, 2)
    places = np.linspace(-2, 2, 6)[:, None]
    values = np.sin(places) @ np.ones((1, 2)) * 0.5
    rows = ReadRows(places, Boxes(values - 0.01, values + 0.01), tuple(range(6)))
    belief = BoundedBelief(Assumption.of_joint(prior, 2.0, None), rows, places + 0.4)
    assert not belief.contradictory
    assert np.all(belief.radius < 4.0)
    bounds = cell_bounds(belief, Boxes(places, places))
    assert np.all((bounds.lower <= values) & (values <= bounds.upper))


# ---- evidence


def test_a_witness_bounds_the_norm_from_below() -> None:
    one = scene(25, 2, 0.002)
    kernel, y, error = one.belief.kernel, one.rows.middle[:, 0], one.rows.error[:, 0]
    gram = kernel(one.rows.places, one.rows.places)
    found = smallest_norm(kernel, gram, y, error, np.zeros(25), witness(gram, y, error))
    assert 0.9 * NORM < found <= NORM
    assert smallest_norm(kernel, gram, y, 3 * error, np.zeros(25), witness(gram, y, 3 * error)) < found
    assert smallest_norm(kernel, gram, y, error, np.full(25, 0.1), witness(gram, y, error)) < found
