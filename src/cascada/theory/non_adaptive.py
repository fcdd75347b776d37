"""Non-adaptive sampling (`algo:fd`): orders of its simple regret, and the growth of fill distances over the layers.

The paper gives orders only, because they use `lem:fill`, max σ_T = O(δ_T^ν), whose constant is unknown. The growth of
the fill distance is exact: δ⁽ⁱ⁾ ≤ L^{i−1}·δ_T (`eq:fill_i`), times sqrt(D_{2,i}) in feed-forward networks
(`eq:fill_i_net`). The recommendation of a `Study` has a numerical bound after a run (`eq:fd_end`).
"""

import math
from typing import Literal

from cascada.arrays import as_whole_number
from cascada.errors import ArgumentError
from cascada.theory.layers import Layers, product
from cascada.theory.rates import as_smoothness
from cascada.theory.statement import Bound, Order, Status, Term

_LABELS = {"chain": "thm:fd_chain", "multi-output": "thm:fd_mul", "feed-forward": "thm:fd_net"}
_FILLS = {"chain": "cor:fill_chain", "multi-output": "cor:fill_mul", "feed-forward": "cor:fill_net"}
_LOGS: Status = "up to a constant and logarithms"
_CASES = {
    1: "Case 1: the composed means at the optimum and at the returned point stay in the layers' domains",
    2: "Case 2: the layers' domains are known, and means are projected onto them",
}


def simple_regret_order(layers: Layers, nu: float) -> Order:
    """The order of r*_T (`thm:fd_chain`, `thm:fd_mul`, `thm:fd_net`): one term for ν ≤ 1, the larger of two above."""
    nu, m, d = as_smoothness(nu), layers.count, layers.dimension
    log_B, log_L, log_D = _logarithms(layers)
    if nu <= 1:
        root = "√D_{2,m} " if layers.structure == "feed-forward" else ""
        terms: tuple[Term, ...] = (Term(0.5 * log_D + log_B + (m - 1) * log_L, -(nu**m) / d),)
        formula = f"Õ({root}B L^(m−1) T^(−ν^m/d))"
    else:
        wide = layers.structure == "feed-forward"
        terms = (Term(0.5 * nu * log_D + log_B + (m - 1) * nu * log_L, -nu / d),)
        formula = f"Õ({'D_{2,m}^(ν/2) ' if wide else ''}B L^((m−1)ν) T^(−ν/d))"
        if m > 1:
            terms += (Term(_second_factor(layers, nu), -(nu**2) / d),)
            second = f"{'D̃_{2,m}^ν ' if wide else ''}B^(1+ν+⋯+ν^(m−2)) L^(ν^(m−1)) T^(−ν²/d)"
            formula = f"Õ(max{{{formula[2:-1]}, {second}}})"
    return Order(formula, _LABELS[layers.structure], terms, _LOGS, _constants(layers, nu), _assumed(layers))


def weaker_order(layers: Layers, nu: float) -> Order:
    """The simpler order of `tab:summary` for ν > 1: the larger factor with the slower rate T^{−ν/d}.

    Corrected: the exponent printed as 1+ν+ν²+ν^{m−2} lacks its "⋯".
    """
    nu = as_smoothness(nu)
    if nu <= 1 or layers.count == 1:
        return simple_regret_order(layers, nu)
    terms = (Term(_second_factor(layers, nu), -nu / layers.dimension),)
    root = "D̃_{2,m}^ν " if layers.structure == "feed-forward" else ""
    formula = f"Õ({root}B^(1+ν+⋯+ν^(m−2)) L^(ν^(m−1)) T^(−ν/d))"
    return Order(formula, _LABELS[layers.structure], terms, _LOGS, _constants(layers, nu), _assumed(layers))


def restrictive_order(layers: Layers, nu: float, case: Literal[1, 2] = 1) -> Order:
    """The order of r*_T in Case 1 and in Case 2 (`eq:more_restrictive`), which is the same; B need not be Θ(L)."""
    if case not in _CASES:
        raise ArgumentError(f"case must be 1 or 2; got {case!r}.")
    nu, m = as_smoothness(nu), layers.count
    log_B, log_L, log_D = _logarithms(layers)
    power = max(1.0, nu)
    wide = layers.structure == "feed-forward"
    term = Term(0.5 * power * log_D + log_B + (m - 1) * power * log_L, -nu / layers.dimension)
    if nu <= 1:
        formula = f"O({'√D_{2,m} ' if wide else ''}B L^(m−1) T^(−ν/d))"
    else:
        formula = f"O({'D_{2,m}^(ν/2) ' if wide else ''}B L^((m−1)ν) T^(−ν/d))"
    label = "eq:more_restrictive" if layers.structure == "chain" else f"{_LABELS[layers.structure]}, restrictive cases"
    assumed = (_CASES[case], *(_boxes(layers)))
    return Order(formula, label, (term,), "up to a constant", _constants(layers, nu), assumed)


