"""Pairs of inputs and their places in a matrix."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cascada.calibration.pairs import Pairs


@given(st.integers(0, 9), st.integers(1, 4))
def test_every_pair_has_its_place_in_the_lower_triangle(n: int, d: int) -> None:
    X = np.random.default_rng(n).uniform(-1, 1, (n, d))
    pairs = Pairs(X)
    assert pairs.squares.shape == (d, n * (n - 1) // 2)
    matrix = np.zeros((n, n), order="F")
    matrix.ravel(order="K")[pairs.places] = pairs.squares.sum(axis=0)
    expected = np.tril(((X[:, None] - X) ** 2).sum(axis=2))
    np.testing.assert_allclose(matrix, expected, rtol=1e-14)
    np.testing.assert_array_equal(X[pairs.second] - X[pairs.first], -(X[pairs.first] - X[pairs.second]))
    assert np.all(pairs.first < pairs.second)


@pytest.mark.parametrize(
    ("inputs", "count"),
    [
        ([], 0),
        ([0.0], 1),
        ([0.0, 5e-4, 9e-4], 1),
        ([0.0, 9e-4, 1.8e-3], 2),  # the second belongs to the first, and so the third counts
        ([0.0, 9e-4, 1.8e-3, 2.7e-3], 2),
        ([0.3, 0.1, 0.3, 0.1], 2),
    ],
)
def test_an_input_counts_if_no_earlier_one_that_counts_is_close(inputs: list[float], count: int) -> None:
    assert Pairs(np.array(inputs).reshape(-1, 1)).clusters == count
