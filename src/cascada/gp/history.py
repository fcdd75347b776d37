"""Which observations a posterior keeps: exact repeats are absorbed, contradictions are an error."""

from typing import Protocol

import numpy as np

from cascada.arrays import Array, IntArray
from cascada.errors import ContradictionError


class Observed(Protocol):
    """The observations of a posterior."""

    @property
    def inputs(self) -> Array:
        """X (t, d)."""

    @property
    def outputs(self) -> Array:
        """Y (t, p)."""

    @property
    def rows(self) -> IntArray:
        """The number under which each kept observation was told, shape (t,)."""

    @property
    def told(self) -> int:
        """How many observations were told, repeats included."""

    @property
    def rounded_inputs(self) -> bool:
        """Whether different inputs may round to one, so that it has several outputs."""


def new_rows(known: Observed, X: Array, Y: Array) -> list[int]:
    """Indices into X of the observations that are not repeats of known ones (or of an earlier row of X).

    Row j of X is number `known.told + j`. Noise-free data: the same input with another output contradicts every
    function, and raises `ContradictionError`. Where inputs are rounded, both observations are kept: each is of a
    neighbour of the input. The caller adds how far the function can change between neighbours to the output error.
    """
    added: dict[bytes, list[int]] = {}
    fresh: list[int] = []
    for j, x in enumerate(X):
        key = (x + 0.0).tobytes()  # adding 0.0 turns −0.0 into 0.0: equal numbers, equal bytes
        kept = np.flatnonzero((known.inputs == x).all(axis=1))
        same = [(int(known.rows[i]), known.outputs[i]) for i in kept]
        same += [(known.told + i, Y[i]) for i in added.get(key, ())]
        if any(np.array_equal(value, Y[j]) for _, value in same):
            continue
        if same and not known.rounded_inputs:
            earlier, value = same[0]
            raise ContradictionError(
                f"observation {known.told + j} has the same input {x} as observation {earlier} but output {Y[j]} "
                f"instead of {value}. Evaluations are taken to be exact: correct one of the two, or make the process "
                f"deterministic (fix its seed, tighten its solver's tolerance)."
            )
        added.setdefault(key, []).append(j)
        fresh.append(j)
    return fresh
