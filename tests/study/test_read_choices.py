"""Tests of studies with choices whose stages are read with errors."""

import math
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cascada import (
    ArgumentError,
    Choice,
    Network,
    Real,
    Separable,
    Stage,
    Study,
    SubGaussian,
    chain,
    maximise,
)
from cascada.confidence import Boxes
from cascada.network import enclose_network, prior_beliefs
from cascada.network.read_beliefs import ReadBeliefs
from cascada.network.scatter import Scatter
from tests.study.test_choices import KERNEL, WOODS, cut, outputs, press, run


def network(error: Any = 0.01, alike: float | None = None, norm: Any = 2.0) -> Network:
    """A process whose first stage has a choice, and both of whose stages are read with errors."""
    wood, x = Choice(WOODS, alike=alike), Real(-1, 1)
    first = Stage("cut", {"wood": wood, "x": x}, kernel=KERNEL, norm_bound=norm, error=error)
    return chain(first, Stage("press", {"y": Real(-1, 1)}, kernel=KERNEL, norm_bound=2.0, error=error))


def learned(process: Network, rows: list[tuple[float, float, float]]) -> ReadBeliefs:
    """The beliefs after runs at coordinates, read without an error."""
    values = []
    for code, x, y in rows:
        first = cut(WOODS[int(code)], x)
        values.append([code, x, y, first, press(first, y)])
    beliefs = prior_beliefs(process).append(np.array(values))
    assert isinstance(beliefs, ReadBeliefs)
    return beliefs


def widths(beliefs: ReadBeliefs, *point: float) -> Any:
    """The widths of what is known of all values at a setting (V,)."""
    boxes = enclose_network(beliefs, Boxes(np.array([point]), np.array([point]))).boxes
    return (boxes.upper - boxes.lower)[0]


@pytest.mark.parametrize(("error", "alike"), [(0.01, 0.6), (SubGaussian(0.003), None)])
def test_the_best_value_is_found(error: Any, alike: float | None) -> None:
    result = maximise(network(error, alike), [cut, press], budget=5, progress=False)
    certificate = result.certificate
    assert certificate.kind == ("proven" if error == 0.01 else "confident")
    assert certificate.recommended is not None
    assert certificate.recommended.at_least > 0.85
    assert certificate.bound is not None
    assert certificate.bound >= 1.0


def test_readings_with_one_value_say_nothing_of_another_with_norms_of_its_own() -> None:
    oak = [(0.0, x, 0.0) for x in (-0.5, 0.4)]
    few, many = (learned(network(), oak + more) for more in ([], [(1.0, x, 0.5) for x in (-0.6, 0.0, 0.6)]))
    assert widths(many, 0.0, 0.3, 0.0)[3] == widths(few, 0.0, 0.3, 0.0)[3]
    assert widths(many, 1.0, 0.1, 0.0)[3] < 0.5 * widths(few, 1.0, 0.1, 0.0)[3]
    assert widths(few, 1.0, 0.1, 0.0)[3] == pytest.approx(4.0)  # nothing is known of it


def test_readings_with_one_value_say_something_of_values_that_are_alike() -> None:
    beliefs = learned(network(alike=0.9), [(0.0, x, 0.0) for x in (-0.5, 0.1, 0.4)])
    assert 0.02 < widths(beliefs, 1.0, 0.1, 0.0)[3] < 3.0


def test_a_run_bounds_what_does_not_depend_on_the_choice_at_other_values_of_it() -> None:
    first = Stage("dry", {"heat": Real(-1, 1)}, kernel=KERNEL, norm_bound=2.0, error=0.01)
    last = Stage("glue", {"kind": Choice(["a", "b"])}, kernel=KERNEL, norm_bound=2.0, error=0.01)
    beliefs = prior_beliefs(chain(first, last)).append(np.array([[0.3, 0.0, 0.5, 0.8]]))
    assert isinstance(beliefs, ReadBeliefs)
    near = beliefs.from_runs(Boxes(np.array([[0.3, 1.0]]), np.array([[0.3, 1.0]])))
    assert near is not None
    assert (near.upper - near.lower)[0, 2] < 0.03
    assert np.isinf(near.upper[0, 3])


def test_evidence_names_the_value() -> None:
    study = Study(network(0.001))
    for x in (-0.9, -0.3, 0.0, 0.3, 0.6, 0.9):
        study.add_trial({"wood": "elm", "x": x, "y": 0.0}, {"cut": 4 * math.sin(9 * x), "press": 0.0})
    (text,) = study.certificate().evidence
    assert "The norm_bound for wood = 'elm' is given as 2 and the error as 0.001, but trials 0 to 5" in text


def test_a_norm_bound_by_value_holds_for_readings_of_this_value() -> None:
    study = Study(network(0.001, norm={"oak": 2.0, "pine": 0.1, "elm": 1.0}))
    study.add_trial({"wood": "oak", "x": 0.3, "y": 0.0}, outputs({"wood": "oak", "x": 0.3, "y": 0.0}))
    assert study.certificate().kind == "proven"
    study.add_trial({"wood": "pine", "x": 0.3, "y": 0.0}, outputs({"wood": "pine", "x": 0.3, "y": 0.0}))
    assert study.certificate().kind == "refuted"


@pytest.mark.parametrize("error", [0.01, SubGaussian(0.003)])
def test_a_stored_study_continues_with_the_same_bound(error: Any, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'a.db'}"
    with closing(Study.open(url, "a", network=network(error))) as study:
        run(study, 3)
        before = study.certificate()
    with closing(Study.open(url, "a", network=network(error))) as study:
        after = study.certificate()
    assert (after.bound, after.gap, after.recommended) == (before.bound, before.gap, before.recommended)


def test_categories_share_the_risk_of_their_output() -> None:
    scatter = Scatter.of(network(SubGaussian(0.01)), 0.95)
    assert 3 * scatter.risk_of_average(3) == pytest.approx(scatter.risk_of_average())
    assert 3 * scatter.risk_of_average(3) <= 0.025 / 2


def test_scatter_with_a_joint_norm_and_a_choice_is_refused() -> None:
    options: dict[str, Any] = {"kernel": Separable(KERNEL), "norm_bound": 2.0, "error": SubGaussian(0.01)}
    with pytest.raises(ArgumentError, match="SubGaussian"):
        Stage("cut", {"wood": Choice(WOODS), "x": Real(-1, 1)}, outputs=["a", "b"], **options)
