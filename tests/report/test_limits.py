"""Limits and ranges in reports: figures, tables, facts and sentences of studies with and without a feasible run."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cascada.network import Stage, chain
from cascada.report import (
    gap_contributions,
    plot_acquisition,
    plot_optimization_history,
    plot_parallel_coordinate,
    plot_stage,
)
from cascada.report.history import bound_history
from cascada.report.live.view import _about
from cascada.report.payload import figures, judgement, payload
from cascada.report.runs import columns, limits_at, row
from cascada.report.words import summary
from cascada.space import Real
from cascada.study import Study
from tests.report.browser import Browser
from tests.report.cases import SE, finished, impossible, limited, proven, ran, recommending, unsatisfied
from tests.report.servers import open_page, served

STUDIES: dict[str, Callable[[], Study]] = {
    "recommending": recommending,
    "unsatisfied": unsatisfied,
    "impossible": impossible,
}


def words(study: Study) -> str:
    return " ".join(summary(study, study.certificate(), {}))


def captions(study: Study) -> dict[str, str]:
    return {one["id"]: one["alt"] for one in figures(study, bound_history(study), gap_contributions(study))}


# ---- history


def test_the_history_marks_runs_that_broke_a_limit() -> None:
    study = ran(limited(), 7)
    runs, best = plot_optimization_history(study).data[:2]
    feasible = [trial.feasible for trial in study.trials]
    assert {True, False} == set(feasible)
    assert list(runs.marker.symbol) == ["circle" if one else "x" for one in feasible]
    values = [trial.value for trial in study.trials if trial.feasible]
    assert list(best.x) == [trial.number for trial in study.trials if trial.feasible]
    assert list(best.y) == np.maximum.accumulate(np.array(values, dtype=float)).tolist()
    assert "Crosses are runs that broke a limit" in captions(study)["history"]
    legend = [(t.name, t.marker.symbol) for t in plot_optimization_history(study).data if t.mode == "markers"][1:]
    assert legend == [("runs", "circle"), ("runs that broke a limit", "x")]
    assert not runs.showlegend  # its entry would have the symbol of the first run
    assert plot_optimization_history(ran(proven(), 3)).data[0].marker.symbol is None


def test_the_history_shows_what_the_recommended_setting_gives() -> None:
    study = recommending()
    recommended = study.certificate().recommended
    assert recommended is not None
    *_, bound, line = [trace for trace in plot_optimization_history(study).data if trace.x[0] is not None]
    assert bound.name == "no feasible setting gives more (proven)"
    assert line.name == "recommended setting (at least)"
    assert list(line.y) == [recommended.at_least] * 2


def test_the_history_of_a_study_without_a_feasible_run_has_no_best_value() -> None:
    for study in (unsatisfied(), impossible()):
        runs, best, *_ = plot_optimization_history(study).data
        assert len(runs.x) == len(study.trials)
        assert len(best.x) == 0


# ---- stages


def test_a_limit_is_a_dashed_line_and_a_range_cuts_the_band() -> None:
    study = ran(limited(), 3)
    shown = plot_stage(study, "mix")
    (line,) = [shape for shape in shown.layout.shapes if shape.name == "limit"]
    assert (line.y0, line.y1, line.line.dash) == (0.6, 0.6, "dash")
    lower, upper = (np.array(trace.y) for trace in shown.data[:2])
    assert lower.min() >= 0
    assert upper.max() <= 1.6
    bare = [np.array(trace.y) for trace in plot_stage(ran(proven(), 3), "mix").data[:2]]
    assert bare[0].min() < 0 or bare[1].max() > 1.6  # the range cuts something off
    caption = next(text for name, text in captions(study).items() if name.startswith("stage") and "mix of mix" in text)
    assert caption.endswith("Its limit, mix ≤ 0.6, is dashed.")


def test_a_band_of_limits_has_two_lines() -> None:
    study = ran(limited(0.2, 0.6), 3)
    lines = [shape.y0 for shape in plot_stage(study, "mix").layout.shapes if shape.name == "limit"]
    assert lines == [0.2, 0.6]


def test_a_limit_on_a_map_is_a_dashed_contour() -> None:
    two = chain(
        Stage(
            "mix",
            {"dose": Real(-2, 2), "heat": Real(-2, 2)},
            kernel=SE,
            norm_bound=2.0,
            limits={"mix": (None, 0.5)},
            ranges={"mix": (None, 0.7)},
            function=lambda dose, heat: 0.7 * float(np.exp(-(dose**2 + heat**2) / 2)),
        )
    )
    study = ran(two, 6)
    colours, contour, _ = plot_stage(study, "mix").data
    assert np.nanmax(np.array(colours.z, dtype=float)) <= 0.7
    assert (contour.contours.start, contour.contours.end, contour.name) == (0.5, 0.5, "limit")
    assert "Its limit, mix ≤ 0.5, is dashed." in captions(study)["stage-0"]


def test_a_stage_without_a_limit_has_no_line() -> None:
    study = ran(limited(), 3)
    assert "limit" not in [shape.name for shape in plot_stage(study, "cure").layout.shapes]
    assert "dashed" not in captions(finished(proven))["stage-0"]


# ---- bound over controls


def test_no_bound_is_drawn_where_a_limit_is_broken() -> None:
    study = ran(limited(), 7)
    shown = plot_acquisition(study)
    (bound,) = [trace for trace in shown.data if trace.name == "can be"]
    z = np.array(bound.z, dtype=float)
    assert np.isnan(z).any()
    assert np.isfinite(z).any()
    (runs,) = [trace for trace in shown.data if trace.name == "runs"]
    assert set(runs.marker.symbol) == {"circle", "x"}
    assert (
        "Where no bound is drawn, it is proven that a limit is broken, up to the resolution of the picture."
        in captions(study)["acquisition"]
    )
    line = plot_acquisition(study, ["dose"]).data[1]
    assert any(value is None or np.isnan(value) for value in line.y)


def test_the_recommended_setting_is_a_diamond() -> None:
    study = recommending()
    recommended = study.certificate().recommended
    assert recommended is not None
    (diamond,) = [trace for trace in plot_acquisition(study).data if trace.name == "recommended"]
    assert [*diamond.x, *diamond.y] == [recommended.controls["dose"], recommended.controls["heat"]]
    assert "the diamond is the recommended setting" in captions(study)["acquisition"]


@pytest.mark.parametrize("case", STUDIES)
def test_no_figure_of_a_page_is_empty(case: str) -> None:
    study = STUDIES[case]()
    for one in figures(study, bound_history(study), gap_contributions(study)):
        data = one["figure"]["data"]
        assert one["id"] == "network" or any(len(trace.get("x", ())) for trace in data), one["id"]
        assert one["alt"]
    if study.best_trial is None:
        assert "best run" not in " ".join(captions(study).values())
        assert "best run" not in [trace.name for trace in plot_parallel_coordinate(study).data]


# ---- facts, tables and sentences


@pytest.mark.parametrize("case", STUDIES)
def test_a_page_with_limits_is_json(case: str) -> None:
    study = STUDIES[case]()
    content = payload(study, case)
    json.dumps(content, allow_nan=False)
    facts = dict(content["facts"])
    feasible = sum(trial.feasible is True for trial in study.trials)
    assert facts["runs"] == f"{len(study.trials)} complete of {len(study.trials)}, {feasible} feasible"
    assert (facts["best value"] == "none feasible") == (feasible == 0)
    assert content["trials"]["best"] == (None if study.best_trial is None else study.best_trial.number)


def test_rows_say_which_limit_a_run_breaks() -> None:
    study = Study(limited())
    study.add_trial({"dose": 0.0, "heat": 1.0}, {"mix": 0.7, "cure": 1.0})
    study.add_trial({"dose": 1.0, "heat": 1.0}, {"mix": 0.5, "cure": 1.0})
    assert [row(study.network, trial)[1] for trial in study.trials] == [
        "complete; infeasible: not mix ≤ 0.6",
        "complete",
    ]


def test_the_live_page_gets_the_limits_by_column() -> None:
    network = limited(0.2, 0.6)
    ((place, low, high),) = limits_at(network)
    assert (columns(network)[place], low, high) == ("mix", 0.2, 0.6)
    assert limits_at(limited())[0][1:] == (None, 0.6)
    about = _about(network)
    assert about["limits"] == limits_at(network)
    assert _about(proven())["limits"] == []
    json.dumps(about, allow_nan=False)


def test_a_live_page_marks_infeasible_runs_as_they_arrive(browser: Browser, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/lab.db"
    study = Study.open(url, "lab", limited())
    study.add_trial({"dose": 0.0, "heat": 1.0}, {"mix": 0.5, "cure": 1.0})
    with served(url) as server, open_page(browser, server.url) as page:
        page.sees(lambda: page.rows() == 1)
        study.add_trial({"dose": 1.0, "heat": 1.0}, {"mix": 0.7, "cure": 1.5})
        study.tell_stage(study.begin_trial({"dose": 0.5, "heat": 1.0}), "cure", 1.7)  # mix may break its limit
        study.add_trial({"dose": -1.0, "heat": 1.0}, {"mix": 0.4, "cure": 1.2})
        page.sees(lambda: page.rows() == 4)
        runs, best = page.page.evaluate("historyNow().figure.data.slice(0, 2)")
        assert (runs["x"], runs["marker"]["symbol"]) == ([0, 1, 3], ["circle", "x", "circle"])
        assert (best["x"], best["y"]) == ([0, 3], [1.0, 1.2])
        assert page.text("[data-fact='best value']") == "1.2"
        assert page.text("[data-fact='runs']") == "3 complete of 4, 2 feasible"
        page.sees(lambda: "infeasible: not mix ≤ 0.6" in page.text("#trials"))
        assert page.errors == []


def test_the_summary_recommends_a_setting_with_all_its_digits() -> None:
    study = recommending()
    certificate, text = study.certificate(), words(study)
    assert certificate.recommended is not None
    assert certificate.shown is not None
    assert "complete runs, the best that satisfies mix ≤ 0.6 gave cure = " in text
    assert "no setting in the box of controls that satisfies mix ≤ 0.6 gives more than" in text
    assert all(f"{name} = {value!r}" in text for name, value in certificate.recommended.controls.items())
    assert f"give at least {certificate.shown.best}, which is within {certificate.shown.gap}" in text


def test_the_summary_of_a_study_without_a_feasible_run() -> None:
    study = unsatisfied()
    text = words(study)
    assert text.startswith("The complete run does not satisfy mix ≤ 0.1. Whether a setting satisfies the limits is not")
    assert dict(judgement(study, {})["facts"]) == {"gap": "none", "this is": "not known yet"}


def test_the_summary_of_a_study_that_has_no_feasible_setting() -> None:
    study = impossible()
    text = words(study)
    assert text.startswith(
        f"None of the {len(study.trials)} complete runs satisfies mix ≥ 1.55. Proven: no setting in "
    )
    assert "every setting misses it by at least" in text
    assert "a limit that is loosened (amend=True, --amend)" in text
    facts = dict(judgement(study, {})["facts"])
    assert facts == {"gap": "none: no setting satisfies the limits", "this is": "proven"}
