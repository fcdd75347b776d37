"""Wrong assumptions that the data contradict: the certificate is refuted and never proven."""

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cascada.algorithms import Algorithm, CascadedEI
from cascada.errors import RefutedError
from cascada.kernels import Separable, SquaredExponential
from cascada.network import Network, Stage, chain, prior_beliefs
from cascada.network.consistency import formula_evidence
from cascada.problems import certified
from cascada.space import Real
from cascada.study import Result, Study, maximise, minimise


def process(**known: Any) -> Network:
    """Return two modelled stages and a formula, 10q − 2q², with the bounds `known`."""
    kernel = SquaredExponential(1.0)
    return chain(
        Stage("heat", controls={"x": Real(-2, 2)}, kernel=kernel, norm_bound=2.0, function=lambda x: 0.9 - 0.1 * x**2),
        Stage("quench", kernel=kernel, norm_bound=2.0, function=lambda heat: 0.5 + 0.3 * heat),
        Stage("test", known=True, function=lambda quench: 10 * quench - 2 * quench**2, **known),
    )


@pytest.mark.parametrize(
    "known",
    [{"lipschitz": 1.0}, {"interval": lambda **_: (0.0, 1.0)}, {"interval": lambda **_: (0.0, 0.001)}],
    ids=["a slope too small", "an interval too narrow", "an interval of almost no width"],
)
def test_a_formula_with_wrong_bounds_is_refuted(known: dict[str, Any]) -> None:
    result = maximise(process(**known), budget=12, tolerance=0.01)
    assert result.gap_kind == "refuted"
    assert result.gap is None
    assert result.status == "refuted"


@pytest.mark.parametrize("stage", ["quench", "test"])
def test_an_impossible_output_without_its_inputs_is_refuted(stage: str) -> None:
    study = Study(process(lipschitz=40.0), tolerance=0.01)
    trial = study.ask()
    assert trial is not None
    study.tell(trial, {stage: 1000.0})
    certificate = study.certificate()
    assert certificate.kind == "refuted"
    assert stage in str(certificate)
    with pytest.raises(RefutedError, match=stage):
        study.ask()


def test_right_bounds_are_not_refuted() -> None:
    result = maximise(process(lipschitz=20.0), budget=12, tolerance=0.5)
    assert result.gap_kind == "proven"


def test_outputs_of_formulas_are_computed() -> None:
    study = Study(process(lipschitz=20.0))
    trial = study.ask()
    assert trial is not None
    complete = study.tell(trial, {"heat": 0.8, "quench": 0.7})
    assert complete.state == "complete"
    assert complete.value == pytest.approx(10 * 0.7 - 2 * 0.7**2)


@pytest.mark.parametrize("algorithm", ["non_adaptive", "random_search", "gpn_ucb", "cei"])
@pytest.mark.parametrize("seed", [205629, 3, 7])
def test_runs_that_refute_an_assumption_are_kept(algorithm: str, seed: int) -> None:
    """L is far too small, which only the data of several stages show."""
    network = certified("chain", seed, norm=2.0, lipschitz=0.2).network
    result = maximise(network, budget=6, algorithm=algorithm, progress=False)
    assert result.gap_kind == "refuted"
    assert result.trials[-1].state == "complete"


def root(f: float) -> float:
    """Formula that is not defined below 0; f is always above."""
    return math.sqrt(f)


# A few samples of cEI suffice: it also samples values below 0.
@pytest.mark.parametrize(
    "algorithm", ["non_adaptive", "cucb", "oi", CascadedEI(samples=64), "gpn_ucb", "gp_ucb"], ids=str
)
def test_a_formula_need_not_be_defined_outside_the_range_of_its_input(algorithm: str | Algorithm) -> None:
    """Means and samples of f may be below 0, although f is not."""

    def positive(x: float) -> float:
        return 1.2 * math.exp(-0.5 * x * x) + 1e-9

    f = Stage("f", controls={"x": Real(-6, 6)}, kernel=SquaredExponential(1.0), norm_bound=1.3, function=positive)
    last = Stage(
        "root",
        known=True,
        function=root,
        interval=lambda f: (math.sqrt(max(f[0], 0.0)) * (1 - 1e-12), math.sqrt(max(f[1], 0.0)) * (1 + 1e-12)),
    )
    result = maximise(chain(f, last), budget=9, algorithm=algorithm, progress=False)
    assert result.best is not None
    assert (len(result.trials), result.gap_kind) == (9, "proven")
    assert result.best.value is not None
    assert result.gap is not None
    assert math.sqrt(1.2) - result.best.value <= result.gap + 1e-6


def test_the_evidence_against_a_formula_quotes_its_lipschitz_constant_as_given() -> None:
    stage = prior_beliefs(process(lipschitz=0.1)).stages[-1]
    (text,) = formula_evidence(stage, np.array([[0.0, 0.9, 0.7, 6.02], [1.0, 0.8, 0.5, 4.5]]), [4, 9])
    assert "The lipschitz is given as 0.1, but trials 4 and 9 are possible only with more than 7.59999." in text


def test_the_evidence_against_a_lipschitz_constant_is_per_user_unit() -> None:
    """Also for a logarithmic control, where the bound is per unit of the logarithm."""
    x = Real(1, 30, log=True)
    study = Study(chain(Stage("f", {"x": x}, kernel=SquaredExponential(1.0), norm_bound=50.0, lipschitz=0.1)))
    for setting, value in ((1.0, 0.0), (30.0, 20.0)):
        study.tell(study.begin_trial({"x": setting}), {"f": value})
    (text,) = study.certificate().evidence
    found = re.search(r"given as (\S+), but trials 0 and 1 are possible only with more than (\S+)\. ", text)
    assert found is not None
    stated, least = found.groups()
    assert stated == "0.1"
    assert 0.1 < float(least) <= 20 / math.log(30) / 30


@pytest.mark.parametrize(("optimise", "sign"), [(maximise, 1), (minimise, -1)])
def test_the_evidence_against_an_interval_has_enough_digits_to_show_the_violation(
    optimise: Callable[..., Result], sign: int
) -> None:
    ends = sorted([1e6 - sign, 1e6 + sign * 0.125])
    formula = Stage("g", known=True, interval=lambda **_: tuple(ends), function=lambda **_: 1e6 + sign * 0.25)
    stage = Stage("f", {"x": Real(-2, 2)}, kernel=SquaredExponential(1.0), norm_bound=2.0, function=lambda **_: 0.5)
    (text,) = optimise(chain(stage, formula), budget=3).certificate.evidence
    found = re.search(r"gave g = (\S+), but by the assumptions it lies in \[(\S+), (\S+)\]", text)
    assert found is not None
    value, low, high = map(float, found.groups())
    assert low <= ends[0] < ends[1] <= high
    assert value > high if sign > 0 else value < low


def test_the_norm_bound_of_a_joint_stage_is_enlarged() -> None:
    joint = Stage(
        "mix",
        controls={"x": Real(-2, 2)},
        outputs=["u", "v"],
        kernel=Separable(SquaredExponential(1.0), ((1.0, 0.2), (0.2, 1.0))),
        norm_bound=0.5,
    )
    last = Stage("test", kernel=SquaredExponential(1.0), norm_bound=3.0)
    study = Study(chain(joint, last), on_violation="enlarge")
    study.add_trial({"x": 0.0}, {"mix": [2.0, 1.0], "test": 0.5})
    certificate = study.certificate()
    assert certificate.kind == "estimated"
    assert any("norm_bound of stage 'mix' raised from 0.5 to" in line for line in certificate.assumptions)
    assert study.ask() is not None
