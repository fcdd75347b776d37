"""The quantities in the theorems: structure, dimensions d_1, …, d_m, and B and L of every layer.

The paper has one B and one L for all layers. Its proofs remain valid with one of each per layer, which the sharper sums
use; theorems use the largest. Letters: m layers, D_{i,j} = d_i·…·d_j, d_max the largest of all d_i.
Additional inputs of a later layer (d̂_i controls, `sec:comparison`) do not change the bounds of GPN-UCB, because they
widen no region. They only enlarge the domain of the layer, over which Σ_T is taken, and the whole domain of dimension
d̂ = d + Σ d̂_i.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from cascada.arrays import as_positive, as_whole_number, is_whole_number
from cascada.errors import ArgumentError

Structure = Literal["chain", "multi-output", "feed-forward"]


@dataclass(frozen=True, init=False)
class Layers:
    """The structure of a network with the constants of its layers, validated.

    >>> layers = Layers("feed-forward", [2, 3, 4], norm_bound=2.0, lipschitz=1.5)
    >>> layers.count, layers.width_product(), layers.largest_dimension
    (3, 12, 4)
    """

    structure: Structure
    dims: tuple[int, ...]  # d_1, …, d_m
    norm_bounds: tuple[float, ...]  # B_1, …, B_m
    lipschitz: tuple[float, ...]  # L_1, …, L_m
    extra: tuple[int, ...]  # 0, d̂_2, …, d̂_m

    def __init__(
        self,
        structure: Structure,
        dims: Sequence[int],
        norm_bound: float | Sequence[float],
        lipschitz: float | Sequence[float],
        extra: Sequence[int] = (),
    ) -> None:
        if structure not in get_args(Structure):
            raise ArgumentError(f"structure must be one of {', '.join(get_args(Structure))}; got {structure!r}.")
        sizes = tuple(dims)
        if not sizes or not all(map(is_whole_number, sizes)):
            raise ArgumentError(
                f"dims must be the input dimension of every layer, whole numbers ≥ 1; got {dims!r}. "
                f"Give one for each layer, such as 2,1,1."
            )
        sizes = tuple(map(int, sizes))
        if structure == "chain" and any(d != 1 for d in sizes[1:]):
            raise ArgumentError(
                f"every layer of a chain but the first has one input: dims must be d,1,…,1; got "
                f"{','.join(map(str, sizes))}. Wider layers make it multi-output or feed-forward."
            )
        added = tuple(extra) or (0,) * len(sizes)
        if len(added) != len(sizes) or added[0] != 0 or any(d < 0 for d in added):
            raise ArgumentError(
                f"extra must be 0 for the first layer and 0 or more for each later one, {len(sizes)} in all; "
                f"got {extra!r}."
            )
        object.__setattr__(self, "extra", added)
        object.__setattr__(self, "structure", structure)
        object.__setattr__(self, "dims", sizes)
        object.__setattr__(self, "norm_bounds", _per_layer(norm_bound, "norm_bound", len(sizes)))
        object.__setattr__(self, "lipschitz", _per_layer(lipschitz, "lipschitz", len(sizes)))

    @property
    def count(self) -> int:
        """m."""
        return len(self.dims)

    @property
    def dimension(self) -> int:
        """d = d_1, or d̂ if later layers have additional inputs: the number of controls."""
        return self.dims[0] + sum(self.extra)

    @property
    def input_dims(self) -> tuple[int, ...]:
        """The dimension of every layer's domain, additional inputs included."""
        return tuple(d + e for d, e in zip(self.dims, self.extra, strict=True))

    @property
    def largest_dimension(self) -> int:
        """d_max, additional inputs included."""
        return max(self.input_dims)

    @property
    def norm_bound(self) -> float:
        """B, the largest of all layers."""
        return max(self.norm_bounds)

    @property
    def slope(self) -> float:
        """L, the largest of all layers."""
        return max(self.lipschitz)

    def width_product(self, first: int = 2, last: int | None = None) -> int:
        """D_{first,last} = d_first·…·d_last, layers counted from 1; D_{2,m} by default, 1 when it is empty."""
        return math.prod(self.dims[first - 1 : self.count if last is None else last])

    def width_sum(self) -> int:
        """D⁺_{2,m} = d_2 + … + d_m."""
        return sum(self.dims[1:])


def check_horizon(horizon: int) -> int:
    """Return T as an int; raise `ArgumentError` unless it is a whole number ≥ 1."""
    return as_whole_number(horizon, "the horizon T")


def product(factors: Iterable[float]) -> float:
    """The product of positive numbers; raises `ArgumentError` if it overflows."""
    value = math.prod(map(float, factors))
    if not math.isfinite(value):
        raise ArgumentError("a bound exceeds the largest floating-point number. Use a smaller B, L or depth.")
    return value


def _per_layer(value: float | Sequence[float], name: str, count: int) -> tuple[float, ...]:
    values = tuple(value) if isinstance(value, Sequence) and not isinstance(value, str) else (value,) * count
    if len(values) != count:
        raise ArgumentError(f"{name} must be one number, or one for each of the {count} layers; got {len(values)}.")
    return tuple(as_positive(v, name) for v in values)
