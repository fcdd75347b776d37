"""The paper's algorithms a second time: loop-for-loop transcriptions in floats, slow and obviously right.

Letters: X[i] and Y[i] inputs and outputs of stage i told so far, B and L as in the paper, D the grid of `sec:exp`.
"""

import math
from collections.abc import Sequence

import numpy as np

Point = tuple[float, ...]


def squared_exponential(x: Point, z: Point) -> float:
    """The experiments' kernel, l = 1."""
    return math.exp(-0.5 * sum((a - b) ** 2 for a, b in zip(x, z, strict=True)))


class PaperStage:
    """One stage's posterior (`eq:mean`, `eq:var`), refitted from scratch."""

    def __init__(self, X: Sequence[Point], y: Sequence[float], jitter: float) -> None:
        t = len(X)
        K = np.array([[squared_exponential(a, b) for b in X] for a in X]).reshape(t, t) + jitter * np.eye(t)
        self.X, self.K_inverse, self.y = X, np.linalg.inv(K), np.array(y)

    def ucb(self, z: Point, B: float) -> float:
        return self._mean(z) + B * self._sd(z)  # eq:UCB_orig

    def lcb(self, z: Point, B: float) -> float:
        return self._mean(z) - B * self._sd(z)  # eq:LCB_orig

    def _mean(self, z: Point) -> float:
        k = np.array([squared_exponential(z, x) for x in self.X])
        return float(k @ self.K_inverse @ self.y)  # eq:mean

    def _sd(self, z: Point) -> float:
        k = np.array([squared_exponential(z, x) for x in self.X])
        return math.sqrt(max(1.0 - float(k @ self.K_inverse @ k), 0.0))  # eq:var


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
