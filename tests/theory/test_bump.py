"""Tests of the needle: Fourier transform and norm in many digits and by another method, width and slope."""

import math
from functools import cache

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial import Polynomial

from cascada.arrays import Array
from cascada.errors import ArgumentError, NumericalError
from cascada.kernels import Matern
from cascada.theory.bump import Needle, needle, tallest, unit_norm, widest
from cascada.theory.bump_spectrum import transform
from tests.thorough import examples


def bump(x):
    """H = h/h(0) on the line in many digits."""
    return mp.exp(1 - 1 / (1 - x * x)) if abs(x) < 1 else mp.mpf(0)


def hankel(s: float, dimension: int) -> mp.mpf:
    """Ĥ(s) by its definition, a Hankel integral; J is written as the series ₀F₁."""
    half = mp.mpf(dimension) / 2

    def integrand(r):
        return bump(r) * r ** (dimension - 1) * mp.hyp0f1(half, -((s * r) ** 2) / 4)

    return 2 * mp.pi**half / mp.gamma(half) * mp.quad(integrand, mp.linspace(0, 1, 6 + int(s / 6)))


@pytest.mark.parametrize("dimension", [1, 2, 3, 5])
@pytest.mark.parametrize("s", [0.0, 0.7, 6.0, 40.0])
def test_the_transform_is_the_hankel_integral(s, dimension):
    with mp.workdps(25):
        expected = hankel(s, dimension)
        error = float((transform(np.array([s]), dimension)[0] - expected) / mp.exp(-mp.sqrt(s)))
    assert abs(error) < 1e-13


@pytest.mark.parametrize("dimension", [1, 2, 4, 7])
def test_finer_steps_do_not_change_the_transform(dimension):
    """The change is below 1e-13 of the envelope exp(−√s), also where the transform is 1e-28."""
    s = np.concatenate([np.linspace(0, 50, 40), np.geomspace(60, 4000, 40)])
    change = transform(s, dimension) - transform(s, dimension, refine=2)
    assert np.abs(change / np.exp(-np.sqrt(s))).max() < 1e-13


@pytest.mark.parametrize(("dimension", "nu"), [(1, 0.5), (1, 1.5), (1, 5.5), (3, 0.5), (3, 1.5), (3, 3.5)])
@pytest.mark.parametrize(("lengthscale", "width"), [(1.0, 1.0), (0.7, 0.01), (2.0, 5.0)])
def test_the_norm_equals_the_sobolev_norm_for_whole_orders(dimension, nu, lengthscale, width):
    """Where p = ν + d/2 is whole, 1/k̂ = (2ν/ℓ² + ω²)^p/C is a polynomial, and ‖h̃‖² a sum of ∫|∇ʲh̃|²."""
    p = round(nu + dimension / 2)
    with mp.workdps(30):
        base = 2 * mp.mpf(nu) / mp.mpf(lengthscale) ** 2
        constant = 2**dimension * mp.pi ** (mp.mpf(dimension) / 2) * mp.gamma(p) / mp.gamma(nu) * base**nu
        scaled = [energy(dimension, j) * mp.mpf(width) ** (dimension - 2 * j) for j in range(p + 1)]
        total = sum(mp.binomial(p, j) * base ** (p - j) * scaled[j] for j in range(p + 1))
        expected = mp.sqrt(total / constant)
        assert abs(float(unit_norm(Matern(nu, lengthscale), dimension, width) / expected - 1)) < 2e-14


@cache
def energy(dimension: int, order: int) -> mp.mpf:
    """∫|∇ʲH|² on the line, or in space, where it is 4π∫((rH)⁽ʲ⁾)² dr.

    (qH)⁽ʲ⁾ = Q_j(x)/(1 − x²)^{2j}·H with polynomials Q_0 = q, Q_{j+1} = Q_j'(1 − x²)² + (4jx(1 − x²) − 2x)·Q_j.
    """
    q = Polynomial([1]) if dimension == 1 else Polynomial([0, 1])
    gap = Polynomial([1, 0, -1])
    for j in range(order):
        q = q.deriv() * gap**2 + (4 * j * Polynomial([0, 1]) * gap - Polynomial([0, 2])) * q

    coefficients = [int(c) for c in q.coef]  # whole numbers, far below 2^53

    def square(x):
        value = mp.fsum(c * x**i for i, c in enumerate(coefficients))
        return (value / (1 - x * x) ** (2 * order) * bump(x)) ** 2 if x < 1 else mp.mpf(0)

    return (2 if dimension == 1 else 4 * mp.pi) * mp.quad(square, mp.linspace(0, 1, 8))


