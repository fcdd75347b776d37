"""Runs of the design are fitted when beliefs are used, and later points do not depend on whether they were."""

import math
from typing import Any

import pytest

from cascada.arrays import Array
from cascada.calibration import Fit, kept
from cascada.calibration.fit import fit_output
from cascada.errors import ContradictionError
from cascada.network import Network, Stage, chain
from cascada.space import Real
from cascada.store.trial import Trial
from cascada.study import Study

XY = {"x": Real(-2, 2), "y": Real(-2, 2)}
NETWORK = chain(Stage("f", controls=XY, outputs=["u", "v"]), Stage("g"))
DESIGN = 6


def outputs(trial: Trial) -> dict[str, Any]:
    x, y = trial.controls["x"], trial.controls["y"]
    u, v = math.sin(2 * x) + y, 0.5 * x * abs(y)
    return {"f": [u, v], "g": math.cos(u) - 0.3 * v}


def run(study: Study, count: int) -> list[dict[str, float | int]]:
    made = []
    for _ in range(count):
        trial = study.ask()
        assert trial is not None
        study.tell(trial, outputs(trial))
        assert not study.refuted
        made.append(dict(trial.controls))
    return made


@pytest.fixture
def fits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the fits to data so far."""
    sizes: list[int] = []

    def counted(inputs: Array, *others: Any) -> Fit:
        if len(inputs):
            sizes.append(len(inputs))
        return fit_output(inputs, *others)

    kept._computed.cache_clear()
    monkeypatch.setattr(kept, "fit_output", counted)
    return sizes


@pytest.mark.parametrize("replayable", [False, True])
def test_the_design_is_fitted_with_the_first_point_after_it(fits: list[int], replayable: bool) -> None:
    study = Study(NETWORK, replayable=replayable)
    run(study, DESIGN)
    assert fits == []
    study.ask()
    assert fits == [DESIGN] * 3  # one for every output


def test_points_do_not_depend_on_looks_at_the_design() -> None:
    seen, unseen = Study(NETWORK), Study(NETWORK)
    one = run(unseen, DESIGN + 4)
    other = []
    for _ in range(DESIGN + 4):
        seen.predict({"x": 0.1, "y": 0.2})
        seen.certificate()
        other += run(seen, 1)
    assert one == other


@pytest.mark.parametrize("count", [DESIGN - 2, DESIGN, DESIGN + 1, DESIGN + 4])
def test_a_study_that_learns_all_runs_at_once_suggests_the_same_point(count: int) -> None:
    study = Study(NETWORK, replayable=True)
    run(study, count)
    at_once = study.branch()
    at_once._model = type(study._model)(NETWORK, study._settings)
    assert at_once.ask() == study.ask()


def test_a_contradiction_within_the_design_is_found_without_fits(fits: list[int]) -> None:
    study = Study(NETWORK)
    study.add_trial({"x": 0.0, "y": 0.0}, {"f": [0.0, 0.0], "g": 1.0})
    study.add_trial({"x": 1.0, "y": 0.0}, {"f": [0.0, 0.0], "g": 1.0})
    assert not study.refuted
    with pytest.raises(ContradictionError):
        study.add_trial({"x": 1.5, "y": 0.0}, {"f": [0.0, 0.0], "g": 2.0})
    assert fits == []


def test_a_declared_bound_is_refuted_within_the_design() -> None:
    network: Network = chain(Stage("f", controls={"x": Real(0, 1)}, lipschitz=1.0))
    study = Study(network)
    study.add_trial({"x": 0.0}, {"f": 0.0})
    study.add_trial({"x": 0.5}, {"f": 3.0})
    assert study.refuted
