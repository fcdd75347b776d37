"""Tests that interpolated posteriors stay within their stated errors of exact values and of `predict`."""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mpf

from cascada.arrays import UNIT_ROUNDOFF, Array
from cascada.errors import ArgumentError
from cascada.gp import Posterior
from cascada.gp.line import Line, LineTable, predict_on_line, suits
from cascada.gp.rounding import variance_rounding
from cascada.kernels import Matern, SquaredExponential
from tests import reference
from tests.thorough import examples

INTERVALS = [(-2.0, 3.0), (0.3, 0.4), (-12.0, 12.0), (5.0, 9.0), (0.25, 0.25)]


def random_posterior(
    seed: int, t: int, lengthscale: float = 1.0, variance: float = 1.0, jitter: float = 1e-10, outputs: int = 1
) -> Posterior:
    """Observations spread over the line with a cluster and two close pairs; outputs of size 1 and size 100."""
    rng = np.random.default_rng([seed, t])
    X = np.concatenate([rng.uniform(-3, 3, t - t // 3), 0.5 + 0.01 * rng.standard_normal(t // 3)])[:, None]
    if t >= 4:
        X[0], X[1] = X[2] + 1e-4, X[3] - 1e-6
    empty = Posterior.empty(SquaredExponential(lengthscale, variance), 1, outputs, jitter)
    return empty.append(X, np.sin(3 * X + np.arange(outputs)) * np.geomspace(1.0, 100.0, outputs)) if t else empty


def rounding_of_mean(line: Line) -> Array:
    """The largest rounding error of an interpolated mean, (p,): at its nodes (`gp.rounding`) and in the polynomial."""
    posterior = line.posterior
    size = np.sqrt(posterior.spent * posterior.kernel.variance)
    return size * (lebesgue(line) * posterior.inflation + transform_rounding(line))


def rounding_of_variance(line: Line) -> float:
    posterior = line.posterior
    own = 2 * posterior.inflation + posterior.inflation**2 + variance_rounding(posterior.count)
    return float(posterior.kernel.variance * (lebesgue(line) * own + transform_rounding(line)))


def lebesgue(line: Line) -> float:
    """The largest amplification of errors at Chebyshev points by the polynomial, plus 1 for the compared value."""
    return float(2 / np.pi * np.log(line.degree + 1) + 2)


def transform_rounding(line: Line) -> float:
    """Sums of N + 1 terms, and Clenshaw's recurrence for them."""
    return 8 * (10 + line.degree) * UNIT_ROUNDOFF


def inside(line: Line, n: int, seed: int = 0) -> Array:
    """Random points of an interval, its ends, and the data inside it."""
    drawn = np.random.default_rng(seed).uniform(line.low, line.high, n)
    data = line.posterior.inputs[:, 0]
    return np.concatenate([drawn, [line.low, line.high], data[(line.low <= data) & (data <= line.high)]])


# ---- compared with 50 digits


@pytest.mark.parametrize("interval", [(-2.0, 3.0), (0.3, 0.4), (-7.0, 9.0)])
@pytest.mark.parametrize(("t", "lengthscale"), [(1, 1.0), (6, 1.0), (12, 0.7)])
def test_without_rounding_the_polynomial_stays_within_its_error_bound(
    t: int, lengthscale: float, interval: tuple[float, float]
) -> None:
    """With exact values at the Chebyshev points and exact arithmetic, only the interpolation error remains."""
    posterior = random_posterior(0, t, lengthscale, 2.0)
    line = Line(posterior, *interval)
    kernel = reference.Kernel.like(posterior.kernel, 1)
    exact = reference.Posterior(kernel, posterior.inputs, posterior.outputs[:, 0], posterior.jitter)
    with mpmath.workdps(reference.DIGITS):
        centre, half = (mpf(line.low) + mpf(line.high)) / 2, (mpf(line.high) - mpf(line.low)) / 2
        count = line.degree + 1
        angles = [mpmath.pi * (2 * k + 1) / (2 * count) for k in range(count)]
        nodes = [centre + half * mpmath.cos(angle) for angle in angles]
        weights = [(-1) ** k * mpmath.sin(angle) for k, angle in enumerate(angles)]  # barycentric
        means, variances = [exact.mean([z]) for z in nodes], [exact.sd([z]) ** 2 for z in nodes]
        worst_mean = worst_variance = mpf(0)
        for z in np.random.default_rng(1).uniform(*interval, 12):
            terms = [w / (mpf(z) - node) for w, node in zip(weights, nodes, strict=True)]
            mean, variance = (mpmath.fdot(terms, v) / mpmath.fsum(terms) for v in (means, variances))
            worst_mean = max(worst_mean, abs(mean - exact.mean([z])))
            worst_variance = max(worst_variance, abs(variance - exact.sd([z]) ** 2))
    assert worst_mean <= line.mean_error[0]
    assert worst_variance <= line.variance_error


@pytest.mark.parametrize("jitter", [1e-10, 1e-7])
@pytest.mark.parametrize("t", [1, 6, 20])
def test_computed_values_are_exact_up_to_rounding(t: int, jitter: float) -> None:
    posterior = random_posterior(1, t, 0.8, 0.5, jitter)
    line = Line(posterior, -2.0, 2.5)
    kernel = reference.Kernel.like(posterior.kernel, 1)
    exact = reference.Posterior(kernel, posterior.inputs, posterior.outputs[:, 0], posterior.jitter)
    z = inside(line, 8)
    got = line.predict(z)
    mean = np.array([float(exact.mean([x]) - mpf(m)) for x, m in zip(z, got.mean[:, 0], strict=True)])
    variance = np.array([float(exact.sd([x]) ** 2 - mpf(s) ** 2) for x, s in zip(z, got.sd, strict=True)])
    assert np.abs(mean).max() <= line.mean_error[0] + rounding_of_mean(line)[0]
    assert np.abs(variance).max() <= line.variance_error + rounding_of_variance(line)


# ---- compared with predict


@settings(max_examples=examples(150))
@given(
    seed=st.integers(0, 10**6),
    t=st.integers(0, 60),
    lengthscale=st.floats(0.2, 4.0),
    variance=st.floats(0.01, 100.0),
    jitter=st.sampled_from([1e-10, 1e-7]),
    outputs=st.integers(1, 3),
    interval=st.sampled_from(INTERVALS),
)
def test_polynomials_stay_within_their_error_bound(
    seed: int,
    t: int,
    lengthscale: float,
    variance: float,
    jitter: float,
    outputs: int,
    interval: tuple[float, float],
) -> None:
    posterior = random_posterior(seed, t, lengthscale, variance, jitter, outputs)
    line = Line(posterior, *interval)
    z = inside(line, 50, seed)
    got, expected = line.predict(z), posterior.predict(z[:, None])
    assert got.mean.shape == expected.mean.shape
    assert np.all(np.abs(got.mean - expected.mean) <= line.mean_error + rounding_of_mean(line))
    allowed = line.variance_error + rounding_of_variance(line)
    assert np.abs(got.sd**2 - expected.sd**2).max() <= allowed


@settings(max_examples=examples(150))
@given(
    seed=st.integers(0, 10**6),
    t=st.integers(0, 40),
    lengthscale=st.floats(0.3, 3.0),
    variance=st.floats(0.01, 100.0),
    outputs=st.integers(1, 2),
    interval=st.sampled_from(INTERVALS[:-1]),
    nodes=st.sampled_from([8, 9, 20, 100, 2000]),
)
def test_tables_stay_within_their_error_bound(
    seed: int, t: int, lengthscale: float, variance: float, outputs: int, interval: tuple[float, float], nodes: int
) -> None:
    """Also with so few nodes that the error is large, and in the outermost cells."""
    posterior = random_posterior(seed, t, lengthscale, variance, 1e-10, outputs)
    line = Line(posterior, *interval)
    table = line.table(nodes)
    ends = np.concatenate([line.low + table.step * np.linspace(0, 1, 9), line.high - table.step * np.linspace(0, 1, 9)])
    z = np.clip(np.concatenate([inside(line, 100, seed), ends]), line.low, line.high)
    expected = posterior.predict(z[:, None])
    for j in range(outputs):
        mean = table.draw(z.copy(), np.zeros_like(z), j)
        sd = table.draw(z.copy(), np.ones_like(z), j) - mean
        allowed = table.mean_error[j] + 2 * rounding_of_mean(line)[j]
        assert np.abs(mean - expected.mean[:, j]).max() <= allowed
        size = np.abs(mean).max() * 4 * UNIT_ROUNDOFF  # the sd is computed as a difference
        allowed = table.variance_error + 2 * rounding_of_variance(line) + size * (size + 2 * sd.max())
        assert np.abs(sd**2 - expected.sd**2).max() <= allowed


def test_more_nodes_make_a_table_as_exact_as_its_polynomial() -> None:
    """Errors and their bounds decrease with the fourth power of the step."""
    posterior = random_posterior(0, 15, jitter=1e-7)
    line = Line(posterior, -2.0, 2.0)
    z = inside(line, 500)
    exact = line.predict(z).mean[:, 0]
    errors, stated = [], []
    for nodes in (43, 83, 163):
        table = line.table(nodes)
        errors.append(np.abs(table.draw(z.copy(), np.zeros_like(z)) - exact).max())
        stated.append(table.mean_error[0])
    assert errors[0] / errors[1] == pytest.approx(16, rel=0.3)
    assert errors[1] / errors[2] == pytest.approx(16, rel=0.3)
    assert stated[0] / stated[1] == pytest.approx(16, rel=0.01)


def test_draws_broadcast_and_do_not_change_their_arguments() -> None:
    table = Line(random_posterior(0, 5), -1.0, 1.0).table(400)
    z = np.random.default_rng(0).uniform(-1, 1, (3, 4))
    xi = np.array([-1.0, 0.0, 2.0, 0.5])
    before = z.copy(), xi.copy()
    got = table.draw(z, xi)
    assert got.shape == z.shape
    for i in range(3):
        np.testing.assert_array_equal(got[i], table.draw(z[i], xi))
    np.testing.assert_array_equal(z, before[0])
    np.testing.assert_array_equal(xi, before[1])
    mean, sd = table.at_nodes
    nodes: Array = table.start + table.step * np.arange(len(mean), dtype=np.float64)
    np.testing.assert_allclose(table.draw(nodes, np.full_like(nodes, 2.0)), mean + 2 * sd, atol=1e-9)


# ---- use of the interpolation


@pytest.mark.parametrize(("t", "n"), [(3, 1000), (20, 100), (20, 1000), (60, 3000)])
@pytest.mark.parametrize("lengthscale", [1.0, 0.05])
def test_interpolated_predictions_agree_with_predict(t: int, n: int, lengthscale: float) -> None:
    posterior = random_posterior(2, t, lengthscale, 3.0, outputs=2)
    Z = np.random.default_rng(0).uniform(-3, 3, (n, 1))
    got, expected = predict_on_line(posterior, Z), posterior.predict(Z)
    np.testing.assert_allclose(got.mean, expected.mean, rtol=1e-8, atol=1e-6)
    np.testing.assert_allclose(got.sd, expected.sd, atol=1e-6)


def test_other_posteriors_are_not_interpolated() -> None:
    rng = np.random.default_rng(0)
    for kernel, d in ((Matern(2.5), 1), (SquaredExponential(1.0), 2)):
        posterior = Posterior.fit(kernel, rng.uniform(-1, 1, (20, d)), rng.uniform(-1, 1, 20))
        assert not suits(posterior)
        with pytest.raises(ArgumentError, match="a line needs a squared exponential posterior of one input; got"):
            Line(posterior, 0.0, 1.0)
        Z = rng.uniform(-1, 1, (400, d))
        np.testing.assert_array_equal(predict_on_line(posterior, Z).mean, posterior.predict(Z).mean)


def test_an_interval_of_width_zero() -> None:
    """The same point many times is an interval of width zero."""
    posterior = random_posterior(0, 20)
    Z = np.full((300, 1), 0.7)
    got, expected = predict_on_line(posterior, Z), posterior.predict(Z)
    np.testing.assert_allclose(got.mean, expected.mean, atol=1e-8)
    np.testing.assert_allclose(got.sd, expected.sd, atol=1e-7)
    table: LineTable = Line(posterior, 0.7, 0.7).table(8)
    np.testing.assert_allclose(table.draw(np.array([0.7]), np.zeros(1)), expected.mean[:1, 0], atol=1e-8)


@pytest.mark.parametrize("width", [0.0, 1e-12, 1e-7, 1e-6, 3e-6, 1e-4])
def test_tables_of_very_short_intervals_stay_accurate(width: float) -> None:
    """Nodes of a very short interval lie slightly outside it, where the polynomial is still valid."""
    posterior = random_posterior(0, 5)
    line = Line(posterior, 0.3, 0.3 + width)
    table = line.table(40)
    z = np.linspace(0.3, 0.3 + width, 9)
    exact = posterior.predict(z[:, None])
    mean = table.draw(z, np.zeros(9))
    sd = table.draw(z, np.ones(9)) - mean
    assert np.abs(mean - exact.mean[:, 0]).max() <= table.mean_error[0] + 4 * rounding_of_mean(line)[0]
    assert np.abs(sd**2 - exact.sd**2).max() <= table.variance_error + 4 * rounding_of_variance(line) + 1e-15
