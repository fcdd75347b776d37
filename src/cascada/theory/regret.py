"""Upper bounds of the cumulative regret of GPN-UCB with all constants (`thm:ucb_chain`, `thm:ucb_mul`, `thm:ucb_net`).

All proofs bound the regret of one round by Σ_i w_i·σ⁽ⁱ⁾_{t−1}(x⁽ⁱ⁾_t), a weighted sum of posterior sds at the actual
inputs of the layers (‖Γ‖₂^{1/2} for multi-output chains). Summed over rounds, each line is weaker than the one above:

    R_T ≤ Σ_t Σ_i w_i σ⁽ⁱ⁾_{t−1}(x⁽ⁱ⁾_t)      `per_step_bound`: computable after the run
        ≤ Σ_i w_i Σ⁽ⁱ⁾_T                       `layered_bound`: each layer with its own Σ_T
        ≤ (Σ_i w_i) Σ_T                        `summed_bound`: the largest of them
        ≤ (geometric sum) Σ_T                  `geometric_bound`: one B, one L, as in the proofs
        ≤ 2^{m+1} B L^{m−1} Σ_T                `theorem_bound`

Only the last step needs L ≥ 1: for L < 1 the rounded constant can be too small (m = 2, L = 0.4: 1 + 2L = 1.8 exceeds
4L = 1.6). The theorem is then used with L = 1, which is also a Lipschitz constant of every such function.

Regions. The theorems are for envelopes over *all* anchors (`eq:ucb_i`, `eq:cbarz`). The regions of cascada have only
their centre c and the data as anchors. Since ρ_t ≤ B and |σ(c) − σ(x)| ≤ d_k(c, x), the recursion
of `eq:sim_5` holds for them with the L that the kernel implies, B·s·sqrt(−φ''(0))/ℓ: a region of diameter D becomes one
of diameter 2ρσ(c) + 2·L·D/2 ≤ 2Bσ(x) + 2L·D. If the user gives a smaller L, the mean of both replaces L.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from cascada.arrays import as_points, as_positive
from cascada.errors import ArgumentError
from cascada.theory.layers import Layers, check_horizon, product
from cascada.theory.statement import Bound

LABELS = {"chain": "thm:ucb_chain", "multi-output": "thm:ucb_mul", "feed-forward": "thm:ucb_net"}
_STEPS = {"chain": "eq:sim_6", "multi-output": "eq:rt_ucb_3", "feed-forward": "thm:ucb_net, its proof"}
_SUMS = {"chain": "Σ_T", "multi-output": "Σ^Γ_T", "feed-forward": "Σ_T"}
_ASSUMED = (
    "every layer has norm at most B and Lipschitz constant at most L (ℓ2)",
    "evaluations are exact, and GPN-UCB maximises its upper bound exactly",
    "GPN-UCB as printed, with envelopes over all anchors (eq:ucb_i, eq:cbarz); for cascada's own regions L is at least "
    "the mean of the L given and that of the kernel, and a multi-output layer has at most 4 outputs",
)


def step_weights(layers: Layers) -> tuple[float, ...]:
    """w_1, …, w_m: the regret of one round of GPN-UCB is at most Σ_i w_i·σ⁽ⁱ⁾_{t−1}(x⁽ⁱ⁾_t).

    B and L are those of each layer. Chains: w_i = 2B_i·∏_{s>i} 2L_s. Feed-forward: the same times sqrt(D_{i+1,m}).
    Multi-output chains: w_m = 2B_m, and w_i = 4B_i·(∏_{i<s<m} 5L_s)·2L_m before it.

    >>> step_weights(Layers("chain", [2, 1, 1], norm_bound=1.0, lipschitz=2.0))
    (32.0, 8.0, 2.0)
    """
    B, L, m = layers.norm_bounds, layers.lipschitz, layers.count
    weights = []
    for i in range(1, m + 1):
        if layers.structure == "multi-output":
            if i == m:
                weights.append(2 * B[i - 1])
            else:  # eq:rt_ucb_3
                weights.append(product([4 * B[i - 1], *(5 * L[s - 1] for s in range(i + 1, m)), 2 * L[m - 1]]))
        else:  # eq:sim_6; for feed-forward networks the last display of the proof
            root = layers.width_product(i + 1) ** 0.5
            weights.append(product([2 * B[i - 1], root, *(2 * L[s - 1] for s in range(i + 1, m + 1))]))
    return tuple(weights)


def enclosing_ball_weights(layers: Layers) -> tuple[float, ...]:
    """Weights for a multi-output chain whose regions are balls (`ball_upper`); they equal those of a chain.

    They require a joint kernel at every stage after a wide one, and an L not below the one implied by the kernel.

    This goes beyond the paper, whose regions are unions of intersections of balls. Their diameter is bounded with two
    points (`eq:multi_del_1`), which costs 4B and 5L per layer. A ball around it, of radius ρ‖Γ(c, c)‖₂^{1/2} + L·D/2
    for inputs in a ball of diameter D has diameter at most 2B‖Γ(x, x)‖₂^{1/2} + 2L·D, like an interval.
    """
    return step_weights(Layers("chain", [1] * layers.count, layers.norm_bounds, layers.lipschitz))


def per_step_bound(layers: Layers, sds: ArrayLike) -> Bound:
    """Σ_t Σ_i w_i σ⁽ⁱ⁾_{t−1}(x⁽ⁱ⁾_t) from the sds (T, m) before each round at its inputs."""
    given = as_points(sds, "sds", layers.count)
    if np.any(given < 0):
        raise ArgumentError(f"sds must not be negative; got {given.min():g}.")
    return Bound(
        float((given @ np.array(step_weights(layers))).sum()),
        "Σ_t Σ_i w_i σ⁽ⁱ⁾_{t−1}(x⁽ⁱ⁾_t)",
        _STEPS[layers.structure],
        _constants(layers),
        _ASSUMED,
    )


def layered_bound(layers: Layers, sums: Sequence[float]) -> Bound:
    """Σ_i w_i Σ⁽ⁱ⁾_T, with Σ⁽ⁱ⁾_T (or a bound of it) over the domain of layer i alone."""
    if len(sums) != layers.count:
        raise ArgumentError(f"sums must have one number for each of the {layers.count} layers; got {len(sums)}.")
    for value in sums:
        _check_sum(value)
    total = sum(w * s for w, s in zip(step_weights(layers), sums, strict=True))
    constants = {**_constants(layers), **{f"Σ⁽{i}⁾_T": s for i, s in enumerate(sums, 1)}}
    return Bound(float(total), "Σ_i w_i Σ⁽ⁱ⁾_T", _STEPS[layers.structure], constants, _ASSUMED)


def summed_bound(layers: Layers, largest_sum: float) -> Bound:
    """(Σ_i w_i)·Σ_T with the exact sum of the weights of the proof."""
    _check_sum(largest_sum)
    constants = {**_constants(layers), _SUMS[layers.structure]: largest_sum}
    formula = f"(Σ_i w_i) {_SUMS[layers.structure]}"
    return Bound(sum(step_weights(layers)) * largest_sum, formula, _STEPS[layers.structure], constants, _ASSUMED)


def geometric_bound(layers: Layers, largest_sum: float) -> Bound:
    """The geometric sum of each proof before it is rounded to 2^{m+1} or 5^m; valid for every L > 0."""
    _check_sum(largest_sum)
    B, L, m = layers.norm_bound, layers.slope, layers.count
    name = _SUMS[layers.structure]
    if layers.structure == "multi-output":
        factor, formula = 4 * B * geometric_sum(5 * L, m), f"4B ((5L)^m − 1)/(5L − 1) {name}"
    elif layers.structure == "feed-forward":
        root = layers.width_product() ** 0.5
        factor, formula = 2 * B * geometric_sum(2 * L, m) * root, f"2B ((2L)^m − 1)/(2L − 1) √D_{{2,m}} {name}"
    else:
        factor, formula = 2 * B * geometric_sum(2 * L, m), f"2B ((2L)^m − 1)/(2L − 1) {name}"
    constants = {**_constants(layers), name: largest_sum}
    return Bound(factor * largest_sum, formula, f"{LABELS[layers.structure]}, its proof", constants, _ASSUMED)


def theorem_bound(layers: Layers, largest_sum: float) -> Bound:
    """The theorem as printed: 2^{m+1} B L^{m−1} Σ_T, 5^m B L^{m−1} Σ^Γ_T, or 2^{m+1} √D_{2,m} B L^{m−1} Σ_T.

    >>> theorem_bound(Layers("chain", [2, 1, 1], norm_bound=2.0, lipschitz=2.0), 10.0).value
    1280.0
    """
    _check_sum(largest_sum)
    m, L = layers.count, max(layers.slope, 1.0)
    power = product([layers.norm_bound, *(L for _ in range(m - 1))])
    name = _SUMS[layers.structure]
    if layers.structure == "multi-output":
        factor, formula = product([5.0] * m) * power, f"5^m B L^(m−1) {name}"  # thm:ucb_mul
    elif layers.structure == "feed-forward":
        root = layers.width_product() ** 0.5
        factor, formula = product([2.0] * (m + 1)) * root * power, f"2^(m+1) √D_{{2,m}} B L^(m−1) {name}"  # thm:ucb_net
    else:
        factor, formula = product([2.0] * (m + 1)) * power, f"2^(m+1) B L^(m−1) {name}"  # thm:ucb_chain
    constants = {**_constants(layers), "L": L, name: largest_sum}
    assumed: tuple[str, ...] = _ASSUMED
    if layers.slope < 1:
        assumed += (f"the theorem needs L ≥ 1: taken at L = 1 instead of {layers.slope:g}",)
    return Bound(product([factor]) * largest_sum, formula, LABELS[layers.structure], constants, assumed)


def trivial_bound(layers: Layers, horizon: int, prior_sd: float) -> Bound:
    """2B·s·T: the regret of a round is at most the range of the last layer, |f| ≤ B·s (`lem:conf` without data).

    The bound of a theorem is useful only if it is smaller.
    """
    T, B = check_horizon(horizon), layers.norm_bounds[-1]
    s = as_positive(prior_sd, "prior_sd")
    return Bound(2 * B * s * T, "2 B s T", "lem:conf", {"B": B, "s": s, "T": float(T)}, _ASSUMED[:1])


def regret_bounds(layers: Layers, sums: Sequence[float]) -> tuple[Bound, ...]:
    """All bounds that hold before a run, sharpest first, from Σ⁽ⁱ⁾_T of each layer (or upper bounds)."""
    layered = layered_bound(layers, sums)
    largest = max(sums)
    return (
        layered,
        summed_bound(layers, largest),
        geometric_bound(layers, largest),
        theorem_bound(layers, largest),
    )


def geometric_sum(ratio: float, count: int) -> float:
    """1 + q + … + q^{count−1} as a sum, because (q^count − 1)/(q − 1) is 0/0 at q = 1.

    >>> geometric_sum(1.0, 4), geometric_sum(4.0, 3)
    (4.0, 21.0)
    """
    total = 0.0
    for _ in range(count):
        total = 1.0 + ratio * total
    return product([total])


def _constants(layers: Layers) -> dict[str, float]:
    constants = {"m": float(layers.count), "B": layers.norm_bound, "L": layers.slope}
    if layers.structure == "feed-forward":
        constants["D_{2,m}"] = float(layers.width_product())
    return constants


def _check_sum(value: float) -> None:
    if not (np.isfinite(value) and value >= 0):
        raise ArgumentError(f"Σ_T must be a finite number ≥ 0; got {value!r}.")
