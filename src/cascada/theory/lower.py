"""Lower bounds of the regret of every algorithm (thm:lower_sim, thm:lower_cml).

The proof counts members. As long as an algorithm observes zeros it acts identically on every member of a hard family.
Each of its T points and the returned point is positive on at most one member. So the simple regret is 2ε on at least
M − T − 1 members, and its average over the family is at least 2ε·(1 − (T + 1)/M), the theorem's ε at T = M/2 − 1.
Similarly, t rounds find at most t members, so the average cumulative regret is at least 2ε·Σ_{t≤T} (1 − t/M)⁺.
These are numbers, because ε, M, B and L of a family are numbers. For randomised algorithms they hold in expectation.

For T → ∞ the theorems give an order whose constant is unknown.
"""

import math
from collections.abc import Iterable

import numpy as np

from cascada.arrays import as_whole_number
from cascada.errors import ArgumentError
from cascada.kernels import Matern
from cascada.theory.hard import HardFamily, family_of_cells
from cascada.theory.layers import Structure
from cascada.theory.statement import Bound, Order, Term

_MOST_TRIED = 48  # how many numbers of cells are tried; each gives a valid bound, and the best is used


def average_simple_regret(family: HardFamily, horizon: int) -> Bound:
    """A lower bound of every algorithm's average simple regret over the family after T runs (thm:lower_sim)."""
    rounds = _rounds(horizon)
    value = 2 * family.epsilon * max(0.0, 1.0 - (rounds + 1) / family.members)
    return Bound(value, "2ε(1 − (T+1)/M)", "thm:lower_sim", _constants(family, rounds), _assumed(family), lower=True)


def average_cumulative_regret(family: HardFamily, horizon: int) -> Bound:
    """A lower bound of every algorithm's average cumulative regret over the family after T runs (thm:lower_cml)."""
    rounds = _rounds(horizon)
    seen = min(rounds, family.members)
    value = 2 * family.epsilon * (seen - 0.5 * seen * (seen + 1) / family.members)
    return Bound(value, "2ε Σ_t (1 − t/M)⁺", "thm:lower_cml", _constants(family, rounds), _assumed(family), lower=True)


def longest_horizon(family: HardFamily) -> int:
    """The largest T ≤ M/2 − 1, after which the average simple regret is at least ε; −1 for a single member."""
    return family.members // 2 - 1


def simple_regret_bound(
    kernel: Matern,
    norm_bound: float,
    horizon: int,
    *,
    dims: tuple[int, ...],
    u: float,
    u_tilde: float,
    structure: Structure = "chain",
) -> Bound:
    """A lower bound, with all constants, of every algorithm's simple regret on some network after T runs.

    It is thm:lower_sim without its Ω: the best `average_simple_regret` of families with slightly more members than T.

    >>> bound = simple_regret_bound(Matern(1.5), 5.0, 100, dims=(1, 1, 1), u=0.5, u_tilde=0.3)
    >>> print(bound)
    2ε(1 − (T+1)/M) ≥ 0.006354 (thm:lower_sim)
    """
    rounds = _rounds(horizon)
    families = _families(kernel, norm_bound, rounds, rounds + 1, dims, u, u_tilde, structure)
    return max((average_simple_regret(family, horizon) for family in families), key=lambda bound: bound.value)


def cumulative_regret_bound(
    kernel: Matern,
    norm_bound: float,
    horizon: int,
    *,
    dims: tuple[int, ...],
    u: float,
    u_tilde: float,
    structure: Structure = "chain",
) -> Bound:
    """A lower bound, with all constants, of every algorithm's cumulative regret on some network (thm:lower_cml)."""
    families = _families(kernel, norm_bound, _rounds(horizon), 1, dims, u, u_tilde, structure)
    return max((average_cumulative_regret(family, horizon) for family in families), key=lambda bound: bound.value)


