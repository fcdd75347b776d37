"""Options of a stage that have to fit together: norm bounds by value of a choice, limits, ranges, noise, kernels."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cascada.arrays import Array
from cascada.errors import ArgumentError
from cascada.kernels import OperatorKernel, Separable, Stationary
from cascada.network.error import ESTIMATE
from cascada.network.limits import Interval, in_words
from cascada.space import Choice, Control


class BoundsByValue(dict[str, Array]):
    """Norm bounds (p,) by value of a choice, as a stage keeps them."""

    @property
    def largest(self) -> Array:
        """The largest bound of every output, (p,)."""
        return np.asarray(np.max(list(self.values()), axis=0))


def norm_bound_or_by_value(
    fail: Callable[[str], ArgumentError],
    norm_bound: ArrayLike | Mapping[str, ArrayLike] | None,
    kept: Mapping[str, Array] | None,
) -> ArrayLike | Mapping[str, ArrayLike] | None:
    """The bounds that `dataclasses.replace` passes on, `kept`, unless `norm_bound` is another one than their largest.

    Raises `ArgumentError` for `kept` from elsewhere.
    """
    if kept is None:
        return norm_bound
    if not isinstance(kept, BoundsByValue):
        raise fail(f"norm_bounds= is for dataclasses.replace; got {kept!r:.100}. Give them as norm_bound=.")
    return kept if isinstance(norm_bound, np.ndarray) and np.array_equal(norm_bound, kept.largest) else norm_bound


def norm_bounds_by_value(
    fail: Callable[[str], ArgumentError], controls: Mapping[str, Control], norm_bound: Mapping[Any, ArrayLike]
) -> list[tuple[str, ArrayLike]]:
    """Norm bounds in the order of the values of a stage's only choice without `alike`; `ArgumentError` otherwise."""
    choices = [control for control in controls.values() if isinstance(control, Choice) and control.alike is None]
    if len(choices) != 1:
        raise fail(
            f"norm_bound by value needs exactly one choice without alike=; the stage has {len(choices)}. Give one "
            f"norm_bound for all values."
        )
    values = choices[0].values
    if set(norm_bound) != set(values):
        raise fail(
            f"norm_bound by value must name every value once, {', '.join(map(repr, values))}; got "
            f"{', '.join(map(repr, norm_bound))}."
        )
    return [(value, norm_bound[value]) for value in values]


def given_constants(values: Array | None) -> Array:
    """The constants of one value, which were given."""
    assert values is not None, "a bound of a value is a number"
    return values


def check_intervals(
    fail: Callable[[str], ArgumentError],
    limits: Mapping[str, Interval],
    ranges: Mapping[str, Interval],
    passes: Sequence[str],
) -> None:
    """Raise `ArgumentError` for ranges of copies, and for limits that no value within its range satisfies."""
    for output, (low, high) in ranges.items():
        if output in passes:
            raise fail(f"ranges: {output!r} is passed on, so its range belongs to the stage or control it comes from.")
        least, most = limits.get(output, (-np.inf, np.inf))
        if most < low or least > high:
            raise fail(
                f"limits: nothing in the range {in_words(output, (low, high))} satisfies "
                f"{in_words(output, (least, most))}."
            )


def check_noise(fail: Callable[[str], ArgumentError], modelled: int, given: Sequence[str]) -> None:
    """Raise `ArgumentError` if the noise of a stage cannot be estimated: nothing is modelled, or bounds are given."""
    if not modelled:
        raise fail(
            f"error={ESTIMATE!r} is for modelled outputs, and this stage has none (its outputs are a formula's, or "
            f"copies of its inputs). Leave it out."
        )
    if given:
        raise fail(
            f"error={ESTIMATE!r} estimates the noise together with the kernel, and nothing is proven then; got "
            f"{given[0]}= as well. Leave it out, or give the error as a number."
        )


def prior_sds(kernel: Stationary | OperatorKernel) -> Array:
    """The prior sds of the outputs under a kernel, without those that are 0; 1 for a kernel given as a function."""
    if isinstance(kernel, Stationary):
        return np.array([np.sqrt(kernel.variance)])
    if not isinstance(kernel, Separable):
        return np.ones(1)
    variances = np.ones(1) if kernel.matrix is None else np.diag(np.array(kernel.matrix))
    return np.sqrt(variances[variances > 0]) * np.sqrt(kernel.kernel.variance)
