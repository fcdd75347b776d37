"""The family of sampled chains, and the rule that selects the paper's g1 and g2 from it.

The paper shows two chains and gives no seed: g1 "with several potential maximizers", g2 with an "obvious" one. Ours are
selected from the seeds 0, 1, … by their values at the 2500 candidates:

* the *top* consists of all candidates within 10 % of the range from the maximum; `share` is its share of the
  candidates, and `near` the number of its connected regions (cells that touch at a side or corner are connected);
* `lead` is the distance from the maximum to the best local maximum (a cell not below its eight neighbours) outside
  the region of the maximiser, as a fraction of the range; 1 if there is none.

g2 is the chain with the largest lead. g1 is, among the other chains with at least two regions, the one whose top has
the smallest share. Ties go to the lowest seed.

Regions are counted instead of local maxima, because a stage with a maximum inside its range makes whole contours of the
previous stage maximal: a ridge has dozens of such cells on a grid. The top of g1 must be small, because in most chains
it covers a tenth of the domain or more, which any algorithm finds by chance.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.ndimage import label, maximum_filter

from cascada.arrays import Array
from cascada.errors import ArgumentError

TOP = 0.1  # of the range
_TOUCHING = np.ones((3, 3))


@dataclass(frozen=True)
class Profile:
    """The properties of a chain used by the rule."""

    seed: int
    maximum: float
    minimum: float
    near: int
    share: float
    lead: float


def profile(seed: int, values: Array) -> Profile:
    """The profile of a chain from its values on the grid, (n, n)."""
    maximum, minimum = float(values.max()), float(values.min())
    span = maximum - minimum
    top = values >= maximum - TOP * span
    regions, near = label(top, structure=_TOUCHING)
    own = regions == regions.flat[int(values.argmax())]
    hills = (values == maximum_filter(values, size=3, mode="nearest")) & ~own
    lead = (maximum - float(values[hills].max())) / span if hills.any() else 1.0
    return Profile(seed, maximum, minimum, int(near), float(top.mean()), lead)


def pick(profiles: Sequence[Profile]) -> tuple[int, int]:
    """The seeds of g1 and g2 by the rule above."""
    if len(profiles) < 2:
        raise ArgumentError(f"g1 and g2 need a family of at least 2 chains; got {len(profiles)}.")
    g2 = min(profiles, key=lambda p: (-p.lead, p.seed))
    others = [p for p in profiles if p is not g2]
    g1 = min(others, key=lambda p: (p.near < 2, p.share, p.seed))
    return g1.seed, g2.seed
