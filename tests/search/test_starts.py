"""Starting points of searches, and gradient ascent from them."""

import numpy as np
import pytest

from cascada.arrays import Array
from cascada.confidence import Belief
from cascada.gp import Posterior
from cascada.kernels import SquaredExponential
from cascada.network import Beliefs, Stage, StageBelief, chain, composite_mean
from cascada.search import Joint, ascend, ascend_mean
from cascada.search.starts import apart, best_apart, best_of_others, snapped, starts
from cascada.space import Choice, Domain, Integer, Real
from tests.network.cases import NETWORKS, observed

DOMAIN = Domain({"x": Real(-2, 2), "y": Real(0.1, 10, log=True), "n": Integer(1, 5), "z": Real(0, 1)})
NEAR = np.array([[0.5, 0.2, 2.0, 0.9], [-2.0, np.log(0.1), 5.0, 0.0]])  # the second in a corner


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize("near", [NEAR[:0], NEAR[:1], NEAR], ids=len)
@pytest.mark.parametrize(("wide", "close", "across"), [(7, 5, 3), (4, 0, 0), (0, 0, 9)])
def test_starts_have_the_requested_number_and_lie_inside(near: Array, wide: int, close: int, across: int) -> None:
    points = starts(DOMAIN, rng(), near, wide, close, across)
    assert points.shape == (wide + len(near) * (1 + close + across), 4)
    assert np.all((DOMAIN.lower <= points) & (points <= DOMAIN.upper))
    for point in near:
        assert (points == point).all(axis=1).any()


@pytest.mark.parametrize("d", [1, 2, 3, 6])
def test_across_changes_one_to_three_controls(d: int) -> None:
    domain = Domain({f"x{j}": Real(0, 1) for j in range(d)})
    point = np.full(d, 0.5)
    points = starts(domain, rng(), point[None], 0, 0, 400)[1:]
    changed = (points != point).sum(axis=1)
    assert set(changed) == set(range(1, min(3, d) + 1))
    assert np.all((points != point).any(axis=0))  # every control is changed in some start
    assert np.ptp(points, axis=0).min() > 0.9  # and takes values in its whole range


def test_close_points_are_close_at_many_scales() -> None:
    domain = Domain({"x": Real(0, 1), "y": Real(0, 100)})
    point = np.array([0.5, 50.0])
    away = np.abs(starts(domain, rng(), point[None], 0, 2000, 0)[1:] - point) / [1.0, 100.0]
    distance = away.max(axis=1)
    assert np.mean(distance < 1e-3) > 0.15
    assert np.mean(distance > 1e-2) > 0.3
    assert np.median(away[:, 0]) == pytest.approx(np.median(away[:, 1]), rel=0.3)  # in sides of the box


def test_the_same_generator_gives_the_same_starts() -> None:
    np.testing.assert_array_equal(starts(DOMAIN, rng(3), NEAR, 5, 5, 5), starts(DOMAIN, rng(3), NEAR, 5, 5, 5))


def test_snapped_points_can_be_set() -> None:
    points = snapped(DOMAIN, starts(DOMAIN, rng(), NEAR, 50, 20, 20))
    assert np.all(points[:, 2] == np.round(points[:, 2]))
    assert np.all((DOMAIN.lower <= points) & (points <= DOMAIN.upper))
    DOMAIN.check(DOMAIN.decode(points))


def test_apart_is_along_the_farthest_control_in_sides() -> None:
    domain = Domain({"x": Real(0, 1), "y": Real(0, 10)})
    others = np.array([[0.0, 0.0], [1.0, 10.0]])
    np.testing.assert_allclose(apart(domain, np.array([[0.1, 3.0], [0.9, 10.0]]), others), [0.3, 0.1])
    assert np.all(np.isinf(apart(domain, others, others[:0])))


@pytest.mark.parametrize("gap", [0.0, 0.05, 0.3])
def test_the_best_apart_are_apart_and_best_first(gap: float) -> None:
    domain = Domain({"x": Real(0, 1), "y": Real(0, 10)})
    points = rng().uniform(domain.lower, domain.upper, (200, 2))
    values = -np.abs(points[:, 0] - 0.3)
    chosen = best_apart(domain, points, values, 6, gap)
    assert chosen[0] == values.argmax()
    assert np.all(np.diff(values[chosen]) <= 0)
    for i, index in enumerate(chosen):
        assert np.all(apart(domain, points[[index]], points[chosen[:i]]) > gap)
        # No better point is left out that is far enough from the ones before.
        better = [j for j in range(200) if values[j] > values[index] and j not in chosen[:i]]
        assert all(apart(domain, points[[j]], points[chosen[:i]])[0] <= gap for j in better)


def test_fewer_points_are_returned_if_there_are_no_more() -> None:
    domain = Domain({"x": Real(0, 1)})
    points = np.array([[0.5], [0.5], [0.51]])
    assert best_apart(domain, points, np.array([1.0, 2.0, 3.0]), 3, 0.1) == [2]
    assert best_apart(domain, points, np.array([1.0, 2.0, 3.0]), 3, 0.0) == [2, 1]
    assert best_apart(domain, points[:0], np.empty(0), 3, 0.1) == []


