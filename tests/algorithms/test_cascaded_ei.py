"""cEI against the expectation that it estimates, and its tables for chains against direct samples."""

from typing import cast

import numpy as np
import pytest
from hypothesis import assume, settings
from hypothesis import given as examples
from hypothesis import strategies as st

from cascada.algorithms import CascadedEI, ExpectedImprovement, Situation
from cascada.algorithms.expected_improvement import log_expected_improvement
from cascada.arrays import Array
from cascada.confidence import Belief
from cascada.gp import Prediction
from cascada.kernels import Matern, SquaredExponential
from cascada.network import Network, Stage, chain
from cascada.network.chain_sampling import ChainSampler, is_scalar_chain
from cascada.network.sampling import sample_objective
from cascada.space import Real
from tests import thorough
from tests.algorithms.cases import scores, situation_after
from tests.network.cases import NETWORKS, points, truth, values

XY = {"x": Real(-2, 2), "y": Real(-2, 2)}


def chain_of(*kernels: SquaredExponential, offset: float = 0.0) -> Network:
    """A chain with two controls at its first stage."""
    first, *later = kernels
    stages = [Stage("s1", controls=XY, kernel=first, norm_bound=2.0, offset=offset)]
    stages += [Stage(f"s{i}", kernel=k, norm_bound=2.0, offset=offset) for i, k in enumerate(later, start=2)]
    return chain(*stages)


def after(network: Network, t: int, seed: int = 0, n: int = 60, jitter: float = 1e-10) -> Situation:
    """The situation after t runs of a random process, with n candidates."""
    data = values(network, truth(network, seed), points(network, t, np.random.default_rng(seed)))
    return situation_after(network, data, points(network, n, np.random.default_rng(99)), jitter)


def believed(situation: Situation, i: int) -> Belief:
    return cast("Belief", situation.beliefs.stages[i].belief)


# ---- the estimate


def test_for_one_stage_it_is_expected_improvement() -> None:
    """The mean of S samples is within 5 standard errors of the closed form; no sample has a larger sd than σ."""
    network, S = chain_of(SquaredExponential(0.8)), 20_000
    situation = after(network, 6)
    estimate = scores(CascadedEI(samples=S), situation)
    exact = np.exp(scores(ExpectedImprovement(), situation))
    assert situation.candidates is not None
    sd = believed(situation, 0).posterior.predict(situation.candidates).sd
    assert exact.max() > 0.1
    np.testing.assert_array_less(np.abs(estimate - exact), 5 * sd / np.sqrt(S) + 1e-9)
    assert exact[estimate.argmax()] >= exact.max() - 10 * sd.max() / np.sqrt(S)


@pytest.mark.parametrize("tables", [True, False])
def test_for_two_stages_it_is_an_integral(tables: bool) -> None:
    """∫ EI of the second stage at μ₁ + σ₁ξ over ξ ~ N(0, 1), by Gauss' rule; again 5 standard errors."""
    network, S = chain_of(SquaredExponential(1.0), SquaredExponential(1.5)), 20_000
    situation = after(network, 5)
    assert situation.candidates is not None
    estimate = scores(CascadedEI(samples=S, tables=tables), situation)
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    first = believed(situation, 0).posterior.predict(situation.candidates)
    z = first.mean + first.sd[:, None] * nodes  # (n, 80)
    second = believed(situation, 1).posterior.predict(z.reshape(-1, 1))
    gains = np.exp(log_expected_improvement(second.mean[:, 0] - situation.best, second.sd)).reshape(z.shape)
    exact = gains @ weights / np.sqrt(2 * np.pi)
    spread = sample_objective(
        situation.beliefs, situation.candidates, np.random.default_rng(1).standard_normal((2000, 2))
    )
    assert exact.max() > 0.01
    np.testing.assert_array_less(np.abs(estimate - exact), 5 * spread.std(axis=1) / np.sqrt(S) + 1e-9)


def test_more_samples_come_closer() -> None:
    """The error over all points falls as 1/√S, up to a factor of 2."""
    situation = after(chain_of(SquaredExponential(1.0), SquaredExponential(1.0)), 5)
    best = np.mean([scores(CascadedEI(samples=20_000), situation, seed=s) for s in range(5)], axis=0)
    errors = [
        np.sqrt(np.mean([(scores(CascadedEI(samples=S), situation, seed=s) - best) ** 2 for s in range(10, 30)]))
        for S in (50, 1250)
    ]
    assert errors[0] / errors[1] == pytest.approx(5.0, rel=1.0)
    assert errors[0] > 2 * errors[1]


# ---- tables


def sample_error(situation: Situation, sampler: ChainSampler) -> Array:
    """The largest error of samples (S,) from tables: δ' = (Lip(μ) + |ξ|·Lip(σ))·δ + the table's own, by stage."""
    error = np.zeros(len(sampler.draws))
    for i, table in enumerate(sampler.tables, start=1):
        posterior, xi = believed(situation, i).posterior, np.abs(sampler.draws[:, i])
        slope = np.sqrt(posterior.kernel.variance) / posterior.kernel.lengthscales(1)[0]
        rounding = 1e-7 * (1 + posterior.mean_norm[0]) * np.sqrt(posterior.kernel.variance)
        error = (posterior.mean_norm[0] + xi) * slope * error
        error += table.mean_error[0] + np.sqrt(table.variance_error) * xi + rounding
    return error


