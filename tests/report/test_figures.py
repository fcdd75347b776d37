"""Figures show what the study knows, for every kind of process, and never more."""

import itertools
import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cascada.errors import ArgumentError
from cascada.network import Network
from cascada.report import (
    gap_contributions,
    plot_acquisition,
    plot_gap_contributions,
    plot_network,
    plot_optimization_history,
    plot_parallel_coordinate,
    plot_regret,
    plot_stage,
)
from cascada.report.history import looks_along
from cascada.study import Study
from tests.report.cases import ODD, estimated, joint, odd, proven, ran, refuted

FIGURES: list[Callable[..., Any]] = [
    plot_acquisition,
    plot_gap_contributions,
    plot_network,
    plot_optimization_history,
    plot_parallel_coordinate,
]
NETWORKS = {"proven": proven, "estimated": estimated, "joint": joint, "odd": odd}


def texts(shown: Any) -> str:
    return json.dumps(json.loads(shown.to_json()), ensure_ascii=False)


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("plot", FIGURES, ids=lambda plot: plot.__name__)
def test_every_figure_of_every_process(plot: Callable[..., Any], network: str) -> None:
    for runs in (0, 1, 9):
        shown = plot(ran(NETWORKS[network](), runs))
        assert json.loads(shown.to_json())["layout"]["title"]["text"]
        assert "<script" not in texts(shown)  # plotly takes some of HTML for markup


@pytest.mark.parametrize("plot", FIGURES, ids=lambda plot: plot.__name__)
def test_a_refuted_study_can_be_looked_at(plot: Callable[..., Any]) -> None:
    assert json.loads(plot(refuted()).to_json())


def test_the_history_closes_the_gap() -> None:
    study = ran(proven(), 12)
    runs, best, bound = plot_optimization_history(study).data
    values = [trial.value for trial in study.trials if trial.value is not None]
    assert list(runs.y) == values
    assert list(best.y) == np.maximum.accumulate(values).tolist()
    assert list(bound.y) == sorted(bound.y, reverse=True)  # what was proven once holds
    assert bound.y[-1] >= best.y[-1]
    assert "proven" in bound.name
    assert bound.y[-1] - best.y[-1] == pytest.approx(study.certificate(cells=2000).gap, rel=0.2)


def test_the_history_of_a_process_to_be_minimised() -> None:
    study = ran(joint(), 9)
    runs, best, bound = plot_optimization_history(study).data
    assert list(best.y) == np.minimum.accumulate(runs.y).tolist()
    assert bound.y[-1] <= best.y[-1]


def test_no_bound_is_shown_where_there_is_none() -> None:
    assert looks_along(ran(estimated(), 3)) == []  # a gap from three runs would be a guess
    assert looks_along(Study(proven())) == []
    assert all(look.kind == "estimated" for look in looks_along(ran(estimated(), 9)))


def test_nothing_is_called_proven_that_somebody_refuted() -> None:
    study = ran(proven(), 5)
    assert looks_along(study)
    study.refute("the furnace was replaced")
    assert looks_along(study) == []
    assert "proven" not in texts(plot_optimization_history(study))


def test_bounds_that_rested_on_a_refuted_norm_are_not_shown() -> None:
    study = ran(proven(), 5, on_violation="enlarge")
    study.add_trial({"dose": 0.0, "heat": 1.0}, {"mix": 5.0, "cure": 1.0})
    assert study.certificate().kind == "estimated"
    assert looks_along(study) == []


def test_the_network_shows_the_values_of_the_best_run() -> None:
    study = ran(proven(), 5)
    best = study.best_trial
    assert best is not None
    said = texts(plot_network(study))
    for value in (*best.controls.values(), best.outputs["mix"][0], best.outputs["cure"][0]):
        assert f"= {value:.5g}" in said
    assert "= " not in texts(plot_network(Study(proven())))


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


