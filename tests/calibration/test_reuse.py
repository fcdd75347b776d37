"""Posteriors that are extended by new runs, instead of being computed anew."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cascada.arrays import Array
from cascada.calibration import Calibrated, Calibration, calibrate
from cascada.calibration.fit import MANY
from cascada.gp import Posterior
from cascada.gp.rounding import SMALLEST_JITTER
from cascada.kernels import Matern
from cascada.network import Network, Stage, chain
from cascada.space import Real

X = {"x": Real(0, 1)}
ESTIMATED = chain(Stage("f", controls=X))
KERNEL_GIVEN = chain(Stage("f", controls=X, kernel=Matern(2.5, 0.4)))


def rows(count: int) -> Array:
    x = np.random.default_rng(3).uniform(size=count)
    return np.stack([x, np.sin(9 * x)], axis=1)


def learned(network: Network, data: Array, before: Calibrated | None = None) -> Calibrated:
    return calibrate(network, data, Calibration("matern"), SMALLEST_JITTER, before)


def posterior(found: Calibrated) -> Posterior:
    belief = found.judging.stages[0].per_output
    assert belief is not None
    return belief.posterior


@pytest.mark.parametrize("network", [ESTIMATED, KERNEL_GIVEN])
def test_an_extended_posterior_equals_a_new_one(network: Network) -> None:
    data = rows(MANY + 42)
    extended = learned(network, data, learned(network, data[: MANY + 40]))
    anew = learned(
        network,
        data,
        replace(extended, acting=learned(network, data[:0]).acting, judging=learned(network, data[:0]).judging),
    )
    one, other = posterior(extended), posterior(anew)
    assert one.count == other.count == MANY + 42
    assert one.kernel is other.kernel
    np.testing.assert_allclose(one.factor, other.factor, rtol=0, atol=1e-9)
    at = np.linspace(0, 1, 7)[:, None]
    np.testing.assert_allclose(one.predict(at).mean, other.predict(at).mean, rtol=0, atol=1e-7)


@pytest.mark.parametrize("network", [ESTIMATED, KERNEL_GIVEN])
def test_a_posterior_of_other_runs_is_not_extended(network: Network) -> None:
    data = rows(MANY + 42)
    found = posterior(learned(network, data, learned(network, data[::2])))
    np.testing.assert_array_equal(found.inputs, data[:, :1])
    np.testing.assert_array_equal(found.rows, np.arange(MANY + 42))


@pytest.mark.parametrize(("count", "extended"), [(MANY + 41, True), (MANY - 1, False)])
def test_posteriors_of_many_runs_are_extended(count: int, extended: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    data = rows(count)
    before, received = learned(KERNEL_GIVEN, data[:-1]), []
    append = Posterior.append

    def recorded(self: Posterior, *arguments: Any, **options: Any) -> Posterior:
        received.append(self.received)
        return append(self, *arguments, **options)

    monkeypatch.setattr(Posterior, "append", recorded)
    learned(KERNEL_GIVEN, data, before)
    assert (count - 1 in received) == extended
