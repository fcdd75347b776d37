"""Figures of every kind of study: their content, captions and layout."""

import itertools
import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cascada.errors import ArgumentError
from cascada.kernels import SquaredExponential
from cascada.network import Network, Stage
from cascada.report import (
    gap_contributions,
    plot_acquisition,
    plot_gap_contributions,
    plot_network,
    plot_optimization_history,
    plot_parallel_coordinate,
    plot_regret,
    plot_stage,
    write_report,
)
from cascada.report.contributions import three_digits
from cascada.report.history import bound_history
from cascada.report.payload import figures
from cascada.space import Real
from cascada.study import Study
from tests.report.browser import Browser
from tests.report.cases import ODD, SE, estimated, finished, infeasible, joint, limited, odd, proven, ran, refuted

FIGURES: list[Callable[..., Any]] = [
    plot_acquisition,
    plot_gap_contributions,
    plot_network,
    plot_optimization_history,
    plot_parallel_coordinate,
]
NETWORKS = {
    "proven": proven,
    "estimated": estimated,
    "joint": joint,
    "odd": odd,
    "limited": limited,
    "none": infeasible,
}


def texts(shown: Any) -> str:
    return json.dumps(json.loads(shown.to_json()), ensure_ascii=False)


def captions(study: Study) -> dict[str, str]:
    return {one["id"]: one["alt"] for one in figures(study, bound_history(study), gap_contributions(study))}


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("plot", FIGURES, ids=lambda plot: plot.__name__)
def test_every_figure_can_be_drawn_for_every_network(plot: Callable[..., Any], network: str) -> None:
    for runs in (0, 1, 9):
        shown = plot(finished(NETWORKS[network], runs))
        assert json.loads(shown.to_json())["layout"]["title"]["text"]
        assert "<script" not in texts(shown)  # plotly interprets some HTML tags


@pytest.mark.parametrize("plot", FIGURES, ids=lambda plot: plot.__name__)
def test_every_figure_can_be_drawn_for_a_refuted_study(plot: Callable[..., Any]) -> None:
    assert json.loads(plot(refuted()).to_json())


def test_the_history_shows_runs_best_value_and_bound() -> None:
    study = finished(proven, 12)
    shown = plot_optimization_history(study)
    runs, best, bound = shown.data
    assert list(runs.x) == list(best.x) == list(bound.x) == list(range(12))  # numbered as by the command line
    assert shown.layout.xaxis.title.text == "trial"
    values = [trial.value for trial in study.trials if trial.value is not None]
    assert list(runs.y) == values
    assert list(best.y) == np.maximum.accumulate(values).tolist()
    assert list(bound.y) == sorted(bound.y, reverse=True)  # a proven bound stays valid
    assert bound.y[-1] >= best.y[-1]
    assert "proven" in bound.name
    assert bound.y[-1] - best.y[-1] == pytest.approx(study.certificate(cells=2000).gap, rel=0.2)


def test_the_history_of_a_minimisation_has_a_lower_bound() -> None:
    study = finished(joint)
    runs, best, bound = plot_optimization_history(study).data
    assert list(best.y) == np.minimum.accumulate(runs.y).tolist()
    assert bound.y[-1] <= best.y[-1]


def test_no_bound_is_shown_where_there_is_none() -> None:
    assert bound_history(finished(estimated, 3)) == []  # a gap from three runs would be a guess
    assert bound_history(Study(proven())) == []
    assert all(point.kind == "estimated" for point in bound_history(finished(estimated)))


def test_a_history_without_a_complete_run_has_a_note() -> None:
    study = Study(proven())
    study.begin_trial({"dose": 0.5, "heat": 1.0})
    shown = plot_optimization_history(study)
    assert [note.text for note in shown.layout.annotations] == ["no complete run yet"]
    assert not shown.layout.xaxis.visible
    assert len(shown.data) == 2  # the live page adds runs to these traces
    assert "bound" not in captions(study)["history"]
    assert not plot_optimization_history(ran(proven(), 1)).layout.annotations


