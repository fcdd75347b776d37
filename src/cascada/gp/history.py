"""The observations that a posterior keeps: exact repeats are dropped, contradictions raise an error."""

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
        """The position of each kept observation among all received ones, shape (t,)."""

    @property
    def received(self) -> int:
        """The number of observations received, repeats included."""

    @property
    def rounded_inputs(self) -> bool:
        """Whether different inputs may round to the same one, which then has several outputs."""


def new_rows(known: Observed, X: Array, Y: Array) -> list[int]:
    """Indices into X of the observations that are not repeats of known ones (or of an earlier row of X).

    Row j of X has the position `known.received + j`. Data are free of noise: the same input with another output raises
    `ContradictionError`. If inputs are rounded, both observations are kept, because they belong to neighbouring inputs;
    the caller adds the largest change of the function between neighbours to the output error.
    """
    added: dict[bytes, list[int]] = {}
    fresh: list[int] = []
    for j, x in enumerate(X):
        key = (x + 0.0).tobytes()  # adding 0.0 turns −0.0 into 0.0, so that equal numbers have equal bytes
        kept = np.flatnonzero((known.inputs == x).all(axis=1))
        same = [(int(known.rows[i]), known.outputs[i]) for i in kept]
        same += [(known.received + i, Y[i]) for i in added.get(key, ())]
        if any(np.array_equal(value, Y[j]) for _, value in same):
            continue
        if same and not known.rounded_inputs:
            earlier, value = same[0]
            raise ContradictionError(
                f"observation {known.received + j} has the same input {x} as observation {earlier} but output {Y[j]} "
                f"instead of {value}. Evaluations are assumed to be exact: correct one of the two, or make the process "
                f"deterministic (fix its seed, tighten its solver's tolerance)."
            )
        added.setdefault(key, []).append(j)
        fresh.append(j)
    return fresh
