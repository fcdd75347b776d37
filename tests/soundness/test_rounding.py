"""Regression tests of bounds that rounding once broke."""

import mpmath
import numpy as np
import pytest

from cascada.confidence import BallBelief, Belief, Boxes, EnvelopeTable
from cascada.gp import Posterior, SeparablePosterior
from cascada.kernels import Separable, SquaredExponential, random_expansion, random_operator_expansion
from cascada.network import Stage, chain, enclose_network, prior_beliefs
from cascada.problems import certified
from cascada.space import Domain, Real
from cascada.study import Study
from tests.soundness.truths import contained


def test_a_copy_of_a_large_logarithmic_control_contains_the_control() -> None:
    """ln x is rounded by u·|ln x|: exp(ln x) may be many floats away from x."""
    rng = np.random.default_rng(0)
    x = 9e7 + 4000 * rng.uniform(size=4000)
    network = chain(
        Stage("a", controls={"x": Real(1.0, 1e9, log=True)}, outputs=["x"], passes=["x"]),
        Stage("b", kernel=SquaredExponential(1.0), norm_bound=1.0),
    )
    points = network.domain.encode(x[:, None])
    boxes = enclose_network(prior_beliefs(network), Boxes(points, points)).boxes
    assert np.all(boxes.lower[:, 1] <= x)
    assert np.all(x <= boxes.upper[:, 1])


@pytest.mark.parametrize("offset", [1e4, 1e6, 1e7])
def test_a_large_offset_neither_breaks_a_bound_nor_refutes_it(offset: float) -> None:
    """Outputs are exact only to their last digit, which is large if the offset is large."""
    kernel, rng = SquaredExponential(1.0), np.random.default_rng(1)
    for _ in range(20):
        function = random_expansion(kernel, [-2], [2], norm=1.0, rng=rng, terms=6)
        stage = Stage("f", controls={"x": Real(-2, 2)}, kernel=kernel, norm_bound=1.0, offset=offset)
        X = np.concatenate([function.centres, rng.uniform(-2, 2, (10, 1))])
        beliefs = prior_beliefs(chain(stage)).append(np.hstack([X, function(X) + offset]))
        assert beliefs.evidence == {}
        Z = rng.uniform(-2, 2, (300, 1))
        boxes = enclose_network(beliefs, Boxes(Z, Z)).boxes
        truth = function(Z)[:, 0] + offset
        assert np.all(boxes.lower[:, 1] <= truth)
        assert np.all(truth <= boxes.upper[:, 1])


@pytest.mark.parametrize("base", [0.0, 1e6, 1e8])
def test_a_table_far_from_zero_contains_the_truth(base: float) -> None:
    """The peak between two nodes is accurate to an ulp of the nodes, which is large far from 0."""
    rng = np.random.default_rng(2)
    for _ in range(50):
        p = base + rng.uniform(-1, 1)
        nodes = np.unique(base + rng.uniform(-2, 2, 6))
        values = -3 * np.abs(nodes - p)[:, None]
        table = EnvelopeTable.build(nodes, Boxes(values, values), 3.0)
        left = base + rng.uniform(-2, 2, 200)
        right = left + rng.uniform(0, 1, 200)
        inside = np.clip(p, left, right)
        bounds = table.over(Boxes(left[:, None], right[:, None]))
        assert np.all(bounds.upper[:, 0] >= -3 * np.abs(inside - p))


@pytest.mark.parametrize("condition", [1.0, 1e6, 1e9])
def test_an_ill_conditioned_joint_kernel_is_not_refuted(condition: float) -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        turn = np.linalg.qr(rng.standard_normal((3, 3)))[0]
        kernel = Separable(SquaredExponential(1.0), turn @ np.diag([1.0, 0.1, 1 / condition]) @ turn.T)
        function = random_operator_expansion(kernel, [-2], [2], norm=2.0, outputs=3, rng=rng, terms=5)
        X = function.centres
        assert BallBelief(SeparablePosterior.fit(kernel, X, function(X)), 2.0).evidence == ()