# ---- gradient ascent


def best_of_many(beliefs: Beliefs, count: int = 20_000) -> float:
    """The largest joint value at random points, with whole numbers for integer controls."""
    domain, joint = beliefs.network.domain, Joint(beliefs)
    draw = rng(9)
    x = snapped(domain, draw.uniform(domain.lower, domain.upper, (count, domain.dimension)))
    eta = draw.choice([-1.0, 1.0], (count, joint.size - domain.dimension))
    return float(joint(np.hstack([x, eta]))[0].max())


def best_eta(beliefs: Beliefs, point: Array) -> float:
    """The largest joint value at one point, over many η."""
    joint = Joint(beliefs)
    free = joint.size - len(point)
    eta = np.concatenate([rng(1).choice([-1.0, 1.0], (500, free)), rng(2).uniform(-1, 1, (3000, free))])
    return float(joint(np.hstack([np.tile(point, (len(eta), 1)), eta]))[0].max())


@pytest.mark.parametrize("name", [name for name in NETWORKS if name != "block kernel"])
def test_ascent_beats_random_points(name: str) -> None:
    beliefs = observed(name)[2]
    domain = beliefs.network.domain
    points = ascend(beliefs, rng(), np.empty((0, domain.dimension)))
    for point in points:
        assert np.all((domain.lower <= point) & (point <= domain.upper))
        assert np.all(point[domain.discrete] == np.round(point[domain.discrete]))
    most = best_of_many(beliefs)
    assert best_eta(beliefs, points[0]) >= most - 0.02 * (1 + abs(most))


def test_ascent_is_repeatable_and_ordered() -> None:
    beliefs = observed("chain with controls")[2]
    near = np.array([[0.1, 0.2]])
    one, other = (ascend(beliefs, rng(4), near) for _ in range(2))
    np.testing.assert_array_equal(one, other)
    values = [best_eta(beliefs, point) for point in one]
    assert values[0] >= max(values) - 1e-2


@pytest.mark.parametrize("name", [name for name in NETWORKS if name != "block kernel"])
def test_values_without_gradients_are_the_same_values(name: str) -> None:
    beliefs = observed(name)[2]
    joint, domain, draw = Joint(beliefs), beliefs.network.domain, rng(6)
    free = joint.size - domain.dimension
    x = snapped(domain, draw.uniform(domain.lower, domain.upper, (50, domain.dimension)))
    at = np.hstack([x, draw.uniform(-1, 1, (50, free))])
    np.testing.assert_allclose(joint.values(at), joint(at)[0], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["chain", "graph", "passes and integers", "multi-output chain"])
def test_the_joint_gradient_is_that_of_differences(name: str) -> None:
    beliefs = observed(name)[2]
    joint, domain = Joint(beliefs), beliefs.network.domain
    draw = rng(5)
    free = joint.size - domain.dimension
    at = np.hstack([draw.uniform(domain.lower, domain.upper, (4, domain.dimension)), draw.uniform(-1, 1, (4, free))])
    gradient = joint(at)[1]
    for j in range(joint.size):
        step = np.zeros(joint.size)
        step[j] = 1e-5
        slope = (joint(at + step)[0] - joint(at - step)[0]) / 2e-5
        np.testing.assert_allclose(gradient[:, j], slope, rtol=2e-3, atol=2e-4)


