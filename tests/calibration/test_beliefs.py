"""Calibrated beliefs about networks without kernels or norms: their parts, and the width of their bounds."""

from typing import Any

import numpy as np
import pytest

from cascada.arrays import Array
from cascada.calibration import Calibrated, Calibration, calibrate, stage_predictions
from cascada.calibration.beliefs import held_out
from cascada.confidence import BallBelief, Belief, BeliefBase
from cascada.errors import ContradictionError
from cascada.gp import Posterior
from cascada.gp.rounding import SMALLEST_JITTER
from cascada.kernels import Additive, Matern, Separable, SquaredExponential, Stationary
from cascada.network import Network, Stage, chain
from cascada.space import Integer, Real
from tests.network.cases import X, Y, points, values

SE = SquaredExponential(1.0)
FUNCTIONS = {
    "f": lambda x, y: [np.sin(2 * x) + y, 0.5 * x * np.abs(y)],
    "g": lambda u, v: np.cos(u) - 0.3 * v,
}


def _first(**options: object) -> Stage:
    return Stage("f", controls=X | Y, outputs=["u", "v"], **options)  # type: ignore[arg-type]


TWO_OUTPUTS = chain(_first(), Stage("g"))


def random_runs(network: Network, n: int, functions: object = None, seed: int = 0) -> Array:
    controls = points(network, n, np.random.default_rng(seed))
    return values(network, functions or FUNCTIONS, controls)  # type: ignore[arg-type]


def calibrated(network: Network, rows: Array, before: Calibrated | None = None, **options: object) -> Calibrated:
    return calibrate(network, rows, Calibration(**options), SMALLEST_JITTER, before)  # type: ignore[arg-type]


def scalar(found: BeliefBase[Any] | None) -> Belief:
    assert isinstance(found, Belief)
    return found


# ---- parts


def test_every_output_is_a_separate_part() -> None:
    found = calibrated(TWO_OUTPUTS, random_runs(TWO_OUTPUTS, 14))
    for beliefs in (found.acting, found.judging):
        assert beliefs.network is TWO_OUTPUTS
        assert [stage.node.stage.name for stage in beliefs.stages] == ["f.u", "f.v", "g"]
        assert [stage.node.columns for stage in beliefs.stages] == [(2,), (3,), (4,)]
        assert [stage.node.inputs for stage in beliefs.stages] == [(0, 1), (0, 1), (2, 3)]
        assert all(stage.span is not None for stage in beliefs.stages)
    assert set(found.fits) == {("f", "u"), ("f", "v"), ("g", "g")}
    u, v, _ = (stage.node.stage.kernel for stage in found.judging.stages)
    assert isinstance(u, Stationary)
    assert isinstance(v, Stationary)
    assert not np.allclose(u.lengthscales(2), v.lengthscales(2))


def test_points_are_chosen_by_the_likely_model_and_the_gap_by_the_cautious_one() -> None:
    found = calibrated(TWO_OUTPUTS, random_runs(TWO_OUTPUTS, 12))
    differ, additive = [], []
    for fit, one, other in zip(found.fits.values(), found.acting.stages, found.judging.stages, strict=True):
        for stage, model in ((one, fit.likely), (other, fit.cautious)):
            assert stage.node.stage.kernel is model.kernel
            assert scalar(stage.belief).kernel is model.kernel
            np.testing.assert_array_equal(stage.node.stage.offset, [model.offset])
        differ.append(fit.likely.kernel != fit.cautious.kernel)
        additive.append([isinstance(model.kernel, Additive) for model in (fit.likely, fit.cautious)])
    assert differ == [True, True, True]
    # Of the outputs of f one is a sum and one is not; g is a sum, but in its cautious kernel the inputs interact.
    assert additive == [[True, False], [False, False], [True, False]]


def test_the_data_are_those_of_the_columns() -> None:
    rows = random_runs(TWO_OUTPUTS, 14)
    found = calibrated(TWO_OUTPUTS, rows)
    for stage in (*found.acting.stages, *found.judging.stages):
        posterior = scalar(stage.belief).posterior
        np.testing.assert_array_equal(posterior.inputs, rows[:, list(stage.node.inputs)])
        np.testing.assert_allclose(posterior.outputs + stage.node.stage.offset, rows[:, list(stage.node.columns)])
        # A GP with these hyper-parameters reproduces the data.
        mean = posterior.mean(posterior.inputs) + stage.node.stage.offset
        np.testing.assert_allclose(mean, rows[:, list(stage.node.columns)], atol=1e-4)


