"""Studies with tiny, huge, badly scaled or neighbouring numbers: bounds hold, and contradictions are found."""

import math

import numpy as np
import pytest

import cascada as cd
from cascada.errors import ArgumentError, ContradictionError
from cascada.study import Study

SE = cd.SquaredExponential(1.0)


def bump(x: float, centre: float) -> float:
    return math.exp(-0.5 * (x - centre) ** 2)


def reached(result: cd.Result) -> float:
    """Return the bound of a certificate."""
    assert result.best is not None
    assert result.best.value is not None
    assert result.gap is not None
    return result.best.value + result.gap


# ---- joint norms


@pytest.mark.parametrize(
    "matrix",
    [np.diag([1e14, 1e-8]), np.diag([1e6, 1e-8]), np.diag([1.0, 9e-12])],
    ids=["1e22", "1e14", "1e11"],
)
def test_a_separable_kernel_with_outputs_of_very_different_variance_gives_a_true_bound(matrix):
    # f = √A·u·k(·, c) with ‖u‖ = 2 has norm exactly 2; the objective is the small output.
    roots, share = np.sqrt(np.diag(matrix)), np.array([0.8, 1.8])
    share *= 2 / np.linalg.norm(share)
    pair = cd.Stage(
        "pair",
        controls={"x": cd.Real(-2, 2)},
        outputs=["large", "small"],
        kernel=cd.Separable(SE, matrix),
        norm_bound=2.0,
    )
    network = cd.Network([pair], objective="pair.small")
    result = cd.maximise(
        network, {"pair": lambda x: roots * share * bump(x, 0.3)}, budget=12, tolerance=1e-3 * roots[1], progress=False
    )
    best_possible = roots[1] * share[1]
    assert result.status == "tolerance"
    assert result.gap_kind == "proven"
    assert result.certificate.bound is not None
    assert result.certificate.bound >= best_possible
    assert reached(result) >= best_possible
    predicted = Study(network)
    for trial in result.trials[:3]:
        predicted.add_trial(trial.controls, trial.outputs)
    at = predicted.predict({"x": 0.3})["pair"]
    assert np.all(at.lower <= roots * share)
    assert np.all(roots * share <= at.upper)


def test_outputs_that_are_almost_equal_are_possible_under_a_correlation_near_one():
    correlation = 1 - 1e-11
    C = np.linalg.cholesky(np.array([[1.0, correlation], [correlation, 1.0]]))
    share = C @ [1.0, 1.0]  # norm √2
    pair = cd.Stage(
        "pair",
        controls={"x": cd.Real(-2, 2)},
        outputs=["a", "b"],
        kernel=cd.Separable(SE, [[1.0, correlation], [correlation, 1.0]]),
        norm_bound=1.5,
    )
    network = cd.Network([pair], objective="pair.b")
    result = cd.maximise(network, {"pair": lambda x: share * bump(x, 0.3)}, budget=12, tolerance=1e-3, progress=False)
    assert result.status == "tolerance"
    assert reached(result) >= share[1]


def test_outputs_outside_the_range_of_a_singular_matrix_are_refuted_with_a_remedy():
    pair = cd.Stage(
        "pair",
        controls={"x": cd.Real(-2, 2)},
        outputs=["a", "b"],
        kernel=cd.Separable(SE, [[1.0, 1.0], [1.0, 1.0]]),
        norm_bound=2.0,
    )
    study = Study(cd.Network([pair], objective="pair.b"))
    study.add_trial({"x": 0.0}, {"pair": [1.0, 1.001]})
    certificate = study.certificate()
    assert certificate.kind == "refuted"
    assert "use one of full rank" in str(certificate)


# ---- ranges of numbers


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: stage(1e-165), "norm_bound must lie between 1e-100 and 1e\\+100, .*; got 1e-165. Choose other units"),
        (lambda: stage(1e120), "norm_bound must lie between"),
        (lambda: stage(1e-60, cd.SquaredExponential(1.0, 1e-100)), "norm_bound times the prior sd"),
        (lambda: cd.SquaredExponential(1e-120), "lengthscale must lie between 1e-100 and 1e\\+100"),
        (lambda: cd.Matern(2.5, (1.0, 1e101)), "every lengthscale must lie between"),
        (lambda: cd.SquaredExponential(1.0, 1e-201), "variance must lie between 1e-200 and 1e\\+200"),
        (lambda: cd.SquaredExponential(1e-90, 1e150), "sqrt\\(variance\\)/lengthscale must lie between"),
        (lambda: stage(1.0, lipschitz=1e-220), "stage 'f': lipschitz must lie between 1e-200 and 1e\\+200"),
        (lambda: stage(1.0, offset=1e101), "stage 'f': offset must lie between 0 and 1e\\+100"),
        (lambda: cd.Real(0, 1e-120), "at least 1e-100 wide"),
        (lambda: cd.Real(0, 1e120), "must lie within ±1e\\+100"),
        (lambda: cd.Integer(0, 2**53), "within ±2\\^51"),
    ],
)
def test_numbers_whose_squares_leave_the_range_of_floats_raise(make, text):
    with pytest.raises(ArgumentError, match=text):
        make()


