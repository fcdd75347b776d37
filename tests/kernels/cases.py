"""Kernels and strategies shared by the tests of kernels."""

from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from cascada.arrays import Array
from cascada.kernels import Additive, Matern, Radial, SquaredExponential

# None is the squared exponential. Half-integers have closed forms, 150 is beyond the recurrence, the others need K_ν.
SMOOTHNESS: tuple[float | None, ...] = (None, 0.3, 0.5, 1.0, 1.5, 2.0, 2.5, 3.7, 50.5, 150.0)
# Orders for which SciPy's K_ν is least accurate: a little more than 1/10 from a whole number, and u just below 2.
HARD = (0.3, 0.8876020238206609, 1.12562688524264, 1.8930512352804878, 2.106544755862019)
DIFFERENTIABLE = tuple(nu for nu in SMOOTHNESS if nu is None or nu > 1)


def make(nu: float | None, lengthscale: Any = 1.0, variance: float = 1.0) -> Radial:
    return SquaredExponential(lengthscale, variance) if nu is None else Matern(nu, lengthscale, variance)


def additive(nu: float | None, lengthscale: Any = 1.0, variance: float = 1.0) -> Additive:
    return Additive(make(nu, lengthscale, variance))


def name(nu: float | None) -> str:
    return "SE" if nu is None else f"Matern-{nu:g}"


every_kernel = pytest.mark.parametrize("nu", SMOOTHNESS, ids=name)
every_form = pytest.mark.parametrize("form", [make, additive], ids=["radial", "additive"])
every_differentiable_kernel = pytest.mark.parametrize("nu", DIFFERENTIABLE, ids=name)

smoothness = st.sampled_from(SMOOTHNESS)
seeds = st.integers(0, 2**32 - 1)
dimensions = st.integers(1, 4)


def points(seed: int, n: int, d: int) -> Array:
    return np.random.default_rng(seed).uniform(-2.0, 2.0, (n, d))


def radii(count: int, low: float = 1e-12, high: float = 50.0) -> Array:
    """Scaled distances r over many orders of magnitude, of 24 bits each so that r² is exact."""
    return np.geomspace(low, high, count).astype(np.float32).astype(np.float64)