def test_copies_formulas_and_declared_stages_stay_unchanged() -> None:
    known = Stage("end", known=True, lipschitz=2.0, parents=["g", "f.n"], function=lambda g, n: g - n)
    declared = Stage("g", parents=["f.u"], kernel=SE, norm_bound=9.0)
    network = chain(
        Stage("f", controls=X | {"n": Integer(1, 4)}, outputs=["u", "n"], passes=["n"]),
        declared,
        known,
        objective="end",
    )
    rows = random_runs(network, 12, {"f": lambda x, n: [np.sin(x) * n, n], "g": lambda u: np.exp(-(u**2) / 2)})
    found = calibrated(network, rows)
    names = {stage.node.stage.name: stage for stage in found.judging.stages}
    assert list(names) == ["f.u", "f.n", "g", "end"]
    assert names["f.n"].belief is None
    assert names["end"].belief is None
    assert names["f.n"].node.columns == (3,)
    np.testing.assert_array_equal(scalar(names["g"].belief).norm_bound, [9.0])
    assert scalar(names["g"].belief).kernel is SE
    assert set(found.fits) == {("f", "u")}


def test_a_kernel_without_a_norm_is_kept() -> None:
    network = chain(_first(kernel=SE, offset=[0.5, -0.5]), Stage("g"))
    found = calibrated(network, random_runs(network, 14))
    first = found.judging.stages[0]
    assert first.node.stage.name == "f"
    assert scalar(first.belief).kernel is SE
    np.testing.assert_array_equal(first.node.stage.offset, [0.5, -0.5])
    assert scalar(first.belief).norm_bound.shape == (2,)
    assert not found.judging.evidence
    np.testing.assert_allclose(scalar(found.acting.stages[0].belief).radius, 1.0, rtol=1e-6)


def test_a_joint_kernel_without_a_norm_is_kept() -> None:
    network = chain(_first(kernel=Separable(SE)), Stage("g"))
    found = calibrated(network, random_runs(network, 14))
    first = found.judging.stages[0].belief
    assert isinstance(first, BallBelief)
    assert first.norm_bound**2 >= first.posterior.spent
    assert not found.judging.evidence


def test_a_smooth_joint_kernel_without_a_norm_is_not_refuted() -> None:
    """B follows from a norm that the jitter makes smaller, which matters for analytic functions."""
    network = chain(Stage("f", controls={"x": Real(0, 1)}, outputs=["u", "v"], kernel=Separable(SE)), Stage("g"))
    functions = {"f": lambda x: [np.sin(6 * x), x], "g": lambda u, v: u * v}
    rows = random_runs(network, 14, functions)
    found = calibrated(network, rows)
    controls = np.linspace(0, 1, 101)
    for x in controls:
        prediction = found.judging.predict({"x": float(x)})["f"]
        assert np.all(prediction.lower <= prediction.upper)


def test_a_lipschitz_constant_is_kept() -> None:
    network = chain(_first(lipschitz=[4.0, 6.0]), Stage("g"))
    u, v, g = calibrated(network, random_runs(network, 10)).judging.stages
    np.testing.assert_array_equal(scalar(u.belief).lipschitz, [4.0])
    np.testing.assert_array_equal(scalar(v.belief).lipschitz, [6.0])
    assert scalar(g.belief).lipschitz is None


def test_predictions_of_parts_are_predictions_of_stages() -> None:
    found = calibrated(TWO_OUTPUTS, random_runs(TWO_OUTPUTS, 14))
    parts = found.judging.predict({"x": 0.3, "y": -0.2})
    whole = stage_predictions(TWO_OUTPUTS, parts)
    assert list(whole) == ["f", "g"]
    assert (whole["f"].mean.shape, whole["g"].mean.shape) == ((2,), (1,))
    np.testing.assert_array_equal(whole["f"].mean, [parts["f.u"].mean[0], parts["f.v"].mean[0]])
    np.testing.assert_array_equal(whole["f"].upper, [parts["f.u"].upper[0], parts["f.v"].upper[0]])


# ---- widths


@pytest.mark.parametrize("width", [0.5, 1.0, 3.0])
def test_points_are_chosen_by_bounds_of_this_width(width: float) -> None:
    for stage in calibrated(TWO_OUTPUTS, random_runs(TWO_OUTPUTS, 12), width=width).acting.stages:
        # Slightly more, because the jitter moves the mean at the data.
        assert width**2 <= scalar(stage.belief).radius[0] ** 2 * (1 + 1e-9)
        assert scalar(stage.belief).radius[0] ** 2 <= width**2 + 0.05


@pytest.mark.parametrize("family", ["matern", "se"])
def test_points_are_chosen_by_bounds_of_the_norm(family: str) -> None:
    found = calibrated(TWO_OUTPUTS, random_runs(TWO_OUTPUTS, 12), width="norm", family=family)
    for one, other in zip(found.acting.stages, found.judging.stages, strict=True):
        np.testing.assert_array_equal(scalar(one.belief).norm_bound, scalar(other.belief).norm_bound)


