"""A search follows any bounds of cells: here those of |x − 0.3| + |n − 5|, negated, which need no network."""

from dataclasses import dataclass, field

import numpy as np

from cascada.arrays import Array
from cascada.confidence import Boxes
from cascada.search import CellBounds, Leaves, SearchBudget, search
from cascada.space import Domain, Integer, Real


@dataclass
class Distance:
    """Minus the ℓ1 distance to (0.3, 5), exactly, over cells."""

    domain: Domain = field(default_factory=lambda: Domain({"x": Real(0, 1), "n": Integer(0, 9)}))
    cells: int = 0

    @property
    def lengthscales(self) -> Array:
        return np.array([1.0, 9.0])

    def __call__(self, cells: Boxes) -> tuple[Array, Array]:
        self.cells += len(cells.lower)
        goal = np.array([0.3, 5.0])
        return -np.abs(goal - np.clip(goal, cells.lower, cells.upper)).sum(axis=1), cells.half


def test_the_maximum_of_any_bounds_is_found() -> None:
    bounds = Distance()
    protocol: CellBounds = bounds
    outcome = search(protocol, Leaves.root(bounds.domain), -0.2, 0, SearchBudget(tolerance=1e-6), taken=lambda _: False)
    assert outcome.stopped == "point"
    assert outcome.point is not None
    assert 0.0 <= outcome.bound <= 1e-6
    assert abs(outcome.point[0] - 0.3) + abs(outcome.point[1] - 5) < 0.2


def test_a_proof_closes_the_gap_to_a_known_value() -> None:
    bounds = Distance()
    outcome = search(bounds, Leaves.root(bounds.domain), -1e-3, 0, SearchBudget(tolerance=1e-3), prove=True)
    assert outcome.stopped == "tolerance"
    assert outcome.point is None
    assert outcome.bound == 0.0


def test_integer_sides_of_any_domain_are_cut_between_whole_numbers() -> None:
    bounds = Distance()
    outcome = search(bounds, Leaves.root(bounds.domain), -9.0, 0, SearchBudget(cells=300), prove=True)
    ends = np.concatenate([outcome.leaves.lower[:, 1], outcome.leaves.upper[:, 1]])
    assert np.all(ends == np.round(ends))
    assert bounds.cells >= outcome.cells
