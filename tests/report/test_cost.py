"""The figure of the gap over what was spent, and reports of studies with steps."""

import math
from typing import Any

import numpy as np
import pytest

import cascada as cd
from cascada.report.cost import gap_over_cost
from cascada.report.history import bound_history
from cascada.report.payload import payload
from cascada.report.runs import objective_at, row

pytest.importorskip("plotly")


@pytest.fixture(scope="module")
def study() -> cd.Study:
    """A study with complete runs, partial ones, steps at inputs of their own, and a measurement."""
    given: dict[str, Any] = {"kernel": cd.SquaredExponential(1.0), "norm_bound": 2.0}
    network = cd.chain(
        cd.Stage("f", controls={"x": cd.Real(-2, 2)}, cost=10, portions=math.inf, **given),
        cd.Stage("g", controls={"y": cd.Real(-2, 2)}, reachable="any", **given),
    )
    study = cd.Study(network)
    for _ in range(8):
        step = study.ask_step()
        assert step is not None
        study.tell_stage(step, math.exp(-sum(value**2 for value in step.inputs.values()) / 2))
    study.measure("g", {"f": 0.1, "y": 0.3}, 0.95)
    assert any(not trial.closed for trial in study.trials)
    return study


def test_a_report_shows_the_gap_over_the_cost(study: cd.Study) -> None:
    bounds = bound_history(study)
    spent, gaps = gap_over_cost(study, bounds)
    assert spent == sorted(spent)
    assert spent[-1] == study.spent
    assert gaps[-1] == study.certificate().gap
    assert np.all(np.diff(gaps) <= 1e-12)
    shown = payload(study, "steps")
    assert "cost" in [figure["id"] for figure in shown["figures"]]
    assert ["spent", f"{study.spent:.8g}"] in shown["facts"]


def test_values_of_single_stages_are_no_runs_in_the_history(study: cd.Study) -> None:
    last = bound_history(study)[-1]
    bound = study.certificate().bound
    assert bound is not None
    assert last.bound >= bound - 1e-6  # it rests on no more than the study, and holds


def test_what_single_stages_gave_is_no_cell_of_a_run(study: cd.Study) -> None:
    alone = next(trial for trial in study.trials if not trial.closed)
    cells = row(study.network, alone)
    assert cells[objective_at(study.network)] is None
    assert cells[1].startswith("partial; step g; g = ")
    whole = next(trial for trial in study.trials if trial.state == "complete")
    assert row(study.network, whole)[objective_at(study.network)] == whole.value