def test_the_norm_by_which_points_are_chosen_is_that_of_the_likely_kernel() -> None:
    """If the gap is judged by another kernel, the norm is as safe as that one's, but under the likely kernel."""
    found = calibrated(TWO_OUTPUTS, random_runs(TWO_OUTPUTS, 12), width="norm")
    for stage in found.acting.stages:
        belief = scalar(stage.belief)
        assert np.all(belief.radius >= held_out(belief.posterior))
        assert np.all(belief.radius >= 2.0 * (1 - 1e-9))
        assert np.all(belief.radius**2 >= (1.05**2 - 1) * belief.posterior.spent * (1 - 1e-9))


def left_out(posterior: Posterior) -> Array:
    """|f(x_i) − μ_{−i}(x_i)|/σ_{−i}(x_i) by refitting without each row; the sd with the row's jitter."""
    found = []
    for i in range(posterior.count):
        rest = np.arange(posterior.count) != i
        without = Posterior.fit(posterior.kernel, posterior.inputs[rest], posterior.outputs[rest], posterior.jitter)
        at = without.predict(posterior.inputs[[i]])
        sd = np.sqrt(at.sd**2 + posterior.jitter * posterior.kernel.variance)
        found.append(np.abs(posterior.outputs[i] - at.mean[0]) / sd[0])
    return np.max(found, axis=0)


@pytest.mark.parametrize("kernel", [Matern(1.5, 0.7), Matern(2.5, (0.5, 2.0), 3.0), SquaredExponential(0.4)], ids=str)
def test_held_out_residuals_are_those_of_refits(kernel: Stationary) -> None:
    rng = np.random.default_rng(0)
    inputs = rng.uniform(-1, 1, (11, 2))
    posterior = Posterior.fit(kernel, inputs, np.stack([np.sin(3 * inputs[:, 0]), rng.standard_normal(11)], axis=1))
    np.testing.assert_allclose(held_out(posterior), left_out(posterior), rtol=1e-4)
    np.testing.assert_array_equal(held_out(Posterior.empty(kernel, 2, 2)), [0.0, 0.0])


@pytest.mark.parametrize("n", [2, 6, 20])
def test_the_gap_is_judged_by_bounds_that_cover_held_out_residuals(n: int) -> None:
    for stage in calibrated(TWO_OUTPUTS, random_runs(TWO_OUTPUTS, n)).judging.stages:
        belief = scalar(stage.belief)
        assert np.all(belief.radius >= held_out(belief.posterior))
        assert np.all(belief.radius >= 2.0 * (1 - 1e-9))
        assert not belief.evidence


def test_a_larger_safety_factor_widens_the_bounds() -> None:
    rows = random_runs(TWO_OUTPUTS, 12)
    little, much = (calibrated(TWO_OUTPUTS, rows, safety=safety).judging for safety in (1.05, 3.0))
    for one, other in zip(little.stages, much.stages, strict=True):
        assert np.all(scalar(one.belief).norm_bound <= scalar(other.belief).norm_bound)
        belief = scalar(other.belief)
        noise = belief.posterior.jitter * belief.kernel.variance
        assert belief.squared_errors is not None
        of_mean = belief.posterior.spent - belief.squared_errors / noise  # ‖μ‖²
        assert np.all(belief.norm_bound**2 >= 9.0 * of_mean * (1 - 1e-9))


# ---- kinds of runs


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_a_few_runs_suffice_for_a_calibration(n: int) -> None:
    found = calibrated(TWO_OUTPUTS, random_runs(TWO_OUTPUTS, n))
    for beliefs in (found.acting, found.judging):
        prediction = stage_predictions(TWO_OUTPUTS, beliefs.predict({"x": 0.1, "y": 0.1}))
        assert all(np.isfinite(p.mean).all() and np.all(p.lower <= p.upper) for p in prediction.values())
    assert found.changes == ()


def test_partial_runs_update_only_the_stages_that_were_observed() -> None:
    rows = random_runs(TWO_OUTPUTS, 12)
    rows[3:7, 4] = np.nan  # g failed
    rows[8, 2:] = np.nan  # all failed
    u, v, g = calibrated(TWO_OUTPUTS, rows).judging.stages
    assert [scalar(stage.belief).posterior.count for stage in (u, v, g)] == [11, 11, 7]


def test_a_repeated_run_counts_once() -> None:
    rows = random_runs(TWO_OUTPUTS, 8)
    for stage in calibrated(TWO_OUTPUTS, np.concatenate([rows, rows[[2]]])).judging.stages:
        assert scalar(stage.belief).posterior.count == 8


