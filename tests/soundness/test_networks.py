"""A small slice of `make soundness` for whole networks, and tests that the harness reports broken bounds."""

import numpy as np
import pytest

from cascada.confidence import Belief, Boxes
from cascada.network import Beliefs, enclose_network, prior_beliefs
from cascada.problems import certified
from tests.soundness import networks
from tests.soundness.harness import Ledger, Tally
from tests.thorough import THOROUGH


def test_no_bound_is_ever_violated() -> None:
    """In at least 1/80 of the million checks of `make soundness`, for every structure."""
    ledger = networks.run(points=125 if THOROUGH else 63, seed=2000)
    assert ledger.violations == 0, ledger.table()
    counts = dict.fromkeys(networks.STRUCTURES, 0)
    for tally in ledger.tallies:
        counts[tally.name.split(":")[0]] += tally.checks
    enough = 25_000 if THOROUGH else 12_500
    assert {name: count for name, count in counts.items() if count < enough} == {}


def test_every_proven_gap_holds() -> None:
    """After each step of GPN-UCB the gap is at least the true regret."""
    ledger = Ledger()
    networks.run_gaps(ledger, seed=3, steps=3, every=1 if THOROUGH else 3)
    assert ledger.violations == 0, ledger.table()
    assert ledger.checks >= (75 if THOROUGH else 25)


def broken(beliefs: Beliefs, factor: float) -> Beliefs:
    """Beliefs whose radii are too small by this factor."""
    for stage in beliefs.stages:
        if isinstance(stage.belief, Belief):
            stage.belief.__dict__["radius"] = factor * stage.belief.radius
    return beliefs


@pytest.mark.parametrize("structure", ["chain", "controls", "feed-forward", "join"])
def test_harness_catches_radii_that_are_too_small(structure: str) -> None:
    """With a tenth of the radius at every stage the truth leaves the bounds, and the harness reports it."""
    tally, rng = Tally("ρ / 10"), np.random.default_rng(5)
    for seed in range(5):
        problem = certified(structure, seed)
        domain = problem.network.domain
        runs = problem.values(rng.uniform(domain.lower, domain.upper, (6, domain.dimension)))
        beliefs = broken(prior_beliefs(problem.network).append(runs), 0.1)
        Z = rng.uniform(domain.lower, domain.upper, (200, domain.dimension))
        tally.boxes(enclose_network(beliefs, Boxes(Z, Z)).boxes, problem.values(Z), 2.0)
    assert tally.violations > 0


def test_harness_catches_cells_taken_as_points() -> None:
    """Bounds at the centre of a cell do not hold over the cell."""
    tally, rng = Tally("centre only"), np.random.default_rng(6)
    problem = certified("controls", 1)
    domain = problem.network.domain
    runs = problem.values(rng.uniform(domain.lower, domain.upper, (20, domain.dimension)))
    beliefs = prior_beliefs(problem.network).append(runs)
    centre = rng.uniform(-1, 1, (200, domain.dimension))
    corner = centre + 0.5
    tally.boxes(enclose_network(beliefs, Boxes(centre, centre)).boxes, problem.values(corner), 2.0)
    assert tally.violations > 0