def test_the_history_of_a_refuted_study_has_no_proven_bound() -> None:
    study = ran(proven(), 5)
    assert bound_history(study)
    study.refute("the furnace was replaced")
    assert bound_history(study) == []
    assert "proven" not in texts(plot_optimization_history(study))


def test_the_history_has_no_bound_after_a_norm_bound_was_raised() -> None:
    study = ran(proven(), 5, on_violation="enlarge")
    study.add_trial({"dose": 0.0, "heat": 1.0}, {"mix": 5.0, "cure": 1.0})
    assert study.certificate().kind == "estimated"
    assert bound_history(study) == []


def test_the_network_shows_the_values_of_the_best_run() -> None:
    study = ran(proven(), 5)
    best = study.best_trial
    assert best is not None
    text = texts(plot_network(study))
    for value in (*best.controls.values(), best.outputs["mix"][0], best.outputs["cure"][0]):
        assert f"= {value:.5g}" in text
    assert f"trial {best.number}" in text
    assert "best run" in captions(study)["network"]
    assert "= " not in texts(plot_network(Study(proven())))
    assert "best run" not in captions(Study(proven()))["network"]


def _stage(name: str, controls: int, *parents: str) -> Stage:
    spaces = {f"{name}_control_{i}": Real(0, 1) for i in range(controls)}
    options: Any = {"parents": parents, "kernel": SE, "norm_bound": 2.0}
    return Stage(name, spaces, **options, function=lambda **inputs: 0.1234567 * sum(inputs.values()))


