"""The posterior compared with 50-digit arithmetic and with scikit-learn."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from mpmath import mpf

from cascada.confidence.belief import Belief
from cascada.gp import Posterior
from tests import reference
from tests.gp.cases import Case, Form, case, grid_case
from tests.kernels.cases import additive, make, name
from tests.thorough import THOROUGH

SMOOTHNESS = (None, 0.5, 1.0, 1.5, 2.0, 2.5, 3.7)

every_dimension = pytest.mark.parametrize("d", [1, 2, 3])
every_form_and_dimension = pytest.mark.parametrize(
    ("form", "d"),
    [(make, 1), (make, 2), (make, 3), (additive, 3)],
    ids=["1", "2", "3", "additive-3"],
)
every_smoothness = pytest.mark.parametrize("nu", SMOOTHNESS, ids=name)
every_jitter = pytest.mark.parametrize("jitter", [1e-10, 1e-7])


def data(form: Form, nu: float | None, d: int) -> Case:
    # An additive kernel of a grid has a singular Gram matrix: there are fewer effects than points.
    on_grid = (1.0, 2.0) if form is make else (0.5, 1.0, 1.5, 2.0, 3.7)
    # Most of the time goes into Bessel functions. The worst conditioned matrices are those without: nu is None.
    t = 40 if THOROUGH or nu is None else 20
    return grid_case(nu, d, t, form=form) if nu in on_grid else case(nu, d, t, form=form)


@cache
def gram(form: Form, nu: float | None, d: int) -> Any:
    observed = data(form, nu, d)
    return reference.gram(reference.Kernel.like(observed.kernel, d), observed.X, observed.X)


@cache
def exact(form: Form, nu: float | None, d: int, jitter: float) -> reference.Posterior:
    observed = data(form, nu, d)
    kernel = reference.Kernel.like(observed.kernel, d)
    return reference.Posterior(kernel, observed.X, observed.Y[:, 0], jitter, gram(form, nu, d))


def worst(computed: Any, true: Any) -> float:
    """The largest absolute error."""
    return max(float(abs(mpf(a) - b)) for a, b in zip(np.ravel(computed), np.ravel(true), strict=True))


@every_jitter
@every_form_and_dimension
@every_smoothness
def test_mean_and_sd(form, nu, d, jitter):
    observed, true = data(form, nu, d), exact(form, nu, d, jitter)
    posterior = Posterior.fit(observed.kernel, observed.X, observed.Y, jitter)
    prediction = posterior.predict(observed.Z)
    means, sds = [true.mean(z) for z in observed.Z], [true.sd(z) for z in observed.Z]
    scale = np.abs(observed.Y).max()
    assert worst(prediction.mean, means) <= 1e-8 * scale
    assert worst(posterior.mean(observed.Z), means) <= 1e-8 * scale
    # The stated inflation covers the rounding error of the sd and is not much larger.
    above = Belief(posterior, 1.0).sd_above(prediction.sd)
    assert all(mpf(a) >= b for a, b in zip(above, sds, strict=True))
    assert worst(above, sds) <= 1e-6


@every_jitter
@every_form_and_dimension
@every_smoothness
def test_budget_spent_and_norm_of_the_mean(form, nu, d, jitter):
    observed, true = data(form, nu, d), exact(form, nu, d, jitter)
    posterior = Posterior.fit(observed.kernel, observed.X, observed.Y, jitter)
    assert abs(mpf(posterior.spent[0]) / true.spent - 1) <= 1e-8
    assert abs(mpf(posterior.mean_norm[0]) / true.mean_norm - 1) <= 1e-8


@every_jitter
@every_form_and_dimension
@pytest.mark.parametrize("nu", [nu for nu in SMOOTHNESS if nu is None or nu > 1], ids=name)
def test_derivatives(form, nu, d, jitter):
    observed, true = data(form, nu, d), exact(form, nu, d, jitter)
    Z = observed.Z[-3:]
    posterior = Posterior.fit(observed.kernel, observed.X, observed.Y, jitter)
    jet = posterior.jet(Z)
    means = [[true.derivative_mean(z, j) for j in range(d)] for z in Z]
    assert worst(jet.derivative_mean, means) <= 1e-8 * np.abs(observed.Y).max()
    assert worst(posterior.predict_gradient(Z).mean_gradient, means) <= 1e-8 * np.abs(observed.Y).max()
    sds = [[true.derivative_sd(z, j) for j in range(d)] for z in Z]
    assert worst(jet.derivative_sd, sds) <= 1e-7
    prior = np.sqrt(observed.kernel.derivative_variances(d) / observed.kernel.variance)
    above = Belief(posterior, 1.0).sd_above(jet.derivative_sd, prior)
    assert all(mpf(a) >= b for a, b in zip(np.ravel(above), np.ravel(sds), strict=True))


@every_jitter
@every_dimension
@every_smoothness
def test_predictions_agree_with_scikit_learn(nu, d, jitter):
    from sklearn.gaussian_process import GaussianProcessRegressor  # half a second in every worker
    from sklearn.gaussian_process import kernels as peer

    observed = case(nu, d, p=2)
    kernel = observed.kernel
    ell = np.array(kernel.lengthscale)
    shape = peer.RBF(ell) if nu is None else peer.Matern(ell, nu=nu)
    # The alpha of scikit-learn is absolute; our jitter is relative to the variance.
    regressor = GaussianProcessRegressor(
        peer.ConstantKernel(kernel.variance) * shape, alpha=jitter * kernel.variance, optimizer=None
    ).fit(observed.X, observed.Y)
    mean, sd = regressor.predict(observed.Z, return_std=True)
    prediction = Posterior.fit(kernel, observed.X, observed.Y, jitter).predict(observed.Z)
    np.testing.assert_allclose(prediction.mean, mean, rtol=0, atol=1e-8)
    np.testing.assert_allclose(prediction.sd, sd[:, 0], rtol=0, atol=1e-8)
