"""Measurement errors: how far the reading of a stage's output may be from its value."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NoReturn

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
    the size. The sum of two is one of the sum of their sizes; the sum with a `SubGaussian` has both parts.

    >>> Bounded(0.01)
    Bounded(size=0.01)
    """

    size: float | tuple[float, ...]

    def __init__(self, size: float | Sequence[float]) -> None:
        object.__setattr__(self, "size", _sizes(size, "the size of a bounded error"))

    def __add__(self, other: Any) -> "Bounded | CombinedError":
        if isinstance(other, Bounded):
            return Bounded(_sum(self.size, other.size))
        return _combined(self, other)

    def per_output(self, outputs: int) -> tuple[float, ...]:
        """The size for each of this many outputs; `ArgumentError` if sizes were given for another number."""
        return _per_output(self.size, outputs)


@dataclass(frozen=True, init=False)
class SubGaussian:
    """Scatter of mean 0 and variance proxy scale²: one scale (R) for all modelled outputs of a stage, or one for each.

    Given all that was reported before it, the error ε of a reading satisfies E exp(sε) ≤ exp(s²·scale²/2) for every s.
    Normal scatter of standard deviation R does, and so do errors of mean 0 within ±R. A sensor with an offset does not:
    add the offset, `Bounded(0.01) + SubGaussian(0.05)`. All readings have to be reported, also those that look wrong,
    and the scale has to be chosen before the first of them. The sum of two is refused: if they are independent, it is
    SubGaussian(sqrt(R1² + R2²)), else SubGaussian(R1 + R2).

    >>> Bounded(0.01) + SubGaussian(0.05)
    CombinedError(bounded=Bounded(size=0.01), sub_gaussian=SubGaussian(scale=0.05))
    """

    scale: float | tuple[float, ...]

    def __init__(self, scale: float | Sequence[float]) -> None:
        object.__setattr__(self, "scale", _sizes(scale, "the scale of a sub-Gaussian error"))

    def __add__(self, other: Any) -> "CombinedError":
        return self.refused_sum(other) if isinstance(other, SubGaussian) else _combined(self, other)

    def refused_sum(self, other: "SubGaussian") -> NoReturn:
        """Raise the `ArgumentError` for the sum of two."""
        raise ArgumentError(
            f"the sum of two sub-Gaussian errors depends on how they are related; got {self.scale} and {other.scale}. "
            f"Give one: SubGaussian(sqrt(R1² + R2²)) if they are independent, else SubGaussian(R1 + R2)."
        )

    def per_output(self, outputs: int) -> tuple[float, ...]:
        """The scale for each of this many outputs; `ArgumentError` if scales were given for another number."""
        return _per_output(self.scale, outputs)


@dataclass(frozen=True)
class CombinedError:
    """A bounded error, which may be the same in all runs, and scatter."""

    bounded: Bounded
    sub_gaussian: SubGaussian

    def __add__(self, other: Any) -> "CombinedError":
        return _combined(self, other)


#: A given error of a stage's readings.
Error = Bounded | SubGaussian | CombinedError


def _combined(first: Error, second: Any) -> CombinedError:
    """The sum of the bounded parts and the only sub-Gaussian part of two errors."""
    if not isinstance(second, Error):
        return NotImplemented
    offsets = [part for part in map(bounded_part, (first, second)) if part is not None]
    scatters = [part for part in map(sub_gaussian_part, (first, second)) if part is not None]
    bounded, scatter = offsets[0], scatters[0]
    for offset in offsets[1:]:
        bounded = Bounded(_sum(bounded.size, offset.size))
    return CombinedError(bounded, scatter if len(scatters) == 1 else scatter.refused_sum(scatters[1]))


def bounded_part(error: Any) -> Bounded | None:
    """The bounded part of an error; None if it has none."""
    return error if isinstance(error, Bounded) else error.bounded if isinstance(error, CombinedError) else None


def sub_gaussian_part(error: Any) -> SubGaussian | None:
    """The scatter of an error; None if it has none."""
    return error if isinstance(error, SubGaussian) else error.sub_gaussian if isinstance(error, CombinedError) else None


