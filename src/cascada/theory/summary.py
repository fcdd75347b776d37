"""The two tables of rates in the paper (`tab:summary_cml`, `tab:summary`), evaluated for one network.

Rates are the arguments of O(·) and Ω(·), not bounds. Upper rates of cumulative regret use a conjecture about Σ_T
(`rates`). Lower rates hold for some c = Θ(1), at most 1; with the default `c` = 1 a factor shows only how the rate
scales. Corrected: at d_max = ν the conjecture gives log T, which the Õ(·) of `tab:summary` does not hide (its argument
has no T) and which `tab:summary_cml` omits; the row includes it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cascada.arrays import as_positive
from cascada.errors import ArgumentError
from cascada.tables import markdown_table, text_table
from cascada.theory.layers import Layers
from cascada.theory.non_adaptive import restrictive_order, weaker_order
from cascada.theory.rates import as_smoothness, conjectured_sd_sum_rate
from cascada.theory.statement import Order, Term

_NAMES = {"chain": "chains", "multi-output": "multi-output chains", "feed-forward": "feed-forward networks"}
_HEADER = ("regret", "side", "for", "case", "rate", "T to the", "log10 of what stands inside")


@dataclass(frozen=True)
class Row:
    """One row of a table: an order, or the reason why the paper gives none for these parameters."""

    regret: str  # "cumulative" or "simple"
    side: str  # "lower" or "upper"
    structure: str
    case: str
    order: Order | None
    reason: str = ""

    def as_dict(self, horizon: int) -> dict[str, Any]:
        """All fields as JSON values."""
        return {
            "regret": self.regret,
            "side": self.side,
            "for": self.structure,
            "case": self.case,
            "order": None if self.order is None else self.order.as_dict(horizon),
            "reason": self.reason,
        }

    def cells(self, horizon: int) -> list[str]:
        """The cells of the row as strings."""
        start = [self.regret, self.side, self.structure, self.case]
        if self.order is None:
            return [*start, self.reason, "", ""]
        inside = self.order.log_inside(horizon) / math.log(10)
        powers = ", ".join(_power(term) for term in self.order.terms)
        return [*start, self.order.formula, powers, f"{inside:.3g}"]


_NO_EXTRA = "proven for networks whose later layers have no inputs of their own"


def cumulative_table(layers: Layers, nu: float, c: float = 1.0) -> tuple[Row, ...]:
    """`tab:summary_cml` for one structure: rates of R_T, for d ≥ ν ≥ 1 and T = Ω((B(cL)^{m−1})^{d/ν})."""
    nu, name = as_smoothness(nu), _NAMES[layers.structure]
    case, d = "d ≥ ν ≥ 1, T = Ω((B(cL)^(m−1))^(d/ν))", layers.dimension
    if any(layers.extra):
        return tuple(Row("cumulative", side, name, case, None, _NO_EXTRA) for side in ("lower", "upper"))
    if not 1 <= nu <= d:
        reason = f"the table is for 1 ≤ ν ≤ d; here ν = {nu:g}, d = {d}"
        return tuple(Row("cumulative", side, name, case, None, reason) for side in ("lower", "upper"))
    rate = Term(_log_lower(layers, c), 1 - nu / d)
    constants = {"B": layers.norm_bound, "c": c, "L": layers.slope, "ν": nu, "d": float(d)}
    lower = Order("Ω(B (cL)^(m−1) T^(1−ν/d))", "thm:lower_cml", (rate,), "up to a constant", constants)
    return (
        Row("cumulative", "lower", "all structures", case, lower),
        Row("cumulative", "upper", name, case, conjectured_regret_order(layers, nu)),
    )


def summary_table(layers: Layers, nu: float, c: float = 1.0) -> tuple[Row, ...]:
    """`tab:summary` for one structure: lower and upper rates of cumulative and simple regret."""
    nu, name, d = as_smoothness(nu), _NAMES[layers.structure], layers.largest_dimension
    above = "d_max > ν" if d > nu else "d_max ≤ ν"
    smooth = "ν ≤ 1" if nu <= 1 else "ν > 1"
    return (
        _lower_cumulative(layers, nu, c),
        Row("cumulative", "upper", name, above, conjectured_regret_order(layers, nu)),
        _lower_simple(layers, nu, c),
        Row("simple", "upper", name, smooth, weaker_order(layers, nu)),
        Row("simple", "upper", f"{name}, restrictive cases", smooth, restrictive_order(layers, nu)),
    )


def conjectured_regret_order(layers: Layers, nu: float) -> Order:
    """R_T of GPN-UCB if the conjecture on Σ_T holds: 2^m B L^{m−1} (or with 5^m, or √D_{2,m}) times the rate of Σ_T."""
    nu, m = as_smoothness(nu), layers.count
    sums = conjectured_sd_sum_rate(nu, layers.largest_dimension)
    base, text = (5, "5^m") if layers.structure == "multi-output" else (2, "2^m")
    log_D = 0.0
    if layers.structure == "feed-forward":
        log_D, text = math.log(layers.width_product()), "2^m √D_{2,m}"
    factor = m * math.log(base) + 0.5 * log_D + math.log(layers.norm_bound) + (m - 1) * math.log(layers.slope)
    rate = sums.terms[0]
    tail = {"O(1)": "", "O(log T)": " log T"}.get(sums.formula, " T^(1−ν/d_max)")
    return Order(
        f"O({text} B L^(m−1){tail})",
        "tab:summary",
        (Term(factor, rate.exponent, rate.log_exponent),),
        "conjectured, up to a constant",
        {"m": float(m), "B": layers.norm_bound, "L": layers.slope, **sums.constants},
        ("Matérn kernel", "the conjecture on Σ_T", "L > 1", *sums.assumptions),
    )


def as_text(rows: Sequence[Row], horizon: int) -> str:
    """The table as plain text with aligned columns."""
    return text_table(_HEADER, [row.cells(horizon) for row in rows])


def as_markdown(rows: Sequence[Row], horizon: int) -> str:
    """The table as Markdown."""
    return markdown_table(_HEADER, [row.cells(horizon) for row in rows], align=None)


def _lower_cumulative(layers: Layers, nu: float, c: float) -> Row:
    d, name = layers.dimension, "all structures"
    case = "d > ν ≥ 1" if d > nu else "d ≤ ν"
    if any(layers.extra):
        return Row("cumulative", "lower", name, case, None, _NO_EXTRA)
    if nu < 1:
        return Row("cumulative", "lower", name, case, None, f"no lower bound for ν < 1; here ν = {nu:g}")
    log_factor = _log_lower(layers, c)
    if d > nu:
        formula, term = "Ω(min{T, B (cL)^(m−1) T^(1−ν/d)})", Term(log_factor, 1 - nu / d)
    else:
        formula, term = "Ω(min{T, (B (cL)^(m−1))^(d/ν)})", Term(log_factor * d / nu, 0.0)
    constants = {"B": layers.norm_bound, "c": c, "L": layers.slope, "ν": nu, "d": float(d)}
    assumed = ("L = Θ(B)", "B is large enough")
    order = Order(formula, "thm:lower_cml", (term,), "up to a constant", constants, assumed, cap=True)
    return Row("cumulative", "lower", name, case, order)


def _lower_simple(layers: Layers, nu: float, c: float) -> Row:
    if any(layers.extra):
        return Row("simple", "lower", "all structures", "ν ≥ 1", None, _NO_EXTRA)
    if nu < 1:
        return Row("simple", "lower", "all structures", "ν ≥ 1", None, f"no lower bound for ν < 1; here ν = {nu:g}")
    constants = {"B": layers.norm_bound, "c": c, "L": layers.slope, "ν": nu, "d": float(layers.dimension)}
    term = Term(_log_lower(layers, c), -nu / layers.dimension)
    assumed = ("L = Θ(B)", "B is large enough", "ε/B is small enough")
    order = Order("Ω(B (cL)^(m−1) T^(−ν/d))", "thm:lower_sim", (term,), "up to a constant", constants, assumed)
    return Row("simple", "lower", "all structures", "ν ≥ 1", order)


def _log_lower(layers: Layers, c: float) -> float:
    """log(B(cL)^{m−1})."""
    if as_positive(c, "c") > 1:
        raise ArgumentError(f"c must be at most 1; got {c!r}.")
    return math.log(layers.norm_bound) + (layers.count - 1) * math.log(c * layers.slope)


def _power(term: Term) -> str:
    log = " log T" if term.log_exponent else ""
    return f"{round(term.exponent, 4):g}{log}"
