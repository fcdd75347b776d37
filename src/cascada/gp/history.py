"""Which observations a posterior keeps: exact repeats are absorbed, contradictions are an error."""

import numpy as np

from cascada.arrays import Array, IntArray
from cascada.errors import ContradictionError


def new_rows(inputs: Array, outputs: Array, rows: IntArray, X: Array, Y: Array, told: int) -> list[int]:
    """Indices into X of the observations that are not repeats of `inputs` (or of an earlier row of X).

    `rows[i]` is the number under which kept observation i was told; row j of X is number `told + j`.
    Noise-free data: the same input with another output contradicts every function, and is refused.
    """
    added: dict[bytes, int] = {}
    fresh: list[int] = []
    for j, x in enumerate(X):
        key = (x + 0.0).tobytes()  # adding 0.0 turns −0.0 into 0.0: equal numbers, equal bytes
        same = np.flatnonzero((inputs == x).all(axis=1)) if len(inputs) else inputs[:0]
        if len(same):
            earlier, value = int(rows[same[0]]), outputs[same[0]]
        elif key in added:
            earlier, value = told + added[key], Y[added[key]]
        else:
            added[key] = j
            fresh.append(j)
            continue
        if not np.array_equal(value, Y[j]):
            raise ContradictionError(
                f"observation {told + j} has the same input {x} as observation {earlier} but output {Y[j]} instead "
                f"of {value}. Evaluations are taken to be exact: correct one of the two, or make the process "
                f"deterministic (fix its seed, tighten its solver's tolerance)."
            )
    return fresh