@pytest.mark.parametrize(
    ("nu", "dimension", "sides", "close"),
    [
        (1.0, 1, (9, 33, 129, 513), 1e-3),
        (1.5, 1, (9, 33, 129, 513), 1e-6),
        (2.2, 1, (9, 33, 129, 257), 1e-5),
        (1.5, 2, (9, 17, 33), 0.1),
    ],
)
def test_interpolation_norms_approach_the_norm_from_below(nu, dimension, sides, close):
    """The norm of the interpolant through any points is at most ‖h̃‖, grows with more points, and converges to it."""
    kernel, found = Matern(nu, 0.8), Needle(dimension, 0.3, 0.5)
    norm = found.norm(kernel)
    below = [interpolation_norm(kernel, found, grid(side, dimension)) for side in sides]
    assert below == sorted(below)
    assert below[-1] <= norm * (1 + 1e-9)
    assert below[-1] >= norm * (1 - close)


def grid(side: int, dimension: int) -> Array:
    axis = np.linspace(-0.7, 0.7, side)
    return np.stack(np.meshgrid(*[axis] * dimension), axis=-1).reshape(-1, dimension)


def interpolation_norm(kernel: Matern, function: Needle, points: Array) -> float:
    values = function(points)
    return math.sqrt(values @ np.linalg.solve(kernel(points, points), values))


SHAPES = {
    "nu": st.floats(0.5, 4.0),
    "dimension": st.integers(1, 4),
    "lengthscale": st.floats(0.1, 3.0),
    "norm": st.floats(0.1, 100.0),
}


@settings(max_examples=examples(30))
@given(**SHAPES, variance=st.floats(0.1, 10.0), share=st.floats(1e-4, 0.999))
def test_the_width_gives_the_norm_exactly(nu, dimension, lengthscale, norm, variance, share):
    kernel = Matern(nu, lengthscale, variance)
    height = share * tallest(kernel, dimension, norm)
    found = needle(kernel, dimension, height, norm)
    assert found.norm(kernel) == pytest.approx(norm, rel=1e-12)
    assert 0 < found.width <= widest(kernel, dimension)


@settings(max_examples=examples(20))
@given(nu=st.floats(0.5, 4.0), dimension=st.integers(1, 4), lengthscale=st.floats(0.1, 3.0))
def test_the_norm_has_one_minimum_in_the_width(nu, dimension, lengthscale):
    kernel = Matern(nu, lengthscale)
    best = widest(kernel, dimension)
    norms = [unit_norm(kernel, dimension, best * factor) for factor in np.geomspace(0.01, 20, 25)]
    at_best = unit_norm(kernel, dimension, best)
    assert min(norms) >= at_best * (1 - 1e-12)
    logarithms = np.log(norms)  # convex in log w
    assert (logarithms[:-2] + logarithms[2:] - 2 * logarithms[1:-1]).min() > -1e-12


def test_the_widest_needle_of_the_papers_kernel():
    assert widest(Matern(1.5), 1) == pytest.approx(2.517, abs=1e-3)
    assert widest(Matern(1.5, 0.2), 1) == pytest.approx(0.2 * 2.517, abs=1e-3)


def test_a_needle_that_is_too_high_raises_with_the_largest_possible_height():
    kernel = Matern(1.5)
    with pytest.raises(
        ArgumentError, match=r"a norm of at least 6\.44.* at every width; got norm 5\..*at most 3\.88"
    ) as e:
        needle(kernel, 1, 5.0, 5.0)
    offered = float(str(e.value).split("at most ")[1].rstrip("."))
    assert needle(kernel, 1, offered, 5.0).norm(kernel) == pytest.approx(5.0, rel=1e-12)
    top = tallest(kernel, 1, 5.0)
    assert needle(kernel, 1, top, 5.0).width == pytest.approx(widest(kernel, 1), rel=1e-6)


def test_unsupported_kernels_raise_an_error():
    with pytest.raises(ArgumentError, match="one lengthscale"):
        unit_norm(Matern(1.5, (1.0, 2.0)), 2, 0.1)
    with pytest.raises(NumericalError, match="exceeds the range of floats"):
        unit_norm(Matern(20.0), 1, 1e-7)


@pytest.mark.parametrize("dimension", [1, 3])
def test_the_needle_has_its_height_support_and_slope(dimension):
    found = Needle(dimension, 0.4, 0.2)
    rng = np.random.default_rng(0)
    directions = rng.standard_normal((200, dimension))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    radii = rng.uniform(0, 0.4, 200)
    values = found(radii[:, None] * directions)
    assert (values[radii < 0.1998] > 0).all()  # closer to the edge, exp(−1/(1 − ρ²)) underflows
    assert (values[radii >= 0.2] == 0).all()
    assert found(np.zeros((1, dimension)))[0] == 0.4
    along = np.linspace(0, 0.2, 20001)[:, None] * np.eye(dimension)[:1]
    steepest = np.abs(np.diff(found(along))).max() / 1e-5
    assert steepest <= found.lipschitz * (1 + 1e-9)
    assert steepest == pytest.approx(found.lipschitz, rel=1e-6)
