"""The family of sampled chains, and the rule that picks the paper's g1 and g2 from it.

The paper shows two chains and gives no seed: g1 "with several potential maximizers", g2 with an "obvious" one. Ours are
picked from the seeds 0, 1, … by their values at the 2500 candidates:

* the *top* is every candidate within 10 % of the range from the maximum; `share` is its share of the candidates, and
  `near` the number of separate regions it falls into (cells that touch, also at a corner, belong together);
* `lead` is how far the best local maximum (a cell not below its eight neighbours) outside the maximiser's own region
  lies below the maximum, as a part of the range; 1 if there is none.

g2 is the chain with the largest lead: no other hill comes close. g1 is, among the other chains with at least two
regions, the one whose top has the smallest share. Ties go to the lowest seed.

Regions are counted, and not cells that are local maxima, because a stage that peaks inside its range makes whole
contours of the stage before it maximal: a ridge has dozens of such cells on a grid. And g1's top must be small, because
in most chains it covers a tenth of the domain or more, which any algorithm hits by chance.
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
    """What the rule looks at, of one chain."""

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
    """The seeds of g1 and g2."""
    if len(profiles) < 2:
        raise ArgumentError(f"g1 and g2 are picked from a family of at least 2 chains; got {len(profiles)}.")
    g2 = min(profiles, key=lambda p: (-p.lead, p.seed))
    others = [p for p in profiles if p is not g2]
    g1 = min(others, key=lambda p: (p.near < 2, p.share, p.seed))
    return g1.seed, g2.seed