def test_a_stage_of_more_inputs_is_a_line_for_each() -> None:
    study = ran(estimated(), 9)
    names = [trace.name for trace in plot_stage(study, "cure").data if trace.name]
    assert names == ["u", "v", "heat"]


def test_the_acquisition_is_above_the_mean() -> None:
    study = ran(proven(), 4)
    mean, upper = plot_acquisition(study, ["dose"]).data
    assert all(m <= u for m, u in zip(mean.y, upper.y, strict=True))
    surface, bound = plot_acquisition(study).data[0], study.certificate().bound
    assert bound is not None
    assert np.asarray(surface.z).max() <= bound + 1e-9  # no setting gives more


def test_the_stage_that_is_not_known_adds_most() -> None:
    study = Study(proven())
    for dose in np.linspace(-2, 2, 15):  # all is known of the first stage, nothing of the second
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
    assert sorted(runs) == list(range(1, 13))
    values = {trial.number + 1: trial.value for trial in study.trials}
    parts = [sorted(values[n] or 0.0 for n in lines(trace)) for trace in groups]
    assert all(low[-1] <= high[0] for low, high in itertools.pairwise(parts))  # by fifths, the best last
    found = study.best_trial
    assert found is not None
    assert list(lines(best)) == [found.number + 1]
    heat = [trial.controls["heat"] for trial in study.trials]
    low, high = math.log(min(heat)), math.log(max(heat))
    expected = (math.log(found.controls["heat"]) - low) / (high - low)  # by the logarithm
    assert lines(best)[found.number + 1][1] == pytest.approx(expected, abs=1e-4)
    assert lines(best)[found.number + 1][3] == 1.0  # the objective


def test_the_lowest_are_the_best_of_a_process_to_be_minimised() -> None:
    study = ran(joint(), 6)
    *groups, best = plot_parallel_coordinate(study).data
    assert list(lines(best)) == [study.best_trial.number + 1] if study.best_trial else False
    assert set(lines(best)) <= set(lines(groups[-1]))


def test_what_was_not_observed_is_a_gap() -> None:
    study = ran(estimated(), 0)
    for dose in (-1.0, 0.5):
        study.add_trial({"dose": dose, "n": 2, "heat": 0.5}, {"mix": [dose, 1.0], "cure": 3.0})
    study.add_trial({"dose": 1.0, "n": 2, "heat": 0.5}, {"cure": 5.0})
    best = plot_parallel_coordinate(study).data[-1]
    assert lines(best)[3] == [1.0, 0.5, 0.5, None, None, 1.0]  # an axis of one value is passed in the middle


def lines(trace: Any) -> dict[int, list[float | None]]:
    """The heights of the runs of a trace, by their numbers; a run ends with a gap."""
    found: dict[int, list[float | None]] = {}
    for y, number in zip(trace.y, trace.customdata, strict=True):
        if number is not None:
            found.setdefault(number, []).append(y)
    return found


def test_regret_curves() -> None:
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
def test_what_is_not_there_cannot_be_drawn(call: Callable[[Study], Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        call(ran(proven(), 2))


def test_a_stored_study_is_drawn_like_one_in_memory(tmp_path: Any) -> None:
    network: Network = proven()
    stored = Study.open(f"sqlite:///{tmp_path}/alloy.db", "alloy", network, algorithm="random_search")
    stored.optimise(budget=5, progress=False)
    memory = ran(network, 5)
    for plot in FIGURES:
        assert plot(stored).to_json() == plot(memory).to_json()


def test_the_bound_goes_forward_though_runs_end_in_another_order() -> None:
    study = Study(proven())
    trials = [study.begin_trial({"dose": dose, "heat": 1.0}) for dose in (-1.5, -0.5, 0.5, 1.5)]
    for i in (0, 3, 1, 2):
        study.tell(trials[i], {"mix": 0.1 * i, "cure": 0.2})
    looks = looks_along(study)
    numbers = [look.trial for look in looks]
    assert numbers == sorted(numbers)
    assert len(numbers) == 4