def stage(norm_bound, kernel=SE, **options):
    return cd.Stage("f", controls={"x": cd.Real(-2, 2)}, kernel=kernel, norm_bound=norm_bound, **options)


# Powers of two near 1e±90 and 1e±10: all roundings are the same, and so are all points.
@pytest.mark.parametrize("unit", [2.0**-299, 2.0**-33, 2.0**33, 2.0**299])
def test_the_unit_of_the_outputs_does_not_change_the_proven_gap(unit):
    def gap(unit: float) -> tuple[float, float]:
        first, second = stage(1.5 * unit), cd.Stage("g", kernel=cd.SquaredExponential(unit), norm_bound=2.0 * unit)
        functions = [lambda x: 1.5 * unit * bump(x, 0.4), lambda f: 2.0 * unit * bump(f / unit, 0.9)]
        result = cd.maximise(cd.chain(first, second), functions, budget=6, progress=False)
        assert result.gap_kind == "proven"
        assert reached(result) >= 2.0 * unit
        assert result.best is not None
        return result.best.outputs["g"][0] / unit, (reached(result) - result.best.outputs["g"][0]) / unit

    np.testing.assert_allclose(gap(unit), gap(1.0), rtol=1e-9, atol=1e-15)


# ---- logarithmic controls


@pytest.mark.parametrize("norms", [True, False])
def test_two_settings_that_share_one_logarithm_are_both_kept(norms):
    x = 1.2345e5
    other = math.nextafter(x, math.inf)
    assert math.log(x) == math.log(other)
    kernel, norm_bound = (SE, 2.0) if norms else (None, None)
    control = cd.Real(1e5, 2e5, log=True)
    network = cd.chain(cd.Stage("f", controls={"x": control}, kernel=kernel, norm_bound=norm_bound))
    study = Study(network)
    value = bump(math.log(x), 11.7)
    for number, (at, y) in enumerate([(x, value), (other, math.nextafter(value, math.inf)), (x, value)]):
        assert study.add_trial({"x": at}, {"f": y}).number == number
    assert len({trial.value for trial in study.trials}) == 2
    assert study.certificate().kind == ("proven" if norms else "estimated")
    if norms:
        with pytest.raises(ContradictionError, match="for the same inputs in trial 0"):
            study.add_trial({"x": x}, {"f": value + 1e-9})
    else:  # the noise can be estimated
        with pytest.warns(RuntimeWarning, match="for the same inputs in trial 3 and trial 0"):
            study.add_trial({"x": x}, {"f": value + 1e-9})


def test_a_rounded_logarithm_costs_every_output_of_a_joint_norm_its_own_rounding_only():
    pair = cd.Stage(
        "pair",
        controls={"x": cd.Real(1e5, 2e5, log=True)},
        outputs=["large", "small"],
        kernel=cd.Separable(SE, np.diag([1e14, 1e-8])),
        norm_bound=2.0,
    )
    study = Study(cd.Network([pair], objective="pair.small"))
    for x in (1e5, 1.2345e5, math.nextafter(1.2345e5, math.inf), 2e5):
        height = bump(math.log(x), 11.7)
        study.add_trial({"x": x}, {"pair": [1e7 * height, 1.5e-4 * height]})
    certificate = study.certificate(tolerance=1e-6)
    assert certificate.kind == "proven"
    assert certificate.gap is not None
    assert certificate.gap <= 1e-5


def test_settings_that_share_one_logarithm_are_refuted_if_no_norm_allows_their_outputs():
    x = 1.2345e5
    network = cd.chain(cd.Stage("f", controls={"x": cd.Real(1e5, 2e5, log=True)}, kernel=SE, norm_bound=2.0))
    study = Study(network)
    study.add_trial({"x": x}, {"f": 1.0})
    study.add_trial({"x": math.nextafter(x, math.inf)}, {"f": 1.01})
    assert study.certificate().kind == "refuted"


# ---- contradictions at every scale


