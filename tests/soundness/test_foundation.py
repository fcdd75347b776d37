"""A small slice of `make soundness`, and tests that the harness reports broken bounds."""

import numpy as np
import pytest

from cascada.arrays import Array
from cascada.confidence import Belief, Boxes, EnvelopeTable, cell_bounds
from cascada.gp import Posterior
from cascada.kernels import Additive, Expansion, Matern, SquaredExponential, Stationary, random_expansion
from tests.soundness import foundation
from tests.soundness.harness import Tally
from tests.thorough import THOROUGH

KERNELS = [
    SquaredExponential(1.0),
    SquaredExponential((0.7, 1.3), variance=2.0),
    Matern(1.5),
    Matern(2.5),
    Matern(3.7),
    Additive(SquaredExponential((0.7, 1.3), variance=2.0)),
    Additive(Matern(1.5)),
]


def test_no_bound_is_ever_violated() -> None:
    """In at least 1/160 of the million checks of `make soundness`, for every kind of bound."""
    ledger = foundation.run(points=130 if THOROUGH else 80, seed=1000, every=1 if THOROUGH else 2)
    assert ledger.violations == 0, ledger.table()
    enough = 12_500 if THOROUGH else 6_250
    assert {tally.name: tally.checks for tally in ledger.tallies if tally.checks < enough} == {}


