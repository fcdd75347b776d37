"""Choices in reports: figures, captions, tables and pages of studies with unordered controls."""

import math
from typing import Any

import pytest

from cascada import ArgumentError, Choice, Real, SquaredExponential, Stage, Study, chain
from cascada.report import gap_contributions, plot_acquisition, plot_parallel_coordinate, plot_stage, report_html
from cascada.report.history import bound_history
from cascada.report.payload import figures
from tests.missing import need_module

need_module("plotly", "report")

WOODS = ("oak", "pine", "elm")
HEIGHT = {"oak": 1.0, "pine": 0.6, "elm": -0.5}


def study(alike: float | None = None, **given: Any) -> Study:
    """A study with runs of every value; the best one has oak."""
    cut = Stage("cut", {"wood": Choice(WOODS, alike=alike), "x": Real(-1, 1)}, **given)
    found = Study(chain(cut, Stage("press", {"y": Real(-1, 1)}, **given)))
    for i in range(9):
        wood, x, y = WOODS[i % 3], 0.2 * i - 0.8, 0.1 * (i - 4)
        value = HEIGHT[wood] * math.exp(-2 * (x - 0.3) ** 2)
        found.add_trial({"wood": wood, "x": x, "y": y}, {"cut": value, "press": value * math.exp(-(y**2))})
    return found


GIVEN: dict[str, Any] = {"kernel": SquaredExponential(0.5), "norm_bound": 3.0}
STUDIES = {
    "own norms": lambda: study(**GIVEN),
    "alike": lambda: study(0.5, **GIVEN),
    "estimated": study,
}


@pytest.mark.parametrize("name", STUDIES)
def test_a_stage_is_drawn_for_the_values_of_the_best_run(name: str) -> None:
    found = STUDIES[name]()
    shown = plot_stage(found, "cut")
    best = found.best_trial
    assert best is not None
    wood = best.controls["wood"]
    assert f"wood = {wood!r}" in shown.layout.title.text
    measured = next(trace for trace in shown.data if trace.name == "measured")
    assert sorted(measured.x) == pytest.approx(
        sorted(trial.controls["x"] for trial in found.trials if trial.controls["wood"] == wood)
    )
    captions = [one["alt"] for one in figures(found, bound_history(found), gap_contributions(found))]
    assert any(f"cut for wood = {wood!r}" in caption for caption in captions)


def test_the_parallel_figure_names_the_values_at_their_heights() -> None:
    found = study(**GIVEN)
    shown = plot_parallel_coordinate(found)
    labels = {note.text: note.y for note in shown.layout.annotations if note.x == 0}
    assert labels == {"oak": 0.0, "pine": 0.5, "elm": 1.0}
    assert {text for trace in shown.data for text in trace.text if text in WOODS} == set(WOODS)


def test_the_map_is_drawn_over_numbers_at_the_values_of_the_best_run() -> None:
    found = study(**GIVEN)
    shown = plot_acquisition(found)
    assert (shown.layout.xaxis.title.text, shown.layout.yaxis.title.text) == ("x", "y")
    with pytest.raises(ArgumentError, match="drawn over numbers, and 'wood' is a choice; choose one or two of"):
        plot_acquisition(found, ["wood", "x"])


@pytest.mark.parametrize("name", STUDIES)
def test_a_report_shows_the_values(name: str) -> None:
    page = report_html(STUDIES[name](), "press shop")
    assert all(f'"{wood}"' in page for wood in WOODS)
