"""First-order forms: values as affine functions of the coordinates of a cell, with a bounded error."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cascada.arrays import Array, BoolArray, IntArray
from cascada.confidence.regions import Boxes


@dataclass(frozen=True, eq=False)
class Affine:
    """v ∈ centre + slope·u ± error for the point u ∈ [−1, 1]^q of a cell, n cells at once.

    Boxes do not record how values vary jointly. Where two stages share a parent or a control, an increase of one often
    comes with a decrease of the other; the slopes record this.
    """

    centre: Array  # (n, p)
    slope: Array  # (n, p, q)
    error: Array  # (n, p)

    @classmethod
    def of_cells(cls, cells: Boxes) -> "Affine":
        """The coordinates of the cells themselves: centre + half·u."""
        n, q = cells.lower.shape
        slope = np.zeros((n, q, q))
        slope[:, np.arange(q), np.arange(q)] = cells.half
        return cls(cells.centre, slope, np.zeros((n, q)))

    @classmethod
    def of_boxes(cls, boxes: Boxes, coordinates: int) -> "Affine":
        """Values that are known to lie in boxes, and nothing else: slope 0."""
        return cls(boxes.centre, np.zeros((*boxes.lower.shape, coordinates)), boxes.half)

    @classmethod
    def joined(cls, parts: Sequence["Affine"]) -> "Affine":
        """The values of all parts, concatenated."""
        return cls(
            np.concatenate([part.centre for part in parts], axis=1),
            np.concatenate([part.slope for part in parts], axis=1),
            np.concatenate([part.error for part in parts], axis=1),
        )

    def columns(self, indices: Sequence[int]) -> "Affine":
        """The values at these indices."""
        index = list(indices)
        return Affine(self.centre[:, index], self.slope[:, index], self.error[:, index])

    def take(self, rows: BoolArray | IntArray) -> "Affine":
        """The forms of some cells."""
        return Affine(self.centre[rows], self.slope[rows], self.error[rows])

    def hull(self) -> Boxes:
        """The smallest boxes that contain the values."""
        half = np.abs(self.slope).sum(axis=2) + self.error
        return Boxes(self.centre - half, self.centre + half).widened()
