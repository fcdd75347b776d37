"""Feasibility in samples of a network: against an integral, against loops over single samples, and ranges."""

from typing import Any

import numpy as np
import pytest

from cascada.algorithms.expected_improvement import log_expected_improvement
from cascada.arrays import Array
from cascada.kernels import SquaredExponential
from cascada.network import Beliefs, Network, Stage, chain, composite_mean, enclose_network, prior_beliefs
from cascada.network.chain_sampling import is_scalar_chain
from cascada.network.failures import FailureRisk
from cascada.network.sampling import feasibility, improvement, sample_network, standard_draws
from cascada.space import Real
from tests.network.cases import points, truth, values

SE = SquaredExponential(1.0)


def network(first: dict[str, Any] | None = None, second: dict[str, Any] | None = None) -> Network:
    controls = {"x": Real(-2, 2), "y": Real(-2, 2)}
    return chain(
        Stage("f", controls, kernel=SE, norm_bound=2.0, **(first or {})),
        Stage("g", kernel=SE, norm_bound=2.0, **(second or {})),
    )


def after(process: Network, runs: int = 5, seed: int = 0) -> tuple[Beliefs, Array]:
    data = values(process, truth(process, seed), points(process, runs, np.random.default_rng(seed)))
    return prior_beliefs(process, 1e-10).append(data), data


def predicted(beliefs: Beliefs, stage: int, inputs: Array) -> tuple[Array, Array]:
    belief = beliefs.stages[stage].per_output
    assert belief is not None
    found = belief.posterior.predict(inputs)
    return found.mean[:, 0], found.sd


def test_it_is_the_integral_of_expected_improvement_over_feasible_intermediate_values() -> None:
    """∫ 1{f ≤ h}·EI of g at f over f ~ N(μ, σ²) by the trapezoidal rule; within 5 standard errors of S samples."""
    limit, S = 0.3, 20_000
    process = network(first={"limits": {"f": (None, limit)}})
    beliefs, data = after(process)
    at, best = points(process, 40, np.random.default_rng(7)), float(np.median(data[:, -1]))
    draws = standard_draws(beliefs, S, np.random.default_rng(1))
    mean, sd = predicted(beliefs, 0, at)
    grid = np.linspace(-8, 8, 4001)
    z = mean[:, None] + sd[:, None] * grid
    inner, spread = predicted(beliefs, 1, z.reshape(-1, 1))
    gains = np.exp(log_expected_improvement(inner - best, spread)).reshape(z.shape) * (z <= limit)
    exact = np.trapezoid(gains * np.exp(-0.5 * grid**2) / np.sqrt(2 * np.pi), grid, axis=1)
    estimate = improvement(beliefs, at, draws, best)
    samples = sample_network(beliefs, at, draws)
    errors = (np.maximum(samples.objective - best, 0.0) * samples.feasible()).std(axis=1) / np.sqrt(S)
    assert exact.max() > 0.05
    np.testing.assert_array_less(np.abs(estimate - exact), 5 * errors + 1e-3)
    free = improvement(after(network())[0], at, draws, best)
    assert (estimate <= free + 1e-12).all()
    assert (estimate < 0.5 * free).any()


@pytest.mark.parametrize("sign", [1, -1])
def test_every_sample_counts_only_if_all_limits_hold_in_it(sign: int) -> None:
    """The same numbers from a loop over points and draws, with a band on the first output and a limit on the second."""
    process = network(first={"limits": {"f": (-0.5, 0.4)}}, second={"limits": {"g": (-0.8, None)}})
    process = process if sign > 0 else process.mirrored()
    beliefs, data = after(process)
    at, draws = points(process, 6, np.random.default_rng(3)), standard_draws(beliefs, 50, np.random.default_rng(2))
    best = float(np.median(sign * data[:, -1]))
    wanted, likely = np.zeros(len(at)), np.zeros(len(at))
    for i, point in enumerate(at):
        for xi in draws:
            mean, sd = predicted(beliefs, 0, point[None])
            f = mean + sd * xi[0]
            inner, spread = predicted(beliefs, 1, f[:, None])
            g = float((inner + spread * xi[1])[0])
            if -0.5 <= f[0] <= 0.4 and g >= -0.8:
                likely[i] += 1 / len(draws)
                wanted[i] += max(sign * g - best, 0.0) / len(draws)
    np.testing.assert_allclose(improvement(beliefs, at, draws, best), wanted, atol=1e-10)
    found = feasibility(beliefs, at, draws, np.ones(2))
    np.testing.assert_allclose(found[likely > 0], likely[likely > 0], atol=1e-10)
    assert (found[likely == 0] <= 0).all()