SHAPES = {
    "long": Network([_stage("s0", 1), *(_stage(f"s{i}", 1, f"s{i - 1}") for i in range(1, 6))]),
    "wide": Network([*(_stage(f"feed{i}", 2) for i in range(4)), _stage("mix", 1, *(f"feed{i}" for i in range(4)))]),
    "passing": Network([_stage("a", 4), _stage("b", 1, "a"), _stage("c", 0, "b"), _stage("d", 1, "a", "c")]),
    "names": Network([_stage("the_melting_of_old_iron" * 2, 1), _stage("x", 2, "the_melting_of_old_iron" * 2)]),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_arrows_lead_from_stage_to_stage_and_end_at_boxes(shape: str) -> None:
    network = SHAPES[shape]
    shown = plot_network(Study(network))
    notes = shown.layout.annotations
    tops = {(note.x, round(note.y) - 14) for note in notes if note.bgcolor}
    assert len(tops) == len(network.nodes)
    arrows = [note for note in notes if note.axref == "x"]
    assert len(arrows) == sum(len(node.parents) for node in network.nodes)
    assert all((note.x, round(note.y)) in tops and note.ay < note.y for note in arrows)


def opened(browser: Browser, report_file: Path) -> Iterator[tuple[int, Any]]:
    """Yield a report in a narrow and in a wide window, in which other figures can be drawn."""
    write_report(Study(proven()), "empty", report_file)
    for width in (360, 1200):
        with browser.page(width, 800) as page:
            page.goto(report_file.as_uri())
            yield width, page


def payload(study: Study) -> list[dict[str, Any]]:
    """Return all figures of a report."""
    found: list[dict[str, Any]] = json.loads(json.dumps(figures(study, bound_history(study), gap_contributions(study))))
    return found


def draw(page: Any, chosen: list[dict[str, Any]]) -> None:
    """Replace the figures of a report by others."""
    page.evaluate("all => { placeFigures([]); for (const plot of placeFigures(all)) drawPlot(plot); }", chosen)
    page.wait_for_function("document.querySelectorAll('figure:not(:has(.main-svg))').length === 0")
    assert page.locator("figure").count() == len(chosen)


def test_texts_in_the_network_figure_do_not_overlap(browser: Browser, report_file: Path) -> None:
    find = """() => {
      const plot = document.querySelector("[data-id=network] .main-svg").getBoundingClientRect();
      const found = [...document.querySelectorAll("[data-id=network] .annotation-text, [data-id=network] .gtitle")];
      const boxes = found.map((text) => [text.textContent, text.getBoundingClientRect()]).filter(([text]) => text);
      const trouble = boxes.filter(([, b]) => b.left < plot.left || b.right > plot.right || b.bottom > plot.bottom);
      boxes.forEach(([, a], i) => trouble.push(...boxes.slice(i + 1).filter(([, b]) =>
        a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 2 && b.top < a.bottom - 2)));
      return [boxes.length, trouble.map(([text]) => text)];
    }"""
    drawn = {shape: [one for one in payload(ran(SHAPES[shape], 1)) if one["id"] == "network"] for shape in SHAPES}
    for width, page in opened(browser, report_file):
        for shape, network in SHAPES.items():
            draw(page, drawn[shape])
            count, trouble = page.evaluate(find)
            assert (trouble, shape, width) == ([], shape, width)
            assert count > 2 * len(network.nodes)


def test_a_stage_shows_its_data_within_its_bounds() -> None:
    study = ran(proven(), 9)
    lower, upper, mean, data = plot_stage(study, "mix").data
    assert sorted(data.y) == sorted(trial.outputs["mix"][0] for trial in study.trials)
    assert all(low <= m <= high for low, m, high in zip(lower.y, mean.y, upper.y, strict=True))
    truth = [1.5 * math.exp(-0.5 * (x - 0.4) ** 2) for x in mean.x]
    assert all(low <= t <= high for low, t, high in zip(lower.y, truth, upper.y, strict=True))


def test_a_stage_of_two_inputs_is_a_map_in_user_units() -> None:
    study = ran(proven(), 9)
    surface, data = plot_stage(study, "cure", at={"dose": 0.5, "heat": 1.0}).data
    assert (min(surface.y), max(surface.y)) == (pytest.approx(0.1), pytest.approx(9.0))
    assert np.allclose(np.sort(data.y), np.sort([trial.controls["heat"] for trial in study.trials]))


def test_a_stage_of_more_inputs_has_one_panel_for_each() -> None:
    study = ran(estimated(), 9)
    shown = plot_stage(study, "cure")
    means = [trace for trace in shown.data if trace.name == "mean"]
    assert [trace.xaxis for trace in means] == ["x", "x2", "x3"]
    titles = [shown.layout[axis].title.text for axis in ("xaxis", "xaxis2", "xaxis3")]
    assert titles == ["u", "v", "heat"]
    assert len([trace for trace in shown.data if trace.fill]) == 3


def test_captions_of_stages_describe_what_is_drawn() -> None:
    found = captions(finished(proven))
    assert "bounds (band) and measured values (dots); green" in found["stage-0"]
    assert "bounds" not in found["stage-1"]  # a map has none
    more = captions(finished(estimated))["stage-2"]
    assert "the others as in the best run" in more
    assert "Dots are measured values, whatever the other inputs were" in more


def test_the_acquisition_is_above_the_mean() -> None:
    study = ran(proven(), 4)
    mean, upper = plot_acquisition(study, ["dose"]).data
    assert all(m <= u for m, u in zip(mean.y, upper.y, strict=True))
    surface, bound = plot_acquisition(study).data[0], study.certificate().bound
    assert bound is not None
    assert np.asarray(surface.z).max() <= bound + 1e-9  # no setting gives more


def test_a_map_marks_the_best_run() -> None:
    study = ran(proven(), 4)
    _, runs, best = plot_acquisition(study).data
    found = study.best_trial
    assert found is not None
    assert len(runs.x) == 4
    assert runs.text[1].startswith("trial 1: ")
    assert (best.name, *best.x, *best.y) == ("best run", found.controls["dose"], found.controls["heat"])


def test_a_map_of_a_constant_bound_is_replaced_by_a_note() -> None:
    controls = {"x": Real(0, 1), "y": Real(0.1, 10, log=True), "z": Real(0, 1)}
    kernel = SquaredExponential(0.01)
    rough = Stage("s", controls, kernel=kernel, norm_bound=140.0, function=lambda x, y, z: x * y * z)
    study = ran(Network([rough]), 3)
    shown = plot_acquisition(study)
    assert "about 140 wherever this map looks" in texts(shown)
    assert [trace.type for trace in shown.data] == ["scatter", "scatter"]
    assert list(shown.layout.yaxis.range) == pytest.approx([-1, 1])  # in powers of ten
    best = study.best_trial
    assert best is not None
    assert f"over x and y, with z = {best.controls['z']:.5g}" in captions(study)["acquisition"]
    assert "wherever" not in texts(plot_acquisition(finished(proven)))


def test_contributions_are_not_called_shares() -> None:
    study = ran(proven(), 4)
    found = gap_contributions(study)
    caption = captions(study)["contributions"]
    assert "neither add up to it nor stay below it" in caption
    bars = plot_gap_contributions(study, found).data[0]
    assert set(bars.text) == {three_digits(value) for value in found.values()}
    assert all(text in caption for text in bars.text)


def test_three_digits_keeps_exactly_three_significant_digits() -> None:
    values = [0, 9.57e-6, 0.0032, 2, 99.97, 1490, 2e5]
    assert [three_digits(value) for value in values] == ["0", "9.57e-06", "0.00320", "2.00", "100", "1490", "2.00e+05"]


def test_an_unobserved_stage_contributes_most() -> None:
    study = Study(proven())
    for dose in np.linspace(-2, 2, 15):  # many observations of the first stage, none of the second
        trial = study.begin_trial({"dose": float(dose), "heat": 1.0})
        study.tell_stage(trial, "mix", 1.5 * math.exp(-0.5 * (float(dose) - 0.4) ** 2))
        study.abandon(trial)
    found = gap_contributions(study)
    assert found["cure"] > 10 * found["mix"]


def test_every_complete_run_is_a_line_and_the_best_is_on_top() -> None:
    study = ran(proven(), 12)
    *groups, best = plot_parallel_coordinate(study).data
    assert len(groups) == 5
    runs = [n for trace in groups for n in lines(trace)]
    assert sorted(runs) == list(range(12))
    values = {trial.number: trial.value for trial in study.trials}
    parts = [sorted(values[n] or 0.0 for n in lines(trace)) for trace in groups]
    assert all(low[-1] <= high[0] for low, high in itertools.pairwise(parts))  # by fifths, the best last
    found = study.best_trial
    assert found is not None
    assert list(lines(best)) == [found.number]
    heat = [trial.controls["heat"] for trial in study.trials]
    low, high = math.log(min(heat)), math.log(max(heat))
    expected = (math.log(found.controls["heat"]) - low) / (high - low)  # by the logarithm
    assert lines(best)[found.number][1] == pytest.approx(expected, abs=1e-4)
    assert lines(best)[found.number][3] == 1.0  # the objective


def test_the_best_runs_of_a_minimisation_are_the_lowest() -> None:
    study = ran(joint(), 6)
    *groups, best = plot_parallel_coordinate(study).data
    assert list(lines(best)) == [study.best_trial.number] if study.best_trial else False
    assert set(lines(best)) <= set(lines(groups[-1]))


def test_a_missing_output_interrupts_the_line_of_a_run() -> None:
    study = ran(estimated(), 0)
    for dose in (-1.0, 0.5):
        study.add_trial({"dose": dose, "n": 2, "heat": 0.5}, {"mix": [dose, 1.0], "cure": 3.0})
    study.add_trial({"dose": 1.0, "n": 2, "heat": 0.5}, {"cure": 5.0})
    best = plot_parallel_coordinate(study).data[-1]
    assert lines(best)[2] == [1.0, 0.5, 0.5, None, None, 1.0]  # an axis with a single value has it in the middle


def test_axes_show_plain_numbers() -> None:
    study = ran(proven(), 0)
    for value in (1490.26, 250000.0, -12345.6):
        study.add_trial({"dose": 0.5, "heat": 1.0}, {"cure": value})
    notes = [note.text for note in plot_parallel_coordinate(study).layout.annotations]
    assert notes[-2:] == ["-12346", "2.5e+05"]
    assert "1490" in [trace.name for trace in plot_parallel_coordinate(study).data]


def lines(trace: Any) -> dict[int, list[float | None]]:
    """Return the heights of the runs of a trace, by their numbers."""
    found: dict[int, list[float | None]] = {}
    for y, number in zip(trace.y, trace.customdata, strict=True):
        if number is not None:
            found.setdefault(number, []).append(y)
    return found


def test_regret_curves_are_medians_of_runs_of_equal_length() -> None:
    shown = plot_regret({"ours": [[3.0, 2.0, 1.0], [3.0, 1.0, 0.0]], ODD: [[4.0, 4.0, 4.0]]})
    assert list(shown.data[0].y) == [3.0, 1.5, 0.5]
    assert "<script" not in texts(shown)
    with pytest.raises(ArgumentError, match="lists of the same length"):
        plot_regret({"ours": [[1.0], [1.0, 2.0]]})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda study: plot_stage(study, "melt"), "there is no stage 'melt'"),
        (lambda study: plot_stage(study, "mix", "heat"), "modelled outputs mix; got 'heat'"),
        (lambda study: plot_acquisition(study, ["dose", "dose"]), "one or two of the controls dose, heat"),
        (lambda study: plot_acquisition(study, []), "one or two of the controls"),
    ],
)
def test_unknown_stages_outputs_and_controls_raise_an_argument_error(
    call: Callable[[Study], Any], message: str
) -> None:
    with pytest.raises(ArgumentError, match=message):
        call(ran(proven(), 2))


