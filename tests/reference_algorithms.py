"""Reference implementation of the paper's algorithms: loop-for-loop transcriptions in floats, slow and simple.

Letters: X[i] and Y[i] inputs and outputs of stage i told so far, B and L as in the paper, D the grid of `sec:exp`, t
the number of the step that is chosen, 1 for the first. Each function gives its acquisition at every candidate.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import mpmath
import numpy as np
from mpmath import mpf

from tests.reference import Number, precise

Point = tuple[float, ...]


def squared_exponential(x: Point, z: Point) -> float:
    """The experiments' kernel, l = 1."""
    return math.exp(-0.5 * sum((a - b) ** 2 for a, b in zip(x, z, strict=True)))


class PaperStage:
    """One stage's posterior (`eq:mean`, `eq:var`), refitted from scratch."""

    def __init__(self, X: Sequence[Point], y: Sequence[float], jitter: float) -> None:
        t = len(X)
        K = np.array([[squared_exponential(a, b) for b in X] for a in X]).reshape(t, t) + jitter * np.eye(t)
        self.X, self.K, self.weights = X, K, np.linalg.solve(K, np.array(y))

    def ucb(self, z: Point, B: float) -> float:
        return self.mean(z) + B * self.sd(z)  # eq:UCB_orig

    def lcb(self, z: Point, B: float) -> float:
        return self.mean(z) - B * self.sd(z)  # eq:LCB_orig

    def mean(self, z: Point) -> float:
        k = np.array([squared_exponential(z, x) for x in self.X])
        return float(k @ self.weights)  # eq:mean

    def sd(self, z: Point) -> float:
        k = np.array([squared_exponential(z, x) for x in self.X])
        return math.sqrt(max(1.0 - float(k @ np.linalg.solve(self.K, k)), 0.0))  # eq:var


def paper_grid_ucb(
    stages: Sequence[PaperStage],
    candidates: Sequence[Point],
    D: Sequence[float],
    window: float,
    B: float,
    L: float,
) -> list[float]:
    """UCB_t at every candidate by the practical variant of `sec:exp`."""
    first, *later = stages
    ucb_1 = [first.ucb(x, B) for x in candidates]
    lcb_1 = [first.lcb(x, B) for x in candidates]
    result = []
    for x in candidates:
        # Δ^(2) = [LCB̄^(1)(x), UCB̄^(1)(x)], z' over the first stage's domain, the candidates.
        high = min(u + L * math.dist(x, other) for u, other in zip(ucb_1, candidates, strict=True))  # eq:ucb_i
        low = max(v - L * math.dist(x, other) for v, other in zip(lcb_1, candidates, strict=True))  # eq:lcb_i
        for stage in later:
            inside = [z for z in D if low <= z <= high] or [low, high]  # Δ ∩ D, or its two ends
            uppers, lowers = [], []
            for z in inside:
                near = [w for w in D if abs(z - w) <= window] or [z]
                uppers.append(min(stage.ucb((w,), B) + L * abs(z - w) for w in near))  # eq:ucb_i
                lowers.append(max(stage.lcb((w,), B) - L * abs(z - w) for w in near))  # eq:lcb_i
            low, high = min(lowers), max(uppers)
        result.append(high)  # eq:ucb_chain
    return result


# ---- cUCB, OI and cEI: chains of scalar stages


def chained(stages: Sequence[PaperStage], x: Point, L: float) -> tuple[float, float]:
    """μ̃ and σ̃ of the last stage at x."""
    first, *later = stages
    mu, sigma = first.mean(x), first.sd(x)
    for stage in later:
        sigma = stage.sd((mu,)) + L * sigma  # eq:kusa_sig
        mu = stage.mean((mu,))
    return mu, sigma


def cucb(stages: Sequence[PaperStage], candidates: Sequence[Point], B: float, L: float) -> list[float]:
    """UCB_{t−1} = μ̃ + Bσ̃."""
    return [mu + B * sigma for mu, sigma in (chained(stages, x, L) for x in candidates)]


def eta(b: float, t: int) -> float:
    """η_t = b/(1 + log t)."""
    return b / (1.0 + math.log(t))


