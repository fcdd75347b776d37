"""A wrong assumption must never end as a proven gap: whatever gives it away, the certificate is refuted."""

from typing import Any

import pytest

from cascada.errors import RefutedError
from cascada.kernels import SquaredExponential
from cascada.network import Network, Stage, chain
from cascada.space import Real
from cascada.study import Study, maximise


def process(**known: Any) -> Network:
    """Two modelled stages and a formula, 10q − 2q², whose bounds are the caller's."""
    kernel = SquaredExponential(1.0)
    return chain(
        Stage("heat", controls={"x": Real(-2, 2)}, kernel=kernel, norm_bound=2.0, function=lambda x: 0.9 - 0.1 * x**2),
        Stage("quench", kernel=kernel, norm_bound=2.0, function=lambda heat: 0.5 + 0.3 * heat),
        Stage("test", known=True, function=lambda quench: 10 * quench - 2 * quench**2, **known),
    )


@pytest.mark.parametrize(
    "known",
    [{"lipschitz": 1.0}, {"interval": lambda **_: (0.0, 1.0)}, {"interval": lambda **_: (0.0, 0.001)}],
    ids=["a slope too small", "an interval too narrow", "an interval of nothing"],
)
def test_a_formula_with_wrong_bounds_is_refuted(known: dict[str, Any]) -> None:
    result = maximise(process(**known), budget=12, tolerance=0.01)
    assert result.gap_kind == "refuted"
    assert result.gap is None
    assert result.status == "refuted"


@pytest.mark.parametrize("stage", ["quench", "test"])
def test_an_output_told_without_its_inputs_is_checked_too(stage: str) -> None:
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


def test_formulas_need_no_telling() -> None:
    study = Study(process(lipschitz=20.0))
    trial = study.ask()
    assert trial is not None
    told = study.tell(trial, {"heat": 0.8, "quench": 0.7})
    assert told.state == "complete"
    assert told.value == pytest.approx(10 * 0.7 - 2 * 0.7**2)
