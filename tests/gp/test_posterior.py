"""Tests of the posterior of independent outputs: shapes, gradients, norms, symmetries, the prior."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cascada.gp.posterior
from cascada.arrays import Array
from cascada.errors import ArgumentError
from cascada.gp import Posterior
from cascada.kernels import Matern
from tests.gp.cases import Form, case
from tests.kernels.cases import every_form, make, name

SMOOTHNESS = (None, 0.5, 1.0, 1.5, 2.5, 3.7)
DIFFERENTIABLE = tuple(nu for nu in SMOOTHNESS if nu is None or nu > 1)

every_kernel = pytest.mark.parametrize("nu", SMOOTHNESS, ids=name)
every_differentiable_kernel = pytest.mark.parametrize("nu", DIFFERENTIABLE, ids=name)
every_dimension = pytest.mark.parametrize("d", [1, 2, 3])


def fitted(nu: float | None, d: int, t: int = 12, p: int = 2, jitter: float = 1e-7, form: Form = make) -> Posterior:
    observed = case(nu, d, t, p, form=form)
    return Posterior.fit(observed.kernel, observed.X, observed.Y, jitter)


def queries(d: int, n: int = 9, seed: int = 5) -> Array:
    return np.random.default_rng(seed).uniform(-1.2, 1.2, (n, d))


def noisy_gram(posterior: Posterior) -> Array:
    """K_t + λs²I, for fewer rows than would raise λ."""
    kernel = posterior.kernel
    noise = posterior.jitter * kernel.variance * np.eye(posterior.count)
    return kernel(posterior.inputs, posterior.inputs) + noise


def everything(posterior: Posterior, Z: Array) -> dict[str, Array]:
    """All predictions of a posterior at Z, by name."""
    prediction, gradient = posterior.predict(Z), posterior.predict_gradient(Z)
    values = {"mean only": posterior.mean(Z), "mean": prediction.mean, "sd": prediction.sd}
    values |= {f"gradient.{key}": value for key, value in vars(gradient).items()}
    if posterior.kernel.curvature is not None:
        values |= {f"jet.{key}": value for key, value in vars(posterior.jet(Z)).items()}
    return values


# ---- shapes


@given(
    st.sampled_from(SMOOTHNESS),
    st.integers(1, 3),
    st.integers(0, 6),
    st.integers(1, 3),
    st.integers(0, 4),
)
def test_shapes(nu, d, t, p, n):
    observed = case(nu, d, t, p)
    posterior = Posterior.fit(observed.kernel, observed.X, observed.Y)
    assert (posterior.count, posterior.dimension, posterior.output_count) == (t, d, p)
    expected = {"mean only": (n, p), "mean": (n, p), "sd": (n,)}
    expected |= {"gradient.mean": (n, p), "gradient.sd": (n,)}
    expected |= {"gradient.mean_gradient": (n, p, d), "gradient.sd_gradient": (n, d)}
    if observed.kernel.curvature is not None:
        expected |= {"jet.mean": (n, p), "jet.sd": (n,)}
        expected |= {"jet.derivative_mean": (n, p, d), "jet.derivative_sd": (n, d)}
    values = everything(posterior, queries(d, n))
    assert {key: value.shape for key, value in values.items()} == expected
    assert all(np.isfinite(value).all() for value in values.values())
    assert posterior.spent.shape == posterior.mean_norm.shape == (p,)


def test_a_flat_list_of_outputs_is_one_output():
    X = queries(2, 4)
    flat = Posterior.fit(Matern(1.5), X, [0.1, 0.2, 0.3, 0.4])
    column = Posterior.fit(Matern(1.5), X, [[0.1], [0.2], [0.3], [0.4]])
    np.testing.assert_array_equal(flat.outputs, column.outputs)
    np.testing.assert_array_equal(flat.predict(X).mean, column.predict(X).mean)


@every_form
@every_kernel
@every_dimension
@pytest.mark.parametrize("t", [0, 1, 12])
def test_results_do_not_depend_on_the_size_of_a_batch(form, nu, d, t, monkeypatch):
    posterior, Z = fitted(nu, d, t, form=form), queries(d, 11)
    whole = everything(posterior, Z)
    single = [everything(posterior, z[None]) for z in Z]
    monkeypatch.setattr(cascada.gp.posterior, "_BLOCK_ENTRIES", 3 * max(t, 1) * (1 + d))
    blocks = everything(posterior, Z)  # three or more points at a time
    monkeypatch.setattr(cascada.gp.posterior, "_BLOCK_ENTRIES", 1)
    smallest = everything(posterior, Z)
    for key, value in whole.items():
        for other in (blocks[key], smallest[key], np.concatenate([s[key] for s in single])):
            np.testing.assert_allclose(other, value, rtol=1e-7, atol=1e-9, err_msg=key)


# ---- values


@every_kernel
@every_dimension
def test_observations_are_reproduced(nu, d):
    observed = case(nu, d, 12, 2)
    prediction = fitted(nu, d, jitter=1e-10).predict(observed.X)
    np.testing.assert_allclose(prediction.mean, observed.Y, rtol=0, atol=1e-6)
    assert np.all(prediction.sd <= np.sqrt(1e-10 * observed.kernel.variance) * (1 + 1e-3))


@every_form
@every_kernel
@every_dimension
def test_all_prediction_methods_agree(form, nu, d):
    values = everything(fitted(nu, d, form=form), queries(d))
    for key in values:
        for quantity in ("mean", "sd"):
            if key in (f"gradient.{quantity}", f"jet.{quantity}", f"{quantity} only"):
                np.testing.assert_allclose(values[key], values[quantity], rtol=0, atol=1e-10, err_msg=key)


@every_form
@every_kernel
@every_dimension
def test_far_from_the_data_the_prior_returns(form, nu, d):
    posterior = fitted(nu, d, form=form)
    prediction = posterior.predict_gradient(np.full((1, d), 1e4))
    np.testing.assert_allclose(prediction.mean, 0.0, atol=1e-12)
    np.testing.assert_allclose(prediction.sd, np.sqrt(posterior.kernel.variance), rtol=1e-12)
    np.testing.assert_allclose(prediction.mean_gradient, 0.0, atol=1e-12)


@every_kernel
def test_several_outputs_equal_separate_posteriors(nu):
    observed = case(nu, 2, 12, 3)
    joint = Posterior.fit(observed.kernel, observed.X, observed.Y, 1e-7)
    together = everything(joint, queries(2))
    for j in range(3):
        alone = Posterior.fit(observed.kernel, observed.X, observed.Y[:, j], 1e-7)
        for key, value in everything(alone, queries(2)).items():
            part = together[key][:, j : j + 1] if "mean" in key else together[key]
            np.testing.assert_allclose(part, value, rtol=1e-7, atol=1e-9, err_msg=key)
        assert joint.spent[j] == pytest.approx(alone.spent[0], rel=1e-10)
        assert joint.mean_norm[j] == pytest.approx(alone.mean_norm[0], rel=1e-10)


# ---- gradients


@every_form
@every_kernel
@every_dimension
def test_gradients_are_central_differences(form, nu, d):
    posterior, Z, h = fitted(nu, d, jitter=1e-5, form=form), queries(d), 1e-5
    gradient = posterior.predict_gradient(Z)
    for j in range(d):
        step = h * np.eye(d)[j]
        ahead, behind = posterior.predict(Z + step), posterior.predict(Z - step)
        difference = (ahead.mean - behind.mean) / (2 * h)
        np.testing.assert_allclose(gradient.mean_gradient[:, :, j], difference, rtol=1e-6, atol=1e-7)
        # σ² instead of σ, because its difference is accurate where σ is small.
        difference = (ahead.sd**2 - behind.sd**2) / (2 * h)
        np.testing.assert_allclose(2 * gradient.sd * gradient.sd_gradient[:, j], difference, rtol=1e-6, atol=1e-8)


@every_form
@every_kernel
@every_dimension
def test_the_mean_with_its_gradient_alone_is_that_of_both_predictions(form, nu, d):
    posterior, Z = fitted(nu, d, form=form), queries(d)
    mean, gradient = posterior.mean_gradient(Z)
    np.testing.assert_array_equal(mean, posterior.predict_gradient(Z).mean)
    np.testing.assert_array_equal(gradient, posterior.predict_gradient(Z).mean_gradient)


@every_form
@every_differentiable_kernel
@every_dimension
def test_means_of_derivatives_are_derivatives_of_means(form, nu, d):
    posterior, Z = fitted(nu, d, form=form), queries(d)
    gradient = posterior.predict_gradient(Z).mean_gradient
    np.testing.assert_allclose(posterior.jet(Z).derivative_mean, gradient, rtol=1e-8, atol=1e-9)


def posterior_covariance(posterior: Posterior, A: Array, B: Array) -> Array:
    """k(a_i, b_i) − k_t(a_i)ᵀ(K_t + λs²I)⁻¹k_t(b_i) for matching rows."""
    kernel, X = posterior.kernel, posterior.inputs
    prior = np.array([kernel(a[None], b[None])[0, 0] for a, b in zip(A, B, strict=True)])
    return prior - np.einsum("nt,tn->n", kernel(A, X), np.linalg.solve(noisy_gram(posterior), kernel(X, B)))


@every_form
@pytest.mark.parametrize("nu", [None, 2.5, 3.7], ids=name)
@every_dimension
def test_sd_of_a_derivative_is_a_mixed_difference_of_the_covariance(form, nu, d):
    posterior, Z, h = fitted(nu, d, jitter=1e-3, form=form), queries(d), 3e-4
    sd = posterior.jet(Z).derivative_sd
    for j in range(d):
        ahead, behind = Z + h * np.eye(d)[j], Z - h * np.eye(d)[j]
        mixed = (
            posterior_covariance(posterior, ahead, ahead)
            - 2 * posterior_covariance(posterior, ahead, behind)
            + posterior_covariance(posterior, behind, behind)
        ) / (4 * h**2)
        np.testing.assert_allclose(sd[:, j] ** 2, mixed, rtol=5e-3, atol=5e-6)


@every_kernel
@every_dimension
def test_gradients_are_finite_at_observations(nu, d):
    observed = case(nu, d, 12, 2)
    gradient = fitted(nu, d, jitter=1e-10).predict_gradient(observed.X)
    assert np.isfinite(gradient.mean_gradient).all()
    assert np.isfinite(gradient.sd_gradient).all()


@pytest.mark.parametrize("nu", [0.3, 0.5, 1.0])
def test_a_jet_of_a_rough_kernel_raises_an_argument_error(nu):
    with pytest.raises(
        ArgumentError,
        match=r"derivatives need a kernel with −φ''\(0\); got Matern\(nu=.*Use a Matérn kernel with nu > 1",
    ):
        Posterior.fit(Matern(nu), [[0.0]], [1.0]).jet([[0.5]])


# ---- norms


@every_kernel
@every_dimension
@pytest.mark.parametrize("jitter", [1e-10, 1e-4])
def test_spent_and_mean_norm_are_the_quadratic_forms(nu, d, jitter):
    posterior = fitted(nu, d, jitter=jitter)
    K = noisy_gram(posterior)
    alpha = np.linalg.solve(K, posterior.outputs)
    spent = np.einsum("tp,tp->p", posterior.outputs, alpha)
    np.testing.assert_allclose(posterior.spent, spent, rtol=1e-6)
    gram = posterior.kernel(posterior.inputs, posterior.inputs)
    np.testing.assert_allclose(posterior.mean_norm**2, np.einsum("tp,ts,sp->p", alpha, gram, alpha), rtol=1e-6)
    # ‖μ_t‖ ≤ sqrt(spent) ≤ ‖f‖: the mean is the interpolating function of smallest norm.
    assert np.all(posterior.mean_norm <= np.sqrt(posterior.spent) * (1 + 1e-12))
    assert np.all(posterior.spent <= 1 + 1e-9)


@every_kernel
def test_spent_never_decreases_and_sd_never_increases(nu):
    observed = case(nu, 2, 20, 2)
    posterior, Z = Posterior.empty(observed.kernel, 2, 2), queries(2)
    for x, y in zip(observed.X, observed.Y, strict=True):
        more = posterior.append(x[None], y[None])
        assert np.all(more.spent >= posterior.spent)
        assert np.all(more.predict(Z).sd <= posterior.predict(Z).sd + 1e-8)
        posterior = more


# ---- symmetries


@given(st.sampled_from(SMOOTHNESS), st.integers(1, 3), st.permutations(range(12)))
def test_the_order_of_the_data_does_not_matter(nu, d, order):
    observed = case(nu, d, 12, 2)
    shuffled = Posterior.fit(observed.kernel, observed.X[list(order)], observed.Y[list(order)], 1e-7)
    expected = everything(fitted(nu, d), queries(d))
    for key, value in everything(shuffled, queries(d)).items():
        np.testing.assert_allclose(value, expected[key], rtol=1e-5, atol=1e-7, err_msg=key)
    np.testing.assert_allclose(shuffled.spent, fitted(nu, d).spent, rtol=1e-7)


@given(st.sampled_from(SMOOTHNESS), st.floats(1e-3, 1e3), st.floats(-10, 10))
def test_scaling_and_shifting_inputs_scales_gradients_only(nu, factor, shift):
    observed = case(nu, 2, 12, 2)
    kernel = observed.kernel
    ell = tuple(factor * np.array(kernel.lengthscale))
    moved = Posterior.fit(make(nu, ell, kernel.variance), factor * observed.X + shift, observed.Y, 1e-5)
    expected = everything(fitted(nu, 2, jitter=1e-5), queries(2))
    for key, value in everything(moved, factor * queries(2) + shift).items():
        scale = factor if "_gradient" in key or "derivative" in key else 1.0
        np.testing.assert_allclose(value * scale, expected[key], rtol=1e-3, atol=1e-5, err_msg=key)


@every_kernel
@pytest.mark.parametrize("variance", [1e-6, 0.3, 1e6])
def test_variance_scales_the_sd_and_outputs_scale_the_mean(nu, variance):
    observed = case(nu, 2, 12, 2)
    s, ell = np.sqrt(variance), observed.kernel.lengthscale
    one = Posterior.fit(make(nu, ell), observed.X, observed.Y, 1e-7)
    many = Posterior.fit(make(nu, ell, variance), observed.X, s * observed.Y, 1e-7)
    expected = everything(one, queries(2))
    for key, value in everything(many, queries(2)).items():
        np.testing.assert_allclose(value / s, expected[key], rtol=1e-6, atol=1e-8, err_msg=key)
    np.testing.assert_allclose(many.spent, one.spent, rtol=1e-9)
    np.testing.assert_allclose(many.mean_norm, one.mean_norm, rtol=1e-9)
    assert many.inflation == one.inflation


@every_kernel
def test_means_are_linear_in_the_outputs(nu):
    observed = case(nu, 2, 12, 2)
    combined = Posterior.fit(observed.kernel, observed.X, observed.Y @ [2.0, -3.0], 1e-7)
    parts = fitted(nu, 2).predict_gradient(queries(2))
    prediction = combined.predict_gradient(queries(2))
    np.testing.assert_allclose(prediction.mean[:, 0], parts.mean @ [2.0, -3.0], rtol=0, atol=1e-10)
    slopes = np.einsum("npd,p->nd", parts.mean_gradient, [2.0, -3.0])
    np.testing.assert_allclose(prediction.mean_gradient[:, 0], slopes, rtol=0, atol=1e-9)


# ---- the prior


@every_kernel
@every_dimension
def test_without_data_the_posterior_is_the_prior(nu, d):
    kernel = make(nu, 0.7, 2.5)
    posterior = Posterior.empty(kernel, d, outputs=2)
    assert (posterior.count, posterior.received) == (0, 0)
    for key, value in everything(posterior, queries(d)).items():
        if key.endswith("derivative_sd"):
            assert kernel.curvature is not None
            expected = np.sqrt(2.5 * kernel.curvature) / 0.7
        elif key.endswith(".sd") or key == "sd":
            expected = np.sqrt(2.5)
        else:
            expected = 0.0
        np.testing.assert_allclose(value, expected, rtol=1e-15, err_msg=key)
    np.testing.assert_array_equal(posterior.spent, [0.0, 0.0])
    np.testing.assert_array_equal(posterior.mean_norm, [0.0, 0.0])
    assert posterior.inflation == 0.0


def test_fitting_no_rows_gives_the_prior():
    posterior = Posterior.fit(Matern(2.5), np.empty((0, 3)), np.empty((0, 2)))
    assert (posterior.count, posterior.dimension, posterior.output_count) == (0, 3, 2)


# ---- immutability


def test_input_arrays_are_neither_modified_nor_kept():
    observed = case(2.5, 2, 12, 2)
    X, Y, Z = observed.X.copy(), observed.Y.copy(), queries(2)
    posterior = Posterior.fit(observed.kernel, X, Y, 1e-7).append(X[:3] + 0.1, Y[:3])
    before = everything(posterior, Z)
    everything(posterior, Z)
    np.testing.assert_array_equal(X, observed.X)
    np.testing.assert_array_equal(Y, observed.Y)
    np.testing.assert_array_equal(Z, queries(2))
    X[:], Y[:] = 0.0, 0.0
    for key, value in everything(posterior, Z).items():
        np.testing.assert_array_equal(value, before[key], err_msg=key)
