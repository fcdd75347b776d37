"""Evidence against assumptions: the observations that refute them, and the smallest value that remains possible."""

import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cascada.confidence import BallBelief, Belief, Evidence
from cascada.errors import RefutedError
from cascada.gp import Posterior, SeparablePosterior
from cascada.kernels import Matern, Separable, SquaredExponential, random_expansion, random_operator_expansion


def test_norm_is_refuted_with_the_rows_and_the_smallest_possible_norm() -> None:
    posterior = Posterior.fit(SquaredExponential(1.0), [[0.0], [5.0], [0.1], [9.0]], [0.5, 0.5, 2.0, 0.0])
    (found,) = Belief(posterior, 1.0).evidence
    assert (found.assumption, found.output, found.rows) == ("norm_bound", 0, (0, 1, 2))
    assert found.smallest == pytest.approx(float(np.sqrt(posterior.spent[0])), rel=1e-9)
    assert Belief(posterior, found.smallest * (1 + 1e-9)).evidence == ()
    with pytest.raises(RefutedError, match="observations 0 to 2"):
        Belief(posterior, 1.0).bounds([[0.0]])


def test_lipschitz_is_refuted_by_the_steepest_pair() -> None:
    posterior = Posterior.fit(SquaredExponential(1.0), [[0.0], [1.0], [1.5]], [0.0, 1.0, 0.25])
    (found,) = Belief(posterior, 100.0, lipschitz=1.2).evidence
    assert (found.assumption, found.rows) == ("lipschitz", (1, 2))
    assert found.smallest == pytest.approx(1.5)
    assert Belief(posterior, 100.0, lipschitz=1.5).evidence == ()
    with pytest.raises(RefutedError, match=r"observations 1 and 2 are possible only with more than 1\.49999\."):
        Belief(posterior, 100.0, lipschitz=1.2).bounds([[0.0]])


def test_every_output_is_judged_by_its_own_assumption() -> None:
    posterior = Posterior.fit(SquaredExponential(1.0), [[0.0], [2.0]], [[1.0, 5.0], [0.0, 0.0]])
    found = Belief(posterior, [2.0, 2.0], lipschitz=[3.0, 1.0]).evidence
    assert [(e.assumption, e.output) for e in found] == [("norm_bound", 1), ("lipschitz", 1)]


def test_rows_are_the_numbers_of_the_observations() -> None:
    """An absorbed repeat keeps its number."""
    posterior = Posterior.fit(SquaredExponential(1.0), [[0.0], [0.0], [4.0]], [0.5, 0.5, 9.0])
    (found,) = Belief(posterior, 1.0).evidence
    assert found.rows == (0, 2)


@pytest.mark.parametrize("kernel", [SquaredExponential(1.0), Matern(0.5), Matern(2.5), Matern(3.7)], ids=str)
def test_true_assumptions_are_never_refuted(kernel: SquaredExponential) -> None:
    """This includes data that use up the whole norm: f is observed at its own centres."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        function = random_expansion(kernel, [-2, -2], [2, 2], norm=2.0, rng=rng)
        X = np.concatenate([function.centres, rng.uniform(-2, 2, (30, 2))])
        assert Belief(Posterior.fit(kernel, X, function(X)), 2.0).evidence == ()


def test_exact_slopes_do_not_refute_the_lipschitz_constant() -> None:
    """A linear function meets its constant exactly; rounding must not refute it."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (200, 1)) + 1000.0
    posterior = Posterior.fit(SquaredExponential(1.0), X, 3.0 * X)
    assert all(e.assumption == "norm_bound" for e in Belief(posterior, 1e9, lipschitz=3.0).evidence)


def test_a_joint_norm_and_a_joint_slope_are_refuted() -> None:
    kernel = Separable(SquaredExponential(1.0))
    posterior = SeparablePosterior.fit(kernel, [[0.0], [0.5], [3.0]], [[0.0, 0.0], [0.3, 0.4], [0.0, 0.0]])
    norm, slope = BallBelief(posterior, 0.4, lipschitz=0.9).evidence
    assert (norm.assumption, norm.output, norm.rows) == ("norm_bound", None, (0, 1))
    assert (slope.assumption, slope.output, slope.rows) == ("lipschitz", None, (0, 1))
    assert slope.smallest == pytest.approx(1.0)
    with pytest.raises(RefutedError):
        BallBelief(posterior, 0.4).balls([[0.0]])
    rng = np.random.default_rng(1)
    function = random_operator_expansion(kernel, [-2], [2], norm=2.0, outputs=2, rng=rng)
    exact = SeparablePosterior.fit(kernel, function.centres, function(function.centres))
    assert BallBelief(exact, 2.0).evidence == ()


@given(st.floats(1e-90, 1e90), st.integers(0, 15))
def test_the_printed_numbers_contradict_each_other_and_are_true(given_bound: float, exponent: int) -> None:
    """This includes smallest possible values with the same first digits as the declared one."""
    smallest = given_bound * (1 + 10.0**-exponent)
    text = str(Evidence("norm_bound", None, (0, 1, 2), given_bound, smallest, smallest))
    pattern = r"given as (\S+), but observations 0 to 2 are possible only with more than (\S+)\. "
    found = re.search(pattern, text)
    assert found is not None
    stated, least = found.groups()
    assert Fraction(stated) < Fraction(least) <= Fraction(smallest)
    assert float(stated) >= given_bound
