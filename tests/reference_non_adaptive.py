"""Reference implementation of Algorithm 2 (`algo:fd`): loops and `numpy.linalg.solve`, slow and simple.

A layer is what was observed of it: its inputs x^(i)_s and outputs x^(i+1)_s. Kernels are the squared exponential with
l = 1, or that times the identity for a layer with one joint norm. Later layers may have controls of their own
(`sec:comparison`), which come after the outputs of the layer before.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

Point = tuple[float, ...]
Range = tuple[float, float] | None


def k(x: Point, z: Point) -> float:
    return math.exp(-0.5 * sum((a - b) ** 2 for a, b in zip(x, z, strict=True)))


@dataclass(frozen=True)
class Layer:
    """Inputs and outputs of the T runs, the number of inputs from the layer before, and one norm or several."""

    X: Sequence[Point]
    Y: Sequence[Point]
    from_before: int
    joint: bool
    jitter: float

    def mean(self, z: Point) -> Point:
        T, p = len(self.X), len(self.Y[0])
        if not self.joint:
            K = np.array([[k(a, b) for b in self.X] for a in self.X]) + self.jitter * np.eye(T)
            k_T = np.array([k(z, x) for x in self.X])
            return tuple(float(k_T @ np.linalg.solve(K, [y[j] for y in self.Y])) for j in range(p))  # eq:mean
        G, y = self._gram(), [value for row in self.Y for value in row]
        return tuple(float(v) for v in self._sections(z) @ np.linalg.solve(G, y))  # eq:multi_mean

    def sd(self, z: Point) -> float:
        """σ, the same for every output of its own norm, or ‖Γ‖₂^{1/2}."""
        T, p = len(self.X), len(self.Y[0])
        if not self.joint:
            K = np.array([[k(a, b) for b in self.X] for a in self.X]) + self.jitter * np.eye(T)
            k_T = np.array([k(z, x) for x in self.X])
            return math.sqrt(max(k(z, z) - float(k_T @ np.linalg.solve(K, k_T)), 0.0))  # eq:var
        G_T = self._sections(z)
        Gamma = k(z, z) * np.eye(p) - G_T @ np.linalg.solve(self._gram(), G_T.T)  # eq:multi_var
        return math.sqrt(max(float(np.linalg.norm(Gamma, 2)), 0.0))

    def _gram(self) -> np.ndarray:
        """G_T + λI with blocks k(x_s, x_r)·I."""
        T, p = len(self.X), len(self.Y[0])
        G = np.zeros((T * p, T * p))
        for s in range(T):
            for r in range(T):
                for j in range(p):
                    G[s * p + j, r * p + j] = k(self.X[s], self.X[r])
        return G + self.jitter * np.eye(T * p)

    def _sections(self, z: Point) -> np.ndarray:
        T, p = len(self.X), len(self.Y[0])
        G_T = np.zeros((p, T * p))
        for s in range(T):
            for j in range(p):
                G_T[j, s * p + j] = k(z, self.X[s])
        return G_T


def inputs_along_means(
    layers: Sequence[Layer], x: Point, own: Sequence[Sequence[int]], ranges: Sequence[Range] | None = None
) -> list[Point]:
    """z^(1), …, z^(m), and what comes out, at controls x; `own` are the positions of each layer's controls in x.

    With ranges, each mean is projected onto the domain of the next layer (`eq:mutil`).
    """
    before: Point = ()
    visited = []
    for i, layer in enumerate(layers):
        z = (*before[: layer.from_before], *(x[j] for j in own[i]))
        visited.append(z)
        before = layer.mean(z)
        allowed = ranges[i] if ranges is not None else None
        if allowed is not None:
            before = tuple(nearest(value, allowed) for value in before)
    return [*visited, before]


def nearest(value: float, allowed: tuple[float, float]) -> float:
    """argmin over z' in [low, high] of |value − z'|."""
    low, high = allowed
    if value < low:
        return low
    if value > high:
        return high
    return value


def mu_g(
    layers: Sequence[Layer], x: Point, own: Sequence[Sequence[int]], ranges: Sequence[Range] | None = None
) -> float:
    """The composite mean (`eq:mean_chain`, `eq:mean_mul`, `eq:mean_net`)."""
    return inputs_along_means(layers, x, own, ranges)[-1][0]


def returned(
    layers: Sequence[Layer],
    domain: Sequence[Point],
    own: Sequence[Sequence[int]],
    ranges: Sequence[Range] | None = None,
) -> int:
    """The index of x*_T = argmax μ^g_T over the domain, the first of equals (`algo:fd`)."""
    best, where = -math.inf, -1
    for i, x in enumerate(domain):
        value = mu_g(layers, x, own, ranges)
        if value > best:
            best, where = value, i
    return where


def printed_bound(
    layers: Sequence[Layer], domain: Sequence[Point], own: Sequence[Sequence[int]], B: float, L: float
) -> float:
    """2B Σ_i √D_{i+1,m} L^{m−i} max_x σ̃^(i)(x): below `eq:fd_end`, and for networks below `eq:fd_2`.

    D_{i+1,m} is the product of the widths d_{i+1}, …, d_m; a layer with one joint norm counts as one.
    """
    m, total = len(layers), 0.0
    for i in range(m):
        largest = max(layers[i].sd(inputs_along_means(layers, x, own)[i]) for x in domain)
        D = math.prod(1 if layers[j].joint else len(layers[j].Y[0]) for j in range(i, m - 1))
        total += math.sqrt(D) * L ** (m - 1 - i) * largest
    return 2 * B * total
