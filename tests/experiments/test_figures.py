"""Tests of the figures: what they show, and complete legends. Their files are tested with `cascada reproduce`."""

import sys
from collections.abc import Iterator
from math import exp
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.missing import need_module

need_module("matplotlib", "paper")  # before anything that imports it
# ruff: noqa: E402
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from cascada.errors import ArgumentError
from cascada.experiments import figures
from cascada.experiments.figures import STYLES, draw
from cascada.experiments.stage_figure import stage_figure
from cascada.experiments.statistics import BASELINES, COMPARED, OURS, SWEEP, read
from cascada.problems.sampled_chain import sampled_chain
from tests.experiments.synthetic import LEVELS, spread, synthetic


def decaying(seed: int, label: str, trial: int) -> list[float]:
    """Regrets that decrease to 0 at different rates."""
    pace = 5.0 + 3.0 * (len(label) % 4) + trial + seed
    return [spread(seed) * (exp(-t / pace) if t < 50 else 0.0) for t in range(60)]


def extreme(seed: int, label: str, trial: int) -> list[float]:
    """GPN-UCB at 0 throughout, EI far above everything, others over twelve decades."""
    if label == OURS:
        return [0.0] * 60
    if label == "EI":
        return [1e6 * spread(seed)] * 60
    return (10.0 ** np.random.default_rng([seed, len(label), trial]).uniform(-12, 0, 60)).tolist()


def legend_texts(figure: Figure) -> list[str]:
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def test_every_algorithm_is_in_the_legends() -> None:
    sample = read(synthetic(regret=decaying))
    assert legend_texts(figures._cumulative(sample)) == list(COMPARED)
    assert legend_texts(figures._simple(sample)) == list(STYLES)
    assert legend_texts(figures._sweep(sample)) == [*SWEEP, "cUCB"]


def test_colours_and_markers_distinguish_algorithms() -> None:
    colours, markers = zip(*STYLES.values(), strict=True)
    assert set(STYLES) == {*LEVELS}
    assert len(set(colours)) == len(set(markers)) == len(STYLES)


def lines(axes: Axes) -> Iterator[tuple[str, list[float]]]:
    for line in axes.get_lines():
        yield str(line.get_label()), np.asarray(line.get_ydata()).tolist()


def test_curves_are_the_means_of_the_runs() -> None:
    results = synthetic(regret=decaying, trials=2)
    sample = read(results)
    for figure, label in ((figures._cumulative(sample), "cEI"), (figures._sweep(sample), "OI b=100")):
        for chain, axes in enumerate(figure.axes):
            wanted = []
            for T in range(1, 61):
                trials = [decaying(chain, label, trial)[:T] for trial in (0, 1)]
                wanted.append(sum(sum(t) if label == "cEI" else min(t) for t in trials) / 2)
            assert dict(lines(axes))[label] == pytest.approx(wanted)


def test_the_family_shows_every_chain_and_baseline() -> None:
    figure = figures._family(read(synthetic({"cEI": 0.04}, family=5)))
    (axes,) = figure.axes
    assert [text.get_text() for text in axes.get_yticklabels()] == list(reversed(BASELINES))
    single = [np.asarray(line.get_xdata()).tolist() for line in axes.get_lines()]
    assert single.count([2.0]) + single.count([pytest.approx(2.0)]) >= 5  # cEI: 0.04 over 0.02
    texts = [text.get_text() for text in axes.texts]
    assert "2.00  [2.00, 2.00]" in texts
    assert texts.count("5.00  [5.00, 5.00]") == 4
    assert "5 sampled chains" in figure.get_suptitle()


def test_the_stage_figure_marks_the_maximiser() -> None:
    figure = stage_figure(3, 4)
    FigureCanvasAgg(figure).draw()
    titled = [axes for axes in figure.axes if "star" in axes.get_title()]
    assert len(titled) == 2
    for seed, axes in zip((3, 4), titled, strict=True):
        (star,) = axes.get_lines()
        x, y = float(np.ravel(star.get_xdata())[0]), float(np.ravel(star.get_ydata())[0])
        (image,) = axes.get_images()
        table = np.asarray(image.get_array())
        assert sampled_chain(seed).objective(np.array([[x, y]]))[0] == pytest.approx(table.max())
        # The image shows the cell of (x, y) at the position (x, y).
        line = np.linspace(-5, 5, 50)
        assert table[np.abs(line - y).argmin(), np.abs(line - x).argmin()] == table.max()
        assert f"seed {seed}" in axes.get_title()


@pytest.mark.parametrize(
    "results",
    [
        synthetic(dict.fromkeys(LEVELS, 0.0), horizon=4, trials=1, family=1),
        synthetic(regret=extreme, trials=2, family=3),
    ],
    ids=["all zero, one of each", "extreme"],
)
def test_degenerate_results_are_drawn(results: dict[str, Any]) -> None:
    """Warnings are errors here: no axis is singular and no logarithm of 0 is taken."""
    sample = read(results)
    for make in (figures._sweep, figures._cumulative, figures._simple, figures._family):
        FigureCanvasAgg(make(sample)).draw()


def test_an_axis_that_is_linear_near_0_says_so() -> None:
    for axes in figures._simple(read(synthetic(regret=decaying))).axes:
        assert "linear below" in axes.get_ylabel()
        low, high = axes.get_ylim()
        assert low < 0 < high


def test_without_matplotlib_the_error_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ArgumentError, match=r"Run: pip install 'cascada\[paper\]'"):
        draw(synthetic(), tmp_path)
