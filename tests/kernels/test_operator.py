"""Tests of operator-valued kernels: arguments and values."""

import numpy as np
import pytest

from cascada.arrays import Array
from cascada.errors import ArgumentError, NumericalError
from cascada.gp import BlockPosterior
from cascada.kernels import BlockKernel, Separable, SquaredExponential

SCALAR = SquaredExponential(0.7, 2.0)
MATRIX = np.array([[2.0, 0.5], [0.5, 1.0]])
X = np.array([[0.0], [0.4], [1.1]])
Y = np.array([[0.1, 0.2], [0.3, 0.1], [-0.2, 0.0]])


def block_kernel(A: Array) -> BlockKernel:
    return BlockKernel("k·A", lambda X, Z: SCALAR(X, Z)[:, :, None, None] * A)


# ---- separable


@pytest.mark.parametrize("A", [MATRIX, MATRIX.tolist(), ((2, 0.5), (0.5, 1))], ids=["array", "list", "tuple"])
def test_separable_blocks_are_the_kernel_times_the_matrix(A):
    kernel = Separable(SCALAR, A)
    blocks = kernel.blocks(X, X[:2], 2)
    assert blocks.shape == (3, 2, 2, 2)
    for i in range(3):
        for j in range(2):
            np.testing.assert_allclose(blocks[i, j], SCALAR(X, X)[i, j] * MATRIX, rtol=1e-15)
    assert kernel == Separable(SCALAR, MATRIX)
    assert hash(kernel) == hash(Separable(SCALAR, MATRIX))


def test_separable_keeps_its_own_matrix():
    A = MATRIX.copy()
    kernel = Separable(SCALAR, A)
    A[:] = 0.0
    np.testing.assert_array_equal(kernel.matrix_for(2), MATRIX)


@pytest.mark.parametrize("p", [1, 2, 5])
def test_the_default_matrix_is_the_identity_of_any_size(p):
    kernel = Separable(SCALAR)
    np.testing.assert_array_equal(kernel.matrix_for(p), np.eye(p))
    assert kernel.blocks(X, X, p).shape == (3, 3, p, p)
    assert kernel.spectral_norm == 1.0


@pytest.mark.parametrize("A", [[[4.0]], MATRIX, np.diag([1.0, 0.0, 3.0]), np.ones((3, 3))])
def test_spectral_norm_is_the_largest_eigenvalue(A):
    assert Separable(SCALAR, A).spectral_norm == pytest.approx(np.linalg.norm(A, 2), rel=1e-14)


def test_rounding_errors_in_a_matrix_are_accepted():
    A = MATRIX + np.array([[0.0, 1e-14], [0.0, 0.0]])
    kept = Separable(SCALAR, A).matrix_for(2)
    np.testing.assert_array_equal(kept, kept.T)
    np.testing.assert_allclose(kept, MATRIX, atol=1e-13)
    Separable(SCALAR, [[1.0, 1.0], [1.0, 1.0 - 1e-14]])  # its smallest eigenvalue is a rounding below 0


@pytest.mark.parametrize(
    ("A", "text"),
    [
        (np.ones((2, 3)), r"must be square; got shape \(2, 3\)"),
        (np.ones(3), r"must be square; got shape \(3,\)"),
        (np.empty((0, 0)), r"must be square; got shape \(0, 0\)"),
        (np.zeros((2, 2)), "not all zero"),
        ([[1.0, np.nan], [np.nan, 1.0]], "must be finite"),
        ([[1.0, 0.5], [0.4, 1.0]], "must be symmetric"),
        ([[1.0, 2.0], [2.0, 1.0]], "positive semidefinite; .* smallest eigenvalue is -1"),
        ([[-1.0]], "positive semidefinite; its diagonal has -1"),
        ([[1e14, 0.0], [0.0, -1e-8]], "positive semidefinite; its diagonal has -1e-08"),
        ([[1e14, 2e3], [2e3, 1e-8]], "positive semidefinite; .* smallest eigenvalue is"),
        ([[1.0, 1e-12], [1e-12, 0.0]], "0 on the diagonal and nonzero entries elsewhere"),
        ([[1.0, 0.0], [0.0, 1e-250]], "diagonal of the separable kernel's matrix must lie between 1e-200 and 1e"),
        ([[1.0], [1.0, 2.0]], "matrix"),
        ("matrix", "matrix"),
    ],
    ids=[
        "wide",
        "vector",
        "empty",
        "zero",
        "nan",
        "asymmetric",
        "indefinite",
        "negative",
        "small negative",
        "small indefinite",
        "zero row",
        "tiny",
        "ragged",
        "text",
    ],
)
def test_an_invalid_matrix_raises_an_argument_error(A, text):
    with pytest.raises(ArgumentError, match=text):
        Separable(SCALAR, A)


