"""Radii, moduli, pointwise bounds and envelopes."""

import numpy as np
import pytest

from cascada.confidence import Belief, Boxes, cell_bounds, envelope
from cascada.errors import ArgumentError
from cascada.gp import Posterior
from cascada.kernels import Additive, Expansion, Matern, SquaredExponential, Stationary, random_expansion

KERNELS = [
    SquaredExponential(1.0),
    Matern(0.5),
    Matern(1.5, 0.8),
    Matern(2.5, (0.7, 1.4), 2.0),
    Matern(3.7),
    Additive(Matern(0.5)),
    Additive(Matern(2.5, (0.7, 1.4), 2.0)),
]


def observed(kernel: Stationary, t: int, seed: int = 0, outputs: int = 1) -> tuple[Expansion, Posterior]:
    rng = np.random.default_rng(seed)
    function = random_expansion(kernel, [-2, -2], [2, 2], norm=2.0, rng=rng, outputs=outputs)
    X = rng.uniform(-2, 2, (t, 2))
    return function, Posterior.fit(kernel, X, function(X))


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_tight_radius_is_the_norm_that_the_data_leave(kernel: Stationary) -> None:
    _, posterior = observed(kernel, 12, outputs=2)
    gram = kernel(posterior.inputs, posterior.inputs) + 1e-10 * kernel.variance * np.eye(12)
    spent = np.einsum("tp,tp->p", posterior.outputs, np.linalg.solve(gram, posterior.outputs))
    np.testing.assert_allclose(Belief(posterior, 2.0).radius, np.sqrt(4.0 - spent), rtol=1e-6)
    np.testing.assert_array_equal(Belief(posterior, 2.0, tight=False).radius, [2.0, 2.0])


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_tight_bounds_lie_within_the_papers_and_shrink_with_data(kernel: Stationary) -> None:
    rng = np.random.default_rng(1)
    function, posterior = observed(kernel, 4)
    Z = rng.uniform(-2, 2, (200, 2))
    slack = 1e-6 * 2.0
    before = Belief(posterior, 2.0)
    for _ in range(6):
        x = rng.uniform(-2, 2, (1, 2))
        after = before.append(x, function(x))
        small, large = after.bounds(Z), before.bounds(Z)
        assert np.all(small.upper <= large.upper + slack)
        assert np.all(small.lower >= large.lower - slack)
        paper = Belief(after.posterior, 2.0, tight=False).bounds(Z)
        assert np.all(small.upper <= paper.upper)
        assert np.all(small.lower >= paper.lower)
        before = after


def test_prior_bounds_are_the_norm_times_the_prior_sd() -> None:
    belief = Belief(Posterior.empty(Matern(2.5, variance=4.0), 3, outputs=2), [1.0, 3.0])
    bounds = belief.bounds(np.zeros((1, 3)))
    np.testing.assert_allclose(bounds.upper, [[2.0, 6.0]])
    np.testing.assert_allclose(bounds.lower, [[-2.0, -6.0]])


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_modulus_is_the_smaller_of_the_kernels_and_the_declared(kernel: Stationary) -> None:
    _, posterior = observed(kernel, 3)
    steps = np.random.default_rng(2).standard_normal((100, 2)) * np.logspace(-6, 1, 100)[:, None]
    free, declared = Belief(posterior, 2.0), Belief(posterior, 2.0, lipschitz=0.5)
    assert np.all(declared.modulus(steps)[:, 0] <= 0.5 * np.linalg.norm(steps, axis=1) * (1 + 1e-12))
    assert np.all(declared.modulus(steps) <= free.modulus(steps))
    if kernel.lipschitz_factor is not None:
        derived = 2.0 * kernel.lipschitz_factor * kernel.scaled_norm(steps)
        assert np.all(free.modulus(steps)[:, 0] <= derived * (1 + 1e-12))


def test_derived_lipschitz_constants() -> None:
    """B·s·sqrt(−φ''(0)) on scaled distance: 1 for SE, ν/(ν−1) for Matérn, none for ν ≤ 1."""
    for kernel, expected in [
        (SquaredExponential(2.0, variance=4.0), 2.0 * 2.0 / 2.0),
        (Matern(2.5, (0.5, 1.0)), 2.0 * np.sqrt(2.5 / 1.5) / 0.5),
    ]:
        assert Belief(Posterior.empty(kernel, 2), 2.0).raw_lipschitz == pytest.approx([expected])
        assert Belief(Posterior.empty(kernel, 2), 2.0, 0.1).raw_lipschitz == pytest.approx([0.1])
    rough = Posterior.empty(Matern(1.0), 2)
    assert Belief(rough, 2.0).raw_lipschitz is None
    assert Belief(rough, 2.0, 3.0).raw_lipschitz == pytest.approx([3.0])


def test_envelope_is_the_definition_over_its_anchors() -> None:
    """eq:ucb_i and eq:ucb_ij_bar with z' among z, the data (exact values) and further anchors, in loops."""
    _, posterior = observed(SquaredExponential(1.0), 5, outputs=2)
    belief = Belief(posterior, 2.0, lipschitz=[1.0, 1.5])
    rng = np.random.default_rng(3)
    Z, anchors = rng.uniform(-2, 2, (15, 2)), rng.uniform(-2, 2, (7, 2))
    bounds, pointwise, further = envelope(belief, Z, anchors), belief.bounds(Z), belief.bounds(anchors)
    for i, z in enumerate(Z):
        for j in range(2):
            best = pointwise.upper[i, j]
            for x, y in zip(posterior.inputs, posterior.outputs, strict=True):
                best = min(best, y[j] + belief.modulus(z - x)[j])
            for a, u in zip(anchors, further.upper, strict=True):
                best = min(best, u[j] + belief.modulus(z - a)[j])
            assert bounds.upper[i, j] == pytest.approx(best, rel=1e-12)