@pytest.mark.parametrize("unit", [1e-90, 1e-10, 1.0, 1e10])
def test_an_objective_above_its_maximum_is_refuted_at_every_scale(unit):
    network = cd.chain(stage(1.0), cd.Stage("g", kernel=SE, norm_bound=unit))
    study = Study(network)
    study.add_trial({"x": 0.0}, {"g": 2.5 * unit})  # the first stage was not observed
    assert study.certificate().kind == "refuted"
    possible = Study(network)
    possible.add_trial({"x": 0.0}, {"g": unit})
    assert possible.certificate().kind == "proven"


def test_an_offset_does_not_hide_a_contradiction():
    network = cd.chain(stage(1.0), cd.Stage("g", kernel=SE, norm_bound=0.1, offset=1e9))
    study = Study(network)
    study.add_trial({"x": 0.0}, {"g": 1e9 + 0.9})
    assert study.certificate().kind == "refuted"
    possible = Study(network)
    possible.add_trial({"x": 0.0}, {"g": 1e9 + 0.1})
    assert possible.certificate().kind == "proven"


@pytest.mark.parametrize("unit", [1e-90, 1e-12, 1.0, 1e12])
@pytest.mark.parametrize("bounded_by", ["lipschitz", "interval"])
def test_a_wrong_output_of_a_formula_raises_at_every_scale(unit, bounded_by):
    bound = {"lipschitz": 3 * unit} if bounded_by == "lipschitz" else {"interval": _tripled(unit)}
    formula = cd.Stage("g", known=True, function=lambda f: 3 * unit * f, **bound)
    study = Study(cd.chain(stage(2.0), formula))
    with pytest.raises(ContradictionError, match=r"its formula\s+gives"):
        study.add_trial({"x": 0.0}, {"f": 0.7, "g": 500 * 2.1 * unit})
    with pytest.raises(ContradictionError, match=r"its formula\s+gives"):
        study.add_trial({"x": 0.0}, {"f": 0.7, "g": 2.1 * unit * (1 + 1e-8)})
    # Another program may compute or print it with other rounding: the value of the formula is kept.
    for rounded in ((unit * 0.7) * 3, 2.1 * unit * (1 + 1e-10)):
        assert study.add_trial({"x": 0.0}, {"f": 0.7, "g": rounded}).value == 3 * unit * 0.7


def _tripled(unit):
    return lambda f: (3 * unit * f[0], 3 * unit * f[1])


def test_the_output_of_a_formula_with_cancelling_terms_may_have_their_rounding():
    # Its value is accurate up to the rounding of its terms, not to its own last digits.
    formula = cd.Stage(
        "g",
        controls={"y": cd.Real(0, 1)},
        known=True,
        interval=lambda f, y: (1e6 * f[0] - 1e6 * y[1], 1e6 * f[1] - 1e6 * y[0]),
        function=lambda f, y: 1e6 * f - 1e6 * y,
    )
    study = Study(cd.chain(stage(2.0), formula))
    y = 0.7 - 1e-9
    output = 1e6 * (0.7 - y)
    assert abs(output - (1e6 * 0.7 - 1e6 * y)) > 1e-9 * output
    study.add_trial({"x": 0.0, "y": y}, {"f": 0.7, "g": output})
    assert study.certificate().kind == "proven"
    with pytest.raises(ContradictionError, match=r"its formula\s+gives"):
        study.add_trial({"x": 1.0, "y": y}, {"f": 0.7, "g": output + 1e-7})


def test_inputs_closer_than_any_distance_are_no_evidence_against_a_lipschitz_constant():
    study = Study(cd.chain(stage(1.0, lipschitz=1.0)))
    study.add_trial({"x": 0.0}, {"f": 0.5})
    study.add_trial({"x": 5e-324}, {"f": 0.5})
    assert study.certificate().kind == "proven"
    study.add_trial({"x": 1e-323}, {"f": 0.6})
    assert study.certificate().kind == "refuted"


def test_a_formula_is_not_called_beyond_the_range_of_its_controls():
    root = cd.Stage(
        "root",
        controls={"x": cd.Real(1, 2)},
        known=True,
        function=lambda x: -math.sqrt(x - 1),
        interval=lambda x: (-math.sqrt(x[1] - 1), -math.sqrt(x[0] - 1)),
    )
    study = Study(cd.Network([root]))
    assert study.tell(study.begin_trial({"x": 1.0}), {"root": 0.0}).value == 0.0
    assert study.certificate().kind == "proven"


@pytest.mark.parametrize("bound", [{"lipschitz": 1.0}, {"interval": lambda v: v}], ids=["lipschitz", "interval"])
@pytest.mark.parametrize("reported", [True, False])
def test_a_formula_whose_inner_numbers_cancel_is_not_refuted(bound, reported):
    first = cd.Stage("v", controls={"x": cd.Real(-3, 3)}, kernel=SE, norm_bound=2e-3)
    shifted = cd.Stage("g", parents=["v"], known=True, function=lambda v: (v + 273.15) - 273.15, **bound)
    study = Study(cd.Network([first, shifted]))
    for x in (0.3, 1.0, 1 + 1e-12, 1 + 3e-11, 2.0):
        value = 1e-3 * bump(x, 0.0)
        study.add_trial({"x": x}, {"v": value, "g": value} if reported else {"v": value})
    assert study.certificate().kind == "proven"


