"""Measurement errors: how far the reading of a stage's output may be from its value."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

from cascada.arrays import LARGEST_SCALE
from cascada.errors import ArgumentError

#: What a stage hands on to the stages after it: its true value, or what was read of it.
Forwards = Literal["value", "reading"]

#: The word for errors of unknown size: their noise is estimated together with the kernel.
ESTIMATE: Final = "estimate"


@dataclass(frozen=True, init=False)
class Bounded:
    """|reading − value| ≤ size in every run: one size for all modelled outputs of a stage, or one for each.

    Nothing else is assumed: the errors may all be +size. Digits that were cut off when a reading was recorded belong to
    the size.

    >>> Bounded(0.01)
    Bounded(size=0.01)
    """

    size: float | tuple[float, ...]

    def __init__(self, size: float | Sequence[float]) -> None:
        try:
            sizes = np.asarray(size, dtype=np.float64)
        except (TypeError, ValueError):
            raise ArgumentError(f"the size of a bounded error must be a number; got {size!r}.") from None
        if isinstance(size, bool) or sizes.ndim > 1 or not sizes.size or not np.all(np.isfinite(sizes)):
            raise ArgumentError(
                f"the size of a bounded error must be finite numbers, one or one per output; got {size!r}."
            )
        if np.any(sizes < 0) or np.any(sizes > LARGEST_SCALE):
            raise ArgumentError(f"the size of a bounded error must be between 0 and {LARGEST_SCALE:g}; got {size!r}.")
        exact = sizes + 0.0  # turns −0.0 into 0.0
        object.__setattr__(self, "size", float(exact) if sizes.ndim == 0 else tuple(exact.tolist()))

    def per_output(self, outputs: int) -> tuple[float, ...]:
        """The size for each of this many outputs; `ArgumentError` if sizes were given for another number."""
        if isinstance(self.size, float):
            return (self.size,) * outputs
        if len(self.size) != outputs:
            raise ArgumentError(
                f"error must be one number or one per modelled output ({outputs}); got {len(self.size)} numbers."
            )
        return self.size


def as_error(error: Any, outputs: int) -> Bounded | None:
    """The error of a stage with this many modelled outputs, one size for each; None if all its readings are exact.

    None also if the noise is to be estimated. Raises `ArgumentError` for anything but a `Bounded`, a number, a list
    with a number per output, or "estimate".
    """
    if error is None or is_estimate(error):
        return None
    given = error if isinstance(error, Bounded) else Bounded(error)
    if not np.any(given.size):
        return None
    if not outputs:
        raise ArgumentError(
            f"error= is for modelled outputs, and this stage has none (its outputs are a formula's, or copies of its "
            f"inputs); got {given.size}. Leave it out."
        )
    return Bounded(given.per_output(outputs))


def is_estimate(error: Any) -> bool:
    """Whether an error is the word "estimate"; `ArgumentError` for another word."""
    if isinstance(error, str) and error != ESTIMATE:
        raise ArgumentError(f"error must be a number, one per modelled output, or {ESTIMATE!r}; got {error!r:.100}.")
    return isinstance(error, str)
