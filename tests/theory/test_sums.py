"""Tests of the bounds of Σ_T and γ_T: exhaustive search, and changes of scale, T and domain."""

import math
from dataclasses import replace

import numpy as np
import pytest

from cascada.errors import ArgumentError
from cascada.kernels import BlockKernel, Matern, Separable, SquaredExponential, Stationary
from cascada.theory.information import greedy_sds, information_gain
from cascada.theory.sums import NOISES, concave_envelope, sd_sum
from tests.theory import reference

KERNELS = (SquaredExponential(0.7), Matern(0.5, 1.0), Matern(1.5, 0.4, 2.5), Matern(2.5, (0.5, 2.0)))
CASES = [(kernel, n, T) for kernel in KERNELS for n, T in ((2, 5), (3, 4), (4, 3), (5, 3))]


def points(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0, 1, (n, 2))


@pytest.mark.parametrize(("kernel", "n", "horizon"), CASES)
def test_sum_of_every_sequence_lies_between_greedy_and_upper(kernel, n, horizon):
    Z = points(n, seed=n)
    exact = reference.sum_of_sds(kernel, Z, horizon, 1e-10)
    found = sd_sum(kernel, Z, horizon)
    assert found.greedy <= exact * (1 + 1e-9) <= found.upper * (1 + 2e-9)
    assert exact <= found.cauchy_schwarz
    assert reference.sum_of_sds(kernel, Z, horizon, 1e-4) <= sd_sum(kernel, Z, horizon, jitter=1e-4).upper


@pytest.mark.parametrize(("kernel", "n", "horizon"), CASES)
@pytest.mark.parametrize("noise", [1.0, 0.1, 1e-4])
def test_gain_of_every_choice_lies_between_greedy_and_upper(kernel, n, horizon, noise):
    Z = points(n, seed=n)
    exact = reference.largest_gain(kernel, Z, horizon, noise)
    found = information_gain(kernel, Z, horizon, noise)
    assert found.greedy <= exact * (1 + 1e-9) <= found.upper * (1 + 2e-9)
    assert found.greedy >= (1 - math.exp(-1)) * exact


@pytest.mark.parametrize("kernel", KERNELS)
def test_greedy_steps_equal_a_loop_that_refits(kernel):
    Z, noise = points(40), 0.01
    found = greedy_sds(kernel, Z, 12, noise)
    seen: list[int] = []
    for t in range(12):
        sds = [reference.posterior_sd(kernel, Z[seen], z, noise) for z in Z]
        assert found.largest_sd[t] == pytest.approx(max(sds), rel=1e-9)
        assert sds[found.chosen[t]] == pytest.approx(max(sds), rel=1e-9)
        seen.append(found.chosen[t])


@pytest.mark.parametrize("kernel", [SquaredExponential(0.5), Matern(1.5, 0.5), Matern(2.5, 0.8)])
def test_with_fill_the_bound_holds_between_the_points(kernel: Stationary):
    # A grid of 30 points on [0, 1], sequences from a disjoint set of points.
    side = 30
    grid = ((np.arange(side) + 0.5) / side)[:, None]
    fill = float(kernel.scaled_norm(np.array([0.5 / side])))
    between = np.array([[0.0], [1 / 3], [0.501], [1.0]])
    for horizon in (3, 4):
        exact = reference.sum_of_sds(kernel, between, horizon, 1e-10)
        assert exact <= sd_sum(kernel, grid, horizon, fill=fill).upper
        gain = reference.largest_gain(kernel, between, horizon, 0.1)
        assert gain <= information_gain(kernel, grid, horizon, 0.1, fill).upper
    assert sd_sum(kernel, grid, 20).upper <= sd_sum(kernel, grid, 20, fill=fill).upper


def test_finer_grids_bound_a_domain_more_tightly():
    kernel, last = Matern(2.5, 0.5), math.inf
    for side in (5, 20, 80):
        grid = ((np.arange(side) + 0.5) / side)[:, None]
        upper = sd_sum(kernel, grid, 50, fill=float(kernel.scaled_norm(np.array([0.5 / side])))).upper
        assert upper < last
        last = upper


