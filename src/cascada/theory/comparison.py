"""Comparison of GPN-UCB with cUCB, OI and MCBO (`sec:comparison`): the orders stated in the paper and their ratios.

All cumulative orders share sqrt(T·γ_T) and differ in the factor in front. Unknown constants do not cancel, so a ratio
shows how the bounds scale, not which algorithm is better. Letters: L_f the Lipschitz constant in ℓ1 (for the
smallest constants L_f ≤ L ≤ sqrt(d_i)·L_f), L_σ that of the posterior sds, D = D_{2,m}, D⁺ = d_2 + … + d_m.

The other papers assume that L_σ exists; no algorithm uses it. A kernel with −φ''(0) implies L_σ = s·sqrt(−φ''(0))/ℓ,
because |σ_t(x) − σ_t(x')| ≤ d_k(x, x'). It is also valid in ℓ1, where distances are not smaller.
"""

import math
from dataclasses import dataclass
from typing import Any

from cascada.arrays import as_positive
from cascada.errors import ArgumentError
from cascada.theory.layers import Layers
from cascada.theory.non_adaptive import weaker_order
from cascada.theory.rates import as_smoothness, sd_sum_rate
from cascada.theory.statement import Order, Status, Term, exponential

_LOGS: Status = "up to a constant and logarithms"


@dataclass(frozen=True)
class Comparison:
    """The order of another algorithm, ours, and the ratio of the factors that do not depend on T."""

    name: str
    theirs: Order
    ours: Order

    @property
    def log10_ratio(self) -> float:
        """log10 of their factor over ours."""
        return (self.theirs.terms[0].log_factor - self.ours.terms[0].log_factor) / math.log(10)

    @property
    def ratio(self) -> float:
        """Their factor over ours; ∞ if it exceeds every float."""
        return exponential(self.log10_ratio * math.log(10))

    def as_dict(self) -> dict[str, Any]:
        """All fields as JSON values."""
        return {
            "name": self.name,
            "log10_ratio": self.log10_ratio,
            "theirs": self.theirs.as_dict(),
            "ours": self.ours.as_dict(),
        }


def gpn_ucb_order(layers: Layers, nu: float) -> Order:
    """R_T = O(2^m B L^{m−1} sqrt(D·T·γ_T))."""
    factor = layers.count * math.log(2) + _log(layers.norm_bound) + (layers.count - 1) * _log(layers.slope)
    factor += 0.5 * _log(layers.width_product())
    formula = "O(2^m B L^(m−1) √(D_{2,m} T γ_T))"
    return _cumulative(layers, nu, factor, formula, {})


def cucb_order(layers: Layers, nu: float, lipschitz_l1: float, sd_lipschitz: float) -> Order:
    """R_T = O(B (B·L_σ + L_f)^{m−1} D D⁺ sqrt(T·γ_T)) of noise-free cUCB."""
    L_f, L_sigma = _slopes(layers, lipschitz_l1, sd_lipschitz)
    B, m = layers.norm_bound, layers.count
    factor = _log(B) + (m - 1) * _log(B * L_sigma + L_f) + _log(layers.width_product()) + _log(layers.width_sum())
    formula = "O(B (B L_σ + L_f)^(m−1) D_{2,m} D⁺_{2,m} √(T γ_T))"
    return _cumulative(layers, nu, factor, formula, {"L_f": L_f, "L_σ": L_sigma})


def mcbo_order(layers: Layers, nu: float, sd_lipschitz: float) -> Order:
    """R_T = O(B^m L_σ^m L^m d_max^m D⁺ sqrt(T·γ_T)) of MCBO, specialised to exact evaluations."""
    _, L_sigma = _slopes(layers, layers.slope, sd_lipschitz)
    m = layers.count
    factor = m * (_log(layers.norm_bound) + _log(L_sigma) + _log(layers.slope) + _log(layers.largest_dimension))
    factor += _log(layers.width_sum())
    formula = "O(B^m L_σ^m L^m d_max^m D⁺_{2,m} √(T γ_T))"
    return _cumulative(layers, nu, factor, formula, {"L_σ": L_sigma})


def oi_order(layers: Layers, nu: float, lipschitz_l1: float, sd_lipschitz: float) -> Order:
    """r*_T of noise-free OI with a Matérn kernel: a factor with m³ in its exponents, times T^{−ν/(2ν+d)}."""
    L_f, L_sigma = _slopes(layers, lipschitz_l1, sd_lipschitz)
    nu, m, B, d = as_smoothness(nu), layers.count, layers.norm_bound, layers.dimension
    factor = (m**2 + m + 0.5) * _log(m) + (m + 1) * _log(B) + m**3 * _log(L_f)
    factor += 3 * m**3 * _log(B * L_sigma + L_f)
    factor += 2 * m**2 * _log(layers.width_product()) + (m**2 + 1) * _log(layers.width_sum())
    formula = "O(m^(m²+m+½) B^(m+1) L_f^(m³) (B L_σ + L_f)^(3m³) D_{2,m}^(2m²) D⁺_{2,m}^(m²+1) T^(−ν/(2ν+d)))"
    constants = {"m": float(m), "B": B, "L_f": L_f, "L_σ": L_sigma, "ν": nu, "d": float(d)}
    term = Term(factor, -nu / (2 * nu + d))
    return Order(formula, "sec:comparison", (term,), "up to a constant", constants, ("Matérn kernel",))


def compare(
    layers: Layers, nu: float, sd_lipschitz: float, lipschitz_l1: float | None = None
) -> tuple[Comparison, ...]:
    """cUCB and MCBO compared with GPN-UCB, and OI with non-adaptive sampling (with its weaker order, as in the paper).

    By default `lipschitz_l1` is the smallest L_f that L allows, L/sqrt(max d_i) over the later layers, which favours
    the other algorithms most.
    """
    favourable = layers.slope / math.sqrt(max(layers.input_dims[1:], default=1))
    L_f = favourable if lipschitz_l1 is None else lipschitz_l1
    ours = gpn_ucb_order(layers, nu)
    return (
        Comparison("cUCB", cucb_order(layers, nu, L_f, sd_lipschitz), ours),
        Comparison("MCBO", mcbo_order(layers, nu, sd_lipschitz), ours),
        Comparison("OI", oi_order(layers, nu, L_f, sd_lipschitz), weaker_order(layers, nu)),
    )


def _cumulative(layers: Layers, nu: float, factor: float, formula: str, more: dict[str, float]) -> Order:
    exponent = sd_sum_rate(nu, layers.largest_dimension).exponents[0]  # of sqrt(T·γ_T)
    constants = {"m": float(layers.count), "B": layers.norm_bound, "L": layers.slope, **more}
    constants |= {"D_{2,m}": float(layers.width_product()), "D⁺_{2,m}": float(layers.width_sum())}
    return Order(formula, "sec:comparison", (Term(factor, exponent),), _LOGS, constants, ("Matérn kernel",))


def _slopes(layers: Layers, lipschitz_l1: float, sd_lipschitz: float) -> tuple[float, float]:
    if layers.structure == "multi-output":
        raise ArgumentError(
            "the other bounds are for independent outputs; got a multi-output chain. Compare a chain or a "
            "feed-forward network."
        )
    if layers.count < 2:
        raise ArgumentError(
            "the comparison needs at least two layers; got one, for which D⁺_{2,m} = d_2 + … + d_m is 0."
        )
    return as_positive(lipschitz_l1, "lipschitz_l1"), as_positive(sd_lipschitz, "sd_lipschitz")


def _log(value: float) -> float:
    return math.log(value)
