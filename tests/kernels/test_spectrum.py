"""Tests that integrals and inverse Fourier transforms of spectral densities give the kernel."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy.integrate import quad

from cascada.errors import ArgumentError
from tests.kernels.cases import every_kernel, make


def integrate(density: Callable[[float], float]) -> float:
    """∫₀^∞ of a density with an algebraic tail, by ω = exp(s)."""
    return quad(lambda s: np.exp(s) * density(np.exp(s)), -60.0, 90.0, points=[-10, -2, 0, 2, 5, 10], limit=400)[0]


def at(kernel, *omega: float) -> float:
    return float(kernel.spectral_density(np.array([omega]))[0])


@every_kernel
def test_density_integrates_to_the_variance(nu):
    kernel = make(nu, 0.6, 1.7)
    assert integrate(lambda w: at(kernel, w)) / np.pi == pytest.approx(1.7, rel=1e-8)
    # In the plane, in polar coordinates.
    assert integrate(lambda w: w * at(kernel, w, 0.0)) / (2 * np.pi) == pytest.approx(1.7, rel=1e-8)


@every_kernel
@pytest.mark.parametrize("r", [0.1, 0.7, 2.0])
def test_inverse_fourier_transform_gives_the_kernel(nu, r):
    kernel = make(nu, 0.6, 1.7)
    value = quad(lambda w: at(kernel, w), 0, np.inf, weight="cos", wvar=r, limlst=400, epsabs=1e-9)[0] / np.pi
    assert value == pytest.approx(kernel(np.zeros((1, 1)), np.array([[r]]))[0, 0], abs=1e-7)


@every_kernel
@pytest.mark.parametrize("omega", [(0.0,), (1.3,), (0.4, 3.0)])
def test_integrating_over_a_frequency_gives_the_density_of_fewer_inputs(nu, omega):
    ell = (0.6, 1.5, 0.9)[: len(omega)]
    fewer, more = make(nu, ell, 1.7), make(nu, (*ell, 2.5), 1.7)
    both = 2 * integrate(lambda w: at(more, *omega, w)) / (2 * np.pi)
    assert both == pytest.approx(at(fewer, *omega), rel=1e-7)


@every_kernel
@pytest.mark.parametrize("d", [1, 2, 4])
def test_density_is_vectorised_positive_and_symmetric(nu, d):
    kernel = make(nu, tuple(np.linspace(0.5, 2.0, d)), 0.4)
    omega = np.random.default_rng(0).normal(size=(7, d)) * 3
    density = kernel.spectral_density(omega)
    assert density.shape == (7,)
    assert np.all(density > 0)
    np.testing.assert_allclose(kernel.spectral_density(-omega), density, rtol=1e-15)
    np.testing.assert_allclose([at(kernel, *row) for row in omega], density, rtol=1e-14)
    assert kernel.spectral_density(np.empty((0, d))).shape == (0,)


@every_kernel
def test_frequencies_need_two_axes(nu):
    with pytest.raises(ArgumentError, match=r"frequencies must have two axes .* got shape \(3,\)"):
        make(nu).spectral_density(np.zeros(3))