def lower_simple_regret_order(family: HardFamily) -> Order:
    """Ω(B(cL)^{m−1}·T^{−ν/d}), with c = α and L of this family (thm:lower_sim, solved for ε)."""
    nu, d = family.kernel.nu, family.dimension
    term = Term(_log_size(family), -nu / d)
    return _order(family, "Ω(B (cL)^{m−1} T^{−ν/d})", "thm:lower_sim", term)


def rounds_order(family: HardFamily) -> Order:
    """Ω((B(cL)^{m−1}/ε)^{d/ν}), the number of runs needed for average simple regret ε (thm:lower_sim)."""
    nu, d = family.kernel.nu, family.dimension
    term = Term((_log_size(family) - math.log(family.epsilon)) * d / nu, 0.0)
    return _order(family, "Ω((B (cL)^{m−1}/ε)^{d/ν})", "thm:lower_sim", term)


def lower_cumulative_regret_order(family: HardFamily) -> Order:
    """thm:lower_cml: Ω(min{T, B(cL)^{m−1}·T^{1−ν/d}}) for d > ν, else Ω(min{T, (B(cL)^{m−1})^{d/ν}})."""
    nu, d, size = family.kernel.nu, family.dimension, _log_size(family)
    if d > nu:
        formula, term = "Ω(min{T, B (cL)^{m−1} T^{1−ν/d}})", Term(size, 1 - nu / d)
    else:
        formula, term = "Ω(min{T, (B (cL)^{m−1})^{d/ν}})", Term(size * d / nu, 0.0)
    return _order(family, formula, "thm:lower_cml", term, cap=True)


def _order(family: HardFamily, formula: str, label: str, term: Term, cap: bool = False) -> Order:
    constants = {key: value for key, value in _constants(family, 0).items() if key not in ("M", "T", "w")}
    return Order(formula, label, (term,), "up to a constant", constants, _assumed(family), cap)


def _log_size(family: HardFamily) -> float:
    """log(B(cL)^{m−1}) with c = α, which is valid for every smaller ε; r_min/r_max if L = r_max·L̃."""
    return math.log(family.norm_bound) + (family.depth - 1) * math.log(family.alpha * family.lipschitz)


def _constants(family: HardFamily, rounds: int) -> dict[str, float]:
    return {
        "epsilon": family.epsilon,
        "M": family.members,
        "T": rounds,
        "B": family.norm_bound,
        "L": family.lipschitz,
        "c": family.alpha,
        "w": family.needle.width,
        "m": family.depth,
        "d": family.dimension,
        "nu": family.kernel.nu,
    }


def _assumed(family: HardFamily) -> tuple[str, ...]:
    return (
        f"the algorithm knows no more than: {family.structure}, {family.kernel!r}, norm at most B, Lipschitz at most L",
        "for a randomised algorithm the bound is for its expectation",
    )


def _rounds(horizon: int) -> int:
    return as_whole_number(horizon, "the horizon T", at_least=0)


def _families(
    kernel: Matern,
    norm_bound: float,
    rounds: int,
    fewest: int,
    dims: tuple[int, ...],
    u: float,
    u_tilde: float,
    structure: Structure,
) -> Iterable[HardFamily]:
    """Families with more than `fewest` members, up to twice the optimal number per axis under a power law.

    With ε ~ n^{−ν}, ε(n)·(1 − (T + 1)/n^d) is largest at n^d = (T + 1)(1 + d/ν).
    """
    if not isinstance(kernel, Matern):
        raise ArgumentError(f"hard functions are known for Matérn kernels; got {kernel!r}. Use Matern(nu).")
    d = dims[0] if dims else 1
    low = math.floor(fewest ** (1.0 / d)) + 1
    high = 2 * math.ceil(((rounds + 1) * (1 + d / kernel.nu)) ** (1.0 / d)) + 1
    for cells in np.unique(np.geomspace(low, max(low, high), _MOST_TRIED).astype(int)).tolist():
        yield family_of_cells(kernel, norm_bound, cells, dims=dims, u=u, u_tilde=u_tilde, structure=structure)