def optimistic_improvement(
    stages: Sequence[PaperStage], candidates: Sequence[Point], B: float, L: float, b: float, t: int
) -> list[float]:
    """max{UCB_{t−1} − max LCB_{t−1}, η_{t−1}σ̃_{t−1}}, with η_1 where the print has log 0."""
    moments = [chained(stages, x, L) for x in candidates]
    safest = max(mu - B * sigma for mu, sigma in moments)
    return [max(mu + B * sigma - safest, eta(b, max(t - 1, 1)) * sigma) for mu, sigma in moments]


def cascaded_ei(
    stages: Sequence[PaperStage], candidates: Sequence[Point], xi: Sequence[Sequence[float]], best: float
) -> list[float]:
    """The average of max{s − y_max, 0}; xi[s][i] is the standard normal draw of sample s at stage i, for every x."""
    result = []
    for x in candidates:
        total = 0.0
        for draws in xi:
            z = x
            for stage, draw in zip(stages, draws, strict=True):
                z = (stage.mean(z) + stage.sd(z) * draw,)
            total += max(z[0] - best, 0.0)
        result.append(total / len(xi))
    return result


# ---- GP-UCB and EI: black boxes


def gp_ucb(objective: PaperStage, candidates: Sequence[Point], B: float) -> list[float]:
    """μ_{t−1} + Bσ_{t−1}."""
    return [objective.ucb(x, B) for x in candidates]


def expected_improvement(objective: PaperStage, candidates: Sequence[Point], best: float) -> list[float]:
    """(μ − y_max)·Φ(z) + σ·ϕ(z) with z = (μ − y_max)/σ, as printed."""
    result = []
    for x in candidates:
        mu, sigma = objective.mean(x), objective.sd(x)
        z = (mu - best) / sigma
        below, density = 0.5 * math.erfc(-z / math.sqrt(2.0)), math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
        result.append((mu - best) * below + sigma * density)
    return result


@precise
def log_expected_improvement(mean: float, sd: float, best: float) -> Number:
    """The logarithm of EI, however small: with 50 digits the two terms may cancel."""
    gain, sigma = mpf(mean) - mpf(best), mpf(sd)
    if sigma == 0:
        return mpmath.log(gain) if gain > 0 else mpf("-inf")
    z = gain / sigma
    below = mpmath.erfc(-z / mpmath.sqrt(2)) / 2
    return mpmath.log(gain * below + sigma * mpmath.npdf(z))


# ---- networks: what becomes of μ̃ and σ̃ with several parents, controls at later stages, and joint norms


@dataclass(frozen=True)
class GraphStage:
    """A stage whose inputs are columns of all values so far: controls first, then the outputs in stage order.

    A joint norm ‖·‖_{k·A} is given by ‖A‖₂: its posterior sd is ‖Γ_t‖₂^{1/2} = ‖A‖₂^{1/2}·σ_t.
    """

    inputs: Sequence[int]
    outputs: Sequence[PaperStage]
    B: Sequence[float]
    L: Sequence[float]
    joint: float | None = None
    offset: Sequence[float] = ()


def along_graph(stages: Sequence[GraphStage], x: Point, widths: bool) -> tuple[list[float], list[float]]:
    """μ̃ of every value, and σ̃ (or the width w, where each stage's σ counts B times); 0 for controls.

    σ̃_ij = σ_ij(μ̃ of the inputs) + L_ij·‖σ̃ of the inputs‖₂; outputs with one joint norm have one error between them.
    """
    mu, error, group = list(x), [0.0] * len(x), [f"control {j}" for j in range(len(x))]
    for i, stage in enumerate(stages):
        z = tuple(mu[j] for j in stage.inputs)
        once = {group[j]: error[j] for j in stage.inputs}
        spread = math.sqrt(sum(e * e for e in once.values()))
        for j, output in enumerate(stage.outputs):
            sigma = output.sd(z) * math.sqrt(1.0 if stage.joint is None else stage.joint)
            mu.append(output.mean(z) + (stage.offset[j] if stage.offset else 0.0))
            error.append((stage.B[j] if widths else 1.0) * sigma + stage.L[j] * spread)
            group.append(f"stage {i}" if stage.joint is not None else f"stage {i} output {j}")
    return mu, error
