"""Tests of designs: fill distances, valid and distinct points, and the choice among candidates."""

import math
from itertools import product

import numpy as np
import pytest

from cascada.arrays import Array
from cascada.designs import design, design_of_candidates, fill_distance
from cascada.errors import ArgumentError
from cascada.space import Domain, Grid, Integer, Real


def cube(d: int) -> Domain:
    return Domain({f"x{j}": Real(0, 1) for j in range(d)})


BOXES = {
    "a line": Domain({"x": Real(-2, 5)}),
    "a plane": Domain({"x": Real(-2, 5), "y": Real(0, 0.1)}),
    "logarithms": Domain({"x": Real(0.01, 10, log=True), "y": Real(0, 1)}),
    "whole numbers": Domain({"n": Integer(1, 9), "x": Real(0, 1)}),
    "few whole numbers": Domain({"n": Integer(0, 1), "x": Real(0, 1), "y": Real(0, 1)}),
    "whole numbers alone": Domain({"n": Integer(-3, 4), "m": Integer(0, 9)}),
    "many whole numbers": Domain({"n": Integer(-300, 400), "m": Integer(0, 900)}),
}


def dense(domain: Domain, n: int) -> Array:
    """Grid points including the corners, where the fill distance of cell centres is attained."""
    axes = [np.linspace(low, high, n) for low, high in zip(domain.lower, domain.upper, strict=True)]
    return np.array(list(product(*axes)))


# ---- fill distances


@pytest.mark.parametrize(("d", "sides"), [(1, (1, 2, 7, 50)), (2, (1, 2, 3, 8)), (3, (1, 2, 4))])
def test_the_fill_distance_of_cell_centres_follows_the_formula(d: int, sides: tuple[int, ...]) -> None:
    """δ_T·T^{1/d} = sqrt(Σ width²)/2, for every T: half the diagonal of a cell, times cells along a side."""
    domain = Domain({f"x{j}": Real(-j, 1 + 2 * j) for j in range(d)})
    for side in sides:
        points = design(domain, side**d)
        assert len(points) == side**d
        formula = math.sqrt(sum(((1 + 3 * j) / (2 * side)) ** 2 for j in range(d)))
        corners = dense(domain, side + 1)  # the corners of all cells have the largest distance to a centre
        assert fill_distance(corners, points) == pytest.approx(formula, rel=1e-12)
        assert fill_distance(dense(domain, 9), points) <= formula * (1 + 1e-12)


@pytest.mark.parametrize("d", [2, 3])
def test_sobol_points_have_the_fill_distance_of_a_net(d: int) -> None:
    """δ_T·T^{1/d} stays below the bound for nets.

    The largest 2^m ≤ T points are a (t, m, d)-net, t = 0 for d = 2 and 1 for d = 3. Every x shares a dyadic cell of
    volume 2^{t−m} with one of them; with sides of at most 2·2^{−(m−t)/d} its diagonal is at most 2·sqrt(d)·2^{t/d}·
    2^{−m/d}, and 2^m > T/2.
    """
    constant = 2 * math.sqrt(d) * 2 ** ((1 + (d == 3)) / d)
    sample = dense(cube(d), 60 if d == 2 else 16)
    counts = [
        T for T in (2, 3, 5, 7, 10, 31, 32, 33, 50, 100, 127, 200, 300, 511, 700) if round(T ** (1 / d)) ** d != T
    ]
    scaled = [fill_distance(sample, design(cube(d), T)) * T ** (1 / d) for T in counts]
    assert max(scaled) <= constant
    assert max(scaled) <= 1.5 * math.sqrt(d)  # measured: at most three times sqrt(d)/2, the value of a grid


@pytest.mark.parametrize("runs", [9, 16, 27, 30, 64])
def test_projections_of_sobol_designs_are_distinct_points(runs: int) -> None:
    domain = cube(3)
    points = design(domain, runs, grid=False)
    for columns in ([0], [1], [2], [0, 1], [0, 2], [1, 2]):
        assert len(np.unique(points[:, columns], axis=0)) == runs
    assert fill_distance(dense(domain, 12), points) * runs ** (1 / 3) <= 1.5 * math.sqrt(3)


def test_a_design_of_candidates_has_almost_the_fill_distance_of_the_box_design() -> None:
    """Moving each point to its nearest candidate, and each corner to a candidate, adds at most one grid step."""
    candidates = dense(cube(2), 50)
    for T in (9, 25, 40, 100, 196):
        chosen = design_of_candidates(candidates, cube(2), T)
        step = math.sqrt(2) / 2 / 49
        free = fill_distance(candidates, design(cube(2), T))
        assert fill_distance(candidates, chosen) <= free + step + 1e-12


