"""Upper bounds at a list of candidates, whose maximum is exact.

A stage whose inputs are controls only is evaluated at the same points after every run: its posterior there is tracked,
in O(t·N) per run. Later stages with one input are read from their tables. So a step over N candidates of a chain takes
O(t·N), plus the tables.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cascada.arrays import Array
from cascada.confidence import Boxes
from cascada.confidence.affine import Affine
from cascada.confidence.envelope import anchor_bounds
from cascada.gp import Prediction, TrackedPosterior
from cascada.network import Beliefs, Enclosure, StageBelief, objective_above, tabulated
from cascada.network.enclosure import nothing_possible, possible_values, within_ranges


@dataclass(frozen=True, eq=False)
class Candidates:
    """Points (n, d), coordinates, with the posteriors of the first stages tracked there."""

    coordinates: Array
    tracked: Mapping[int, TrackedPosterior]  # by the position of the stage

    @classmethod
    def of(cls, coordinates: Array) -> "Candidates":
        """Candidates at which nothing is tracked yet."""
        return cls(coordinates, {})

    def follow(self, beliefs: Beliefs) -> "Candidates":
        """The same points, tracked under these beliefs."""
        tracked = {}
        for i, stage in enumerate(beliefs.stages):
            belief = stage.per_output
            if belief is None or max(stage.node.inputs) >= self.coordinates.shape[1]:
                continue
            before = self.tracked.get(i)
            if before is not None and before.follows(belief.posterior):
                tracked[i] = before.follow(belief.posterior)
            else:
                tracked[i] = TrackedPosterior.at(belief.posterior, self.coordinates[:, list(stage.node.inputs)])
        return Candidates(self.coordinates, tracked)

    def upper(self, beliefs: Beliefs) -> Array:
        """UCB_t of what is maximised at every candidate, (n,); call `follow` with these beliefs first.

        Raises `RefutedError` if the data refute an assumption.
        """
        beliefs.check()
        points = Boxes(self.coordinates, self.coordinates)
        enclosure = Enclosure(points, Affine.of_cells(points))
        for i, stage in enumerate(beliefs.stages):
            cells, inputs = enclosure.columns(stage.node.inputs)
            if i in self.tracked and not stage.node.stage.passes:
                boxes = within_ranges(stage, _from_prediction(stage, self.tracked[i].prediction, cells))
            elif stage.tables and not stage.node.stage.passes:
                boxes = tabulated(stage, cells)
            else:
                boxes = possible_values(stage, cells, inputs)[0]
            if np.any(boxes.empty):
                raise nothing_possible(stage)
            enclosure = enclosure.joined(boxes, Affine.of_boxes(boxes, self.coordinates.shape[1]))
        return objective_above(beliefs.network, enclosure)


def _from_prediction(stage: StageBelief, prediction: Prediction, cells: Boxes) -> Boxes:
    """Bounds of a stage at points where its prediction is available already."""
    belief = stage.per_output
    assert belief is not None, "only stages with a belief are tracked"
    bounds = belief.bounds_of(prediction)
    around = anchor_bounds(belief, belief.posterior.inputs, belief.observed, cells.lower, np.zeros_like(cells.lower))
    offset = stage.node.stage.offset
    bounds = bounds.intersect(around)
    return Boxes(bounds.lower + offset, bounds.upper + offset).widened()


def largest(values: Array, rng: np.random.Generator) -> int:
    """The index of the largest value; a random one of those if several are equal."""
    return int(rng.choice(np.flatnonzero(values == values.max())))