def layer_fill_distance(layers: Layers, layer: int, fill: float) -> Bound:
    """An upper bound of the fill distance δ⁽ⁱ⁾_T of the inputs of layer i from δ_T, that of the first layer.

    The factor is ∏_{s<i} L_s with the L of each layer, times sqrt(D_{2,i}) in feed-forward networks.

    >>> layer_fill_distance(Layers("feed-forward", [2, 4, 1], 1.0, 3.0), 3, 0.1).value
    1.8
    """
    i = _layer(layers, layer)
    if not (math.isfinite(fill) and fill >= 0):
        raise ArgumentError(f"the fill distance δ_T must be a finite number ≥ 0; got {fill!r}.")
    wide = layers.structure == "feed-forward"
    root = math.sqrt(layers.width_product(2, i)) if wide else 1.0
    growth = product([root, *layers.lipschitz[: i - 1]])  # eq:fill_i, eq:fill_i_net
    constants = {"i": float(i), "L": layers.slope, "δ_T": fill} | ({"D_{2,i}": root**2} if wide else {})
    assumed = ("layer i's domain is what the layers before it map the controls to",)
    formula = "√D_{2,i} L^(i−1) δ_T" if wide else "L^(i−1) δ_T"
    return Bound(growth * fill, formula, "eq:fill_i_net" if wide else "eq:fill_i", constants, assumed)


def layer_sd_order(layers: Layers, layer: int, nu: float) -> Order:
    """The order of the largest posterior sd of layer i after T points with δ_T = O(T^{−1/d}), by `lem:fill`.

    (`cor:fill_chain`, `cor:fill_mul`, `cor:fill_net` with `eq:sigbar`. Corrected: D_{2,i} is the product from s = 2.)
    """
    nu, i = as_smoothness(nu), _layer(layers, layer)
    wide = layers.structure == "feed-forward"
    log_growth = sum(map(math.log, layers.lipschitz[: i - 1]))
    log_growth += 0.5 * math.log(layers.width_product(2, i)) if wide else 0.0
    term = Term(nu * log_growth, -nu / layers.dimension)
    formula = f"O(({'√D_{2,i} ' if wide else ''}L^(i−1) δ_T)^ν), δ_T = O(T^(−1/d))"
    assumed = ("Matérn kernel", "δ_T is below a constant δ₀ of the kernel", *_boxes(layers))
    constants = {**_constants(layers, nu), "i": float(i)}
    return Order(formula, _FILLS[layers.structure], (term,), "up to a constant", constants, assumed)


def _second_factor(layers: Layers, nu: float) -> float:
    """log of D̃^ν_{2,m}·B^{1+ν+⋯+ν^{m−2}}·L^{ν^{m−1}}, D̃^ν_{2,m} = ∏_{i=2}^m d_i^{ν^{m+1−i}/2} or 1."""
    m = layers.count
    log_B, log_L, _ = _logarithms(layers)
    widths = 0.0
    if layers.structure == "feed-forward":
        widths = sum(0.5 * nu ** (m + 1 - i) * math.log(layers.dims[i - 1]) for i in range(2, m + 1))
    return widths + sum(nu**j for j in range(m - 1)) * log_B + nu ** (m - 1) * log_L


def _logarithms(layers: Layers) -> tuple[float, float, float]:
    """log B, log L and log D_{2,m}; the last is 0 except for feed-forward networks."""
    log_D = math.log(layers.width_product()) if layers.structure == "feed-forward" else 0.0
    return math.log(layers.norm_bound), math.log(layers.slope), log_D


def _constants(layers: Layers, nu: float) -> dict[str, float]:
    named = {"m": layers.count, "B": layers.norm_bound, "L": layers.slope, "ν": nu, "d": layers.dimension}
    if layers.structure == "feed-forward":
        named["D_{2,m}"] = layers.width_product()
    return {name: float(value) for name, value in named.items()}


def _assumed(layers: Layers) -> tuple[str, ...]:
    return ("Matérn kernel", "B = Θ(L)", "L > 1", "δ_T = O(T^(−1/d))", *_boxes(layers))


def _boxes(layers: Layers) -> tuple[str, ...]:
    """The assumptions of `lem:fill`; the domains of a chain are intervals."""
    if layers.structure == "chain":
        return ()
    own = ("Γ = k·I",) if layers.structure == "multi-output" else ()
    return (*own, "every layer's domain is a hyperrectangle")


def _layer(layers: Layers, layer: int) -> int:
    if any(layers.extra):
        raise ArgumentError(
            f"fill distances need a network whose later layers have no additional inputs; got {layers.extra}."
        )
    return as_whole_number(layer, "layer", at_most=layers.count)
