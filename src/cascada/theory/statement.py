"""The statement of a theorem as a value: a number if the paper gives its constants, otherwise an order.

A `Bound` is a number with its formula, constants and assumptions. An `Order` is the argument of O(·) or Ω(·). The paper
does not give the constant in front, so an order has no value, only `inside(T)` and exponents for comparison.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from cascada.arrays import as_whole_number
from cascada.outwards import rounded_down, rounded_up

Status = Literal["up to a constant", "up to a constant and logarithms", "conjectured, up to a constant"]


@dataclass(frozen=True)
class Bound:
    """A proven number with the formula and label of the paper, its constants and its assumptions."""

    value: float
    formula: str
    label: str
    constants: Mapping[str, float] = field(default_factory=dict)
    assumptions: tuple[str, ...] = ()
    lower: bool = False  # a lower bound, otherwise an upper one

    def shown(self, digits: int) -> str:
        """The value as a string, rounded so that it is still a bound."""
        return (rounded_down if self.lower else rounded_up)(self.value, digits)

    @property
    def status(self) -> str:
        """Always "proven", given the assumptions."""
        return "proven"

    def __str__(self) -> str:
        return f"{self.formula} {'≥' if self.lower else '≤'} {self.shown(4)} ({self.label})"

    def as_dict(self) -> dict[str, Any]:
        """All fields as JSON values."""
        return {
            "value": self.value,
            "formula": self.formula,
            "label": self.label,
            "status": self.status,
            "constants": dict(self.constants),
            "assumptions": list(self.assumptions),
        }


@dataclass(frozen=True)
class Term:
    """factor·T^exponent·(log T)^log_exponent; the factor is stored as a natural logarithm, because it may overflow."""

    log_factor: float
    exponent: float
    log_exponent: float = 0.0

    def log_at(self, horizon: int) -> float:
        """The natural logarithm of the term at T; −∞ if the term is 0 (log T at T = 1)."""
        logarithm = math.log(as_whole_number(horizon, "the horizon T"))
        if self.log_exponent and not logarithm:
            return -math.inf
        return (
            self.log_factor
            + self.exponent * logarithm
            + (self.log_exponent * math.log(logarithm) if self.log_exponent else 0.0)
        )


@dataclass(frozen=True)
class Order:
    """The largest of a few terms inside O(·), Õ(·) or Ω(·); it has no value, because the constant is unknown.

    With `cap` the order is Ω(min{T, ·}).
    """

    formula: str
    label: str
    terms: tuple[Term, ...]
    status: Status
    constants: Mapping[str, float] = field(default_factory=dict)
    assumptions: tuple[str, ...] = ()
    cap: bool = False

    def log_inside(self, horizon: int) -> float:
        """The natural logarithm of what stands inside O(·) at T."""
        largest = max(term.log_at(horizon) for term in self.terms)
        return min(largest, math.log(horizon)) if self.cap else largest

    def inside(self, horizon: int) -> float:
        """What stands inside O(·) at T; ∞ where it exceeds every float."""
        return exponential(self.log_inside(horizon))

    @property
    def exponents(self) -> tuple[float, ...]:
        """The exponent of T in each term."""
        return tuple(term.exponent for term in self.terms)

    def __str__(self) -> str:
        return f"{self.formula} ({self.label}; {self.status})"

    def as_dict(self, horizon: int | None = None) -> dict[str, Any]:
        """All fields as JSON values; with a horizon also log10 of the argument."""
        content: dict[str, Any] = {
            "formula": self.formula,
            "label": self.label,
            "status": self.status,
            "exponents": list(self.exponents),
            "log10_factors": [term.log_factor / math.log(10) for term in self.terms],
            "constants": dict(self.constants),
            "assumptions": list(self.assumptions),
        }
        if horizon is not None:
            content["log10_inside"] = self.log_inside(horizon) / math.log(10)
        return content


def exponential(logarithm: float) -> float:
    """exp of a logarithm; ∞ if it overflows."""
    return math.exp(logarithm) if logarithm < 709 else math.inf
