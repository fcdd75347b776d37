"""Readings with errors in reports: figures, tables and sentences."""

import json
from pathlib import Path
from typing import Any

import pytest

from cascada.network import Network, Stage, SubGaussian, chain
from cascada.report import gap_contributions, plot_stage
from cascada.report.history import bound_history
from cascada.report.live.view import Sent, View
from cascada.report.payload import payload
from cascada.report.runs import limits_at, row
from cascada.report.words import summary
from cascada.space import Real
from cascada.store.database import Store
from cascada.study import Study
from tests.missing import need_module
from tests.report.cases import SE, proven, ran

need_module("plotly", "report")


def read(high: float | None = None, first: Any = 0.05, second: Any = 0.02) -> Network:
    """A chain whose stages are read with errors; the first output may have a limit."""
    mix, cure = proven().stages
    limits = None if high is None else {"mix": (None, high)}
    heat = {"heat": Real(0.1, 9, log=True)}
    return chain(
        Stage("mix", mix.controls, kernel=SE, norm_bound=2.0, function=mix.function, error=first, limits=limits),
        Stage("cure", heat, kernel=SE, norm_bound=2.0, function=cure.function, error=second),
    )


@pytest.fixture(scope="module")
def study() -> Study:
    return ran(read(), 5)


def test_a_report_shows_readings_as_readings_and_what_is_proven_of_a_setting(study: Study) -> None:
    said = " ".join(summary(study, study.certificate(), {}))
    assert "The best reading in 5 complete runs was cure = " in said
    assert "It is proven that no setting in the box of controls gives more than" in said
    assert "is proven to give at least" in said
    assert "satisfy the limits" not in said
    assert "The errors of the readings allow a gap of about" in said


def test_every_figure_of_a_report_is_drawn(study: Study) -> None:
    content = payload(study, "lab")
    assert json.dumps(content, default=str)
    history = bound_history(study)
    assert history
    assert all(after.kind == "proven" for after in history)
    bounds = [after.bound for after in history]
    assert bounds == sorted(bounds, reverse=True)
    assert plot_stage(study, "mix") is not None
    assert set(gap_contributions(study)) == {"mix", "cure"}


def test_a_report_of_scatter_says_with_which_probability_it_holds() -> None:
    study = ran(read(first=SubGaussian(0.01), second=0.02), 4)
    content = json.dumps(payload(study, "lab"), default=str, ensure_ascii=False)
    assert "With probability at least 95 %, now and at every later step: no setting in the box of controls" in content
    assert "mix is read with sub-Gaussian scatter of scale 0.01, cure is read to ±0.02" in content
    assert "past runs of it" not in content  # which would make the gap an estimate
    history = bound_history(study)
    assert [after.trial for after in history] == [0, 1, 2, 3]
    assert {after.kind for after in history} == {"confident"}
    bounds, found = [after.bound for after in history], study.certificate(cells=2000).bound
    assert bounds == sorted(bounds, reverse=True)
    assert found is not None
    assert bounds[-1] <= found + 1e-9  # from the same readings and nominal inputs


def test_a_report_before_the_first_run_says_what_the_errors_allow() -> None:
    words = summary(Study(read()), Study(read()).certificate(), {})
    assert words[0].startswith("No run is complete yet, so nothing is known of cure. The errors of the readings allow")


@pytest.mark.parametrize("error", [0.05, SubGaussian(0.01), "estimate"])
def test_a_live_page_shows_runs_that_are_read_with_errors(tmp_path: Path, error: Any) -> None:
    network = read() if error == "estimate" else read(first=error)
    if error == "estimate":
        network = chain(*(Stage(one.name, one.controls, function=one.function, error=error) for one in network.stages))
    url = f"sqlite:///{tmp_path}/lab.db"
    study = Study.open(url, "lab", network, algorithm="random_search")
    study.optimise(budget=2, progress=False)
    store, view = Store(url, read_only=True), View("lab")
    update = view.read(store, store.heads().get("lab"), [])
    assert update is not None
    update()
    messages = "".join(view.updates(Sent()))
    assert view.message is None
    assert all(str(trial.outputs["mix"][0]) in messages for trial in study.trials)
    store.close()
    study.close()


def test_a_run_breaks_a_limit_in_a_table_only_beyond_its_error() -> None:
    network = read(0.5)
    study = Study(network)
    said = []
    for dose, mix in ((0.0, 0.54), (1.0, 0.6)):
        trial = study.add_trial({"dose": dose, "heat": 1.0}, {"mix": mix, "cure": 0.0})
        said.append(str(row(network, trial)[1]))
    assert said == ["complete", "complete; infeasible: not mix ≤ 0.5"]
    _, low, high = limits_at(network)[0]
    assert low is None
    assert high == pytest.approx(0.55)