def extremal(kernel: Stationary, B: float, rng: np.random.Generator) -> tuple[Posterior, Expansion, Array]:
    """Data, a query x, and the function of norm B through the data that is largest at x: μ + ρ·k_t(·, x)/σ_t(x)."""
    X = rng.uniform(-2, 2, (7, 2))
    x = rng.uniform(-2, 2, (1, 2))
    centres = np.concatenate([X, x])
    y = random_expansion(kernel, [-2, -2], [2, 2], norm=0.6 * B, rng=rng)(X)
    gram = kernel(centres, centres)
    # The largest value v at x of a function of norm ≤ B through (X, y): [y; v]ᵀ K⁻¹ [y; v] = B², a quadratic in v.
    inverse = np.linalg.inv(gram)
    a, b = inverse[-1, -1], 2 * inverse[-1, :-1] @ y[:, 0]
    c = y[:, 0] @ inverse[:-1, :-1] @ y[:, 0] - B**2
    v = (-b + np.sqrt(b * b - 4 * a * c)) / (2 * a)
    function = Expansion(kernel, centres, inverse @ np.append(y[:, 0], v)[:, None])
    return Posterior.fit(kernel, X, y), function, x


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_tight_radius_is_attained(kernel: Stationary) -> None:
    """No bound from the norm alone can be smaller: the extremal function attains it to 1e-6 (λ = 1e-10)."""
    rng = np.random.default_rng(7)
    for _ in range(20):
        posterior, function, x = extremal(kernel, 2.0, rng)
        assert function.norm == pytest.approx(2.0, rel=1e-9)
        bounds = Belief(posterior, 2.0).bounds(x)
        gap = bounds.upper - function(x)
        assert 0 <= gap.item() <= 1e-6 * 2.0


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_cell_of_no_width_is_the_pointwise_bound(kernel: Stationary) -> None:
    """So cells are as sharp as the pointwise bound."""
    posterior, _, x = extremal(kernel, 2.0, np.random.default_rng(8))
    belief = Belief(posterior, 2.0)
    point, cell = belief.bounds(x), cell_bounds(belief, Boxes(x, x))
    np.testing.assert_allclose(cell.upper, point.upper, rtol=1e-12)
    np.testing.assert_allclose(cell.lower, point.lower, rtol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_harness_catches_a_radius_one_percent_too_small(kernel: Stationary) -> None:
    rng, tally = np.random.default_rng(9), Tally("ρ × 0.99")
    for _ in range(20):
        posterior, function, x = extremal(kernel, 2.0, rng)
        broken = Belief(posterior, 2.0)
        broken.__dict__["radius"] = 0.99 * Belief(posterior, 2.0).radius
        tally.boxes(broken.bounds(x), function(x), 2.0)
    assert tally.violations >= 18


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_harness_catches_a_halved_norm_bound(kernel: Stationary) -> None:
    rng, tally, refuted = np.random.default_rng(10), Tally("B / 2"), 0
    for _ in range(20):
        posterior, function, x = extremal(kernel, 2.0, rng)
        broken = Belief(posterior, 1.0)
        if broken.evidence:
            refuted += 1
        else:
            tally.boxes(broken.bounds(x), function(x), 2.0)
    assert tally.violations + refuted == 20


def test_harness_catches_anchors_measured_to_the_centre() -> None:
    """f(z) ≤ y_s + L‖c − x_s‖ over a cell around c omits the half-width."""
    rng, broken, right = np.random.default_rng(11), Tally("to the centre"), Tally("to the farthest corner")
    for _ in range(50):
        slope = rng.standard_normal((1, 2))
        X, c, h = rng.uniform(-2, 2, (5, 2)), rng.uniform(-2, 2, (1, 2)), rng.uniform(0.05, 1, (1, 2))
        y, L = X @ slope.T, np.linalg.norm(slope)  # a linear stage: its Lipschitz constant is exact
        corner = c + h * np.sign(slope)
        for tally, farthest in ((broken, np.abs(c - X)), (right, np.abs(c - X) + h)):
            upper = (y[:, 0] + L * np.linalg.norm(farthest, axis=1) * (1 + 1e-12)).min()
            tally.boxes(Boxes(np.full((1, 1), -np.inf), np.full((1, 1), upper)), corner @ slope.T, 1.0)
    assert broken.violations > 0
    assert right.violations == 0


def test_harness_catches_a_table_without_padding() -> None:
    """The maximum over the nodes inside an interval is not a bound; that of the table is."""
    rng, broken, right = np.random.default_rng(12), Tally("nodes inside only"), Tally("tents")
    for _ in range(50):
        function = random_expansion(SquaredExponential(0.5), [-2], [2], norm=2.0, rng=rng)
        X = rng.uniform(-2, 2, (30, 1))
        belief = Belief(Posterior.fit(function.kernel, X, function(X)), 2.0)
        table = EnvelopeTable.of_outputs(belief, np.linspace(-2, 2, 25))[0]
        left = rng.uniform(-2, 1.5, 40)
        intervals = Boxes(left[:, None], left[:, None] + rng.uniform(0.2, 0.5, (40, 1)))
        inside = np.linspace(intervals.lower[:, 0], intervals.upper[:, 0], 50).T
        truth = function(inside.reshape(-1, 1)).reshape(40, 50, 1)
        nodes = [table.upper[(table.nodes >= low) & (table.nodes <= high)].max(initial=-np.inf)
                 for low, high in zip(intervals.lower[:, 0], intervals.upper[:, 0], strict=True)]  # fmt: skip
        broken.boxes(Boxes(np.full((40, 1), -np.inf), np.array(nodes)[:, None]), truth, 2.0)
        right.boxes(table.over(intervals), truth, 2.0)
    assert broken.violations > 0
    assert right.violations == 0


@pytest.mark.parametrize("t", [5, 50, 200, 400])
@pytest.mark.parametrize("kernel", [SquaredExponential(1.0), Matern(2.5), Matern(3.7)], ids=str)
def test_numerical_slack_is_at_most_a_millionth_of_the_norm_bound(kernel: Stationary, t: int) -> None:
    rng = np.random.default_rng(13)
    function = random_expansion(kernel, [-2] * 3, [2] * 3, norm=2.0, rng=rng)
    X, Z = rng.uniform(-2, 2, (t, 3)), rng.uniform(-2, 2, (300, 3))
    belief = Belief(Posterior.fit(kernel, X, function(X)), 2.0)
    prediction = belief.posterior.predict(Z)
    bare = belief.radius * prediction.sd[:, None]
    slack = 0.5 * (belief.bounds(Z).upper - belief.bounds(Z).lower) - bare
    assert slack.min() >= 0
    assert slack.max() <= 1e-6 * 2.0
