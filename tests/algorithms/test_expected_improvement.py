"""The logarithm of EI, for EI of any size."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cascada.algorithms import ExpectedImprovement
from cascada.algorithms.expected_improvement import log_expected_improvement
from cascada.arrays import Array
from cascada.kernels import SquaredExponential
from cascada.network import Network, Stage, chain
from cascada.space import Real
from tests import reference_algorithms as paper
from tests.algorithms import cases

# The points at which the formula changes, and far beyond.
EDGES = [-1.0, -100.0, 40.0, 0.0]
NEAR_EDGES = [edge + step for edge in EDGES for step in (-1e-9, 0.0, 1e-9)]
Z = [*np.linspace(-120, 45, 56).tolist(), *NEAR_EDGES, *(-np.geomspace(120, 1e6, 17)).tolist(), 1e3, 1e8]

sizes = st.floats(1e-8, 1e8)


def rounding(log_ei: Array) -> Array:
    """The tolerance: a relative error of EI, and one of its logarithm, because −z²/2 is rounded."""
    return 1e-11 + 4e-16 * np.abs(log_ei)


@pytest.mark.parametrize("sd", [1.0, 1e-9, 3e7])
def test_equals_fifty_digits(sd: float) -> None:
    gain = np.array(Z) * sd
    got = log_expected_improvement(gain, np.full_like(gain, sd))
    exact = np.array([float(paper.log_expected_improvement(g, sd, 0.0)) for g in gain])
    assert np.all(np.abs(got - exact) <= rounding(exact))


def test_without_uncertainty_it_is_the_gain_itself() -> None:
    gain = np.array([3.0, 1e-300, 0.0, -1e-300, -2.0, -np.inf])
    expected = [np.log(3.0), np.log(1e-300), -np.inf, -np.inf, -np.inf, -np.inf]
    np.testing.assert_allclose(log_expected_improvement(gain, np.zeros(6)), expected)


@pytest.mark.parametrize("sd", [5e-324, 1e-200, 1.0, 1e200])
@pytest.mark.parametrize("gain", [1e300, 1.0, 5e-324, 0.0, -5e-324, -1.0, -1e300])
def test_it_is_a_number_everywhere(gain: float, sd: float) -> None:
    """There is no overflow, no 0·∞ and no warning, and it is finite if an improvement is possible."""
    (got,) = log_expected_improvement(np.array([gain]), np.array([sd]))
    assert np.isfinite(got)


@given(gain=st.floats(-1e9, 1e9), sd=sizes, more=st.floats(0, 1e9))
def test_more_gain_is_better(gain: float, sd: float, more: float) -> None:
    less, better = log_expected_improvement(np.array([gain, gain + more]), np.array([sd, sd]))
    assert better >= less - rounding(less)


@given(gain=st.floats(-1e9, 1e9), sd=sizes, more=st.floats(0, 1e9))
def test_more_uncertainty_is_better(gain: float, sd: float, more: float) -> None:
    """∂EI/∂σ = ϕ(z) > 0."""
    less, better = log_expected_improvement(np.array([gain, gain]), np.array([sd, sd + more]))
    assert better >= less - rounding(less)


@given(gain=st.floats(-1e6, 1e6), sd=sizes, power=st.integers(-30, 30))
def test_a_scale_is_a_shift_of_the_logarithm(gain: float, sd: float, power: int) -> None:
    assume(abs(gain) > 1e-200 or gain == 0)
    plain, scaled = log_expected_improvement(np.array([gain, gain * 2.0**power]), np.array([sd, sd * 2.0**power]))
    assert abs(scaled - plain - power * np.log(2.0)) <= 2 * rounding(plain)


@given(gain=st.floats(-1e4, 1e4), sd=st.floats(1e-4, 1e4))
def test_improvement_is_the_mean_gain_and_little_more(gain: float, sd: float) -> None:
    """max{E[gain], 0} ≤ EI ≤ max{E[gain], 0} + σϕ(0)."""
    (log_ei,) = log_expected_improvement(np.array([gain]), np.array([sd]))
    ei = np.exp(log_ei)
    assert ei >= max(gain, 0.0) * (1 - 1e-12)
    assert ei <= (max(gain, 0.0) + sd / np.sqrt(2 * np.pi)) * (1 + 1e-12)


# ---- in the algorithm


def black_box(variance: float) -> Network:
    kernel = SquaredExponential(1.0, variance=variance)
    return chain(Stage("f", controls={"x": Real(0, 10)}, kernel=kernel, norm_bound=1e6))


def test_points_with_negligible_improvement_are_ranked() -> None:
    """With the best a hundred sds away, EI is 0 in floats everywhere; its logarithm still ranks the candidates."""
    network = black_box(1e-4)
    data = np.array([[0.0, 1.0], [6.0, 0.0], [7.5, 0.02]])
    candidates = np.linspace(3.5, 10, 30)[:, None]
    situation = cases.situation_after(network, data, candidates)
    got = cases.scores(ExpectedImprovement(), situation)
    assert np.all(np.isfinite(got))
    assert np.exp(got).max() == 0.0
    belief = situation.beliefs.stages[0].belief
    assert belief is not None
    prediction = belief.posterior.predict(candidates)
    pairs = zip(prediction.mean[:, 0], prediction.sd, strict=True)
    exact = np.array([float(paper.log_expected_improvement(m, s, 1.0)) for m, s in pairs])
    np.testing.assert_allclose(got, exact, rtol=1e-7)
    chosen = ExpectedImprovement().suggest(situation, np.random.default_rng(0)).point
    np.testing.assert_array_equal(chosen, candidates[exact.argmax()])
    boxed = ExpectedImprovement().suggest(replace(situation, candidates=None), np.random.default_rng(0)).point
    assert boxed is not None
    assert cases.scores(ExpectedImprovement(), situation, boxed[None])[0] >= got.max()


def test_before_the_first_value_the_score_is_the_mean() -> None:
    """Then every value is an improvement; without observations all points are equal."""
    network = black_box(1.0)
    situation = cases.situation_after(network, np.array([[4.0, np.nan]]), np.linspace(0, 10, 7)[:, None])
    assert situation.best == -np.inf
    assert len(set(cases.scores(ExpectedImprovement(), situation))) == 1
    firsts = {tuple(ExpectedImprovement().suggest(situation, np.random.default_rng(s)).point) for s in range(8)}  # type: ignore[arg-type]
    assert len(firsts) > 1
