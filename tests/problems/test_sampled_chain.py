"""Tests of the sampled chains of the paper: covariance, valid norm bounds, and the best value."""

import pickle
from importlib import import_module

import numpy as np
import pytest
from scipy.optimize import minimize

import cascada as cd
from cascada.arrays import Array
from cascada.kernels import SquaredExponential
from cascada.network import prior_beliefs
from cascada.problems import PAPER_GRID, by_name, sampled_chain
from cascada.problems.sampled_chain import sample_on_line, sample_on_square
from tests.thorough import THOROUGH

K = SquaredExponential(1.0)
SIDE = 50 if THOROUGH else 30  # points of the grid along each axis: eigenvectors of all of them take two seconds


def test_the_same_seed_gives_the_same_chain():
    points = np.random.default_rng(0).uniform(-5, 5, (20, 2))
    once, again, other = (sampled_chain(seed).values(points) for seed in (3, 3, 4))
    np.testing.assert_array_equal(once, again)
    assert np.abs(once[:, 2:] - other[:, 2:]).min() > 0


@pytest.mark.parametrize("seed", range(3))
def test_a_seed_gives_the_recorded_chain(seed):
    """The maximum over the grid; a change here changes all results of the reproduction."""
    problem = sampled_chain(seed)
    best = problem.objective(PAPER_GRID.points(problem.network.domain)).max()
    assert best == pytest.approx([1.1079332339, 0.6059466315, 0.1819747966][seed], abs=1e-6)


@pytest.mark.parametrize(("draw", "places"), [(sample_on_square, SIDE**2), (sample_on_line, 61)])
def test_the_expansion_goes_through_the_sampled_values(draw, places, monkeypatch):
    """K·a = K^{1/2}ε, computed from the whole Gram matrix in another way."""
    monkeypatch.setattr(import_module("cascada.problems.sampled_chain"), "POINTS", SIDE)
    function = draw(np.random.default_rng(5))
    assert function.centres.shape[0] == places
    gram = K(function.centres, function.centres)
    eigenvalues, vectors = np.linalg.eigh(gram)
    kept = eigenvalues > 1e-10 * eigenvalues.max()
    noise = np.random.default_rng(5).standard_normal(places)
    sampled = vectors[:, kept] @ (np.sqrt(eigenvalues[kept]) * (vectors[:, kept].T @ noise))
    np.testing.assert_allclose(function(function.centres)[:, 0], sampled, atol=1e-6)
    # ‖f‖² = aᵀKa is the squared norm of the kept noise.
    assert function.norm[0] == pytest.approx(np.linalg.norm(vectors[:, kept].T @ noise), rel=1e-5)


@pytest.mark.parametrize(
    ("draw", "points"),
    [
        (sample_on_square, [[0.0, 0.0], [0.7, 0.0], [0.7, -1.1], [-4.9, 4.9], [3.33, 2.2]]),
        (sample_on_line, [[0.0], [0.33], [1.5], [-3.3], [3.9]]),
    ],
)
def test_samples_have_the_kernel_as_their_covariance(draw, points):
    """Over n draws a mean is N(0, 1/n) and a covariance has variance (1 + k²)/n; the tolerance is five sds."""
    n = 400
    where = np.array(points)
    values = np.array([draw(np.random.default_rng([7, i]))(where)[:, 0] for i in range(n)])  # (n, places)
    assert np.abs(values.mean(axis=0)).max() < 5 / np.sqrt(n)
    covariance, expected = values.T @ values / n, K(where, where)
    assert (np.abs(covariance - expected) / np.sqrt((1 + expected**2) / n)).max() < 5


def test_stages_have_their_own_norm_or_the_given_one_as_bound():
    problem = sampled_chain(1)
    for stage, expected in zip(problem.network.stages, (23, 5.5, 5.5), strict=True):
        assert stage.norm_bound is not None
        assert stage.norm_bound[0] == pytest.approx(expected, rel=0.35)
        assert stage.lipschitz is None
    for stage in sampled_chain(1, norm_bound=2.0, lipschitz=3.0).network.stages:
        assert stage.norm_bound is not None
        assert stage.lipschitz is not None
        assert (stage.norm_bound[0], stage.lipschitz[0]) == (2.0, 3.0)


def test_data_refute_a_norm_of_two_but_not_the_true_norms():
    points = np.random.default_rng(2).uniform(-5, 5, (300, 2))
    for claim, refuted in ((None, set()), (2.0, {"f1", "f2", "f3"})):
        problem = sampled_chain(0, norm_bound=claim)
        assert set(prior_beliefs(problem.network).append(problem.values(points)).evidence) == refuted


def test_single_calls_equal_the_table_of_values():
    """The functions of the stages equal `values` bit for bit and can be pickled."""
    problem = pickle.loads(pickle.dumps(sampled_chain(0).network))
    result = cd.maximise(problem, budget=3, candidates=PAPER_GRID, algorithm="random_search", progress=False)
    for trial in result.trials:
        row = sampled_chain(0).values(np.array([[trial.controls["x"], trial.controls["y"]]]))[0]
        assert [trial.outputs[name][0] for name in ("f1", "f2", "f3")] == row[2:].tolist()


def test_values_of_many_points_do_not_depend_on_blocks():
    problem = sampled_chain(0)
    points = np.random.default_rng(3).uniform(-5, 5, (1100, 2))
    np.testing.assert_array_equal(problem.values(points)[700:702], problem.values(points[700:702]))
    assert problem.values(points[:0]).shape == (0, 5)


def test_the_optimum_is_attained_and_not_beaten():
    problem = by_name("sampled-chain")
    point, value = problem.optimum
    # The recorded value is that of one machine; others round the sample differently (`_ROUNDING` in the module).
    assert problem.objective(point[None])[0] == pytest.approx(value, rel=1e-9)
    value = float(problem.objective(point[None])[0])
    axis = np.linspace(-5, 5, 140)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    values = problem.objective(grid)
    assert values.max() <= value

    def negated(x: Array) -> float:
        return -float(problem.objective(x[None])[0])

    for start in grid[np.argsort(-values)[:10]]:
        polished = minimize(negated, start, method="Nelder-Mead", bounds=[(-5, 5)] * 2)
        assert -polished.fun <= value + 1e-9
