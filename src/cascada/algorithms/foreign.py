"""Placeholder of an algorithm that a store names and the caller does not: code that a store names is never imported."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from cascada.algorithms.algorithm import Situation, Suggestion
from cascada.arrays import Array
from cascada.errors import ArgumentError


@dataclass(frozen=True)
class ForeignAlgorithm:
    """Lets a study be read and told; `ArgumentError` says how to name the algorithm when a point is asked for."""

    described: Any  #: the algorithm as it is stored

    def suggest(self, situation: Situation, rng: np.random.Generator) -> Suggestion:  # noqa: ARG002
        """Raise `ArgumentError`."""
        stored = self.described
        give = "give the same algorithm again, in Python by algorithm="
        if isinstance(stored, str):
            give = f"name it yourself, if you trust it: --algorithm {stored}, in Python algorithm={stored!r}"
        raise ArgumentError(
            f"this study chooses its points by the algorithm {stored!r:.300}, whose code is not a part of cascada, and "
            f"no code is imported because a store names it; {give:.300}."
        )

    def recommend(self, situation: Situation) -> Array | None:  # noqa: ARG002
        """Return None: what the algorithm recommends is not known."""
        return None
