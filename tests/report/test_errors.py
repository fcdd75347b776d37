"""Readings with errors in reports: figures, tables and sentences."""

import json

import pytest

from cascada.network import Network, Stage, chain
from cascada.report import gap_contributions, plot_stage
from cascada.report.history import bound_history
from cascada.report.payload import payload
from cascada.report.runs import limits_at, row
from cascada.report.words import summary
from cascada.space import Real
from cascada.study import Study
from tests.report.cases import SE, proven, ran


def read(high: float | None = None) -> Network:
    """A chain whose stages are read with errors; the first output may have a limit."""
    mix, cure = proven().stages
    limits = None if high is None else {"mix": (None, high)}
    first = Stage("mix", mix.controls, kernel=SE, norm_bound=2.0, function=mix.function, error=0.05, limits=limits)
    return chain(
        first,
        Stage("cure", {"heat": Real(0.1, 9, log=True)}, kernel=SE, norm_bound=2.0, function=cure.function, error=0.02),
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
