"""Families of networks that no algorithm can distinguish quickly (thm:hard_chain, thm:hard_mul, thm:hard_net).

A member is a needle in [0, 1]^d followed by m − 1 amplifiers. Every layer has norm exactly B. The composite has height
2ε, is positive on a ball of radius w and exactly 0 elsewhere. The M members have disjoint supports in the cube. In
multi-output chains and feed-forward networks the first output of every layer carries the chain; the others are zero.

The paper hides constants in Θ(·). Here ε₁ is computed from the composite height 2ε and w from the norm B, so that M, L
and the constant c with ε₁ = ε/(cL)^{m−1} are numbers.

Deviation: the cells are n^d equal ones with n = ⌊1/(2w)⌋ instead of cells of width 2w. There are as many of them, they
are not narrower, and none crosses the boundary, so none needs to be cropped.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from cascada.arrays import Array, as_positive, as_whole_number, is_whole_number
from cascada.errors import ArgumentError
from cascada.kernels import Matern
from cascada.theory.amplifier import Amplifier
from cascada.theory.bump import Needle, needle, tallest, widest
from cascada.theory.layers import Structure

_HALF = 0.5  # the largest width of a needle inside the cube
_DOWN = 1.0 - 1e-5  # a suggested bound is still valid after rounding to six digits


@dataclass(frozen=True)
class HardFamily:
    """The M members of a hard function, made by `hard_family` from ε or by `family_of_cells` from a number of cells."""

    structure: Structure
    dims: tuple[int, ...]  # d_1, …, d_m
    amplifier: Amplifier
    needle: Needle
    cells: int  # n, along each axis of the cube

    @property
    def kernel(self) -> Matern:
        """The Matérn kernel of every layer, on inputs of any dimension."""
        return self.amplifier.kernel

    @property
    def norm_bound(self) -> float:
        """B, the norm of every layer."""
        return self.amplifier.norm_bound

    @property
    def depth(self) -> int:
        """m."""
        return len(self.dims)

    @property
    def dimension(self) -> int:
        """d = d_1."""
        return self.dims[0]

    @cached_property
    def heights(self) -> tuple[float, ...]:
        """h_1 = 2ε₁, …, h_m = 2ε: the largest value of every layer."""
        heights = [self.needle.height]
        for _ in self.dims[1:]:
            heights.append(self.amplifier.at(heights[-1]))
        return tuple(heights)

    @property
    def epsilon(self) -> float:
        """ε, half of the composite height."""
        return 0.5 * self.heights[-1]

    @property
    def members(self) -> int:
        """M = n^d."""
        return self.cells**self.dimension

    @property
    def layer_lipschitz(self) -> tuple[float, ...]:
        """The smallest Lipschitz constant of each layer on its inputs."""
        return (self.needle.lipschitz, *(self.amplifier.lipschitz for _ in self.dims[1:]))

    @property
    def lipschitz(self) -> float:
        """L, the largest of all layers, from derivatives. Deviation: the paper's r_max·L̃ is a chord slope."""
        return max(self.layer_lipschitz)

    @property
    def alpha(self) -> float:
        """α with αL ≤ g̃_k(z)/z ≤ L on (0, ũ] (eq:slope, eq:mul_slope, eq:net_slope); r_min/r_max if L = r_max·L̃.

        It is 1 for a single layer, which has no amplifier.
        """
        if self.depth == 1:
            return 1.0
        return self.amplifier.scale * self.amplifier.r_min / self.lipschitz

    @property
    def amplification(self) -> float:
        """The c of the theorems, ε₁ = ε/(cL)^{m−1}, in [α, 1] (eq:alpha_fractions); 1 for a single layer."""
        if self.depth == 1:
            return 1.0
        return (self.heights[-1] / self.heights[0]) ** (1.0 / (self.depth - 1)) / self.lipschitz

    def centre(self, member: int) -> Array:
        """The centre of a member's needle, its maximiser, shape (d,); members are counted from 0."""
        places, rest = [], as_whole_number(member, "member", at_least=0, at_most=self.members - 1)
        for _ in range(self.dimension):
            rest, place = divmod(rest, self.cells)
            places.append(place)
        return (np.array(places[::-1]) + 0.5) / self.cells

    def layer(self, i: int, member: int) -> Callable[[Array], Array]:
        """f^(i), i ≥ 1, as a function of points (n, d_i) with values (n, d_{i+1}); members differ only in f^(1)."""
        outputs = self.dims[i] if i < self.depth else 1
        carried: Callable[[Array], Array] = self.amplifier
        if i == 1:
            centre = self.centre(member)

            def carried(points: Array) -> Array:
                return self.needle(points - centre)

        def values(points: Array) -> Array:
            table = np.zeros((len(points), outputs))
            table[:, 0] = carried(points)  # fig:mul_lower, fig:net_lower: the first coordinate carries the chain
            return table

        return values