# ---- evidence


def test_evidence_quotes_the_norm_bound_as_given_and_what_the_named_trials_need():
    study = Study(cd.chain(cd.Stage("f", {"x": cd.Real(-9, 9)}, kernel=SE, norm_bound=1.0, offset=1e6)))
    for x, y in ((0.0, 0.5), (5.0, 1.5), (-5.0, 1.0), (9.0, 3.0)):
        study.add_trial({"x": x}, {"f": 1e6 + y})
    (text,) = study.certificate().evidence
    assert "is given as 1, but trials 0 and 1 are possible only with more than 1.581" in text
    assert "and all trials together only with more than 3.53" in text


def test_evidence_about_a_function_of_known_norm_is_true_with_a_large_offset():
    study = Study(cd.chain(cd.Stage("f", {"x": cd.Real(-2, 2)}, kernel=SE, norm_bound=0.01, offset=1e10)))
    for x in np.random.default_rng(0).uniform(-1e-3, 1e-3, 5):
        study.add_trial({"x": float(x)}, {"f": 1e10 + bump(float(x), 0.0)})
    (evidence,) = study.beliefs.evidence["f"]
    assert evidence.given == 0.01
    assert 0.01 < evidence.needed <= evidence.smallest <= 1.0  # the norm of the function is 1


@pytest.mark.parametrize("whole", [True, False])
def test_evidence_names_the_same_trials_for_whole_and_partial_results(whole):
    mix = cd.Stage("mix", controls={"x": cd.Real(0, 10)}, lipschitz=1.0)  # the norm is estimated
    study = Study(cd.Network([mix, cd.Stage("cure", controls={"z": cd.Real(0, 10)}, parents=["mix"])]))
    for x, y in [(1, 0.5), (5, 1.5), (3, 1.0), (7, 2.0), (7.1, 5.0), (9, 5.1)]:
        trial = study.begin_trial({"x": x, "z": x})
        if whole:
            study.tell(trial, {"mix": y, "cure": y * x})
        else:
            study.tell(trial, {"mix": y})
            study.tell(trial, {"cure": y * x})
    (text,) = study.certificate().evidence
    assert "trials 3 and 4 are possible only with more than" in text


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: stage(1.0, cd.Matern(1.5, 1.0, 1e-100), offset=1e90), "offset, in prior sds of the kernel, must lie"),
        (lambda: Study(cd.chain(wide(cd.SquaredExponential(1e-100)))), "'x' ranges over 2e.200 lengthscales"),
        (lambda: Study(cd.chain(both(1e150))), "lipschitz times the range of its inputs is more than 1e300"),
    ],
)
def test_products_that_leave_the_range_of_floats_raise(make, text):
    with pytest.raises(ArgumentError, match=text):
        make()


def both(lipschitz):
    controls = {"x": cd.Real(1, 1e100, log=True), "y": cd.Real(-1e100, 1e100)}
    return cd.Stage("f", controls=controls, kernel=cd.SquaredExponential(1e60), norm_bound=1.0, lipschitz=lipschitz)


def wide(kernel):
    return cd.Stage("f", controls={"x": cd.Real(-1e100, 1e100)}, kernel=kernel, norm_bound=1.0)


def test_the_widest_numbers_that_are_allowed_give_bounds_without_a_warning():
    for made in (
        wide(cd.Matern(1.5, 1e51, 1e200)),
        cd.Stage("f", {"x": cd.Real(0, 1)}, kernel=cd.SquaredExponential(1.0, 1e-40), norm_bound=1.0, offset=1e99),
        cd.Stage("f", {"x": cd.Real(1, 1e100, log=True)}, kernel=SE, norm_bound=1.0, lipschitz=1e150),
    ):
        study = Study(cd.chain(made))
        trial = study.ask()
        assert trial is not None
        study.tell(trial, {"f": float(made.offset[0])})
        assert study.certificate().kind == "proven"


@pytest.mark.parametrize("value", [1e100, -1e100])
def test_an_absurd_value_is_refuted_without_a_warning(value):
    study = Study(cd.chain(stage(1.0, cd.SquaredExponential(1.0, 1e-180))))
    study.add_trial({"x": 0.0}, {"f": 1e-91})
    study.add_trial({"x": 1.0}, {"f": value})
    assert study.certificate().kind == "refuted"
