"""The figure `fig:gs` of the paper: the stages of g1 and g2 and the two chains."""

from typing import TYPE_CHECKING

import numpy as np

from cascada.arrays import Array
from cascada.problems import Problem
from cascada.problems.sampled_chain import BOX, PAPER_GRID, sampled_chain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LINE = "#0072B2"
_NEAR = 0.05  # the contour around near-optimal points, as a share of the range


def stage_figure(g1: int, g2: int) -> "Figure":
    """Both chains by their seeds: first stages and composites as maps, later stages as curves."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 9.2), layout="constrained")
    parts = figure.subfigures(
        2, 1, squeeze=False, height_ratios=[1.35, 1.0]
    )  # otherwise the colour bars misalign the rows
    stages = parts[0, 0].subplots(2, 3)
    composites = parts[1, 0].subplots(1, 2)
    for row, (letter, seed) in enumerate((("f", g1), ("h", g2))):
        problem = sampled_chain(seed)
        points = PAPER_GRID.points(problem.network.domain)
        values = problem.values(points)  # columns x, y, then one per stage
        _map(stages[row, 0], points, values[:, 2])
        stages[row, 0].set_title(f"${letter}_1$")
        for i in (1, 2):
            _curve(stages[row, i], problem, i, letter, values[:, 1 + i])
        name = f"$g_{row + 1} = {letter}_3 \\circ {letter}_2 \\circ {letter}_1$ (seed {seed})"
        _composite(composites[row], points, values[:, 4], name)
    figure.suptitle("The two sampled chains, stage by stage")
    return figure


def _map(axes: "Axes", points: Array, values: Array) -> None:
    """Values on the 50×50 grid; a cell is centred at its candidate."""
    table, half = _square(values), BOX / (_side(values) - 1)
    edges = (-BOX - half, BOX + half, -BOX - half, BOX + half)
    image = axes.imshow(table, origin="lower", extent=edges, cmap="viridis", interpolation="nearest")
    axes.set(xlabel="$x$", ylabel="$y$", xticks=(-5, 0, 5), yticks=(-5, 0, 5))
    assert axes.figure is not None
    axes.figure.colorbar(image, ax=axes, shrink=0.85)
    assert np.ptp(points[: _side(values), 0]) == 0, "the first control varies slowest"


def _composite(axes: "Axes", points: Array, values: Array, name: str) -> None:
    """A chain with its maximiser and the contour of points within 5 % of the range from the maximum."""
    _map(axes, points, values)
    best = int(values.argmax())
    line = np.linspace(-BOX, BOX, _side(values))
    level = float(values.max() - _NEAR * np.ptp(values))
    axes.contour(line, line, _square(values), levels=[level], colors="black", linewidths=0.9)
    axes.plot(*points[best], marker="*", markersize=15, color="white", markeredgecolor="black", linestyle="none")
    axes.set_title(f"{name}\nstar: maximum {values[best]:.3f}; line: {_NEAR:.0%} of the range below it")


def _curve(axes: "Axes", problem: Problem, i: int, letter: str, inputs: Array) -> None:
    """A later stage over [−5, 5] and the range of the previous stage."""
    node = problem.network.nodes[i]
    function = node.stage.function
    assert function is not None, "sampled chains have all their functions"
    z = np.linspace(-BOX, BOX, 401)
    axes.axvspan(float(inputs.min()), float(inputs.max()), color="0.91", linewidth=0)
    axes.plot(z, [float(np.ravel(function(**{node.input_names[0]: value}))[0]) for value in z], color=_LINE)
    axes.set(title=f"${letter}_{i + 1}$  (grey: the values of ${letter}_{i}$)", xlabel="$z$", xlim=(-BOX, BOX))
    axes.set_xticks((-5, 0, 5))


def _side(values: Array) -> int:
    return round(len(values) ** 0.5)


def _square(values: Array) -> Array:
    """Values as an image: rows are y, columns are x."""
    return values.reshape(_side(values), -1).T
