"""Panels of stages with several inputs, logarithmic axes, legends, and the rows of the list of studies."""

import math
from typing import Any

import numpy as np
import pytest

import cascada as cd
from cascada.report import plot_parallel_coordinate, plot_stage
from cascada.report.contributions import _ticks
from cascada.report.theme import scale_of_axis
from cascada.store.database import Store
from tests.missing import need_module


@pytest.fixture(scope="module", autouse=True)
def _plotly():
    need_module("plotly", "report")


@pytest.fixture(scope="module")
def study():
    controls: dict[str, Any] = {"heat": cd.Real(40, 95), "time": cd.Real(0.3, 30, log=True), "acid": cd.Integer(1, 9)}
    kernel = cd.SquaredExponential((40, 1.0, 6))
    leach = cd.Stage("leach", controls, kernel=kernel, norm_bound=120, offset=50, limits={"leach": (40, None)})
    found = cd.Study(cd.chain(leach), algorithm="random_search")
    found.optimise([lambda heat, time, acid: 50 + heat / 20 + math.log(time) + acid], budget=6, progress=False)
    return found


def test_a_stage_with_three_inputs_has_a_panel_for_each_with_its_runs(study):
    shown = plot_stage(study, "leach")
    for i, (name, log) in enumerate((("heat", False), ("time", True), ("acid", False))):
        number = "" if i == 0 else str(i + 1)
        axis = shown.layout[f"xaxis{number}"]
        assert axis.title.text == name
        assert axis.type == ("log" if log else "linear")
        traces = [trace for trace in shown.data if trace.xaxis == f"x{number}"]
        (dots,) = [trace for trace in traces if trace.mode == "markers"]
        assert list(dots.x) == pytest.approx([trial.controls[name] for trial in study.trials])
        assert list(dots.y) == pytest.approx([trial.value for trial in study.trials])
        (mean,) = [trace for trace in traces if trace.name == "mean"]
        assert min(mean.x) == pytest.approx(study.network.domain.controls[name].low)
        assert max(mean.x) == pytest.approx(study.network.domain.controls[name].high)
        assert any(trace.fill == "tonexty" for trace in traces)
    limits = [shape for shape in shown.layout.shapes if shape.name == "limit"]
    assert [shape.yref for shape in limits] == ["y", "y2", "y3"]


def test_panels_do_not_overlap(study):
    layout = plot_stage(study, "leach").layout
    boxes = [(*layout[f"xaxis{number}"].domain, *layout[f"yaxis{number}"].domain) for number in ("", "2", "3")]
    for i, (left, right, bottom, top) in enumerate(boxes):
        assert 0 <= left < right <= 1
        assert -1e-9 <= bottom < top <= 1
        for x0, x1, y0, y1 in boxes[:i]:
            assert right <= x0 or x1 <= left or top <= y0 or y1 <= bottom


def test_a_logarithmic_axis_is_labelled_with_whole_numbers_and_has_minor_ticks():
    few = scale_of_axis(0.3, 30, log=True)
    assert few["ticktext"][:4] == ["0.1", "0.2", "0.5", "1"]
    many = scale_of_axis(1e-6, 1e3, log=True)
    assert many["ticktext"] == [f"{10.0**power:g}" for power in range(-6, 4)]
    for axis in (few, many):
        assert set(np.round(axis["tickvals"], 12)) <= set(np.round(axis["minor"]["tickvals"], 12))
    assert scale_of_axis(0, 5, log=False) == {"type": "linear"}


@pytest.mark.parametrize("largest", [0.0, 3.2e-9, 0.2, 1.0, 59.7, 99.9, 5e7])
def test_ticks_of_contributions_are_a_few_round_numbers(largest):
    ticks = _ticks(largest)
    assert ticks[0] == 0
    assert len(ticks) <= 6
    assert ticks[-1] <= largest or largest == 0
    assert largest == 0 or ticks[-1] >= largest / 2


@pytest.mark.parametrize(
    "values", [[80.0] * 9, [80.0, 80.0, 80.0, 80.0, 80.0, 90.0], [80 + 1e-6 * i for i in range(9)]]
)
def test_no_two_entries_of_a_legend_are_the_same(values):
    stage = cd.Stage("f", controls={"x": cd.Real(0, 1)})
    found = cd.Study(cd.chain(stage))
    for i, value in enumerate(values):
        found.add_trial({"x": i / 10}, {"f": value})
    names = [trace.name for trace in plot_parallel_coordinate(found).data]
    assert len(set(names)) == len(names)
    assert not any(name == f"{part} to {part}" for name in names for part in name.split(" to ")[:1])


def test_the_list_of_studies_has_runs_best_gap_and_time(tmp_path):
    need_module("starlette", "report")
    from cascada.report.live.index import Index

    url = f"sqlite:///{tmp_path / 'lab.db'}"
    kernel = cd.SquaredExponential(1.0)
    proven = cd.chain(cd.Stage("f", controls={"x": cd.Real(0, 1)}, kernel=kernel, norm_bound=2.0))
    first = cd.Study.open(url, "first", proven)
    first.add_trial({"x": 0.25}, {"f": 0.125})
    first.enqueue_trial({"x": 0.5})
    cd.Study.open(url, "second", cd.chain(cd.Stage("f", controls={"x": cd.Real(0, 1)}))).close()
    store, index = Store(url, read_only=True), Index()
    heads = store.heads()
    index.read(store, heads)
    rows = {row["name"]: row for row in index.rows(heads, {})}
    assert list(rows) == list(heads)
    assert {key: rows["first"][key] for key in ("runs", "best", "gap")} == {
        "runs": "1 of 2",
        "best": "0.125",
        "gap": "–",
    }
    assert rows["second"]["gap"] == "–"
    assert rows["second"]["best"] == "–"
    assert rows["first"]["last"] == first.events[-1].at
    first.add_trial({"x": 0.75}, {"f": 0.5})
    heads = store.heads()
    index.read(store, heads)
    assert next(row for row in index.rows(heads, {}) if row["name"] == "first")["best"] == "0.5"
    first.close()
    store.close()
