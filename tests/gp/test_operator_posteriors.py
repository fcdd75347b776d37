"""Tests of posteriors under operator-valued kernels: a common suite, then tests of each class."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mpf

from cascada.arrays import Array
from cascada.errors import ArgumentError, ContradictionError, NumericalError
from cascada.gp import BlockPosterior, OperatorPosterior, Posterior, SeparablePosterior
from cascada.kernels import (
    BlockKernel,
    Matern,
    OperatorKernel,
    Separable,
    SquaredExponential,
    random_operator_expansion,
)
from tests import reference
from tests.kernels.cases import make, name

SCALAR = Matern(2.5, (0.6, 1.1), 1.7)
ROUGH = Matern(0.5, 0.8, 0.4)
MATRIX = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, -0.3], [0.0, -0.3, 0.7]])
OTHER = np.array([[1.0, -1.0, 0.0], [-1.0, 2.0, 0.0], [0.0, 0.0, 0.5]])
SINGULAR = np.array([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0], [0.0, 0.0, 1.0]])


def mixed(X: Array, Z: Array) -> Array:
    """Not separable: a smooth part with one matrix, a rough part with another."""
    return SCALAR(X, Z)[:, :, None, None] * MATRIX + ROUGH(X, Z)[:, :, None, None] * OTHER


def growing(X: Array, Z: Array) -> Array:
    """Not stationary: (1 + ⟨x, z⟩)·k·A, with ‖Γ(x, x)‖ that depends on x."""
    return ((1.0 + X @ Z.T) * SCALAR(X, Z))[:, :, None, None] * MATRIX


def block(function: Any) -> reference.Blocks:
    """A kernel function of arrays as a function of two points."""
    return lambda x, z: function(np.array([x]), np.array([z]))[0, 0]


def points(seed: int, n: int, d: int = 2) -> Array:
    return np.random.default_rng(seed).uniform(-1, 1, (n, d))


def outputs(kernel: OperatorKernel, X: Array, p: int = 3) -> Array:
    """Values at X of a function of joint norm 1."""
    d = X.shape[1]
    rng = np.random.default_rng(99)
    return random_operator_expansion(kernel, -np.ones(d), np.ones(d), norm=1.0, outputs=p, rng=rng)(X)


POSTERIORS: dict[str, Callable[[], OperatorPosterior]] = {
    "separable": lambda: SeparablePosterior.empty(Separable(SCALAR, MATRIX), 2, 3),
    "identity": lambda: SeparablePosterior.empty(Separable(SCALAR), 2, 3),
    "singular": lambda: SeparablePosterior.empty(Separable(SCALAR, SINGULAR), 2, 3),
    "block separable": lambda: BlockPosterior.empty(Separable(SCALAR, MATRIX), 2, 3),
    "mixed": lambda: BlockPosterior.empty(BlockKernel("mixed", mixed), 2, 3),
    "growing": lambda: BlockPosterior.empty(BlockKernel("growing", growing), 2, 3),
}


@pytest.fixture(params=POSTERIORS.values(), ids=list(POSTERIORS))
def empty(request: pytest.FixtureRequest) -> OperatorPosterior:
    return request.param()


# ---- both classes


def with_data(empty: OperatorPosterior, t: int = 8) -> OperatorPosterior:
    X = points(1, 8)
    return empty.append(X[:t], outputs(empty.kernel, X)[:t])  # type: ignore[attr-defined]


@pytest.mark.parametrize("t", [0, 1, 8])
@pytest.mark.parametrize("n", [0, 1, 5])
def test_shapes(empty, t, n):
    posterior = with_data(empty, t)
    assert (posterior.count, posterior.dimension, posterior.output_count) == (t, 2, 3)
    assert posterior.spent_by_row.shape == posterior.rows.shape == (t,)
    assert posterior.outputs.shape == (t, 3)
    prediction = posterior.predict(points(2, n))
    assert prediction.mean.shape == (n, 3)
    assert prediction.covariance.shape == prediction.root.shape == (n, 3, 3)
    assert prediction.sd.shape == prediction.prior_sd.shape == (n,)


def test_without_data_the_posterior_is_the_prior(empty):
    Z = points(2, 4)
    prediction = empty.predict(Z)
    np.testing.assert_array_equal(prediction.mean, np.zeros((4, 3)))
    for i, z in enumerate(Z):
        prior = empty.kernel.blocks(z[None], z[None], 3)[0, 0]
        np.testing.assert_allclose(prediction.covariance[i], prior, rtol=1e-14, atol=1e-15)
        assert prediction.sd[i] == pytest.approx(np.sqrt(np.linalg.norm(prior, 2)), rel=1e-13)
    np.testing.assert_allclose(prediction.prior_sd, prediction.sd, rtol=1e-13)
    assert (empty.spent, empty.inflation) == (0.0, 0.0)


def test_observations_are_reproduced(empty):
    posterior = with_data(empty)
    prediction = posterior.predict(posterior.inputs)
    np.testing.assert_allclose(prediction.mean, posterior.outputs, rtol=0, atol=1e-6)
    assert np.all(prediction.sd <= 1e-4)
    assert posterior.spent <= 1 + 1e-9  # ‖f‖² = 1
    assert posterior.spent == pytest.approx(posterior.spent_by_row.sum(), rel=1e-14)


def test_root_is_a_symmetric_root_of_the_covariance(empty):
    prediction = with_data(empty, 4).predict(points(2, 6))
    np.testing.assert_array_equal(prediction.covariance, prediction.covariance.transpose(0, 2, 1))
    np.testing.assert_allclose(prediction.root @ prediction.root, prediction.covariance, rtol=0, atol=1e-12)
    np.testing.assert_allclose(prediction.root, prediction.root.transpose(0, 2, 1), rtol=0, atol=1e-15)
    np.testing.assert_allclose(prediction.sd, np.linalg.norm(prediction.root, 2, axis=(1, 2)), rtol=1e-10)
    assert np.all(prediction.sd <= prediction.prior_sd * (1 + 1e-12))


@pytest.mark.parametrize("steps", [(1,) * 8, (3, 0, 5)], ids=["one by one", "in blocks"])
def test_appending_equals_fitting(empty, steps):
    X, Z = points(1, 8), points(2, 6)
    Y = outputs(empty.kernel, X)
    batch, posterior, start = empty.append(X, Y), empty, 0
    for size in steps:
        posterior = posterior.append(X[start : start + size], Y[start : start + size])
        start += size
    np.testing.assert_allclose(posterior.predict(Z).mean, batch.predict(Z).mean, rtol=0, atol=1e-10)
    np.testing.assert_allclose(posterior.predict(Z).covariance, batch.predict(Z).covariance, rtol=0, atol=1e-11)
    np.testing.assert_allclose(posterior.predict(Z).prior_sd, batch.predict(Z).prior_sd, rtol=1e-14)
    np.testing.assert_allclose(posterior.spent_by_row, batch.spent_by_row, rtol=1e-6, atol=1e-12)
    np.testing.assert_array_equal(posterior.outputs, Y)


def test_the_covariance_never_grows(empty):
    X, Z = points(1, 8), points(2, 6)
    Y = outputs(empty.kernel, X)
    before, spent = empty.predict(Z).covariance, 0.0
    for i in range(8):
        empty = empty.append(X[i : i + 1], Y[i : i + 1])
        after = empty.predict(Z).covariance
        assert np.linalg.eigvalsh(before - after).min() >= -1e-9
        assert empty.spent >= spent
        before, spent = after, empty.spent


def test_invalid_input_raises_an_argument_error(empty):
    with pytest.raises(ArgumentError, match=r"X must have 2 columns.*got shape \(1, 3\)"):
        empty.append(np.zeros((1, 3)), np.zeros((1, 3)))
    with pytest.raises(ArgumentError, match=r"Y must have shape \(1, 3\).*got \(1, 2\)"):
        empty.append(np.zeros((1, 2)), np.zeros((1, 2)))
    with pytest.raises(ArgumentError, match="Y must be finite; row 0"):
        empty.append(np.zeros((1, 2)), np.full((1, 3), np.nan))
    with pytest.raises(ArgumentError, match=r"Z must have two axes .*got shape \(2,\)"):
        empty.predict(np.zeros(2))


@pytest.mark.parametrize("posterior", [SeparablePosterior, BlockPosterior])
def test_jitter_and_kernel_are_checked(posterior):
    with pytest.raises(ArgumentError, match=r"jitter must be at least 1e-10.*got 1e-12"):
        posterior.empty(Separable(SCALAR), 2, 3, jitter=1e-12)
    with pytest.raises(ArgumentError, match=r"jitter must be at least 1e-10.*got 0"):
        posterior.fit(Separable(SCALAR), [[0.0, 0.0]], [[1.0]], jitter=0.0)
    with pytest.raises(ArgumentError, match="2 lengthscales but its inputs have 3 dimensions"):
        posterior.empty(Separable(SCALAR), 3, 2)
    with pytest.raises(ArgumentError, match="matrix is 3×3 but there are 2 outputs"):
        posterior.fit(Separable(SCALAR, MATRIX), [[0.0, 0.0]], [[1.0, 2.0]])


# ---- compared with many digits


def check(posterior: OperatorPosterior, true: reference.OperatorPosterior, Z: Array, tolerance: float) -> None:
    prediction = posterior.predict(Z)
    p = posterior.output_count
    for i, z in enumerate(Z):
        mean, covariance = true.mean(z), true.covariance(z)
        for a in range(p):
            assert abs(mpf(prediction.mean[i, a]) - mean[a]) <= tolerance
            for b in range(p):
                assert abs(mpf(prediction.covariance[i, a, b]) - covariance[a][b]) <= tolerance
    assert abs(mpf(posterior.spent) / true.spent - 1) <= tolerance


@pytest.mark.parametrize("jitter", [1e-10, 1e-7, 1e-2])
@pytest.mark.parametrize("A", [MATRIX, np.eye(3)], ids=["matrix", "identity"])
def test_separable_against_many_digits(A, jitter):
    kernel = Separable(SCALAR, A)
    X, Z = points(1, 8), points(2, 3)
    Y = outputs(kernel, X)
    blocks = reference.separable(reference.Kernel.like(SCALAR, 2), A)
    # Its jitter is λs²A, which commutes with the kernel.
    true = reference.OperatorPosterior(blocks, X, Y, lambda _, a, b: mpf(jitter) * mpf(SCALAR.variance) * mpf(A[a, b]))
    check(SeparablePosterior.fit(kernel, X, Y, jitter), true, Z, 1e-9)


@pytest.mark.parametrize("jitter", [1e-10, 1e-7, 1e-2])
@pytest.mark.parametrize("function", [mixed, growing])
def test_block_against_many_digits(function, jitter):
    kernel = BlockKernel("Γ", function)
    X, Z = points(1, 8), points(2, 3)
    Y = outputs(kernel, X)
    # Its jitter is λ times the largest ‖Γ(x, x)‖₂ so far.
    largest = np.maximum.accumulate([np.linalg.norm(function(x[None], x[None])[0, 0], 2) for x in X])
    true = reference.OperatorPosterior(
        block(function), X, Y, lambda i, a, b: mpf(jitter) * mpf(largest[i]) if a == b else mpf(0)
    )
    check(BlockPosterior.fit(kernel, X, Y, jitter), true, Z, 1e-9)


# ---- compared with each other


@pytest.mark.parametrize("nu", [None, 0.5, 1.0, 2.5], ids=name)
@pytest.mark.parametrize("p", [1, 3])
def test_kernel_times_identity_is_the_scalar_posterior(nu, p):
    # lem:multi_var: Γ = k·I gives Γ_t = σ_t²·I, here for both ways to compute it.
    kernel = make(nu, 0.8, 1.7)
    X, Z = points(1, 10), points(2, 5)
    Y = outputs(Separable(kernel), X, p)
    scalar = Posterior.fit(kernel, X, Y, 1e-7)
    expected = scalar.predict(Z)
    for posterior in (
        SeparablePosterior.fit(Separable(kernel), X, Y, 1e-7),
        BlockPosterior.fit(Separable(kernel), X, Y, 1e-7),
        BlockPosterior.fit(BlockKernel("k·I", lambda X, Z: kernel(X, Z)[:, :, None, None] * np.eye(p)), X, Y, 1e-7),
    ):
        prediction = posterior.predict(Z)
        np.testing.assert_allclose(prediction.mean, expected.mean, rtol=0, atol=1e-10)
        sigma2 = expected.sd[:, None, None] ** 2
        np.testing.assert_allclose(prediction.covariance, sigma2 * np.eye(p), rtol=0, atol=1e-11)
        np.testing.assert_allclose(prediction.sd, expected.sd, rtol=0, atol=1e-9)
        assert posterior.spent == pytest.approx(scalar.spent.sum(), rel=1e-9)


def test_separable_and_block_posteriors_differ_only_by_their_jitter():
    kernel = Separable(SCALAR, MATRIX)
    X, Z = points(1, 10), points(2, 5)
    Y = outputs(kernel, X)
    one, other = SeparablePosterior.fit(kernel, X, Y), BlockPosterior.fit(kernel, X, Y)
    np.testing.assert_allclose(one.predict(Z).mean, other.predict(Z).mean, rtol=0, atol=1e-6)
    np.testing.assert_allclose(one.predict(Z).covariance, other.predict(Z).covariance, rtol=0, atol=1e-7)
    np.testing.assert_allclose(one.predict(Z).prior_sd, other.predict(Z).prior_sd, rtol=1e-12)
    assert one.spent == pytest.approx(other.spent, rel=1e-6)


@given(st.integers(0, 2**32 - 1), st.integers(1, 4))
def test_rotating_the_outputs_rotates_the_posterior(seed, p):
    rng = np.random.default_rng(seed)
    Q, _ = np.linalg.qr(rng.normal(size=(p, p)))
    A = np.diag(rng.uniform(0.5, 2.0, p))
    X, Z = points(1, 8), points(2, 4)
    Y = outputs(Separable(SCALAR, A), X, p)
    plain = SeparablePosterior.fit(Separable(SCALAR, A), X, Y, 1e-7)
    turned = SeparablePosterior.fit(Separable(SCALAR, Q @ A @ Q.T), X, Y @ Q.T, 1e-7)
    np.testing.assert_allclose(turned.predict(Z).mean, plain.predict(Z).mean @ Q.T, rtol=0, atol=1e-8)
    np.testing.assert_allclose(turned.predict(Z).covariance, Q @ plain.predict(Z).covariance @ Q.T, atol=1e-9)
    assert turned.spent == pytest.approx(plain.spent, rel=1e-6)


# ---- separable


def test_predictions_in_the_null_space_of_a_singular_matrix_are_zero():
    kernel = Separable(SCALAR, SINGULAR)  # of rank 2: the second output is twice the first
    X, Z = points(1, 8), points(2, 5)
    Y = outputs(kernel, X)
    posterior = SeparablePosterior.fit(kernel, X, Y)
    prediction = posterior.predict(Z)
    np.testing.assert_allclose(prediction.mean[:, 1], 2 * prediction.mean[:, 0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(prediction.covariance @ [2.0, -1.0, 0.0], 0.0, atol=1e-14)
    assert posterior.spent <= 1 + 1e-9
    # The range of A as a separate problem: f = (g, 2g, h) with ‖f‖² = ‖g‖² + ‖h‖².
    small = SeparablePosterior.fit(Separable(SCALAR), X, Y[:, [0, 2]])
    np.testing.assert_allclose(prediction.mean[:, [0, 2]], small.predict(Z).mean, rtol=0, atol=1e-9)
    assert posterior.spent == pytest.approx(small.spent, rel=1e-7)


def test_an_output_outside_the_range_of_a_singular_matrix_uses_up_far_more_than_any_norm():
    kernel = Separable(SCALAR, SINGULAR)
    X = points(1, 6)
    Y = outputs(kernel, X)
    wrong = Y.copy()
    wrong[4, 1] += 1e-3
    right, refuted = SeparablePosterior.fit(kernel, X, Y), SeparablePosterior.fit(kernel, X, wrong)
    assert right.spent <= 1 + 1e-6
    assert right.spent_on_the_null_space <= 1e-6
    assert refuted.spent >= 1e6
    assert refuted.spent_on_the_null_space >= 0.99 * refuted.spent


def test_an_output_of_variance_zero_must_be_zero():
    kernel = Separable(SCALAR, np.diag([1.0, 0.0]))
    rows = np.array([[1e9, 0.0], [1.0, 1e-30]])
    for order in ([0, 1], [1, 0]):
        with pytest.raises(ContradictionError, match=r"has 1e-30 as output 1, which is always 0"):
            SeparablePosterior.fit(kernel, points(1, 2)[order], rows[order])
    posterior = SeparablePosterior.fit(kernel, points(1, 2), np.array([[1.0, 0.0], [2.0, -0.0]]))
    assert posterior.count == 2
    assert not posterior.predict(points(2, 3)).mean[:, 1].any()


@pytest.mark.parametrize("scale", [2.0**-60, 2.0**40])
def test_the_unit_of_an_output_affects_only_that_output(scale):
    A = MATRIX * np.outer([1.0, scale, 1.0], [1.0, scale, 1.0])
    X, Z = points(1, 8), points(2, 5)
    Y = outputs(Separable(SCALAR, MATRIX), X)
    plain = SeparablePosterior.fit(Separable(SCALAR, MATRIX), X, Y)
    scaled = SeparablePosterior.fit(Separable(SCALAR, A), X, Y * [1.0, scale, 1.0])
    assert scaled.spent == plain.spent
    np.testing.assert_array_equal(scaled.predict(Z).mean, plain.predict(Z).mean * [1.0, scale, 1.0])
    np.testing.assert_array_equal(scaled.output_roots, plain.output_roots * [1.0, scale, 1.0])


def test_the_scalar_posterior_keeps_the_outputs_unchanged():
    kernel = Separable(SCALAR, MATRIX)
    X, Z = points(1, 8), points(2, 5)
    Y = outputs(kernel, X)
    expected = Posterior.fit(SCALAR, X, Y, 1e-7)
    scalar = SeparablePosterior.fit(kernel, X, Y, 1e-7).scalar
    np.testing.assert_array_equal(scalar.outputs, Y)
    np.testing.assert_allclose(scalar.predict(Z).mean, expected.predict(Z).mean, rtol=0, atol=1e-10)
    np.testing.assert_allclose(scalar.mean(Z), expected.mean(Z), rtol=0, atol=1e-10)
    np.testing.assert_allclose(scalar.predict(Z).sd, expected.predict(Z).sd, rtol=0, atol=1e-12)
    np.testing.assert_allclose(scalar.spent, expected.spent, rtol=1e-10)
    np.testing.assert_allclose(scalar.mean_norm, expected.mean_norm, rtol=1e-10)


# ---- block kernels


def test_arrays_returned_by_the_kernel_function_are_not_modified():
    # A function may cache its result and return the same array again.
    kept: dict[tuple[bytes, bytes], Array] = {}
    kernel = SquaredExponential(0.8)

    def remembered(X: Array, Z: Array) -> Array:
        key = (X.tobytes(), Z.tobytes())
        if key not in kept:
            kept[key] = kernel(X, Z)[:, :, None, None] * np.eye(2)
            kept[key].flags.writeable = False
        return kept[key]

    X, Z = points(1, 5), points(2, 3)
    Y = outputs(Separable(kernel), X, 2)
    posterior = BlockPosterior.empty(BlockKernel("remembered", remembered), 2, 2)
    for i in range(5):
        posterior = posterior.append(X[i : i + 1], Y[i : i + 1])
        posterior.predict(Z)
    expected = SeparablePosterior.fit(Separable(kernel), X, Y).predict(Z)
    np.testing.assert_allclose(posterior.predict(Z).mean, expected.mean, rtol=0, atol=1e-7)
    for values in kept.values():
        np.testing.assert_array_equal(values[..., 0, 1], np.zeros(values.shape[:2]))
        assert np.all(values[..., 0, 0] <= 1.0)


def test_a_kernel_may_vanish_somewhere():
    # ⟨x, z⟩·I is positive semidefinite, and zero at the origin, as is every function in its space.
    kernel = BlockKernel("linear", lambda X, Z: (X @ Z.T)[:, :, None, None] * np.eye(2))
    X, Y = np.array([[0.0], [2.0]]), np.array([[0.0, 0.0], [1.0, -1.0]])
    posterior = BlockPosterior.fit(kernel, X[::-1], Y[::-1])
    np.testing.assert_allclose(posterior.predict([[1.0]]).mean, [[0.5, -0.5]], atol=1e-8)
    assert posterior.spent == pytest.approx(0.5, rel=1e-8)


def test_a_failed_append_does_not_change_the_posterior():
    sections = SquaredExponential()
    kernel = BlockKernel("odd", lambda X, Z: (sections(X, Z) * (1 - 2 * (X > 1) * (Z.T > 1)))[:, :, None, None])
    posterior = BlockPosterior.fit(kernel, [[0.0], [0.5]], [[1.0], [0.5]])
    with pytest.raises(NumericalError, match="must be positive definite; its factorisation failed at row 3 of 3"):
        posterior.append([[1.5]], [[0.0]])
    assert posterior.count == 2
    assert np.isfinite(posterior.predict([[0.2]]).mean).all()
