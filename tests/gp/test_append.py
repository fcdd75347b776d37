"""Tests of `append`: equality with `fit`, dropped repeats, contradictions, and immutability."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cascada.errors import ContradictionError
from cascada.gp import BlockPosterior, Posterior, SeparablePosterior
from cascada.kernels import Matern, Separable, SquaredExponential, Stationary, random_expansion
from tests.gp.cases import case

KERNEL = Matern(2.5, 0.7)
MATRIX = np.array([[2.0, 0.5], [0.5, 1.0]])

X = np.array([[0.0, 0.0], [0.5, -0.25], [1.0, 1.0]])
Y = np.array([[1.0, 0.0], [2.0, 1.0], [3.0, -1.0]])

Empty = Callable[[], Any]


# All posteriors keep data in the same way, so they share one suite, with d = p = 2.
@pytest.fixture(
    params=[
        lambda: Posterior.empty(KERNEL, 2, 2),
        lambda: SeparablePosterior.empty(Separable(KERNEL, MATRIX), 2, 2),
        lambda: BlockPosterior.empty(Separable(KERNEL, MATRIX), 2, 2),
    ],
    ids=["Posterior", "SeparablePosterior", "BlockPosterior"],
)
def empty(request: pytest.FixtureRequest) -> Empty:
    return request.param


# ---- appended or fitted


@given(st.sampled_from([None, 0.5, 1.0, 2.5]), st.integers(1, 3), st.lists(st.integers(0, 5), max_size=8))
def test_appending_in_any_pieces_equals_fitting(nu, d, sizes):
    t = sum(sizes)
    observed = case(nu, d, 40, 2)
    posterior, start = Posterior.empty(observed.kernel, d, 2, 1e-7), 0
    for size in sizes:
        rows = slice(start, start + size)
        posterior, start = posterior.append(observed.X[rows], observed.Y[rows]), start + size
    fitted = Posterior.fit(observed.kernel, observed.X[:t], observed.Y[:t], 1e-7)
    np.testing.assert_array_equal(posterior.inputs, fitted.inputs)
    np.testing.assert_array_equal(posterior.outputs, fitted.outputs)
    np.testing.assert_array_equal(posterior.rows, np.arange(t))
    assert posterior.received == t
    np.testing.assert_allclose(posterior.factor, fitted.factor, rtol=0, atol=1e-8)
    np.testing.assert_allclose(posterior.predict(observed.Z).mean, fitted.predict(observed.Z).mean, atol=1e-9)
    np.testing.assert_allclose(posterior.predict(observed.Z).sd, fitted.predict(observed.Z).sd, atol=1e-9)
    np.testing.assert_allclose(posterior.spent, fitted.spent, rtol=1e-9)


def in_steps(kernel: Stationary, inputs: Any, outputs: Any, step: int) -> Posterior:
    posterior = Posterior.empty(kernel, inputs.shape[1], outputs.shape[1])
    for i in range(0, len(inputs), step):
        posterior = posterior.append(inputs[i : i + step], outputs[i : i + step])
    return posterior


@pytest.mark.parametrize("kernel", [SquaredExponential(1.0), Matern(2.5)], ids=["SE", "Matern-2.5"])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_crowded_data_give_the_same_posterior_however_they_are_appended(kernel, d):
    # 560 of 600 points inside a ball of radius 1e-2, where K_t is singular to working precision.
    rng = np.random.default_rng(d)
    inputs = rng.uniform(-1, 1, (600, d))
    crowd = rng.permutation(600)[:560]
    direction = rng.normal(size=(560, d))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    inputs[crowd] = 0.3 + 1e-2 * rng.uniform(size=(560, 1)) ** (1 / d) * direction
    f = random_expansion(kernel, -np.ones(d), np.ones(d), norm=1.0, rng=rng)
    queries = np.concatenate([rng.uniform(-1.2, 1.2, (40, d)), 0.3 + rng.uniform(-2e-2, 2e-2, (40, d)), inputs[::40]])
    one, blocks, batch = (in_steps(kernel, inputs, f(inputs), step).predict(queries) for step in (1, 37, 600))
    for other in (one, blocks):
        np.testing.assert_allclose(other.mean, batch.mean, rtol=0, atol=1e-7)
        np.testing.assert_allclose(other.sd, batch.sd, rtol=0, atol=1e-7)


@pytest.mark.parametrize("begun", [0, 1, 30])
def test_appending_each_row_equals_single_appends_bit_for_bit(empty, begun):
    rng = np.random.default_rng(begun)
    inputs, outputs = rng.uniform(-2, 2, (150, 2)), rng.normal(size=(150, 2))
    inputs[60], outputs[60] = inputs[20], outputs[20]  # a repeat
    start = empty().append(inputs[:begun], outputs[:begun])
    single = start
    for i in range(begun, 150):
        single = single.append(inputs[i : i + 1], outputs[i : i + 1])
    together = start.append(inputs[begun:], outputs[begun:], each=True)
    assert together.received == single.received == 150
    np.testing.assert_array_equal(together.rows, single.rows)
    np.testing.assert_array_equal(together.spent, single.spent)
    ours, theirs = together.predict(inputs + 0.1), single.predict(inputs + 0.1)
    np.testing.assert_array_equal(ours.mean, theirs.mean)
    np.testing.assert_array_equal(ours.sd, theirs.sd)


@pytest.mark.parametrize("p", [1, 3])
def test_factors_in_buffers_of_any_size_give_the_same_bits(p):
    # A posterior of the first rows may lie in the larger buffer of another one with more rows.
    observed = case(2.5, 2, 140, p)
    longest = Posterior.empty(observed.kernel, 2, p).append(observed.X, observed.Y, each=True)
    posterior = Posterior.empty(observed.kernel, 2, p)
    for t in range(1, 141):
        posterior = posterior.append(observed.X[t - 1 : t], observed.Y[t - 1 : t])
        if t % 23 == 0:
            exact = Posterior.empty(observed.kernel, 2, p).append(observed.X[:t], observed.Y[:t], each=True)
            for query in (observed.Z[:1], observed.Z):
                np.testing.assert_array_equal(exact.predict(query).mean, posterior.predict(query).mean)
                np.testing.assert_array_equal(exact.jet(query).derivative_sd, posterior.jet(query).derivative_sd)
            np.testing.assert_array_equal(exact.mean_norm, posterior.mean_norm)
            np.testing.assert_array_equal(exact.factor, longest.factor[:t, :t])


# ---- values


def test_posteriors_that_extend_the_same_one_do_not_disturb_each_other(empty):
    rng = np.random.default_rng(0)
    inputs, outputs = rng.uniform(-2, 2, (60, 2)), rng.normal(size=(60, 2))
    start = empty().append(inputs[:20], outputs[:20], each=True)
    ends = [slice(20, 40), slice(40, 60)]
    both = [start.append(inputs[end], outputs[end], each=True) for end in ends]
    for end, appended in zip(ends, both, strict=True):
        alone = empty().append(inputs[:20], outputs[:20], each=True).append(inputs[end], outputs[end], each=True)
        np.testing.assert_array_equal(appended.predict(X).mean, alone.predict(X).mean)
        np.testing.assert_array_equal(appended.spent, alone.spent)
    assert start.count == 20
    np.testing.assert_array_equal(
        start.predict(X).mean, empty().append(inputs[:20], outputs[:20], each=True).predict(X).mean
    )


def test_appending_does_not_change_the_old_posterior(empty):
    posterior = empty().append(X[:2], Y[:2])
    kept = {key: np.copy(value) for key, value in vars(posterior).items() if isinstance(value, np.ndarray)}
    before = posterior.predict(X).mean
    posterior.append(X[2:], Y[2:])
    posterior.append(X[2:] + 1.0, Y[2:])
    assert posterior.count == 2
    for key, value in kept.items():
        np.testing.assert_array_equal(vars(posterior)[key], value, err_msg=key)
    np.testing.assert_array_equal(posterior.predict(X).mean, before)


def test_an_empty_append_changes_nothing(empty):
    for posterior in (empty(), empty().append(X, Y)):
        same = posterior.append(np.empty((0, 2)), np.empty((0, 2)))
        assert same.count == posterior.count
        np.testing.assert_array_equal(same.predict(X + 0.1).mean, posterior.predict(X + 0.1).mean)


# ---- repeats


@pytest.mark.parametrize("split", [False, True], ids=["in one call", "across calls"])
def test_repeats_are_dropped(empty, split):
    inputs, outputs = np.concatenate([X, X[1:2], X[:1], X[1:2]]), np.concatenate([Y, Y[1:2], Y[:1], Y[1:2]])
    posterior = empty()
    for part in (slice(0, 3), slice(3, 6)) if split else (slice(0, 6),):
        posterior = posterior.append(inputs[part], outputs[part])
    assert posterior.count == 3
    np.testing.assert_array_equal(posterior.rows, [0, 1, 2])
    np.testing.assert_array_equal(posterior.inputs, X)
    np.testing.assert_array_equal(posterior.outputs, Y)
    expected = empty().append(X, Y).predict(X + 0.1)
    np.testing.assert_array_equal(posterior.predict(X + 0.1).mean, expected.mean)


def test_rows_are_positions_among_all_received_observations(empty):
    posterior = empty().append(X[[0, 0, 1]], Y[[0, 0, 1]]).append(X[[1, 2]], Y[[1, 2]])
    np.testing.assert_array_equal(posterior.rows, [0, 2, 4])
    np.testing.assert_array_equal(posterior.inputs, X)


@pytest.mark.parametrize("split", [False, True], ids=["in one call", "across calls"])
def test_minus_zero_equals_zero(empty, split):
    inputs, outputs = np.array([[0.0, -0.0], [-0.0, 0.0]]), np.array([[1.0, 0.0], [1.0, -0.0]])
    posterior = empty()
    for part in (slice(0, 1), slice(1, 2)) if split else (slice(0, 2),):
        posterior = posterior.append(inputs[part], outputs[part])
    assert posterior.count == 1


def test_neighbouring_floats_are_not_repeats(empty):
    near = np.nextafter(X[:1], 2.0)
    assert empty().append(np.concatenate([X[:1], near]), Y[[0, 0]]).count == 2


@given(st.lists(st.integers(0, 4), min_size=1, max_size=20), st.integers(1, 4))
def test_distinct_rows_remain_for_any_pattern_of_repeats(numbers, step):
    observed = case(2.5, 2, 5, 2)
    posterior = in_steps(observed.kernel, observed.X[numbers], observed.Y[numbers], step)
    first = [i for i, number in enumerate(numbers) if number not in numbers[:i]]
    np.testing.assert_array_equal(posterior.rows, first)
    np.testing.assert_array_equal(posterior.inputs, observed.X[[numbers[i] for i in first]])
    assert posterior.received == len(numbers)


@pytest.mark.parametrize("p", [2, 4, 8])
@pytest.mark.parametrize("block", [False, True], ids=["SeparablePosterior", "BlockPosterior"])
def test_repeats_are_dropped_in_any_batching(p, block):
    # A matrix product may round differently for one row than for many, which must not count as a contradiction.
    rng = np.random.default_rng(p)
    root = rng.normal(size=(p, p))
    kernel = Separable(KERNEL, root @ root.T)
    inputs, outputs = rng.uniform(-1, 1, (20, 2)), rng.normal(size=(20, p))
    posterior = (BlockPosterior if block else SeparablePosterior).fit(kernel, inputs, outputs)
    for i in range(20):
        assert posterior.append(inputs[i : i + 1], outputs[i : i + 1]).count == 20
    assert posterior.append(inputs[3:6], outputs[3:6]).count == 20


# ---- contradictions


@pytest.mark.parametrize("split", [False, True], ids=["in one call", "across calls"])
def test_a_contradiction_names_both_observations_and_both_outputs(empty, split):
    changed = Y[1:2] + np.array([0.0, 1e-9])
    inputs, outputs = np.concatenate([X[[0, 0, 1, 2]], X[1:2]]), np.concatenate([Y[[0, 0, 1, 2]], changed])
    posterior = empty().append(inputs[:4], outputs[:4]) if split else empty()
    rest = slice(4, 5) if split else slice(0, 5)
    text = r"observation 4 has the same input \[ *0\.5 +-0\.25\] as observation 2 but output .* exact: correct one"
    with pytest.raises(ContradictionError, match=text):
        posterior.append(inputs[rest], outputs[rest])
    assert posterior.count == (3 if split else 0)
    assert posterior.append(X, Y).count == 3


def test_a_contradiction_shows_the_outputs_as_received(empty):
    with pytest.raises(ContradictionError, match=r"but output \[ *5\. +1\.\] instead of \[ *2\. +1\.\]"):
        empty().append(X, Y).append(X[1:2], [[5.0, 1.0]])
