"""Formulas without bounds: they need none where kernels or norms are estimated, and then there is no gap."""

import math
from typing import Any

import numpy as np
import pytest

import cascada as cd
from cascada.confidence import Boxes
from cascada.errors import ArgumentError
from cascada.network import enclose_network

KERNEL = cd.SquaredExponential(1.0)


def network(*, bounded=False, norm=None, middle=False, limits=None, noisy=False):
    """A process whose cost is a formula, at the end or between two stages."""
    kernel: dict[str, Any] = {} if norm is None else {"kernel": KERNEL, "norm_bound": norm}
    error: dict[str, Any] = {"error": "estimate"} if noisy else {}
    mix = cd.Stage("mix", controls={"dose": cd.Real(0, 1)}, **kernel, **error)
    slope: dict[str, Any] = {"lipschitz": 9.0} if bounded else {}
    formula = cd.Stage(
        "cost",
        controls={"price": cd.Real(1, 2)},
        known=True,
        function=lambda mix, price: mix * price,
        limits=limits,
        **slope,
    )
    last = cd.Stage("cure", controls={"heat": cd.Real(0, 1)}, **kernel)
    return cd.chain(mix, formula, last) if middle else cd.chain(mix, formula)


def mix(dose):
    return math.sin(5 * dose)


def cure(cost, heat):
    return math.cos(cost) - (heat - 0.3) ** 2


def test_a_formula_without_bounds_is_refused_where_all_norms_are_given():
    with pytest.raises(ArgumentError, match=r"stage 'cost': a known stage needs lipschitz= or interval="):
        network(norm=2.0)
    assert network(norm=2.0, bounded=True).unbounded == ()


@pytest.mark.parametrize("options", [{}, {"middle": True}, {"limits": {"cost": (None, 1.2)}}, {"noisy": True}])
def test_a_process_with_a_formula_without_bounds_is_optimised_without_a_gap(options):
    process = network(**options)
    functions: Any = {"mix": mix, "cure": cure} if options.get("middle") else {"mix": mix}
    result = cd.maximise(process, functions, budget=12, progress=False, tolerance=0.1, stop_on_estimated=True)
    assert result.status == "budget"
    assert result.gap is None
    assert result.certificate.unbounded == ("cost",)
    assert "Nothing bounds the formula of 'cost', so there is no gap" in str(result)
    assert "cost: a known formula without bounds" in str(result)
    assert "nothing bounds the formula of cost" in result._repr_html_()
    bounded = network(**options, bounded=True)
    other = cd.maximise(bounded, functions, budget=12, progress=False)
    assert other.certificate.unbounded == ()
    assert result.best is not None
    assert other.best is not None
    assert result.best.value == pytest.approx(other.best.value, abs=0.35)


def test_the_first_points_are_those_of_a_process_with_bounds():
    """Until bounds are tested, points do not depend on them."""
    found = [cd.maximise(network(bounded=bounded), [mix], budget=7, progress=False).trials for bounded in (False, True)]
    assert [trial.controls for trial in found[0]] == [trial.controls for trial in found[1]]


def test_bounds_are_infinite_from_a_formula_without_bounds_on_except_at_points():
    study = cd.Study(network(middle=True))
    study.optimise({"mix": mix, "cure": cure}, budget=8, progress=False)
    beliefs, domain = study.beliefs, study.network.domain
    whole = enclose_network(beliefs, Boxes(domain.lower[None], domain.upper[None])).boxes
    assert np.isfinite(whole.upper[0, :4]).all()
    assert np.isinf(whole.upper[0, 4:]).all()
    prediction = study.predict({"dose": 0.5, "price": 1.5, "heat": 0.5})
    assert np.isfinite(prediction["cure"].mean).all()
    assert prediction["cure"].upper[0] == np.inf


def test_a_stored_study_with_a_formula_without_bounds_opens_again(tmp_path):
    url = f"sqlite:///{tmp_path / 'cost.db'}"
    study = cd.Study.open(url, "cost", network())
    study.optimise([mix], budget=6, progress=False)
    study.close()
    again = cd.Study.open(url, "cost", network())
    assert len(again.trials) == 6
    assert again.certificate().unbounded == ("cost",)
    again.close()


def test_the_report_of_a_formula_without_bounds_shows_no_bound():
    report = pytest.importorskip("cascada.report.page", exc_type=ImportError)
    pytest.importorskip("plotly")
    study = cd.Study(network())
    study.optimise([mix], budget=9, progress=False)
    page = report.report_html(study, "cost")
    assert "Nothing bounds the formula of" in page
    assert '"id": "acquisition"' not in page