def test_the_fill_distance_agrees_with_its_definition() -> None:
    rng = np.random.default_rng(0)
    points, chosen = rng.uniform(size=(2500, 3)), rng.uniform(size=(7, 3))
    slow = max(min(math.dist(x, s) for s in chosen) for x in points)
    assert fill_distance(points, chosen) == pytest.approx(slow, rel=1e-14)
    assert fill_distance(chosen, chosen) == 0.0


# ---- valid points


@pytest.mark.parametrize("runs", [1, 2, 4, 9, 10, 16, 30, 64])
@pytest.mark.parametrize("name", BOXES)
def test_all_points_are_valid_and_distinct(name: str, runs: int) -> None:
    domain = BOXES[name]
    points = design(domain, runs)
    np.testing.assert_array_equal(points, design(domain, runs))
    users = domain.decode(points)
    domain.check(users)
    np.testing.assert_array_equal(domain.encode(users), points)
    assert points.shape == (runs, domain.dimension)
    assert len({tuple(row) for row in users}) == runs


def test_a_design_of_an_integer_box_has_at_most_all_its_points() -> None:
    domain = Domain({"n": Integer(1, 3), "m": Integer(0, 1)})
    every = Grid({"n": 3, "m": 2}).points(domain)
    np.testing.assert_array_equal(design(domain, 6), every)
    np.testing.assert_array_equal(design(domain, 100), every)
    assert len(np.unique(design(domain, 5), axis=0)) == 5


def test_whole_numbers_are_used_equally_often() -> None:
    points = design(Domain({"n": Integer(1, 4), "x": Real(0, 1)}), 64)
    assert np.unique(points[:, 0], return_counts=True)[1].tolist() == [16] * 4


def test_logarithmic_controls_are_evenly_spaced_in_the_logarithm() -> None:
    domain = Domain({"x": Real(0.01, 100, log=True)})
    np.testing.assert_allclose(domain.decode(design(domain, 4))[:, 0], [10**-1.5, 10**-0.5, 10**0.5, 10**1.5])


# ---- candidates


def test_each_candidate_is_used_at_most_once_and_unchanged() -> None:
    rng = np.random.default_rng(1)
    candidates = rng.uniform(size=(30, 2))
    for runs in (1, 4, 7, 29):
        chosen = design_of_candidates(candidates, cube(2), runs)
        rows = [int(np.flatnonzero((candidates == point).all(axis=1))[0]) for point in chosen]
        assert len(set(rows)) == runs
    for runs in (30, 1000):
        np.testing.assert_array_equal(design_of_candidates(candidates, cube(2), runs), candidates)


def test_duplicate_candidates_count_once() -> None:
    candidates = np.array([[0.0], [1.0], [0.0], [0.5], [1.0]])
    np.testing.assert_array_equal(design_of_candidates(candidates, cube(1), 4), [[0.0], [1.0], [0.5]])


def test_each_point_of_the_design_takes_the_nearest_free_candidate() -> None:
    """Computed by hand: cell centres 1/6, 1/2, 5/6 of a box of side 1000; distances are in sides of the box."""
    domain = Domain({"x": Real(0, 1000)})
    candidates = np.array([[0.0], [490.0], [505.0], [520.0]])
    np.testing.assert_array_equal(design_of_candidates(candidates, domain, 3), [[0.0], [505.0], [520.0]])
    uneven = Domain({"x": Real(0, 1000), "y": Real(0, 1)})
    corners = np.array([[0.0, 0.9], [400.0, 0.1], [1000.0, 1.0]])
    # The centre (500, 1/2) is nearest to (400, 0.1): 0.1 and 0.4 of the sides, compared with 0.5 and 0.4, 0.5 and 0.5.
    np.testing.assert_array_equal(design_of_candidates(corners, uneven, 1), [[400.0, 0.1]])


@pytest.mark.parametrize("runs", [0, -1, 2.0, True, "many", None])
def test_an_invalid_number_of_runs_raises_an_argument_error(runs: object) -> None:
    with pytest.raises(ArgumentError, match="runs must be a whole number ≥ 1; got"):
        design(cube(2), runs)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="runs must be a whole number"):
        design_of_candidates(dense(cube(2), 3), cube(2), runs)  # type: ignore[arg-type]
