"""Observations of single stages, which belong to no run: rows that only one stage learns."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cascada.arrays import Array
from cascada.confidence import Boxes
from cascada.network import Beliefs, Network, StageBelief
from cascada.network.read_beliefs import ReadBeliefs

#: The position of a stage, and a row (V,) with its inputs and outputs.
Row = tuple[int, Array]


@dataclass(frozen=True, eq=False)
class Single:
    """One observation of the stage at a position; `label` is its trial, or ~k for measurement k.

    `after` is how many rows of runs were learned before it.
    """

    position: int
    row: Array
    label: int
    after: int


@dataclass(frozen=True, eq=False)
class Singles:
    """All of them, in the order in which they were learned."""

    network: Network
    entries: tuple[Single, ...] = ()

    def __len__(self) -> int:
        return len(self.entries)

    @property
    def rows(self) -> tuple[Row, ...]:
        """Positions and rows."""
        return tuple((entry.position, entry.row) for entry in self.entries)

    @property
    def numbers(self) -> int:
        """How many numbers were observed or set."""
        return sum(int(np.isfinite(entry.row).sum()) for entry in self.entries)

    def with_one(self, single: Single) -> "Singles":
        """These and one more."""
        return replace(self, entries=(*self.entries, single))

    def table(self) -> tuple[Array, tuple[int, ...]]:
        """The outputs that were observed, (n, V), NaN elsewhere, and their labels."""
        found = np.full((len(self.entries), self.network.width), np.nan)
        for row, entry in zip(found, self.entries, strict=True):
            columns = list(self.network.nodes[entry.position].columns)
            row[columns] = entry.row[columns]
        return found, tuple(entry.label for entry in self.entries)

    def boxes(self, beliefs: Beliefs) -> Boxes | None:
        """Boxes (n, V) of the true values of the outputs in `table`; None if readings are exact."""
        if not isinstance(beliefs, ReadBeliefs):
            return None
        rows, off = self.table()[0], np.zeros(self.network.width)
        for node in self.network.nodes:
            off[node.modelled_columns] = node.stage.error_bound
        return Boxes(rows - off, rows + off)

    def merged(
        self, stage: StageBelief, rows: Array, labels: Sequence[int], *, last: bool
    ) -> tuple[Array, Sequence[int]]:
        """The rows (t, V) that a stage learned, and their labels, in the order in which it learned them.

        `rows` are those of runs. `last`: it learned the others after all of these.
        """
        column = stage.node.columns[0]
        own = [entry for entry in self.entries if column in self.network.nodes[entry.position].columns]
        if not own:
            return rows, labels
        places = [len(rows) if last else min(entry.after, len(rows)) for entry in own]
        values = np.insert(rows, places, np.array([entry.row for entry in own]), axis=0)
        return values, np.insert(np.array(labels, dtype=np.int64), places, [entry.label for entry in own]).tolist()
