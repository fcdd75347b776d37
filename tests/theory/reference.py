"""Reference implementations: Σ_T and γ_T over all sequences, and the positive members of a hard family."""

from itertools import combinations_with_replacement, product

import mpmath
import numpy as np

from cascada.arrays import Array, IntArray
from cascada.kernels import Stationary
from cascada.theory.hard import HardFamily


def posterior_sd(kernel: Stationary, seen: Array, z: Array, jitter: float) -> float:
    """σ at z given observations at `seen`, with λs² on the diagonal (`eq:var`)."""
    if not len(seen):
        return float(np.sqrt(kernel.variance))
    gram = kernel(seen, seen) + jitter * kernel.variance * np.eye(len(seen))
    cross = kernel(seen, z[None])[:, 0]
    return float(np.sqrt(max(kernel.variance - float(cross @ np.linalg.solve(gram, cross)), 0.0)))


def sum_of_sds(kernel: Stationary, points: Array, horizon: int, jitter: float) -> float:
    """max over all n^T sequences of Σ_t σ_{t−1}(z_t)."""
    best = 0.0
    for sequence in product(range(len(points)), repeat=horizon):
        rows = points[list(sequence)]
        best = max(best, sum(posterior_sd(kernel, rows[:t], rows[t], jitter) for t in range(horizon)))
    return best


def largest_gain(kernel: Stationary, points: Array, horizon: int, noise: float) -> float:
    """max over all multisets of T points of ½·log det(I + K/(λ's²))."""
    best = 0.0
    for chosen in combinations_with_replacement(range(len(points)), horizon):
        rows = points[list(chosen)]
        gram = np.eye(horizon) + kernel(rows, rows) / (noise * kernel.variance)
        best = max(best, 0.5 * float(np.linalg.slogdet(gram)[1]))
    return best


def chain_constant(B: float, L: float, m: int) -> mpmath.mpf:
    """2B·Σ_{i=1}^m (2L)^{m−i}, term by term, in 50 digits."""
    with mpmath.workdps(50):
        return 2 * mpmath.mpf(B) * mpmath.fsum((2 * mpmath.mpf(L)) ** (m - i) for i in range(1, m + 1))


def multi_output_constant(B: float, L: float, m: int) -> mpmath.mpf:
    """2B + Σ_{i=1}^{m−1} 2L·(5L)^{m−1−i}·4B, as in `eq:rt_ucb_3`."""
    with mpmath.workdps(50):
        b, slope = mpmath.mpf(B), mpmath.mpf(L)
        return 2 * b + mpmath.fsum(2 * slope * (5 * slope) ** (m - 1 - i) * 4 * b for i in range(1, m))


def network_constant(B: float, L: float, dims: list[int]) -> mpmath.mpf:
    """Σ_i 2^{m−i+1} B L^{m−i} ∏_{s=i+1}^m √d_s."""
    m = len(dims)
    with mpmath.workdps(50):
        terms = []
        for i in range(1, m + 1):
            widths = mpmath.fprod(mpmath.sqrt(dims[s - 1]) for s in range(i + 1, m + 1))
            terms.append(mpmath.mpf(2) ** (m - i + 1) * mpmath.mpf(B) * mpmath.mpf(L) ** (m - i) * widths)
        return mpmath.fsum(terms)


def positive_members(family: HardFamily, points: Array) -> IntArray:
    """The member that is positive at each point of the cube (n, d), or −1 where all are zero; shape (n,)."""
    places = np.clip((points * family.cells).astype(np.int64), 0, family.cells - 1)
    inside = family.needle(points - (places + 0.5) / family.cells) > 0
    numbers = places @ (family.cells ** np.arange(family.dimension)[::-1])
    return np.where(inside, numbers, -1)
