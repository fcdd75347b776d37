"""Latent values: intervals that contain the true values of every run, and which runs share them.

A reading differs from the value by at most the error of its stage. What later stages are set to is the value, or the
reading if the stage forwards that. Formulas are evaluated at true inputs: their reported outputs say nothing.
"""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from cascada.arrays import UNIT_ROUNDOFF, Array, IntArray
from cascada.confidence import Boxes
from cascada.network.network import Network
from cascada.network.node import Node
from cascada.network.stage import Stage


@dataclass(frozen=True, eq=False)
class Latent:
    """Readings (n, V) of runs, NaN where nothing was read, and boxes (n, V) that contain their true values.

    The columns of controls hold coordinates; their boxes contain the exact logarithms.
    """

    network: Network
    readings: Array
    values: Boxes

    @classmethod
    def none(cls, network: Network) -> "Latent":
        """No runs."""
        nothing = np.empty((0, network.width))
        return cls(network, nothing, Boxes(nothing, nothing))

    def __len__(self) -> int:
        return len(self.readings)

    def joined(self, readings: Array, values: Boxes) -> Self:
        """With more runs, and boxes that contain their values without their readings."""
        lower = np.concatenate([self.values.lower, values.lower])
        upper = np.concatenate([self.values.upper, values.upper])
        return replace(self, readings=np.concatenate([self.readings, readings]), values=Boxes(lower, upper))

    def column(self, columns: list[int]) -> Boxes:
        """The boxes in these columns."""
        return Boxes(self.values.lower[:, columns], self.values.upper[:, columns])

    def intersected(self, columns: list[int], boxes: Boxes) -> Self:
        """With narrower boxes in these columns."""
        lower, upper = self.values.lower.copy(), self.values.upper.copy()
        lower[:, columns] = np.maximum(lower[:, columns], boxes.lower)
        upper[:, columns] = np.minimum(upper[:, columns], boxes.upper)
        return replace(self, values=Boxes(lower, upper))

    # ---- what follows from the readings alone

    def read(self, node: Node) -> Boxes:
        """Boxes (n, p) of the modelled outputs of a stage from its readings; infinite where there are none.

        A single reading with scatter says nothing for sure.
        """
        error = np.where(node.stage.error_scale > 0, np.inf, node.stage.error_bound)
        return around_readings(self.readings[:, node.modelled_columns], error)

    def inputs(self, node: Node) -> Boxes:
        """Boxes (n, d) of the true inputs of a stage: values of its parents, or readings where these are forwarded."""
        boxes = self.column(list(node.inputs))
        lower, upper = boxes.lower, boxes.upper
        for position, column in enumerate(node.inputs):
            error = forwarded_error(self.network, column)
            if error is not None:
                seen = self.readings[:, column]
                known = np.isfinite(seen)
                lower[:, position] = np.where(known, seen, lower[:, position] - error)
                upper[:, position] = np.where(known, seen, upper[:, position] + error)
        return Boxes(lower, upper)

    def groups(self) -> dict[str, IntArray]:
        """For every stage, a number (n,) of each run: runs with the same number have the same true inputs, and outputs.

        These are runs with the same controls of the stage and of all its ancestors. Where a reading is forwarded, it
        takes the place of the ancestors. Two settings of a logarithmic control may share one coordinate, so runs that
        depend on one are never taken as repeats.
        """
        n, d = len(self), self.network.domain.dimension
        logarithmic = self.network.domain.logarithmic
        found: dict[str, IntArray] = {}
        owners = {column: node.stage.name for node in self.network.nodes for column in node.columns}
        alone = np.arange(n, dtype=np.float64)
        for node in self.network.nodes:
            keys: list[Array] = []
            for column in node.inputs:
                if column < d:
                    keys += [alone] if column in logarithmic else [self.readings[:, column] + 0.0]
                elif forwarded_error(self.network, column) is not None:
                    seen = self.readings[:, column]
                    keys += [np.nan_to_num(seen) + 0.0, np.where(np.isfinite(seen), -1.0, alone)]
                else:
                    keys.append(found[owners[column]].astype(np.float64))
            groups = np.unique(np.stack(keys, axis=1), axis=0, return_inverse=True)[1] if n else alone
            found[node.stage.name] = np.asarray(groups, dtype=np.int64).reshape(n)
        return found

    def shared(self, node: Node, groups: IntArray) -> Self:
        """With the intersection of the boxes of a stage's outputs over all repeats."""
        columns = list(node.columns)
        if not len(self):
            return self
        lower, upper = self.values.lower[:, columns], self.values.upper[:, columns]
        count = int(groups.max()) + 1
        highest, lowest = np.full((count, len(columns)), -np.inf), np.full((count, len(columns)), np.inf)
        np.maximum.at(highest, groups, lower)
        np.minimum.at(lowest, groups, upper)
        return self.intersected(columns, Boxes(highest[groups], lowest[groups]))


def around_readings(readings: Array, error: Array) -> Boxes:
    """Boxes (n, p) of values whose readings (n, p) are off by at most error (p,), rounded outwards; infinite for NaN.

    A reading is exact to its last digit only.
    """
    reach = error + 2 * UNIT_ROUNDOFF * np.abs(readings)
    lower, upper = np.nextafter(readings - reach, -np.inf), np.nextafter(readings + reach, np.inf)
    seen = np.isfinite(readings)
    return Boxes(np.where(seen, lower, -np.inf), np.where(seen, upper, np.inf))


def forwards_error(stage: Stage) -> bool:
    """Whether the next stages are set to readings of a stage that differ from its values."""
    return stage.forwards == "reading" and stage.read_with_errors


def forwarded_error(network: Network, column: int) -> float | None:
    """The error of an output whose reading is forwarded; None if the next stages are set to its value.

    It is infinite for scatter, of which nothing is known before it is read.
    """
    for node in network.nodes:
        if column in node.modelled_columns and forwards_error(node.stage):
            position = node.modelled_columns.index(column)
            error = float(node.stage.error_bound[position])
            return np.inf if node.stage.error_scale[position] > 0 else error if error > 0 else None
    return None


def of_readings(network: Network) -> list[int]:
    """The columns whose values in a run depend on forwarded readings: a run does not show those of its setting."""
    found: list[int] = []
    for node in network.nodes:
        if any(column in found or forwarded_error(network, column) is not None for column in node.inputs):
            found += node.columns
    return found
