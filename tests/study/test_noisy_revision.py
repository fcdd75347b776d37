"""Revisions of runs whose readings scatter: all of it is estimated, and a reading alone ends no run."""

import math
from typing import Any

import numpy as np
import pytest

import cascada as cd
from cascada.calibration import Calibration
from cascada.network import Network
from cascada.study import Study, maximise

SHORT = Calibration(family="matern", initial=4)


def process(**options: Any) -> Network:
    first = cd.Stage("f", controls={"x": cd.Real(-1, 1)}, error="estimate", **options)
    return cd.chain(first, cd.Stage("g", controls={"y": cd.Real(-1, 1)}, error="estimate"))


def readings(rng: np.random.Generator) -> dict[str, Any]:
    """Functions of both stages; the reading of f is handed on as if it were its value."""
    return {
        "f": lambda x: math.sin(2 * x) + 0.02 * rng.standard_normal(),
        "g": lambda f, y: -((f - 0.5) ** 2) - 0.3 * y**2 + 0.02 * rng.standard_normal(),
    }


def begun(network: Network, runs: int, last: float, **options: Any) -> Study:
    """A study after some runs and one of which only the stage f was read."""
    study, functions = Study(network, calibration=SHORT, **options), readings(np.random.default_rng(0))
    for _ in range(runs):
        trial = study.ask()
        assert trial is not None
        f = functions["f"](trial.controls["x"])
        study.tell(trial, {"f": f, "g": functions["g"](f, trial.controls["y"])})
    trial = study.ask()
    assert trial is not None
    study.tell_stage(trial, "f", last)
    return study


def test_a_batch_with_a_noisy_reading_is_revised_by_estimates() -> None:
    study = begun(process(), 10, 0.3)
    before, found = study.trials[-1].controls, study.revise(10)
    assert (found.kind, found.decision) == ("estimated", "continue")
    assert found.controls["x"] == before["x"]  # the stage f was run
    assert "Proven" not in str(found)
    again = study.revise(10, apply=True)
    assert again == found
    assert dict(study.trials[-1].controls) == dict(found.controls)
    assert not study.refuted


def test_runs_with_noise_are_revised_after_every_stage() -> None:
    functions = readings(np.random.default_rng(1))
    result = maximise(process(), functions, budget=8, revise=True, progress=False, calibration=SHORT)
    assert [trial.state for trial in result.trials] == ["complete"] * 8  # an estimate discards nothing
    assert result.gap_kind == "estimated"


@pytest.mark.parametrize("may_stop", [False, True])
def test_a_reading_that_breaks_a_limit_by_a_hair_proves_nothing(may_stop: bool) -> None:
    study = begun(process(limits={"f": (None, 0.4)}), 6, 0.401, stop_on_estimated=may_stop)
    found = study.revise(6)
    assert found.decision == ("discard" if may_stop else "continue")
    assert found.bound is None
    assert found.reason == (
        "f = 0.401 breaks the limit f ≤ 0.4 as it was read. Readings scatter, so the value itself may satisfy it."
    )