def test_more_anchors_never_widen_the_envelope() -> None:
    function, posterior = observed(SquaredExponential(1.0), 5)
    belief = Belief(posterior, 2.0, lipschitz=2.0)
    rng = np.random.default_rng(4)
    Z, anchors = rng.uniform(-2, 2, (50, 2)), rng.uniform(-2, 2, (30, 2))
    few, many = envelope(belief, Z, anchors[:5]), envelope(belief, Z, anchors)
    assert np.all(many.upper <= few.upper)
    assert np.all(few.upper <= envelope(belief, Z).upper)
    assert function.norm == pytest.approx(2.0)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_a_larger_cell_has_a_wider_bound(kernel: Stationary) -> None:
    _, posterior = observed(kernel, 8)
    belief = Belief(posterior, 2.0)
    centre, half = np.zeros((1, 2)), np.full((1, 2), 1.0)
    widths = []
    for scale in np.logspace(-4, 1, 30):
        bounds = cell_bounds(belief, Boxes.around(centre, scale * half))
        widths.append((bounds.upper - bounds.lower).item())
    assert np.all(np.diff(widths) >= -1e-12)
    assert widths[-1] <= 2 * 2.0 * np.sqrt(kernel.variance) * (1 + 1e-12)  # |f| ≤ B·s


def test_slack_of_small_cells_falls_faster_than_their_width_where_data_are_dense() -> None:
    """At a stationary point of f with data around it, only the second-order term is left."""
    kernel = SquaredExponential(1.0)
    grid = np.stack(np.meshgrid(*[np.linspace(-1, 1, 7)] * 2), axis=-1).reshape(-1, 2)
    function = Expansion(kernel, np.zeros((1, 2)), np.array([[2.0]]))  # its maximum is at 0
    belief = Belief(Posterior.fit(kernel, grid, function(grid)), 3.0)  # with 2, |f| ≤ B·s alone would suffice
    centre = np.zeros((1, 2))
    excess = [cell_bounds(belief, Boxes.around(centre, np.full((1, 2), h))).upper.item() - 2.0 for h in (0.02, 0.01)]
    assert excess[0] / excess[1] > 3.0
    assert excess[0] < 0.1 * belief.modulus(np.array([0.02, 0.02])).item()


def test_pieces_sharpen_wide_cells_and_cover_them() -> None:
    function, posterior = observed(SquaredExponential((0.7, 1.5)), 20)
    belief = Belief(posterior, 2.0)
    cells = Boxes(np.array([[-2.0, -0.5]]), np.array([[2.0, 0.5]]))
    one, many = cell_bounds(belief, cells), cell_bounds(belief, cells, pieces=16)
    assert many.upper.item() < one.upper.item()
    inside = np.random.default_rng(5).uniform(cells.lower, cells.upper, (5000, 2))
    assert np.all(many.upper >= function(inside))
    assert np.all(many.lower <= function(inside))


def test_scaling_the_outputs_scales_every_bound() -> None:
    _, posterior = observed(Matern(2.5), 10)
    scaled = Posterior.fit(posterior.kernel, posterior.inputs, 10 * posterior.outputs)
    cells = Boxes.around(np.random.default_rng(6).uniform(-2, 2, (20, 2)), np.full((20, 2), 0.1))
    a, b = cell_bounds(Belief(posterior, 2.0, 3.0), cells), cell_bounds(Belief(scaled, 20.0, 30.0), cells)
    np.testing.assert_allclose(b.upper, 10 * a.upper, rtol=1e-9)


def test_shifting_the_inputs_changes_nothing() -> None:
    _, posterior = observed(SquaredExponential(1.0), 10)
    shift = np.array([[1024.0, -4096.0]])
    moved = Posterior.fit(posterior.kernel, posterior.inputs + shift, posterior.outputs)
    cells = Boxes.around(np.random.default_rng(7).uniform(-2, 2, (20, 2)), np.full((20, 2), 0.1))
    shifted = Boxes(cells.lower + shift, cells.upper + shift)
    a, b = cell_bounds(Belief(posterior, 2.0), cells), cell_bounds(Belief(moved, 2.0), shifted)
    np.testing.assert_allclose(b.upper, a.upper, atol=1e-7)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"norm_bound": 0.0}, "norm_bound must be finite and above 0"),
        ({"norm_bound": [1.0, 2.0]}, r"one per output \(1\)"),
        ({"norm_bound": np.nan}, "norm_bound must be finite"),
        ({"norm_bound": 1.0, "lipschitz": -1.0}, "lipschitz must be finite and above 0"),
    ],
)
def test_bad_assumptions_are_refused(arguments: dict[str, float], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        Belief(Posterior.empty(SquaredExponential(1.0), 1), **arguments)  # type: ignore[arg-type]


def test_bad_cells_are_refused() -> None:
    belief = Belief(Posterior.empty(SquaredExponential(1.0), 2), 1.0)
    with pytest.raises(ArgumentError, match="2 dimensions"):
        cell_bounds(belief, Boxes(np.zeros((1, 3)), np.ones((1, 3))))
    with pytest.raises(ArgumentError, match="empty"):
        cell_bounds(belief, Boxes(np.ones((1, 2)), np.zeros((1, 2))))
