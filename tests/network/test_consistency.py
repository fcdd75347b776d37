"""Runs that contradict the assumptions are reported, at whichever stage the contradiction appears."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cascada.confidence import Boxes
from cascada.kernels import SquaredExponential
from cascada.network import Beliefs, Network, Stage, chain, enclose_network
from cascada.network.consistency import impossible
from cascada.network.prior import prior_beliefs
from cascada.space import Real
from cascada.study import Study

KERNEL = SquaredExponential(1.0)


def network() -> Network:
    return chain(
        Stage("mix", {"dose": Real(-2, 2)}, kernel=KERNEL, norm_bound=2.0),
        Stage("cure", {"heat": Real(-2, 2)}, kernel=KERNEL, norm_bound=2.0),
    )


def believed(runs: np.ndarray) -> Beliefs:
    return prior_beliefs(network()).append(runs)


def run(dose: float, heat: float, mix: float, cure: float) -> np.ndarray:
    return np.array([[dose, heat, mix, cure]])


RUNS = np.vstack([run(-1.0, 0.5, 0.4, 0.9), run(0.3, -0.7, 1.1, 0.2), run(1.4, 1.2, -0.3, 0.6)])


@given(
    st.floats(-2, 2), st.floats(-2, 2), st.floats(-4, 4, allow_subnormal=False), st.floats(-4, 4, allow_subnormal=False)
)
def test_an_output_outside_its_bounds_becomes_evidence_once_it_is_learned(
    dose: float, heat: float, mix: float, cure: float
) -> None:
    """So complete runs need not be compared with the bounds before they are learned."""
    beliefs, values = believed(RUNS), run(dose, heat, mix, cure)
    assert impossible(beliefs, values) == ()
    boxes = enclose_network(beliefs, Boxes(values[:, :2], values[:, :2])).boxes
    slack = 1e-9 * (1 + np.abs(values))
    outside = (values < boxes.lower - slack) | (values > boxes.upper + slack)
    if outside.any() and not np.any(np.all(RUNS[:, :1] == dose, axis=1)):
        assert beliefs.append(values).evidence


@pytest.mark.parametrize(("cure", "possible"), [(0.5, True), (2.5, False), (-2.5, False)])
def test_an_output_without_its_inputs_is_compared_with_the_bounds(cure: float, possible: bool) -> None:
    values = run(0.9, 0.1, np.nan, cure)
    found = impossible(believed(RUNS), values)
    assert (found == ()) == possible
    assert all("'cure'" in text for text in found)
    study = Study(network())
    for dose, heat, mix, out in RUNS.tolist():
        study.add_trial({"dose": dose, "heat": heat}, {"mix": mix, "cure": out})
    study.add_trial({"dose": 0.9, "heat": 0.1}, {"cure": cure})
    assert (study.certificate().kind == "proven") == possible
