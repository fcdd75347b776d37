"""Settings of the calibration of stages without a kernel or a norm bound."""

import math
from dataclasses import dataclass
from typing import Literal

from cascada.arrays import as_positive
from cascada.calibration.shape import SE, Shape
from cascada.errors import ArgumentError
from cascada.kernels import Additive
from cascada.network import Network

_ROUGH = 1.5
_LARGEST = 1e6  # of every option: far beyond what is useful, and nothing overflows


@dataclass(frozen=True)
class Calibration:
    """Options; the defaults were chosen by measurement (`docs/choosing.md`).

    * `family`, `nu`: Matérn with this smoothness ("matern"), squared exponential ("se"), or for every output the most
      likely of these two and Matérn-3/2 ("auto"); for choosing points also a sum of effects of one input each, if that
      is clearly more likely.
    * `width`: the radius of the bounds by which points are chosen, in posterior sds; "norm" takes it from B.
    * `safety`: B is this times the norm of the interpolant, and more if held-out residuals require it.
    * `initial`: the number of runs before the first one that is chosen from the data; by default 2(d + 1).
    """

    family: Literal["auto", "matern", "se"] = "auto"
    nu: float = 2.5
    width: float | Literal["norm"] = 1.0
    safety: float = 1.05
    initial: int | None = None

    def __post_init__(self) -> None:
        if self.family not in ("auto", "matern", "se"):
            raise ArgumentError(f"family must be 'auto', 'matern' or 'se'; got {self.family!r}.")
        if self.family != "se" and not as_positive(self.nu, "nu") > 1:
            raise ArgumentError(
                f"nu must be above 1, so that a Lipschitz constant follows from the norm; got {self.nu!r}. For rougher "
                f"stages give kernel=, norm_bound= and lipschitz=."
            )
        if self.width != "norm":
            as_positive(self.width, "width")
        if not math.isfinite(self.safety) or not self.safety > 1:
            raise ArgumentError(f"safety must be a number above 1; got {self.safety!r}.")
        for name, value in (("nu", self.nu), ("width", self.width), ("safety", self.safety), ("initial", self.initial)):
            if isinstance(value, int | float) and value > _LARGEST:
                raise ArgumentError(f"{name} must be at most {_LARGEST:g}; got {value!r:.50}.")
        whole = isinstance(self.initial, int) and not isinstance(self.initial, bool)
        if self.initial is not None and not (whole and self.initial >= 1):
            raise ArgumentError(f"initial must be a whole number of at least 1, or None; got {self.initial!r}.")

    @property
    def smoothness(self) -> tuple[float, ...]:
        """The values of ν to choose from, the roughest first; `SE` is the squared exponential kernel."""
        if self.family == "auto":
            return (*sorted({_ROUGH, self.nu}), SE)
        return (SE,) if self.family == "se" else (self.nu,)

    def shapes(self, dimension: int, codes: tuple[int, ...] = ()) -> tuple[Shape, ...]:
        """The kernels to choose from for this many inputs, the roughest first, additive ones last.

        There are no additive ones if some inputs are codes.
        """
        general = tuple(Shape(nu, codes=codes) for nu in self.smoothness)
        if codes or self.family != "auto" or not 1 < dimension <= Additive.MOST_INPUTS:
            return general
        return general + tuple(Shape(nu, additive=True) for nu in self.smoothness)

    def first(self, network: Network) -> int:
        """The number of runs before estimates are used."""
        return self.initial or 2 * (network.domain.dimension + 1)
