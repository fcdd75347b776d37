"""Budgets in money."""

import math
from dataclasses import dataclass

from cascada.errors import ArgumentError

_ROUNDING = 1e-12  # sums of costs such as 0.1 are rounded


@dataclass(frozen=True)
class Cost:
    """A budget in the unit of the costs of the stages: `budget=Cost(500)`."""

    amount: float

    def __post_init__(self) -> None:
        number = isinstance(self.amount, int | float) and not isinstance(self.amount, bool)
        if not number or not 0 < self.amount < math.inf:
            raise ArgumentError(f"Cost takes a finite number above 0; got {self.amount!r:.100}.")

    def covers(self, spent: float) -> bool:
        """Whether no more than the budget was spent."""
        return spent <= self.amount * (1 + _ROUNDING)
