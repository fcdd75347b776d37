"""Maxima of drawn processes, against dense grids."""

import numpy as np
import pytest

from cascada import Integer, Matern, Real, Stage, chain
from cascada.gp.paths import Paths
from cascada.network.drawn import DrawnNetwork
from cascada.network.limits import satisfied
from cascada.search.drawn_maxima import drawn_maxima

COUNT = 8
RUNS = np.random.default_rng(0).uniform(size=(10, 2))


def process(network) -> DrawnNetwork:
    rng = np.random.default_rng(3)
    first = np.sin(5 * RUNS[:, :1]).ravel()
    paths = {
        ("f", "f"): Paths(RUNS[:, :1], first, [Matern(2.5, 0.4)], [0.0], COUNT, rng),
        ("g", "g"): Paths(
            np.column_stack([first, RUNS[:, 1]]), first + RUNS[:, 1], [Matern(2.5, 0.5)], [0.0], COUNT, rng
        ),
    }
    return DrawnNetwork(network, paths)


UNIT = Real(0, 1)


def network(y=UNIT, limits=None):
    return chain(Stage("f", {"x": UNIT}, limits=limits), Stage("g", {"y": y}))


def grid_values(drawn: DrawnNetwork, points: np.ndarray) -> np.ndarray:
    """Values (S, n, V) at all points."""
    path = np.repeat(np.arange(COUNT), len(points))
    return drawn(np.tile(points, (COUNT, 1)), path)[0].reshape(COUNT, len(points), -1)


GRID = np.stack(np.meshgrid(np.linspace(0, 1, 51), np.linspace(0, 1, 51)), axis=-1).reshape(-1, 2)


def maxima(net, candidates=None):
    drawn, runs = process(net), net.domain.decode(RUNS)
    found = drawn_maxima(drawn, COUNT, RUNS[0], runs, np.random.default_rng(0), candidates)
    return drawn, found


@pytest.mark.parametrize("sign", [1, -1])
def test_no_point_of_a_dense_grid_is_better_than_the_maxima(sign):
    net = network() if sign > 0 else network().mirrored()
    drawn, found = maxima(net)
    values = sign * grid_values(drawn, GRID)[:, :, net.objective_column]
    assert (found.highest >= values.max(axis=1) - 1e-3 * values.std()).all()
    at = np.array([drawn(point[None], np.array([s]))[0][0] for s, point in enumerate(found.points)])
    np.testing.assert_allclose(sign * at[:, net.objective_column], found.highest, rtol=1e-9)
    start = np.array([drawn(RUNS[:1], np.array([s]))[0][0] for s in range(COUNT)])
    np.testing.assert_allclose(sign * start[:, net.objective_column], found.reached, rtol=1e-9)


def test_with_limits_the_maxima_are_feasible_in_their_process():
    net = network(limits={"f": (None, 0.3)})
    drawn, found = maxima(net)
    values = grid_values(drawn, GRID)
    allowed = np.where(values[:, :, 2] <= 0.3, values[:, :, net.objective_column], -np.inf)
    assert (found.highest >= allowed.max(axis=1) - 2e-2 * values[:, :, net.objective_column].std()).all()
    at = np.array([drawn(point[None], np.array([s]))[0][0] for s, point in enumerate(found.points)])
    assert satisfied(net.limits, at).all()
    free = maxima(network())[1].highest
    assert (found.highest <= free + 1e-9).all()
    assert (found.highest < free - 1e-3).any()


def test_candidates_are_all_evaluated():
    net, candidates = network(), GRID[::37]
    drawn, found = maxima(net, candidates)
    values = grid_values(drawn, candidates)[:, :, net.objective_column]
    np.testing.assert_allclose(found.highest, values.max(axis=1), rtol=1e-12)
    np.testing.assert_array_equal(found.points, candidates[values.argmax(axis=1)])


def test_whole_numbers_stay_whole():
    net = network(y=Integer(0, 1))
    drawn, found = maxima(net)
    assert set(found.points[:, 1]) <= {0.0, 1.0}
    values = grid_values(drawn, GRID[(GRID[:, 1] == 0) | (GRID[:, 1] == 1)])[:, :, net.objective_column]
    assert (found.highest >= values.max(axis=1) - 1e-3 * values.std()).all()
