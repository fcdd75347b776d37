"""Tests of the amplifier: the paper's numbers, norm, accuracy near 0, slopes, and the conditions on (u, ũ)."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cascada.errors import ArgumentError
from cascada.kernels import Matern
from cascada.theory.amplifier import Amplifier
from tests.thorough import examples

PAPER = {1.0: (0.958, 1.7814), 1.5: (0.939, 1.7482), 2.0: (0.934, 1.6994)}


@pytest.mark.parametrize("nu", PAPER)
def test_the_numbers_of_the_paper_are_reproduced(nu):
    """fig:gtil and sec:dis_c: l = 1, B = 5, u = 0.5, ũ = 0.3."""
    amplifier = Amplifier(Matern(nu), 5.0, 0.5, 0.3)
    ratio, top = PAPER[nu]
    assert amplifier.ratio == pytest.approx(ratio, abs=5e-4)
    assert amplifier.top == pytest.approx(top, abs=5e-5)
    assert amplifier.ratio == amplifier.r_min / amplifier.r_max


@settings(max_examples=examples(40))
@given(
    nu=st.floats(1.0, 4.0),
    lengthscale=st.floats(0.3, 3.0),
    variance=st.floats(0.2, 5.0),
    u=st.floats(0.1, 2.0),
    share=st.floats(0.05, 0.95),
    norm=st.floats(1.0, 200.0),
    dimension=st.integers(1, 4),
)
def test_norm_and_slopes(nu, lengthscale, variance, u, share, norm, dimension):
    try:
        amplifier = Amplifier(Matern(nu, lengthscale, variance), norm, u, share * u)
    except ArgumentError as error:
        assume("condition" not in str(error))
        raise
    assert amplifier.expansion(dimension).norm[0] == pytest.approx(norm, rel=1e-10)
    z = np.linspace(0, amplifier.u_tilde, 400)[1:]
    values = amplifier(z[:, None])
    assert (np.diff(values) > 0).all()  # condition 1
    assert values[-1] >= 1  # condition 2
    chords = values / z / amplifier.scale
    assert amplifier.r_min * (1 - 1e-9) <= chords.min()  # condition 3 and eq:slope
    assert chords.max() <= amplifier.r_max * (1 + 1e-9)
    assert amplifier.scale * amplifier.r_min > 1
    steepest = (np.diff(values) / np.diff(z)).max()
    assert amplifier.r_max * amplifier.scale <= amplifier.lipschitz * (1 + 1e-9)
    assert steepest <= amplifier.lipschitz * (1 + 1e-9)
    assert steepest >= amplifier.lipschitz * (1 - 0.05)
    assert amplifier.lipschitz <= amplifier.lipschitz_everywhere * (1 + 1e-9)


def test_the_corrected_sign_of_the_norm():
    """‖g̃_k‖² = L̃²/4·(2k(0) − 2k(2u)); with the printed + it would not be B²."""
    amplifier = Amplifier(Matern(1.5), 5.0, 0.5, 0.3)
    k0, k1 = amplifier.kernel(np.array([[0.0]]), np.array([[0.0], [1.0]]))[0]
    assert 0.5 * amplifier.scale * np.sqrt(2 * k0 - 2 * k1) == pytest.approx(5.0, rel=1e-14)
    assert 0.5 * amplifier.scale * np.sqrt(2 * k0 + 2 * k1) > 8


@pytest.mark.parametrize("nu", [1.0, 1.5, 2.3])
@pytest.mark.parametrize("z", [1e-12, 1e-5, 0.1, 0.249, 0.251, 0.299])
def test_small_inputs_keep_full_relative_accuracy(nu, z):
    amplifier = Amplifier(Matern(nu), 5.0, 0.5, 0.3)
    with mp.workdps(40):

        def k(r):
            v = mp.sqrt(2 * mp.mpf(nu)) * r
            return 2 ** (1 - mp.mpf(nu)) / mp.gamma(nu) * v**nu * mp.besselk(nu, v)

        u = mp.mpf("0.5")
        scale = mp.sqrt(2) * 5 / mp.sqrt(1 - k(2 * u))
        exact = scale / 2 * (k(u - mp.mpf(z)) - k(u + mp.mpf(z)))
        assert abs(float(amplifier.at(z) / exact - 1)) < 2e-13
        assert amplifier.inverse(amplifier.at(z)) == pytest.approx(z, rel=1e-12)


def test_the_amplifier_is_odd_and_depends_on_the_first_coordinate():
    amplifier = Amplifier(Matern(1.5), 5.0, 0.5, 0.3)
    z = np.linspace(-1, 1, 41)[:, None]
    np.testing.assert_allclose(amplifier(z), -amplifier(-z), atol=1e-15)
    assert amplifier.at(0.0) == 0.0
    wide = np.zeros((41, 3))
    wide[:, 0] = z[:, 0]
    np.testing.assert_allclose(amplifier(wide), amplifier(z), rtol=1e-13, atol=1e-16)
    other = np.random.default_rng(0).uniform(-1, 1, (50, 3))
    np.testing.assert_allclose(amplifier(other), amplifier.expansion(3)(other)[:, 0], rtol=1e-10, atol=1e-14)


def test_the_largest_chord_slope_is_not_a_lipschitz_constant():
    """Corrected, thm:hard_chain: at ν = 1.5, u = 2, ũ = 1, B = 5 the derivative exceeds the largest chord slope."""
    amplifier = Amplifier(Matern(1.5), 5.0, 2.0, 1.0)
    assert amplifier.r_max * amplifier.scale == pytest.approx(1.594, abs=1e-3)
    assert amplifier.lipschitz == pytest.approx(2.0608, abs=1e-4)
    z = np.linspace(0, 1, 100001)[:, None]
    steepest = (np.diff(amplifier(z)) * 100000).max()
    assert steepest == pytest.approx(amplifier.lipschitz, rel=1e-4)
    assert steepest > amplifier.r_max * amplifier.scale * 1.25


@pytest.mark.parametrize("nu", [1.0, 1.5, 3.0])
@pytest.mark.parametrize("dimension", [1, 2])
def test_the_lipschitz_constant_everywhere_holds_off_the_axis(nu, dimension):
    amplifier = Amplifier(Matern(nu, 0.8), 6.0, 0.6, 0.3)
    expansion = amplifier.expansion(dimension)
    points = np.random.default_rng(1).uniform(-2, 2, (4000, dimension))
    gradient = np.einsum(
        "nmd,m->nd", amplifier.kernel.gradient(points, expansion.centres), expansion.coefficients[:, 0]
    )
    assert np.linalg.norm(gradient, axis=1).max() <= amplifier.lipschitz_everywhere * (1 + 1e-12)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((Matern(1.5), 5.0, 0.3, 0.3), r"u_tilde must lie below u.*condition 1.*got u = 0\.3, u_tilde = 0\.3"),
        ((Matern(1.5), 2.0, 0.5, 0.3), r"at least 1 \(condition 2.*it is 0\.69928.*Use norm_bound ≥ 2\.86"),
        ((Matern(1.5), 2.0, 1.5, 1.0), r"condition 3.*slope is 0\.963849.*Use norm_bound ≥ 2\.07"),
        ((Matern(1.5), 1e6, 1e-4, 5e-5), r"u is too small for the lengthscale 1: .*got u = 0\.0001"),
        ((Matern(1.5), -5.0, 0.5, 0.3), "norm_bound must be a finite number above 0"),
        ((Matern(1.5), 5.0, 0.5, 0.0), "u_tilde must be a finite number above 0"),
        ((Matern(1.5, (1.0, 1.0)), 5.0, 0.5, 0.3), "one lengthscale"),
    ],
)
def test_the_error_names_the_failed_condition(arguments, complaint):
    with pytest.raises(ArgumentError, match=complaint) as e:
        Amplifier(*arguments)
    if "Use norm_bound ≥ " in str(e.value):  # the suggested norm bound is sufficient
        offered = float(str(e.value).split("Use norm_bound ≥ ")[1].split(",")[0])
        Amplifier(arguments[0], offered, *arguments[2:])


def test_the_three_conditions_of_the_paper_do_not_imply_eq_slope():
    """ν = 1.5, u = 1.5, ũ = 1, B = 2: k decreases, g̃_k(ũ) ≥ 1, all chord slopes are positive, but g̃_k(z) < z near 0."""
    kernel, u, u_tilde, norm = Matern(1.5), 1.5, 1.0, 2.0

    def k(r):
        return kernel(np.array([[r]]), np.zeros((1, 1)))[0, 0]

    scale = np.sqrt(2) * norm / np.sqrt(k(0.0) - k(2 * u))
    assert scale / 2 * (k(u - u_tilde) - k(u + u_tilde)) > 1  # condition 2
    z = 0.01
    assert 0 < scale / 2 * (k(u - z) - k(u + z)) < 0.97 * z


def test_inverting_a_height_above_the_top_raises_an_argument_error():
    amplifier = Amplifier(Matern(1.5), 5.0, 0.5, 0.3)
    assert amplifier.inverse(amplifier.top) == pytest.approx(0.3, rel=1e-14)
    with pytest.raises(ArgumentError, match=r"at most 1\.74821 on \[0, ũ\]; got height 1\.8"):
        amplifier.inverse(1.8)


def test_a_rough_kernel_has_no_lipschitz_constant_everywhere():
    with pytest.raises(ArgumentError, match=r"nu ≤ 0\.5 have a kink; got"):
        _ = Amplifier(Matern(0.5), 5.0, 0.5, 0.3).lipschitz_everywhere