def test_a_contradiction_is_refused() -> None:
    rows = random_runs(TWO_OUTPUTS, 8)
    other = rows[[2]] + np.array([0, 0, 1.0, 0, 0])
    with pytest.raises(ContradictionError):
        calibrated(TWO_OUTPUTS, np.concatenate([rows, other]))


def test_the_same_runs_give_the_same_beliefs() -> None:
    rows = random_runs(TWO_OUTPUTS, 12)
    one, other = calibrated(TWO_OUTPUTS, rows), calibrated(TWO_OUTPUTS, rows)
    for a, b in zip(one.judging.stages, other.judging.stages, strict=True):
        assert a.node.stage.kernel == b.node.stage.kernel
        np.testing.assert_array_equal(scalar(a.belief).norm_bound, scalar(b.belief).norm_bound)


def test_from_thirty_runs_on_not_every_run_leads_to_a_new_fit() -> None:
    rows = random_runs(TWO_OUTPUTS, 40)
    key = "f", "u"
    before = calibrated(TWO_OUTPUTS, rows[:29])
    at = {29: before}
    for n in range(30, 40):
        at[n] = calibrated(TWO_OUTPUTS, rows[:n], at[n - 1])
    fits = {n: found.fits[key] for n, found in at.items()}
    new = [n for n in range(30, 40) if fits[n] is not fits[n - 1]]
    assert new == [32, 36]  # the first counts of at least 1.1 times as many: 29 → 32 → 36 → 40
    # The beliefs contain all runs.
    assert [scalar(at[n].judging.stages[0].belief).posterior.count for n in (30, 39)] == [30, 39]


def test_below_thirty_runs_every_run_leads_to_a_new_fit() -> None:
    rows = random_runs(TWO_OUTPUTS, 12)
    before = calibrated(TWO_OUTPUTS, rows[:11])
    after = calibrated(TWO_OUTPUTS, rows, before)
    assert all(after.fits[key] is not before.fits[key] for key in before.fits)


def test_refuted_estimates_are_reported() -> None:
    """The first runs are flat, and then there is an unexpected peak."""
    network = chain(Stage("f", controls={"x": Real(0, 1)}))

    def row(x: float) -> list[float]:
        return [x, x + 100.0 * float(np.exp(-(((x - 0.77) / 0.02) ** 2)))]

    flat = np.array([row(x) for x in np.linspace(0, 0.6, 8)])
    before = calibrated(network, flat)
    after = calibrated(network, np.concatenate([flat, [row(0.77)]]), before)
    (change,) = after.changes
    assert "norm_bound of 'f', estimated as" in change
    assert "was refuted by a run" in change
    assert calibrated(network, flat, before).changes == ()


# ---- wrong declared bounds next to estimates


def test_a_declared_bound_is_enlarged_next_to_estimates() -> None:
    network = chain(
        Stage("f", {"x": Real(0.0, 1.0)}, kernel=Matern(2.5, 0.2), norm_bound=0.5),
        Stage("g"),
    )
    rows = np.array([[x, 3 * np.sin(5 * x), 9 * np.sin(5 * x) ** 2] for x in np.linspace(0, 1, 8)])
    left = calibrate(network, rows, Calibration(), 1e-10)
    assert set(left.judging.evidence) == {"f"}
    found = calibrate(network, rows, Calibration(), 1e-10, enlarge=True)
    assert not found.judging.evidence
    assert any("'f'" in change for change in found.changes)
    bound = found.network.node("f").stage.norm_bound
    assert bound is not None
    assert bound[0] > 0.5
    again = calibrate(network, rows, Calibration(), 1e-10, found, enlarge=True)
    assert again.changes == ()  # the enlarged bound is kept


def test_the_misfit_of_a_mean_does_not_widen_the_bounds() -> None:
    """With clusters of runs the jitter moves the mean; this does not widen the bounds elsewhere."""
    rng = np.random.default_rng(0)
    x = np.concatenate([np.linspace(0, 1, 12), 0.5 + 1e-6 * rng.standard_normal(30)])
    network = chain(Stage("f", {"x": Real(0.0, 1.0)}))
    rows = np.stack([x, np.abs(x - 0.5) ** 1.5], axis=1)
    belief = scalar(calibrate(network, rows, Calibration(family="se"), 1e-10).judging.stages[0].belief)
    asked = 1.5 * held_out(belief.posterior)
    safe = np.sqrt((1.05**2 - 1) * belief.posterior.spent)
    assert np.all(belief.radius <= 1.01 * np.maximum(np.maximum(asked, safe), 2.0 * (1 + 20 / belief.posterior.count)))
    data = belief.posterior
    assert np.all(np.abs(data.predict(data.inputs).mean - data.outputs) <= belief.output_error)
