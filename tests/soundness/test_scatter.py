"""A small slice of the soundness of readings with scatter, and tests that it reports broken versions."""

from typing import Any
from unittest import mock

import numpy as np
import pytest

from cascada.arrays import Array
from cascada.confidence import Boxes, averages
from cascada.confidence.averages import FACTORS, AveragedFit, ScatteredRows
from cascada.confidence.bounded_belief import BoundedBelief
from cascada.network import scatter_beliefs
from cascada.network.scatter import Scatter
from tests.soundness import scatter
from tests.thorough import THOROUGH

PROCESSES = 150 if THOROUGH else 12

_merged, _fits = ScatteredRows.merged, averages.averaged_fits


def _without_bias(self: ScatteredRows, most: int) -> tuple[ScatteredRows, Array]:
    rows, count = _merged(self, most)
    return ScatteredRows(rows.places, rows.values, 0.0 * rows.bias), count


def _mean_without_bias(_self: AveragedFit, points: Array, slopes: bool) -> Array:
    return np.zeros((1 + points.shape[1] if slopes else 1, len(points)))


def _as_if_errors_were_free(output: Any, rows: ScatteredRows) -> Any:
    """ρ² from which the whole yᵀ(K + λI)⁻¹y is taken, although the errors use up a part of it."""
    fits = _fits(output, rows)
    spent = float(fits[0].belief.posterior.spent[0])
    lefts = [float(fit.belief.radius[0]) ** 2 - spent / factor for fit, factor in zip(fits, FACTORS, strict=True)]
    return [AveragedFit(output, fit.belief.posterior, fit.bias, left) for fit, left in zip(fits, lefts, strict=True)]


@pytest.mark.parametrize(("scale", "away"), scatter.CASES)
def test_no_more_processes_are_broken_than_the_risk_allows(scale: float, away: float) -> None:
    assert scatter.adaptive(scale, away, PROCESSES) <= scatter.RISK


@pytest.mark.parametrize("read", [scatter.counted_again, scatter.placed_afterwards], ids=lambda read: read.__name__)
def test_what_is_not_allowed_breaks_the_bounds(read: scatter.Reader) -> None:
    """A reading that counts several times; a nominal input that is chosen after the reading."""
    assert scatter.adaptive(0.5, 0.0, PROCESSES // 2, read) > scatter.RISK


def test_a_missing_bias_is_noticed() -> None:
    with mock.patch.object(ScatteredRows, "merged", _without_bias):
        assert scatter.adaptive(*scatter.CASES[-1], PROCESSES // 2) > scatter.RISK


def test_a_bias_that_is_missing_in_the_mean_is_noticed() -> None:
    with mock.patch.object(AveragedFit, "_moved", _mean_without_bias):
        assert scatter.adaptive(*scatter.CASES[-1], PROCESSES // 2) > scatter.RISK


def test_a_radius_that_is_too_small_is_noticed() -> None:
    with mock.patch.object(scatter, "averaged_fits", _as_if_errors_were_free):
        assert scatter.adaptive(*scatter.CASES[0], PROCESSES // 2) > scatter.RISK


def test_bounds_of_whole_networks_hold_in_almost_all_processes() -> None:
    ledgers = scatter.run(10, 4000, 20) if THOROUGH else scatter.run(6, 4000, 1, (1, 10))
    broken = [ledger for ledger in ledgers if ledger.violations]
    assert len(broken) <= 0.05 * len(ledgers), "\n".join(ledger.failures() for ledger in broken)
    assert sum(ledger.checks for ledger in ledgers) > (500_000 if THOROUGH else 3_000)


def _no_bias(belief: BoundedBelief, places: Array, _inputs: Boxes) -> tuple[Array, Array]:
    nothing = np.zeros((len(places), len(belief.norm_bound)))
    return nothing, nothing


@pytest.mark.parametrize(
    ("owner", "name", "wrong"),
    [
        (Scatter, "most_sds", lambda _self, turns: np.ones(np.shape(turns))),
        (scatter_beliefs, "_bias", _no_bias),
    ],
    ids=["single readings within one scale", "nominal inputs taken as true ones"],
)
def test_a_broken_version_is_noticed_in_a_network(owner: Any, name: str, wrong: Any) -> None:
    with mock.patch.object(owner, name, wrong):
        (ledger,) = scatter.run(6, 4000, 1, (20,), ("chain",))
    assert ledger.violations > 0