@pytest.mark.parametrize("kernel", KERNELS)
def test_variance_scales_the_sum_by_its_root_and_leaves_the_gain(kernel):
    Z, four = points(60), replace(kernel, variance=4 * kernel.variance)
    assert sd_sum(four, Z, 30).upper == pytest.approx(2 * sd_sum(kernel, Z, 30).upper, rel=1e-9)
    assert sd_sum(four, Z, 30).greedy == pytest.approx(2 * sd_sum(kernel, Z, 30).greedy, rel=1e-6)
    one, other = (information_gain(k, Z, 30, 0.1) for k in (kernel, four))
    assert one.upper == pytest.approx(other.upper, rel=1e-9)


@pytest.mark.parametrize("kernel", KERNELS)
def test_stretching_space_and_lengthscale_together_changes_nothing(kernel):
    Z = points(60)
    ell = kernel.lengthscale
    stretched = replace(kernel, lengthscale=3 * ell if isinstance(ell, float) else tuple(3 * v for v in ell))
    assert sd_sum(stretched, 3 * Z + 5, 30).upper == pytest.approx(sd_sum(kernel, Z, 30).upper, rel=1e-9)


@pytest.mark.parametrize("kernel", KERNELS)
def test_more_rounds_and_more_points_do_not_lower_the_bounds(kernel):
    Z = points(60)
    uppers = [sd_sum(kernel, Z, T).upper for T in (1, 3, 10, 30, 100)]
    assert uppers == sorted(uppers)
    greedy = [sd_sum(kernel, Z, T).greedy for T in (1, 3, 10, 30, 100)]
    assert greedy == sorted(greedy)
    assert sd_sum(kernel, Z[:30], 30).upper <= sd_sum(kernel, Z, 30).upper * (1 + 1e-9)
    assert sd_sum(kernel, Z, 1).upper == pytest.approx(math.sqrt(kernel.variance))


def test_many_rounds_on_few_points_are_bounded_by_the_points():
    found = sd_sum(Matern(0.5), np.arange(5.0)[:, None] * 50, 10_000)
    assert found.by == "every point surprises once"
    assert found.upper == pytest.approx(5 + 9_995e-5)
    assert found.greedy == pytest.approx(5, abs=0.01)


def test_kernel_times_identity_has_the_sum_of_the_kernel_and_a_matrix_scales_it():
    Z, kernel = points(50), Matern(1.5, 0.5)
    scalar = sd_sum(kernel, Z, 25)
    assert sd_sum(Separable(kernel), Z, 25) == scalar  # rem:mul
    scaled = sd_sum(Separable(kernel, [[2.0, 1.0], [1.0, 2.0]]), Z, 25)
    assert scaled.upper == pytest.approx(math.sqrt(3) * scalar.upper)
    assert scaled.greedy == pytest.approx(math.sqrt(3) * scalar.greedy)


@pytest.mark.parametrize("noise", [*NOISES, 100.0])
def test_concave_envelope_is_a_concave_majorant_below_the_papers_root(noise):
    c = math.log1p(1 / noise)
    u = np.linspace(1e-9, c, 2001)
    hat = np.array([concave_envelope(float(v), noise) for v in u])
    h = np.sqrt(noise * np.expm1(u))
    assert np.all(hat >= h * (1 - 1e-12))
    assert np.all(hat <= np.sqrt(u / c) * (1 + 1e-9))
    chords = 0.5 * (hat[:-2] + hat[2:])
    assert np.all(hat[1:-1] >= chords - 1e-10)
    assert concave_envelope(c, noise) == pytest.approx(1)


def test_invalid_arguments_raise_an_argument_error():
    kernel, Z = Matern(2.5), points(5)
    with pytest.raises(ArgumentError, match=r"horizon T must be a whole number ≥ 1; got 0"):
        sd_sum(kernel, Z, 0)
    with pytest.raises(ArgumentError, match=r"noises must be numbers ≥ the jitter 0\.01, because λ ≤ λ'"):
        sd_sum(kernel, Z, 5, jitter=0.01, noises=[1.0, 1e-3])
    with pytest.raises(ArgumentError, match="scalar and separable kernels"):
        sd_sum(BlockKernel("own", lambda X, Z: np.ones((len(X), len(Z), 2, 2))), Z, 5)
    with pytest.raises(ArgumentError, match="at least one point"):
        information_gain(kernel, np.empty((0, 2)), 5, 0.1)
    with pytest.raises(ArgumentError, match="fill must be a finite distance"):
        information_gain(kernel, Z, 5, 0.1, fill=-1.0)
    with pytest.raises(ArgumentError, match="noise must be a finite number above 0"):
        information_gain(kernel, Z, 5, 0.0)