def hard_family(
    kernel: Matern,
    norm_bound: float,
    epsilon: float,
    *,
    dims: tuple[int, ...],
    u: float,
    u_tilde: float,
    structure: Structure = "chain",
) -> HardFamily:
    """The family of height 2ε; `dims` are d_1, …, d_m, the dimensions of the layers' inputs.

    >>> family = hard_family(Matern(1.5), 5.0, 0.05, dims=(1, 1, 1), u=0.5, u_tilde=0.3)
    >>> family.members, round(family.heights[-1], 12)
    (49, 0.1)
    """
    amplifier = _amplifier(kernel, norm_bound, dims, u, u_tilde, structure)
    dims = tuple(map(int, dims))
    height = 2.0 * as_positive(epsilon, "epsilon")
    possible = 0.5 * _raised(amplifier, dims, _tallest_needle(amplifier, dims))
    if 0.5 * height > possible:
        raise ArgumentError(
            f"epsilon = {epsilon:g} is too large for norm_bound = {norm_bound:g}: no needle of that norm within "
            f"[0, 1]^{dims[0]} is amplified to height 2·epsilon by {len(dims) - 1} amplifiers. "
            f"Use epsilon ≤ {_DOWN * possible:.6g}, or a larger norm_bound."
        )
    for _ in dims[1:]:
        height = amplifier.inverse(height)  # the composite height is 2ε
    found = needle(kernel, dims[0], height, amplifier.norm_bound)
    return HardFamily(structure, dims, amplifier, found, max(1, math.floor(_HALF / found.width)))


def family_of_cells(
    kernel: Matern,
    norm_bound: float,
    cells: int,
    *,
    dims: tuple[int, ...],
    u: float,
    u_tilde: float,
    structure: Structure = "chain",
) -> HardFamily:
    """The family of largest height with n = `cells` members along each axis: its needles fill their cells or reach ũ.

    >>> family_of_cells(Matern(1.5), 5.0, 10, dims=(1, 1), u=0.5, u_tilde=0.3).members
    10
    """
    cells = as_whole_number(cells, "cells")
    amplifier = _amplifier(kernel, norm_bound, dims, u, u_tilde, structure)
    dims = tuple(map(int, dims))
    width = min(_HALF / cells, widest(kernel, dims[0]))
    height = tallest(kernel, dims[0], amplifier.norm_bound, width)
    most = _tallest_input(amplifier, dims)
    if height > most:
        return HardFamily(structure, dims, amplifier, needle(kernel, dims[0], most, amplifier.norm_bound), cells)
    return HardFamily(structure, dims, amplifier, Needle(dims[0], height, width), cells)


def _amplifier(
    kernel: Matern, norm_bound: float, dims: tuple[int, ...], u: float, u_tilde: float, structure: Structure
) -> Amplifier:
    if not isinstance(kernel, Matern):
        raise ArgumentError(f"hard functions are known for Matérn kernels; got {kernel!r}. Use Matern(nu).")
    if kernel.nu < 1:
        raise ArgumentError(
            f"hard functions need nu ≥ 1 (thm:hard_chain); for nu < 1 narrow needles of norm B are steeper than any "
            f"multiple of B; got nu = {kernel.nu:g}."
        )
    if not dims or not all(map(is_whole_number, dims)):
        raise ArgumentError(f"dims must be the input dimension of every layer, whole numbers ≥ 1; got {dims!r}.")
    if structure not in ("chain", "multi-output", "feed-forward"):
        raise ArgumentError(f"structure must be chain, multi-output or feed-forward; got {structure!r}.")
    if structure == "chain" and any(d != 1 for d in dims[1:]):
        raise ArgumentError(f"later layers of a chain have one input: dims must be d, 1, …, 1; got {dims!r}.")
    return _made(kernel, norm_bound, u, u_tilde)


@lru_cache(maxsize=16)
def _made(kernel: Matern, norm_bound: float, u: float, u_tilde: float) -> Amplifier:
    """One cached object for all families with the same amplifier, so that its slopes are computed once."""
    return Amplifier(kernel, norm_bound, u, u_tilde)


def _tallest_input(amplifier: Amplifier, dims: tuple[int, ...]) -> float:
    """The height that the amplifiers raise to g̃_k(ũ), the limit of eq:slope; ∞ without amplifiers."""
    height = math.inf
    for k in range(len(dims) - 1):
        height = amplifier.u_tilde if k == 0 else amplifier.inverse(height)
    return height


def _tallest_needle(amplifier: Amplifier, dims: tuple[int, ...]) -> float:
    return min(tallest(amplifier.kernel, dims[0], amplifier.norm_bound, _HALF), _tallest_input(amplifier, dims))


def _raised(amplifier: Amplifier, dims: tuple[int, ...], height: float) -> float:
    for _ in dims[1:]:
        height = amplifier.at(height)
    return height
