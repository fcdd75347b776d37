"""Categories of inputs: the combinations of codes of unordered values that a function treats each by itself."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cascada.arrays import Array, IntArray


@dataclass(frozen=True)
class Categories:
    """The inputs that are codes, by position, and the number of values of each; the last code varies fastest.

    `dimension` is the number of all inputs.
    """

    columns: tuple[int, ...]
    counts: tuple[int, ...]
    dimension: int

    def __len__(self) -> int:
        return int(np.prod(self.counts))

    @cached_property
    def others(self) -> list[int]:
        """The positions of the inputs that are no such codes; of the first code if there are none.

        A code is the same everywhere in a category, so that it can stand for no input at all.
        """
        return [j for j in range(self.dimension) if j not in self.columns] or [self.columns[0]]

    def of(self, inputs: Array) -> IntArray:
        """The category of each row of inputs (n, d), (n,)."""
        codes = np.rint(inputs[:, list(self.columns)]).astype(np.int64)
        return np.asarray(np.ravel_multi_index(tuple(codes.T), self.counts), dtype=np.int64)

    def groups(self, inputs: Array) -> Iterator[tuple[int, IntArray]]:
        """The categories that occur in rows of inputs (n, d), and the rows of each."""
        category = self.of(inputs)
        for one in np.unique(category):
            yield int(one), np.flatnonzero(category == one)

    @cached_property
    def codes(self) -> IntArray:
        """The codes of every category, (number of categories, number of columns)."""
        return np.stack(np.unravel_index(np.arange(len(self)), self.counts), axis=1).astype(np.int64)
