"""Penalties of broken limits and of likely failures, for a gradient ascent that must reach feasible settings.

The penalty of a limit is c·(√(v² + ε²) − ε) of its excess v > 0, and exactly 0 where the limit holds: smooth, and for
large v as steep as c. A local maximum of objective minus penalty exceeds a limit by about ε·λ/c, where λ is what the
objective gains per unit of the limit. So c exceeds λ by far, and ε is reduced in steps while the ascent goes on. A
probability of failure is treated as an output that must stay below one half.

As long as no feasible setting is known, the margin itself is maximised: the smooth minimum of all margins.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from cascada.arrays import Array
from cascada.network.failures import FailureRisk
from cascada.network.limits import Limit

#: ε in units of the limited outputs, from the first ascent to the last.
WIDTHS = (0.3, 1e-2, 1e-4)
_BLUR = 0.1  # of the smooth minimum, in units of the limited outputs

#: Values (..., n) of a column and, if they are needed, gradients (..., n, q).
Read = Callable[[int], tuple[Array, Array | None]]


@dataclass(frozen=True, eq=False)
class Penalty:
    """What is subtracted from the objective; without `weight`, minus the margin takes the place of the objective."""

    limits: tuple[Limit, ...]
    units: Array  #: one for each limit
    weight: float | None  #: c, in units of the objective
    risk: FailureRisk | None = None
    width: float = WIDTHS[0]  #: ε

    def sharper(self, width: float) -> "Penalty":
        """The same with another ε."""
        return replace(self, width=width)

    def of(self, read: Read) -> tuple[Array, Array | None]:
        """The penalty, and its gradient if `read` returns gradients."""
        excesses = list(self._excesses(read))
        if self.weight is None:
            return _largest(excesses)
        total, slope = np.zeros(()), None
        for excess, gradient in excesses:
            over = np.maximum(excess, 0.0)
            size = np.sqrt(over**2 + self.width**2)
            total = total + self.weight * (size - self.width)
            if gradient is not None:
                part = (self.weight * over / size)[..., None] * gradient
                slope = part if slope is None else slope + part
        return total, slope

    def _excesses(self, read: Read) -> "list[tuple[Array, Array | None]]":
        """By how much each end of a limit is exceeded, in units; negative where it holds."""
        found: list[tuple[Array, Array | None]] = []
        for limit, unit in zip(self.limits, self.units, strict=True):
            value, gradient = read(limit.column)
            if np.isfinite(limit.high):
                found.append(((value - limit.high) / unit, None if gradient is None else gradient / unit))
            if np.isfinite(limit.low):
                found.append(((limit.low - value) / unit, None if gradient is None else -gradient / unit))
        for stage in () if self.risk is None else self.risk.stages:
            inputs = [read(column) for column in stage.columns]
            shape = np.broadcast_shapes(*(value.shape for value, _ in inputs))
            rows = np.stack([np.broadcast_to(value, shape) for value, _ in inputs], axis=-1).reshape(-1, len(inputs))
            if inputs[0][1] is None:
                found.append((2 * stage.at(rows).reshape(shape) - 1, None))
            else:
                probability, slope = stage.gradient(rows)
                parts = [slope[:, [j]] * g for j, (_, g) in enumerate(inputs) if g is not None]
                found.append((2 * probability - 1, 2 * np.sum(parts, axis=0)))
        return found


def _largest(excesses: "list[tuple[Array, Array | None]]") -> tuple[Array, Array | None]:
    """The smooth maximum of excesses, and its gradient if they have some."""
    shape = np.broadcast_shapes(*(excess.shape for excess, _ in excesses))
    values = np.stack([np.broadcast_to(excess, shape) for excess, _ in excesses])
    top = values.max(axis=0)
    shares = np.exp((values - top) / _BLUR)
    total = shares.sum(axis=0)
    slope = None
    for share, (_, gradient) in zip(shares, excesses, strict=True):
        if gradient is not None:
            part = (share / total)[..., None] * gradient
            slope = part if slope is None else slope + part
    return top + _BLUR * np.log(total), slope