def test_separable_rejects_wrong_kernels_and_sizes():
    with pytest.raises(ArgumentError, match=r"matrix is 2×2 but there are 3 outputs"):
        Separable(SCALAR, MATRIX).blocks(X, X, 3)
    with pytest.raises(ArgumentError, match=r"needs a scalar kernel .* got <function"):
        Separable(lambda X, Z: X @ Z.T)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="2 lengthscales but its inputs have 1 dimensions"):
        Separable(SquaredExponential((1.0, 2.0))).check_dimension(1)


# ---- block kernels


def test_blocks_are_the_values_of_the_function():
    kernel = block_kernel(MATRIX)
    np.testing.assert_array_equal(kernel.blocks(X, X[:2], 2), Separable(SCALAR, MATRIX).blocks(X, X[:2], 2))
    lists = BlockKernel("lists", lambda X, Z: [[[[1.0]] for _ in Z] for _ in X])
    assert lists.blocks(X, X[:2], 1).shape == (3, 2, 1, 1)


@pytest.mark.parametrize("name", ["", "  ", None, 3])
def test_a_block_kernel_needs_a_name(name):
    with pytest.raises(ArgumentError, match="needs a non-empty name; got"):
        BlockKernel(name, SCALAR)


def test_a_block_kernel_needs_a_function():
    with pytest.raises(ArgumentError, match=r"'mine' needs a function .* got 3"):
        BlockKernel("mine", 3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (SCALAR, r"'mine' must return blocks of shape \(n, m, p, p\) = \(3, 3, 2, 2\); got \(3, 3\)"),
        (lambda X, Z: np.ones((len(X), len(Z), 3, 3)), r"= \(3, 3, 2, 2\); got \(3, 3, 3, 3\)"),
        (lambda X, Z: np.full((len(X), len(Z), 2, 2), np.nan), "'mine' must return finite values; got NaN or infinity"),
        (lambda X, Z: np.full((len(X), len(Z), 2, 2), np.inf), "'mine' must return finite values; got NaN or infinity"),
    ],
    ids=["scalar", "size", "nan", "inf"],
)
def test_invalid_blocks_raise_an_argument_error(function, text):
    kernel = BlockKernel("mine", function)
    with pytest.raises(ArgumentError, match=text):
        kernel.blocks(X, X, 2)
    with pytest.raises(ArgumentError, match="'mine'"):
        BlockPosterior.fit(kernel, X, Y)


def turned(X: Array, Z: Array) -> Array:
    """k·A with an A that is not symmetric."""
    return SCALAR(X, Z)[:, :, None, None] * np.array([[1.0, 0.2], [0.0, 1.0]])


def one_sided(X: Array, Z: Array) -> Array:
    """Symmetric blocks, but Γ(x, z) is not Γ(z, x)."""
    return (SCALAR(X, Z) * (1.0 + 0.1 * X))[:, :, None, None] * np.eye(2)


@pytest.mark.parametrize("function", [turned, one_sided])
def test_an_asymmetric_function_is_detected_on_the_data(function):
    kernel = BlockKernel("skew", function)
    with pytest.raises(ArgumentError, match=r"'skew' is not symmetric: .* differ by .* at x = \[.*\], z = \[.*\]"):
        BlockPosterior.fit(kernel, X, Y)


def test_an_asymmetry_between_old_and_new_data_is_detected():
    def late(X: Array, Z: Array) -> Array:
        """Asymmetric only between points on different sides of 1."""
        return (SCALAR(X, Z) + 0.1 * (X > 1) * (Z.T < 1))[:, :, None, None] * np.eye(2)

    posterior = BlockPosterior.fit(BlockKernel("late", late), X[:2], Y[:2])
    with pytest.raises(ArgumentError, match=r"'late' is not symmetric: .* differ by 0\.1 at x = \[1\.1\], z = \[0"):
        posterior.append(X[2:], Y[2:])


@pytest.mark.parametrize(
    "function",
    [
        lambda X, Z: -SCALAR(X, Z)[:, :, None, None] * np.eye(2),
        lambda X, Z: SCALAR(X, Z)[:, :, None, None] * np.array([[1.0, 2.0], [2.0, 1.0]]),
        lambda X, Z: (X + Z.T)[:, :, None, None] * np.eye(2),
    ],
    ids=["negative", "indefinite block", "indefinite kernel"],
)
def test_an_indefinite_function_is_detected_on_the_data(function):
    with pytest.raises(NumericalError, match=r"must be positive definite; .* at row \d+ of \d+.* check that it is"):
        BlockPosterior.fit(BlockKernel("odd", function), X, Y)
