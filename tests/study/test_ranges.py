"""Ranges in studies: a run outside of one refutes it until the run is corrected or the range is amended."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cascada.errors import RefutedError
from cascada.kernels import random_expansion
from cascada.network import Network, chain, hallucinated
from cascada.study import Study
from tests.network.cases import SE, X, Y, stage

RANGE: Any = {"f": (0, 1)}


def network(ranges: Any = RANGE, **options: Any) -> Network:
    return chain(stage("f", controls=X, ranges=ranges, **options), stage("g", controls=Y))


def test_a_run_outside_its_range_refutes_it_until_it_is_corrected(opened: Callable[..., Study]) -> None:
    study = opened(network())
    study.add_trial({"x": 0.0, "y": 0.0}, {"f": 0.5, "g": 0.2})
    assert study.certificate().kind == "proven"
    assert "f: 0 ≤ f ≤ 1 at every setting (its range)" in study.certificate().assumptions
    trial = study.begin_trial({"x": 1.0, "y": 0.0})
    study.tell(trial, {"f": 1.1, "g": 0.3})  # possible by the norm bound of 2
    certificate = study.certificate()
    assert (certificate.kind, certificate.gap, study.refuted) == ("refuted", None, True)
    assert (
        "Stage 'f': trial 1 gave f = 1.1, but its range is 0 ≤ f ≤ 1. Correct the run if the value is wrong, or amend "
        "the range if the range is."
    ) in certificate.evidence
    with pytest.raises(RefutedError, match="its range is 0 ≤ f ≤ 1"):
        study.ask()
    study.correct(1, "f", 0.9, reason="a digit was wrong")
    assert (study.certificate().kind, study.certificate().evidence) == ("proven", ())
    assert study.ask() is not None


def test_the_ends_belong_to_a_range() -> None:
    study = Study(network())
    study.add_trial({"x": 0.0, "y": 0.0}, {"f": 0.0, "g": 0.2})
    study.add_trial({"x": 2.0, "y": 0.0}, {"f": 1.0, "g": 0.2})
    assert study.certificate().kind == "proven"


def test_a_stage_alone_outside_its_range_refutes_it() -> None:
    study = Study(network())
    study.tell_stage(study.begin_trial({"x": 1.0, "y": 0.0}), "f", -0.25)
    assert study.refuted
    assert "trial 0 gave f = -0.25, but its range is 0 ≤ f ≤ 1" in " ".join(study.certificate().evidence)


def test_an_amended_range_ends_a_refutation(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/studies.db"
    study = Study.open(url, "alloy", network())
    study.add_trial({"x": 1.0, "y": 0.0}, {"f": 1.1, "g": 0.3})
    assert study.certificate().kind == "refuted"
    assert Study.open(url, "alloy").certificate().kind == "refuted"
    amended = Study.open(url, "alloy", network({"f": (0, 1.5)}), amend=True)
    assert amended.certificate().kind == "proven"
    assert "f: 0 ≤ f ≤ 1.5 at every setting (its range)" in amended.certificate().assumptions


def test_a_range_is_judged_with_estimated_norms_as_well() -> None:
    study = Study(chain(stage("f", controls=X, kernel=None, norm_bound=None, ranges=RANGE)))
    for x in (-2.0, -1.0, 0.0, 1.0, 2.0):
        study.add_trial({"x": x}, {"f": 0.5 + 0.2 * x})
    study.add_trial({"x": 1.5}, {"f": 1.25})
    assert study.certificate().kind == "refuted"
    assert "trial 5 gave f = 1.25, but its range is 0 ≤ f ≤ 1" in " ".join(study.certificate().evidence)


def test_ranges_lower_the_bound_to_the_ceiling() -> None:
    bounds = []
    for ranges in (None, {"g": (None, 0.5)}):
        study = Study(chain(stage("f", controls=X), stage("g", controls=Y, ranges=ranges)))
        study.add_trial({"x": 0.0, "y": 0.0}, {"f": 0.5, "g": 0.2})
        bounds.append(study.certificate().bound)
    assert bounds[0] is not None
    assert bounds[0] > 1.9
    assert bounds[1] == pytest.approx(0.5, abs=1e-9)


def test_clipped_means_of_pending_runs_are_not_evidence() -> None:
    """Means are clipped to the range one after the other, and together they may need a larger norm than the truth."""
    f = random_expansion(SE, [-2.0], [2.0], norm=1.0, rng=np.random.default_rng(72), terms=3)
    values = f(np.linspace(-2, 2, 801)[:, None])
    within: Any = {"f": (float(values.min()) - 1e-9, float(values.max()) + 1e-9)}
    study = Study(chain(stage("f", controls=X, norm_bound=1.0, ranges=within)))
    for x in (-1.7924366297092118, -0.8347323233613908):
        study.add_trial({"x": x}, {"f": float(f(np.array([[x]]))[0, 0])})
    pending = (1.8143619897447265, 1.6302863032027357, -0.6069450795163802, 0.7338255784175924)
    for x in pending:
        study.begin_trial({"x": x})
    imagined = hallucinated(study.beliefs, np.array(pending)[:, None])
    imagined.check()  # raises if there is evidence against the norm bound
    inputs = [len(b.stages[0].belief.posterior.inputs) for b in (study.beliefs, imagined) if b.stages[0].belief]
    assert inputs[1] < inputs[0] + len(pending)  # the contradicting one is left out: the case is such a case
    assert study.ask() is not None
    assert study.certificate().kind == "proven"
