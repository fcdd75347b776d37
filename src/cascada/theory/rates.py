"""Growth rates of Σ_T with T for the Matérn kernel (`sec:ucb_disc`), proven and conjectured."""

from cascada.arrays import as_positive, as_whole_number
from cascada.theory.statement import Order, Status, Term

_LOGS: Status = "up to a constant and logarithms"
_CONJECTURED: Status = "conjectured, up to a constant"
_DOMAINS = ("the layers' domains are bounded, uniformly in T",)


def as_smoothness(nu: float) -> float:
    """Return ν as a float; raise `ArgumentError` unless it is positive."""
    return as_positive(nu, "nu")


def sd_sum_rate(nu: float, dimension: int) -> Order:
    """Σ_T = O(sqrt(T·γ_T)) = Õ(T^{(ν+d)/(2ν+d)}), with γ_T = Õ(T^{d/(2ν+d)}) and d = d_max.

    Deviation: the paper prints O(·), but γ_T is known only up to logarithms.
    """
    nu, d = as_smoothness(nu), as_whole_number(dimension, "the dimension")
    exponent = (nu + d) / (2 * nu + d)
    constants = {"ν": nu, "d_max": float(d)}
    return Order("Õ(T^((ν+d_max)/(2ν+d_max)))", "sec:ucb_disc", (Term(0.0, exponent),), _LOGS, constants, _DOMAINS)


def conjectured_sd_sum_rate(nu: float, dimension: int) -> Order:
    """Σ_T = O(T^{1−ν/d}), O(log T) or O(1) for d > ν, d = ν and d < ν, with d = d_max (a conjecture)."""
    nu, d = as_smoothness(nu), as_whole_number(dimension, "the dimension")
    if d > nu:
        formula, term = "O(T^(1−ν/d_max))", Term(0.0, 1 - nu / d)
    elif d == nu:
        formula, term = "O(log T)", Term(0.0, 0.0, 1.0)
    else:
        formula, term = "O(1)", Term(0.0, 0.0)
    return Order(formula, "sec:ucb_disc", (term,), _CONJECTURED, {"ν": nu, "d_max": float(d)}, _DOMAINS)
