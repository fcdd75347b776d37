"""Designs: points chosen beforehand that leave no large hole in the box of controls.

The measure is the fill distance δ_T, the largest distance from a point of the domain to the nearest of T points. Both
designs have δ_T = O(T^{−1/d}), which no design beats: cell centres of a uniform grid where T is a d-th power, and Sobol
points otherwise, of which the first 2^m are a (t, m, d)-net: each of 2^{m−t} equal dyadic cells has some of them.
"""

import numpy as np

from cascada.arrays import Array
from cascada.errors import ArgumentError
from cascada.space import Domain, Grid

# Rows whose distances to a design are computed together: enough for NumPy, and little memory.
_BLOCK = 1024
# A box of whole numbers alone is listed, and the design chosen from the list, unless it is this many times larger.
_MANY_TIMES = 16


def design(domain: Domain, runs: int, *, grid: bool = True) -> Array:
    """`runs` points (T, d), coordinates, all different; fewer only where a box of whole numbers has no more.

    Without `grid`, Sobol points whatever the number: seen from fewer controls, they are T different points as well,
    where those of a grid coincide.

    >>> from cascada.space import Real
    >>> design(Domain({"x": Real(0, 1), "y": Real(0, 4)}), 4).tolist()
    [[0.25, 1.0], [0.25, 3.0], [0.75, 1.0], [0.75, 3.0]]
    """
    _check(runs)
    levels = [int(c.high) - int(c.low) + 1 for c in domain.controls.values() if c.integer]
    if len(levels) == domain.dimension and np.prod(levels, dtype=float) <= _MANY_TIMES * runs:
        every = Grid(dict(zip(domain.names, levels, strict=True))).points(domain)
        return design_of_candidates(domain.encode(every), domain, runs, grid=grid)
    side = _side(domain, runs) if grid else None
    if side is not None and all(side <= count for count in levels):
        return _in_box(domain, _cell_centres(domain.dimension, side))
    return _distinct_sobol(domain, runs)


def design_of_candidates(candidates: Array, domain: Domain, runs: int, *, grid: bool = True) -> Array:
    """The candidates (T, d) next to a design of the box: for each of its points the nearest that is not used yet.

    Distances are in sides of the box. All candidates, once each, when there are no more than `runs`. The fill distance
    is about that of the design where the candidates are spread over the box; where they are not, nothing is promised.
    """
    _check(runs)
    _, first = np.unique(candidates, axis=0, return_index=True)
    distinct = candidates[np.sort(first)]
    if len(distinct) <= runs:
        return distinct
    lower, width = _span(domain)
    positions = (distinct - lower) / width
    side = _side(domain, runs) if grid else None
    wanted = _sobol(domain.dimension, runs) if side is None else _cell_centres(domain.dimension, side)
    free = np.ones(len(distinct), dtype=bool)
    chosen = []
    for point in wanted:
        apart = np.where(free, ((positions - point) ** 2).sum(axis=1), np.inf)
        chosen.append(int(apart.argmin()))
        free[chosen[-1]] = False
    return distinct[chosen]


def fill_distance(points: Array, design: Array) -> float:
    """δ_T = max over `points` (n, d) of the distance to the nearest row of `design` (T, d).

    The points stand for the domain: a dense sample of it, or all its candidates. With the inputs of a later stage in
    place of both it is that stage's fill distance.
    """
    largest = 0.0
    for i in range(0, len(points), _BLOCK):
        apart = np.linalg.norm(points[i : i + _BLOCK, None] - design, axis=2)
        largest = max(largest, float(apart.min(axis=1).max()))  # eq:delta_i_T
    return largest


def _side(domain: Domain, runs: int) -> int | None:
    """The d-th root of `runs` if it is a whole number."""
    side = round(runs ** (1 / domain.dimension))
    return side if side**domain.dimension == runs else None


def _cell_centres(dimension: int, side: int) -> Array:
    """The centres (side^d, d) of equal cells of the unit cube, the last coordinate fastest.

    Their fill distance is sqrt(d)/(2·side), from a corner of a cell to its centre; in a box sqrt(Σ (width/2side)²).
    """
    axis = (np.arange(side) + 0.5) / side
    return np.stack(np.meshgrid(*[axis] * dimension, indexing="ij"), axis=-1).reshape(-1, dimension)


def _sobol(dimension: int, count: int) -> Array:
    """The first `count` Sobol points (count, d) of the unit cube, not scrambled.

    Each is moved to the middle of its cell of side 2^{−m}: as they stand they lie at the lower corners.
    """
    from scipy.stats import qmc  # slow to import

    m = max(0, (count - 1).bit_length())  # a whole power of two is drawn: SciPy warns of anything else
    points = qmc.Sobol(dimension, scramble=False).random_base2(m)
    return points[:count] + 0.5**m / 2


def _distinct_sobol(domain: Domain, runs: int) -> Array:
    """Sobol points whose whole numbers are rounded, those left out that are there already."""
    count = runs
    while True:  # ends: with a real control no two are the same, and a box without one has many times more than `runs`
        points = _in_box(domain, _sobol(domain.dimension, count))
        _, first = np.unique(points, axis=0, return_index=True)
        if len(first) >= runs:
            return points[np.sort(first)[:runs]]
        count *= 2


def _in_box(domain: Domain, positions: Array) -> Array:
    """Positions of the unit cube as coordinates that a run can have: whole where they must be."""
    lower, width = _span(domain)
    return domain.encode(domain.decode(lower + positions * width))


def _span(domain: Domain) -> tuple[Array, Array]:
    """Where positions start and how wide the box is, (d,): each whole number stands for itself ± 1/2."""
    lower, width = domain.lower.copy(), domain.upper - domain.lower
    lower[domain.whole] -= 0.5
    width[domain.whole] += 1.0
    return lower, width


def _check(runs: int) -> None:
    if isinstance(runs, bool) or not isinstance(runs, int | np.integer) or runs < 1:
        raise ArgumentError(f"a design needs a whole number of runs, at least 1; got {runs!r}.")
