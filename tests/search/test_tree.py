"""The tree of a search: cells cover the box after every change, and nothing is lost or shared."""

import numpy as np
import pytest

from cascada.arrays import Array
from cascada.confidence import Boxes
from cascada.search import Leaves
from cascada.search.tree import Tree
from cascada.space import Domain, Integer, Real

DOMAIN = Domain({"n": Integer(1, 8), "x": Real(0, 1)})


def volume_bounds(cells: Boxes) -> tuple[Array, Array]:
    """The area of each cell, as a bound that is easy to recognise."""
    width = cells.upper - cells.lower
    return (width + np.array([1.0, 0.0])).prod(axis=1), width


def cut_everywhere(tree: Tree, side: int, times: int) -> None:
    for _ in range(times):
        rows = tree.top(1000)
        tree.cut(rows, np.full(len(rows), side), DOMAIN)


def test_integer_sides_are_cut_between_whole_numbers() -> None:
    tree = Tree(Leaves.root(DOMAIN), -np.inf)
    cut_everywhere(tree, 0, 3)
    leaves = tree.leaves()
    assert sorted(zip(leaves.lower[:, 0], leaves.upper[:, 0], strict=True)) == [(i, i) for i in range(1, 9)]
    assert np.all(leaves.lower[:, 1] == 0)


def test_halves_of_a_real_side_share_their_end_and_keep_the_bound() -> None:
    tree = Tree(Leaves.root(DOMAIN), 0.0)
    tree.rebound(tree.top(1), volume_bounds, 3)
    rows = tree.cut(tree.top(1), np.array([1]), DOMAIN)
    halves = tree.take(rows)
    np.testing.assert_array_equal(halves.lower[:, 1], [0.0, 0.5])
    np.testing.assert_array_equal(halves.upper[:, 1], [0.5, 1.0])
    np.testing.assert_array_equal(halves.bound, [8.0, 8.0])
    np.testing.assert_array_equal(halves.version, [3, 3])
    tree.rebound(rows, volume_bounds, 4)
    np.testing.assert_array_equal(tree.bound(rows), [4.0, 4.0])


def test_many_cuts_cover_the_box_once() -> None:
    tree = Tree(Leaves.root(DOMAIN), -np.inf)
    rng = np.random.default_rng(0)
    for step in range(40):
        rows = tree.top(1 + step)
        rows = rows[tree.take(rows).upper[:, 0] > tree.take(rows).lower[:, 0]] if step % 3 == 0 else rows
        tree.rebound(tree.cut(rows, np.full(len(rows), step % 3 != 0).astype(int), DOMAIN), volume_bounds, step)
    leaves = tree.leaves()
    points = np.column_stack([rng.integers(1, 9, 200), rng.uniform(0, 1, 200)])
    inside = np.all((leaves.lower[:, None] <= points) & (points <= leaves.upper[:, None]), axis=2).sum(axis=0)
    assert np.all(inside == 1)


def test_a_search_leaves_the_given_leaves_as_they_were() -> None:
    given = Leaves.root(DOMAIN)
    tree = Tree(given, -np.inf)
    cut_everywhere(tree, 1, 2)
    tree.rebound(tree.top(4), volume_bounds, 1)
    assert len(given) == 1
    assert given.bound[0] == np.inf
    np.testing.assert_array_equal(given.upper[0], DOMAIN.upper)


@pytest.mark.parametrize("count", [1, 2, 3, 7, 50])
def test_the_top_rows_are_the_first_of_a_stable_order(count: int) -> None:
    """Also where bounds are equal, so that the same search visits the same cells on every machine."""
    bound = np.random.default_rng(1).integers(0, 5, 40).astype(float)
    cells = np.column_stack([np.arange(40.0), np.zeros(40)])
    leaves = Leaves(cells, cells + 1, bound, np.zeros((40, 2)), np.zeros(40, dtype=np.int64))
    top = Tree(leaves, -1.0).top(count)
    np.testing.assert_array_equal(top, np.argsort(-bound, kind="stable")[:count])


def test_cells_without_a_better_value_are_dropped() -> None:
    bound = np.arange(10.0)
    cells = np.column_stack([bound, bound])
    tree = Tree(Leaves(cells, cells + 1, bound, np.zeros((10, 2)), np.zeros(10, dtype=np.int64)), 3.0)
    assert sorted(tree.leaves().bound) == [4, 5, 6, 7, 8, 9]
    tree.rebound(tree.top(4), lambda some: (some.lower[:, 0] - 6.0, some.lower), 1)  # 9, 8, 7, 6 → 3, 2, 1, 0
    assert tree.highest == 5
    np.testing.assert_array_equal(tree.bound(tree.top(9)), [5, 4])
    assert sorted(tree.leaves().bound) == [4, 5]
