"""Data shared by the tests of posteriors."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from cascada.arrays import Array
from cascada.kernels import Expansion, Stationary, random_expansion
from tests.kernels.cases import make

Form = Callable[..., Stationary]  # `make`, or `additive`


@dataclass(frozen=True, eq=False)
class Case:
    """Observations of a function of norm 1, and queries: random, at an observation and next to one."""

    kernel: Stationary
    truth: Expansion
    X: Array  # (t, d)
    Y: Array  # (t, p)
    Z: Array  # (n, d)


@cache
def case(nu: float | None, d: int, t: int = 40, p: int = 1, seed: int = 0, form: Form = make) -> Case:
    """Uniform points with two close pairs, one lengthscale per dimension, and a variance."""
    rng = np.random.default_rng([seed, d, t])
    kernel = form(nu, tuple(np.linspace(0.6, 1.1, d).tolist()), (1.0, 2.5, 0.3)[(d - 1) % 3])
    X = rng.uniform(-1, 1, (t, d))
    if t >= 4:
        X[-1], X[-2] = X[0] + 1e-3, X[1] - 1e-5
    Z = np.concatenate([rng.uniform(-1, 1, (5, d)), X[:1], X[-1:] + 1e-4])
    return _observed(kernel, X, Z, p, rng)


@cache
def grid_case(nu: float | None, d: int, t: int = 40, form: Form = make) -> Case:
    """Points of a grid. Few different distances mean few calls of the Bessel function, which is slow at many digits."""
    rng = np.random.default_rng([d, t])
    size = {1: 65, 2: 9, 3: 5}[d]
    axes = np.meshgrid(*[np.linspace(-1, 1, size)] * d)
    grid = np.stack([axis.ravel() for axis in axes], axis=1)
    X = grid[rng.choice(len(grid), t, replace=False)]
    Z = np.concatenate([X[:1], X[1:3] + 1 / (size - 1)])
    return _observed(form(nu, 0.7, (1.0, 2.5, 0.3)[d - 1]), X, Z, 1, rng)


def _observed(kernel: Stationary, X: Array, Z: Array, p: int, rng: np.random.Generator) -> Case:
    d = X.shape[1]
    truth = random_expansion(kernel, -np.ones(d), np.ones(d), norm=1.0, rng=rng, outputs=p)
    for array in (X, Z):
        array.flags.writeable = False
    return Case(kernel, truth, X, truth(X), Z)