def test_a_stored_study_is_drawn_like_one_in_memory(tmp_path: Any) -> None:
    network: Network = proven()
    stored = Study.open(f"sqlite:///{tmp_path}/alloy.db", "alloy", network, algorithm="random_search")
    stored.optimise(budget=5, progress=False)
    memory = ran(network, 5)
    for plot in FIGURES:
        assert plot(stored).to_json() == plot(memory).to_json()


def test_the_bound_history_is_ordered_by_trial_even_if_runs_end_in_another_order() -> None:
    study = Study(proven())
    trials = [study.begin_trial({"dose": dose, "heat": 1.0}) for dose in (-1.5, -0.5, 0.5, 1.5)]
    for i in (0, 3, 1, 2):
        study.tell(trials[i], {"mix": 0.1 * i, "cure": 0.2})
    bounds = bound_history(study)
    numbers = [point.trial for point in bounds]
    assert numbers == sorted(numbers)
    assert len(numbers) == 4


def test_no_legend_covers_a_title(browser: Browser, report_file: Path) -> None:
    boxes = """figures => figures.map(figure => ['.legend .bg', '.gtitle', '.xtitle'].map(
        name => [...figure.querySelectorAll(name)].map(one => one.getBoundingClientRect()).map(
            box => [box.left, box.top, box.right, box.bottom])))"""
    legends = 0
    drawn = {name: payload(finished(network)) for name, network in NETWORKS.items()}
    for width, page in opened(browser, report_file):
        for name in NETWORKS:
            draw(page, drawn[name])
            for found, *titles in page.locator("figure").evaluate_all(boxes):
                legends += len(found)
                for a, b in itertools.product(found, itertools.chain(*titles)):
                    assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1], (name, width, a, b)
    assert legends >= 4 * len(NETWORKS)
