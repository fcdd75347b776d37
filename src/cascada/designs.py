"""Space-filling designs: points chosen in advance that leave no large hole in the box of controls.

Their quality is the fill distance δ_T, the largest distance from a point of the domain to the nearest of T points. Both
designs have the best possible order δ_T = O(T^{−1/d}). If T is a d-th power, the points are the cell centres of a
uniform grid. Otherwise they are Sobol points, of which the first 2^m form a (t, m, d)-net: each of 2^{m−t} equal dyadic
cells contains some of them.
"""

import numpy as np

from cascada.arrays import Array, as_whole_number
from cascada.space import Domain, Grid

# Number of rows whose distances to a design are computed at once, which limits the memory.
_BLOCK = 1024
# A box of discrete controls with at most this many points per run is listed, and the design is chosen from the list.
_MANY_TIMES = 16
_MOST = 1_000_000  # points of a design over a box


def design(domain: Domain, runs: int, *, grid: bool = True) -> Array:
    """`runs` different points (T, d) as coordinates; fewer only if a box of discrete controls has no more points.

    With `grid=False` they are always Sobol points. Projected onto some of the controls, Sobol points stay different,
    whereas those of a grid coincide.

    >>> from cascada.space import Real
    >>> design(Domain({"x": Real(0, 1), "y": Real(0, 4)}), 4).tolist()
    [[0.25, 1.0], [0.25, 3.0], [0.75, 1.0], [0.75, 3.0]]
    """
    runs = as_whole_number(runs, "runs")
    levels = [c.count for c in domain.controls.values() if c.count is not None]
    if len(levels) == domain.dimension and np.prod(levels, dtype=float) <= _MANY_TIMES * runs:
        every = Grid(dict(zip(domain.names, levels, strict=True))).points(domain)
        return design_of_candidates(domain.encode(every), domain, runs, grid=grid)
    as_whole_number(runs, "runs of a design", at_most=_MOST)  # more would take minutes, and gigabytes
    side = _side(domain, runs) if grid else None
    if side is not None and all(side <= count for count in levels):
        return _in_box(domain, _cell_centres(domain.dimension, side))
    return _distinct_sobol(domain, runs)


def design_of_candidates(candidates: Array, domain: Domain, runs: int, *, grid: bool = True) -> Array:
    """Candidates (T, d) close to a design of the box: for each point of the design, the nearest unused candidate.

    Distances are measured in sides of the box. If there are at most `runs` different candidates, all are returned. The
    fill distance is close to that of the design if the candidates are spread over the box; otherwise it is unknown.
    """
    runs = as_whole_number(runs, "runs")
    _, first = np.unique(candidates, axis=0, return_index=True)
    distinct = candidates[np.sort(first)]
    if len(distinct) <= runs:
        return distinct
    lower, width = _span(domain)
    positions = (distinct - lower) / np.where(width > 0, width, 1.0)
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

    The points represent the domain: a dense sample of it, or all its candidates. If both arrays hold the inputs of a
    later stage, the result is the fill distance of that stage.
    """
    largest = 0.0
    for i in range(0, len(points), _BLOCK):
        apart = np.linalg.norm(points[i : i + _BLOCK, None] - design, axis=2)
        largest = max(largest, float(apart.min(axis=1).max()))  # eq:delta_i_T
    return largest


def _side(domain: Domain, runs: int) -> int | None:
    """The d-th root of `runs` if it is a whole number, else None."""
    side = round(runs ** (1 / domain.dimension))
    return side if side**domain.dimension == runs else None


def _cell_centres(dimension: int, side: int) -> Array:
    """The centres (side^d, d) of equal cells of the unit cube; the last coordinate varies fastest.

    Their fill distance is sqrt(d)/(2·side), from a corner of a cell to its centre; in a box sqrt(Σ (width/2side)²).
    """
    axis = (np.arange(side) + 0.5) / side
    return np.stack(np.meshgrid(*[axis] * dimension, indexing="ij"), axis=-1).reshape(-1, dimension)


def _sobol(dimension: int, count: int) -> Array:
    """The first `count` Sobol points (count, d) of the unit cube, without scrambling.

    Sobol points lie at the lower corners of cells of side 2^{−m}; each is moved to the centre of its cell.
    """
    from scipy.stats import qmc  # slow to import

    m = max(0, (count - 1).bit_length())  # SciPy warns if the number of points is not a power of two
    points = qmc.Sobol(dimension, scramble=False).random_base2(m)
    return points[:count] + 0.5**m / 2


def _distinct_sobol(domain: Domain, runs: int) -> Array:
    """Sobol points with rounded discrete controls, without duplicates."""
    count = runs
    while True:  # Terminates: a real control makes all points differ, and a box without one has far more than `runs`.
        points = _in_box(domain, _sobol(domain.dimension, count))
        _, first = np.unique(points, axis=0, return_index=True)
        if len(first) >= runs:
            return points[np.sort(first)[:runs]]
        count *= 2


def _in_box(domain: Domain, positions: Array) -> Array:
    """Map positions in the unit cube to coordinates of the box, rounded for discrete controls."""
    lower, width = _span(domain)
    return domain.encode(domain.decode(lower + positions * width))


def _span(domain: Domain) -> tuple[Array, Array]:
    """Lower ends and widths of the box, (d,); each value of a discrete control stands for itself ± half a step."""
    lower, width = domain.lower.copy(), domain.upper - domain.lower
    for j, control in enumerate(domain.controls.values()):
        if not control.discrete or control.fixed:
            continue
        if control.log:
            lower[j] = np.log(control.low - 0.5)
            width[j] = np.log(control.high + 0.5) - lower[j]
        else:
            step = control.step or 1.0
            lower[j] -= 0.5 * step
            width[j] += step
    return lower, width