@pytest.mark.parametrize("name", [name for name in NETWORKS if name != "block kernel"])
def test_several_deviations_of_a_point_have_the_values_of_separate_points(name: str) -> None:
    beliefs = observed(name)[2]
    joint, domain, draw = Joint(beliefs), beliefs.network.domain, rng(7)
    x = snapped(domain, draw.uniform(domain.lower, domain.upper, (9, domain.dimension)))
    eta = draw.uniform(-1, 1, (9, 5, joint.size - domain.dimension))
    separate = np.concatenate([np.repeat(x[:, None], 5, axis=1), eta], axis=2).reshape(45, -1)
    np.testing.assert_allclose(joint.values_of(x, eta).ravel(), joint(separate)[0], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", [name for name in NETWORKS if name != "block kernel"])
def test_without_deviations_the_joint_form_is_the_composite_mean(name: str) -> None:
    beliefs = observed(name)[2]
    joint, domain, network = Joint(beliefs, deviations=False), beliefs.network.domain, beliefs.network
    assert joint.size == domain.dimension
    x = snapped(domain, rng(8).uniform(domain.lower, domain.upper, (30, domain.dimension)))
    mean = network.sign * composite_mean(beliefs, x)[:, network.objective_column]
    np.testing.assert_allclose(joint.values(x), mean, rtol=1e-9, atol=1e-12)
    values, gradient = joint(x)
    np.testing.assert_allclose(values, mean, rtol=1e-9, atol=1e-12)
    for j in range(joint.size):
        step = np.zeros(joint.size)
        step[j] = 1e-5
        slope = (joint(x + step)[0] - joint(x - step)[0]) / 2e-5
        np.testing.assert_allclose(gradient[:, j], slope, rtol=2e-3, atol=2e-4)


@pytest.mark.parametrize("name", ["chain", "graph", "multi-output chain"])
def test_the_ascent_of_the_mean_beats_random_points(name: str) -> None:
    beliefs = observed(name)[2]
    domain, joint = beliefs.network.domain, Joint(beliefs, deviations=False)
    points = np.array(ascend_mean(beliefs, rng(), np.empty((0, domain.dimension))))
    values = joint.values(points)
    assert np.all(np.diff(values) <= 0)  # best first
    anywhere = joint.values(rng(1).uniform(domain.lower, domain.upper, (20_000, domain.dimension)))
    assert values[0] >= anywhere.max() - 1e-9 * np.ptp(anywhere)


def test_several_widths_are_searched_at_once() -> None:
    """Each width finds the maximum that a search with only this width finds."""
    beliefs = observed("chain with controls")[2]
    near = np.array([[0.1, 0.2]])
    together = np.array(ascend(beliefs, rng(4), near, (0.2, 3.0)))
    for width in (0.2, 3.0):
        alone = ascend(beliefs, rng(5), near, (width,))[0]
        assert np.abs(together - alone).max(axis=1).min() < 1e-4


def test_an_ascent_avoids_places_where_a_formula_is_not_defined() -> None:
    """√f is not defined where the mean of f, or f with a deviation, is negative."""
    first = Stage("f", {"x": Real(-2, 2)}, kernel=SquaredExponential(1.0), norm_bound=3.0)

    def root_of(f: float) -> float:
        return float(np.sqrt(f))

    root = Stage("k", known=True, lipschitz=9.0, function=root_of)
    network = chain(first, root)
    data = np.array([[-1.5, 0.9, np.sqrt(0.9)], [1.0, -1.0, np.nan], [0.0, 0.2, np.sqrt(0.2)]])
    posterior = Posterior.fit(SquaredExponential(1.0), data[:, :1], data[:, 1])
    beliefs = Beliefs(
        network, (StageBelief(network.nodes[0], Belief(posterior, 3.0)), StageBelief(network.nodes[1], None))
    )
    for joint in (Joint(beliefs), Joint(beliefs, deviations=False)):
        at = np.zeros((2, joint.size))
        at[:, 0] = 1.0, -1.5
        values, gradients = joint(at)
        assert values[0] == -np.inf
        assert values[1] == pytest.approx(np.sqrt(0.9), abs=1e-6)
        assert np.isfinite(gradients[1]).all()
        np.testing.assert_allclose(joint.values(at), values)
    assert posterior.mean(ascend_mean(beliefs, rng(), data[:1, :1])[0][None])[0, 0] >= 0.9
    assert best_eta(beliefs, ascend(beliefs, rng(), data[:1, :1])[0]) >= best_of_many(beliefs) - 1e-3


def test_starts_cover_every_combination_of_values() -> None:
    domain = Domain({"wood": Choice(["oak", "pine", "elm"]), "x": Real(0, 1), "glue": Choice(["hot", "cold"])})
    near = np.array([[1.0, 0.5, 0.0]])
    points = starts(domain, rng(), near, 12, 0, 0)
    assert np.all((domain.lower <= points) & (points <= domain.upper))
    wide, moved = points[: 6 * 8], points[-6:]
    for some in (wide, moved):
        codes, counts = np.unique(some[:, [0, 2]], axis=0, return_counts=True)
        np.testing.assert_array_equal(codes, domain.combinations)
        assert len(set(counts)) == 1
    assert (moved[:, 1] == 0.5).all()  # the good point with each of them
    assert len(np.unique(wide[:, 1])) == len(wide)


def test_very_many_combinations_are_sampled() -> None:
    domain = Domain({**{f"c{i}": Choice(list("abcd")) for i in range(5)}, "x": Real(0, 1)})
    assert len(domain.combinations) == 1024
    points = starts(domain, rng(), np.zeros((1, 6)), 192, 0, 0)
    assert len(points) == 512 * 2 + 1 + 512
    assert np.all(points[:, :5] % 1 == 0)


def test_the_best_of_other_combinations_are_chosen_once_each() -> None:
    domain = Domain({"wood": Choice(["oak", "pine", "elm"]), "x": Real(0, 1)})
    points = np.array([[0, 0.1], [0, 0.9], [1, 0.2], [1, 0.3], [2, 0.4]])
    values = np.array([5.0, 4.0, 1.0, 2.0, 0.0])
    assert best_of_others(domain, points, values, [0], 8) == [3, 4]
    assert best_of_others(domain, points, values, [0], 1) == [3]
    assert best_of_others(domain, points, values, [], 8) == [0, 3, 4]