def _sizes(given: Any, what: str) -> float | tuple[float, ...]:
    """One number or several, each at least 0; `ArgumentError` that names `what` otherwise."""
    try:
        sizes = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ArgumentError(f"{what} must be a number; got {given!r}.") from None
    if isinstance(given, bool) or sizes.ndim > 1 or not sizes.size or not np.all(np.isfinite(sizes)):
        raise ArgumentError(f"{what} must be finite numbers, one or one per output; got {given!r}.")
    if np.any(sizes < 0) or np.any(sizes > LARGEST_SCALE):
        raise ArgumentError(f"{what} must be between 0 and {LARGEST_SCALE:g}; got {given!r}.")
    exact = sizes + 0.0  # turns −0.0 into 0.0
    return float(exact) if sizes.ndim == 0 else tuple(exact.tolist())


def _sum(first: float | tuple[float, ...], second: float | tuple[float, ...]) -> float | tuple[float, ...]:
    """The sums for every output, rounded up."""
    counts = {len(part) for part in (first, second) if isinstance(part, tuple)}
    if len(counts) > 1:
        raise ArgumentError(f"errors can be added for the same outputs only; got {first} and {second}.")
    one, other = np.asarray(first), np.asarray(second)
    total = np.where((one == 0) | (other == 0), one + other, np.nextafter(one + other, np.inf))
    return float(total) if total.ndim == 0 else tuple(total.tolist())


def _per_output(sizes: float | tuple[float, ...], outputs: int) -> tuple[float, ...]:
    if isinstance(sizes, float):
        return (sizes,) * outputs
    if len(sizes) != outputs:
        raise ArgumentError(
            f"error must be one number or one per modelled output ({outputs}); got {len(sizes)} numbers."
        )
    return sizes


def as_error(error: Any, outputs: int) -> Error | None:
    """The error of a stage with this many modelled outputs, one size for each; None if all its readings are exact.

    None also if the noise is to be estimated. Raises `ArgumentError` for anything but an `Error`, a number, a list
    with a number per output, or "estimate". Parts that are 0 are left out.
    """
    if error is None or is_estimate(error):
        return None
    given = error if isinstance(error, Error) else Bounded(error)
    bounded, scatter = bounded_part(given), sub_gaussian_part(given)
    offset = bounded is not None and bool(np.any(bounded.size))
    scattered = scatter is not None and bool(np.any(scatter.scale))
    if not offset and not scattered:
        return None
    if not outputs:
        raise ArgumentError(
            f"error= is for modelled outputs, and this stage has none (its outputs are a formula's, or copies of its "
            f"inputs); got {given.size if isinstance(given, Bounded) else given}. Leave it out."
        )
    size = Bounded(bounded.per_output(outputs)) if bounded is not None and offset else None
    scale = SubGaussian(scatter.per_output(outputs)) if scatter is not None and scattered else None
    return CombinedError(size, scale) if size is not None and scale is not None else size or scale


def error_of_parts(bounded: float | Sequence[float] = 0.0, sub_gaussian: float | Sequence[float] = 0.0) -> Error:
    """The error with these sizes and scales; one number is for all outputs, a list of one as well."""
    size, scale = (part[0] if isinstance(part, list) and len(part) == 1 else part for part in (bounded, sub_gaussian))
    return Bounded(size) + SubGaussian(scale)


def error_of_output(error: Error | None, position: int) -> Error | None:
    """The error of one modelled output of a stage, from what `as_error` returned for all."""
    bounded, scatter = bounded_part(error), sub_gaussian_part(error)
    size = 0.0 if bounded is None else np.atleast_1d(bounded.size)[position]
    scale = 0.0 if scatter is None else np.atleast_1d(scatter.scale)[position]
    return as_error(Bounded([size]) + SubGaussian([scale]), 1)


def is_estimate(error: Any) -> bool:
    """Whether an error is the word "estimate"; `ArgumentError` for another word."""
    if isinstance(error, str) and error != ESTIMATE:
        raise ArgumentError(f"error must be a number, one per modelled output, or {ESTIMATE!r}; got {error!r:.100}.")
    return isinstance(error, str)