def sampler_of(situation: Situation, draws: Array) -> ChainSampler | None:
    assert situation.candidates is not None
    first: Prediction = believed(situation, 0).posterior.predict(situation.candidates)
    return ChainSampler.of(situation.beliefs, first, draws)


@settings(max_examples=thorough.examples(40))
@examples(
    seed=st.integers(0, 10**6),
    t=st.integers(1, 30),
    lengthscales=st.lists(st.floats(0.4, 3.0), min_size=2, max_size=4),
    variance=st.floats(0.1, 10.0),
    offset=st.floats(-3, 3),
    jitter=st.sampled_from([1e-10, 1e-7]),
    mirrored=st.booleans(),
)
def test_tables_change_samples_by_no_more_than_their_stated_error(
    seed: int, t: int, lengthscales: list[float], variance: float, offset: float, jitter: float, mirrored: bool
) -> None:
    network = chain_of(*(SquaredExponential(length, variance) for length in lengthscales), offset=offset)
    situation = after(network.mirrored() if mirrored else network, t, seed, jitter=jitter)
    assert situation.candidates is not None
    S = 32
    draws = np.random.default_rng(seed).standard_normal((S, len(lengthscales)))
    sampler = sampler_of(situation, draws)
    assume(sampler is not None)  # otherwise the range is too long for tables
    assert sampler is not None
    direct = sample_objective(situation.beliefs, situation.candidates, draws)
    tabled = sampler.values(np.arange(len(situation.candidates)))
    error = sample_error(situation, sampler)
    assert np.all(np.abs(tabled - direct) <= error)
    assert np.all(tabled <= sampler.highest()[:, None] + 1e-9)  # no point is left out
    through, without = (
        scores(CascadedEI(samples=S, tables=tables), situation, seed=seed) for tables in (True, False)
    )  # the generator gives the same draws
    assert np.abs(through - without).max() <= error.mean()


@pytest.mark.parametrize("t", [3, 10, 40])
def test_tables_hardly_change_the_acquisition(t: int) -> None:
    """In practice they change it by 1e-7 or less, and the choice is as good."""
    for seed in range(3):
        situation = after(NETWORKS["chain"], t, seed, n=400)
        through, without = (scores(CascadedEI(samples=200, tables=tables), situation) for tables in (True, False))
        np.testing.assert_allclose(through, without, atol=1e-7)
        assert without[through.argmax()] >= without.max() - 1e-7
        assert np.all((through > 0) >= (without > 1e-7))


def test_where_no_sample_improves_the_score_is_zero() -> None:
    """Points are left out because of a bound of their samples, so the bound must hold."""
    situation = after(NETWORKS["chain"], 12, n=500)
    draws = np.random.default_rng(3).standard_normal((300, 3))
    sampler = sampler_of(situation, draws)
    assert sampler is not None
    highest = sampler.highest()
    assert np.all(sampler.values(np.arange(500)).max(axis=1) <= highest)
    hopeless = highest <= situation.best
    assert 0 < hopeless.sum() < 500
    np.testing.assert_array_equal(sampler.improvement(situation.best)[hopeless], 0.0)


@pytest.mark.parametrize(
    ("network", "shortcut"),
    [
        (chain_of(SquaredExponential(1.0), SquaredExponential(1.0)), True),
        (chain_of(SquaredExponential(1.0)), True),
        (NETWORKS["chain"], True),
        (NETWORKS["rough chain"], False),
        (NETWORKS["chain with controls"], False),
        (NETWORKS["feed-forward"], False),
        (NETWORKS["multi-output chain"], False),
        (NETWORKS["graph"], False),
        (NETWORKS["passes and integers"], False),
        (chain(*NETWORKS["chain"].stages, objective="g"), False),
        (chain(Stage("f", controls=XY, kernel=Matern(2.5), norm_bound=1.0), NETWORKS["chain"].stages[1]), True),
    ],
    ids=str,
)
def test_only_scalar_chains_use_tables(network: Network, shortcut: bool) -> None:
    """All networks have the same scores with and without tables."""
    situation = after(network, 6, n=20)
    assert is_scalar_chain(situation.beliefs) == shortcut
    encoded = network.domain.encode(points(network, 20, np.random.default_rng(99)))
    through, without = (scores(CascadedEI(samples=32, tables=tables), situation, encoded) for tables in (True, False))
    np.testing.assert_allclose(through, without, atol=1e-6)


def test_a_range_of_many_lengthscales_has_no_tables() -> None:
    """A stage whose lengthscale is a hundredth of the range of its input is sampled directly."""
    network = chain_of(SquaredExponential(1.0), SquaredExponential(0.02))
    situation = after(network, 6)
    assert sampler_of(situation, np.random.default_rng(0).standard_normal((16, 2))) is None
    through, without = (scores(CascadedEI(samples=16, tables=tables), situation) for tables in (True, False))
    np.testing.assert_array_equal(through, without)


def test_one_sample_is_enough() -> None:
    """Then all draws of a stage are equal, and intervals have no width."""
    situation = after(NETWORKS["chain"], 4)
    through, without = (scores(CascadedEI(samples=1, tables=tables), situation) for tables in (True, False))
    np.testing.assert_allclose(through, without, atol=1e-6)