def test_an_output_that_is_always_zero_has_zero_bounds() -> None:
    kernel = Separable(SquaredExponential(1.0), [[1.0, 0.0], [0.0, 0.0]])
    rng = np.random.default_rng(4)
    function = random_operator_expansion(kernel, [-2], [2], norm=2.0, outputs=2, rng=rng)
    X = rng.uniform(-2, 2, (10, 1))
    belief = BallBelief(SeparablePosterior.fit(kernel, X, function(X)), 2.0)
    assert belief.evidence == ()
    assert belief.per_output is not None
    bounds = belief.per_output.bounds(X)
    assert np.all(np.abs([bounds.lower[:, 1], bounds.upper[:, 1]]) <= 1e-12)


def test_close_inputs_do_not_refute_a_true_lipschitz_constant() -> None:
    """Later stages have inputs that are an ulp apart, whose outputs differ by roundings."""
    for seed in range(10):
        problem = certified("chain", seed, lipschitz=2.0)
        rng = np.random.default_rng(seed)
        best = problem.optimum[0]
        X = np.clip(best + 10 ** rng.uniform(-9, -7, (40, 1)) * rng.standard_normal((40, 2)), -2, 2)
        assert prior_beliefs(problem.network).append(problem.values(X)).evidence == {}


def test_asking_with_partly_observed_trials_never_fails() -> None:
    for seed in range(12):
        problem = certified("chain", seed)
        study = Study(problem.network)
        for _ in range(3):
            trial = study.ask()
            assert trial is not None
            values = problem.values(problem.network.domain.row(trial.controls)[None])[0]
            for node in problem.network.nodes[:2]:
                study.tell_stage(trial, node.stage.name, values[list(node.columns)])
        assert study.certificate().gap is None


def test_a_belief_with_inexact_outputs_contains_the_truth() -> None:
    """R² = B² + t·ε²/λ: outputs that are off by up to ε do not break the bound."""
    kernel, rng = SquaredExponential(1.0), np.random.default_rng(5)
    for _ in range(20):
        function = random_expansion(kernel, [-2, -2], [2, 2], norm=2.0, rng=rng, terms=8)
        X = np.concatenate([function.centres, rng.uniform(-2, 2, (10, 2))])
        error = 1e-6
        noisy = function(X) + error * rng.uniform(-1, 1, (len(X), 1))
        belief = Belief(Posterior.fit(kernel, X, noisy), 2.0).with_output_error(np.array([error]))
        Z = rng.uniform(-2, 2, (300, 2))
        bounds = belief.bounds(Z)
        assert np.all(contained(bounds, function(Z)))


def test_the_box_of_a_logarithmic_control_covers_the_exact_logarithms() -> None:
    rng = np.random.default_rng(6)
    for low, ratio in zip(10 ** rng.uniform(-8, 8, 200), 1 + rng.uniform(0.1, 100, 200), strict=True):
        domain = Domain({"x": Real(float(low), float(low * ratio), log=True)})
        with mpmath.workdps(40):
            assert mpmath.mpf(domain.lower[0]) <= mpmath.log(mpmath.mpf(float(low)))
            assert mpmath.mpf(domain.upper[0]) >= mpmath.log(mpmath.mpf(float(low * ratio)))
        ends = domain.decode(np.array([domain.lower, domain.upper]))
        assert ends[:, 0].tolist() == [float(low), float(low * ratio)]


def test_the_rounding_of_logarithms_counts_as_an_error_of_the_outputs() -> None:
    stage = Stage("f", controls={"x": Real(1.0, 1e9, log=True)}, kernel=SquaredExponential(0.01), norm_bound=1.0)
    beliefs = prior_beliefs(chain(stage)).append(np.array([[20.0, 1e-3]]))
    belief = beliefs.stages[0].belief
    assert isinstance(belief, Belief)
    assert belief.output_error[0] >= 20.0 * 1.1e-16 / 0.01