def test_without_a_feasible_sample_points_are_compared_by_their_margin() -> None:
    process = network(first={"limits": {"f": (50.0, None)}})
    beliefs, _ = after(process)
    at, draws = points(process, 8, np.random.default_rng(3)), standard_draws(beliefs, 40, np.random.default_rng(2))
    found = feasibility(beliefs, at, draws, np.array([2.0]))
    np.testing.assert_allclose(found, (sample_network(beliefs, at, draws).columns[2] - 50.0).mean(axis=1) / 2.0)


def test_a_limit_that_always_holds_changes_no_digit() -> None:
    at, limited = points(network(), 30, np.random.default_rng(3)), network(first={"limits": {"f": (-99.0, 99.0)}})
    both = []
    for process in (network(), limited):
        beliefs, data = after(process)
        draws = standard_draws(beliefs, 64, np.random.default_rng(2))
        both.append(improvement(beliefs, at, draws, float(np.median(data[:, -1]))))
    np.testing.assert_array_equal(*both)


def test_failures_weigh_samples_by_the_probability_that_no_stage_fails() -> None:
    process = network(second={"failure": "infeasible"})
    beliefs, data = after(process)
    failed = np.array([[0.5, 0.5, 0.7, np.nan]])
    risk = FailureRisk.of(process, data, failed)
    assert risk is not None
    at, draws = points(process, 6, np.random.default_rng(3)), standard_draws(beliefs, 32, np.random.default_rng(2))
    samples = sample_network(beliefs, at, draws)
    wanted = 1 - risk.stages[0].at(samples.columns[2].reshape(-1, 1)).reshape(6, 32)
    np.testing.assert_allclose(samples.feasible(risk), wanted)
    gains = np.maximum(samples.objective - 0.1, 0.0) * wanted
    np.testing.assert_allclose(improvement(beliefs, at, draws, 0.1, None, risk), gains.mean(axis=1))


# ---- ranges


def test_samples_and_means_stay_within_ranges() -> None:
    process = network(first={"ranges": {"f": (-0.3, 0.2)}}, second={"ranges": {"g": (None, -0.1)}})
    free, data = after(network())
    beliefs = prior_beliefs(process, 1e-10).append(data)
    at, draws = points(process, 50, np.random.default_rng(3)), standard_draws(beliefs, 64, np.random.default_rng(2))
    samples = sample_network(beliefs, at, draws)
    unclipped = sample_network(free, at, draws).columns[2]
    np.testing.assert_array_equal(samples.columns[2], np.clip(unclipped, -0.3, 0.2))
    assert samples.columns[3].max() == -0.1
    mean, inner = composite_mean(beliefs, at), composite_mean(beliefs, at, clip_objective=False)
    np.testing.assert_array_equal(mean[:, 2], np.clip(composite_mean(free, at)[:, 2], -0.3, 0.2))
    np.testing.assert_array_equal(mean[:, 3], np.minimum(inner[:, 3], -0.1))
    wanted, _ = predicted(beliefs, 1, mean[:, [2]])
    np.testing.assert_allclose(inner[:, 3], wanted, atol=1e-12)
    assert not is_scalar_chain(beliefs)
    assert is_scalar_chain(free)


def test_predictions_lie_within_ranges() -> None:
    process = network(first={"ranges": {"f": (0.0, 0.2)}})
    data = np.array([[0.0, 0.0, 0.1, 0.5], [1.0, 1.0, 0.2, 0.52]])
    beliefs = prior_beliefs(process, 1e-10).append(data)
    rng = np.random.default_rng(0)
    for x, y in rng.uniform(-2, 2, (20, 2)):
        found = beliefs.predict({"x": x, "y": y})["f"]
        assert 0.0 <= found.lower[0] <= found.mean[0] <= found.upper[0] <= 0.2
    assert enclose_network(beliefs, beliefs.stages[0].span).boxes.upper[0, 2] <= 0.2  # type: ignore[arg-type]
