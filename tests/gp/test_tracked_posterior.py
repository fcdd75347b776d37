"""Tests that a posterior tracked at fixed points agrees with `predict`."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cascada.errors import ArgumentError, ContradictionError
from cascada.gp import Posterior, TrackedPosterior
from tests.gp.cases import case
from tests.kernels.cases import name


def check(tracked: TrackedPosterior, tolerance: float = 1e-9) -> None:
    expected = tracked.posterior.predict(tracked.points)
    np.testing.assert_allclose(tracked.prediction.mean, expected.mean, rtol=0, atol=tolerance)
    np.testing.assert_allclose(tracked.prediction.sd, expected.sd, rtol=0, atol=tolerance)


@pytest.mark.parametrize("nu", [None, 0.5, 1.0, 2.5], ids=name)
@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("start", [0, 1, 7])
def test_a_tracked_posterior_equals_predict_after_many_appends(nu, d, start):
    observed = case(nu, d, 40, 2)
    points = np.random.default_rng(0).uniform(-1, 1, (25, d))
    prior = Posterior.fit(observed.kernel, observed.X[:start], observed.Y[:start], 1e-7)
    tracked = TrackedPosterior.at(prior, points)
    check(tracked)
    for i in range(start, 40):
        tracked = tracked.append(observed.X[i : i + 1], observed.Y[i : i + 1])
        check(tracked)
    assert tracked.posterior.count == 40
    again = TrackedPosterior.at(tracked.posterior, points)
    np.testing.assert_allclose(again.prediction.mean, tracked.prediction.mean, rtol=0, atol=1e-9)


# A tree of posteriors: each step appends some rows to a posterior chosen among all that exist.
steps = st.lists(st.tuples(st.integers(0, 10**6), st.lists(st.integers(0, 39), max_size=4)), max_size=12)


@given(steps)
def test_branches_do_not_affect_each_other(tree):
    observed = case(2.5, 2, 40, 2)
    points = np.random.default_rng(0).uniform(-1, 1, (6, 2))
    nodes = [TrackedPosterior.at(Posterior.empty(observed.kernel, 2, 2, 1e-7), points)]
    for parent, rows in tree:
        nodes.append(nodes[parent % len(nodes)].append(observed.X[rows], observed.Y[rows]))
    for node in nodes:
        check(node)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=["first branch first", "second branch first"])
@pytest.mark.parametrize("size", [1, 5, 20])
def test_two_branches_of_one_parent(order, size):
    observed = case(2.5, 2, 40, 1)
    points = np.random.default_rng(0).uniform(-1, 1, (6, 2))
    parent = TrackedPosterior.at(Posterior.empty(observed.kernel, 2), points)
    for i in range(3):  # so that the buffer shared by the branches has spare capacity
        parent = parent.append(observed.X[i : i + 1], observed.Y[i : i + 1])
    starts = (5, 30 - size)
    children = {}
    for k in order:
        rows = slice(starts[k], starts[k] + size)
        children[k] = parent.append(observed.X[rows], observed.Y[rows])
    last = {k: children[k].append(observed.X[-3:], observed.Y[-3:]) for k in reversed(order)}
    for node in (parent, *children.values(), *last.values()):
        check(node)
    assert not np.allclose(children[0].prediction.mean, children[1].prediction.mean)


def test_repeats_and_empty_appends_change_nothing():
    observed = case(2.5, 2, 10, 1)
    tracked = TrackedPosterior.at(Posterior.fit(observed.kernel, observed.X, observed.Y), observed.Z)
    for more in (tracked.append(observed.X[:3], observed.Y[:3]), tracked.append(np.empty((0, 2)), np.empty((0, 1)))):
        np.testing.assert_array_equal(more.prediction.mean, tracked.prediction.mean)
        assert more.posterior.count == 10
        check(more.append(observed.X[:1] + 0.5, observed.Y[:1]))
    assert tracked.append(observed.X[:3], observed.Y[:3]).posterior.received == 13


def test_a_failed_append_does_not_change_a_tracked_posterior():
    observed = case(2.5, 2, 10, 1)
    tracked = TrackedPosterior.at(Posterior.fit(observed.kernel, observed.X[:5], observed.Y[:5]), observed.Z)
    with pytest.raises(ContradictionError):
        tracked.append(observed.X[4:6], observed.Y[4:6] + 1.0)
    check(tracked)
    check(tracked.append(observed.X[5:], observed.Y[5:]))


@pytest.mark.parametrize("n", [0, 1])
def test_few_points(n):
    observed = case(2.5, 2, 10, 3)
    tracked = TrackedPosterior.at(Posterior.empty(observed.kernel, 2, 3), observed.Z[:n])
    tracked = tracked.append(observed.X, observed.Y).append(observed.X[:1] + 0.5, observed.Y[:1])
    assert tracked.prediction.mean.shape == (n, 3)
    assert tracked.prediction.sd.shape == (n,)
    check(tracked)


def test_points_are_validated_and_copied():
    observed = case(2.5, 2, 10, 1)
    posterior = Posterior.fit(observed.kernel, observed.X[:5], observed.Y[:5])
    with pytest.raises(ArgumentError, match=r"points must have 2 columns.*got shape \(3, 1\)"):
        TrackedPosterior.at(posterior, np.zeros((3, 1)))
    points = observed.Z.copy()
    tracked = TrackedPosterior.at(posterior, points)
    points[:] = 0.0
    np.testing.assert_array_equal(tracked.points, observed.Z)
    np.testing.assert_array_equal(
        tracked.append(observed.X[5:], observed.Y[5:]).prediction.mean,
        TrackedPosterior.at(posterior, observed.Z).append(observed.X[5:], observed.Y[5:]).prediction.mean,
    )
