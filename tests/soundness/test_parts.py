"""A small slice of every other part of `make soundness`, and tests that each of them reports a broken library."""

from collections.abc import Callable

import pytest

from tests.soundness import (
    contexts,
    crowds,
    extremes,
    histories,
    limits,
    matrices,
    neighbours,
    ranges,
    refusals,
    robust,
    safe,
    scales,
    steps,
    subsets,
)
from tests.soundness.broken import BROKEN, Broken
from tests.soundness.broken_steps import BROKEN_STEPS
from tests.soundness.harness import Ledger

SLICES: dict[str, tuple[Callable[[], Ledger], int]] = {
    "matrices": (lambda: matrices.run(points=40, seed=1000), 20_000),
    "scales": (lambda: scales.run(points=20, seed=1000, structures=("multi-output", "known")), 15_000),
    "refusals": (lambda: refusals.run(rounds=4, seed=1000), 70),
    "neighbours": (lambda: neighbours.run(points=5, seed=1000), 2_500),
    "extremes": (lambda: extremes.run(rounds=1, seed=1000), 1_500),
    "crowds": (lambda: crowds.run(points=100, seed=1000), 10_000),
    "histories": (lambda: histories.run(steps=6, seed=1000, structures=("chain", "known")), 1_500),
    "subsets": (lambda: subsets.run(steps=6, seed=1000, structures=("chain", "multi-output")), 1_000),
    "limits": (lambda: limits.run(steps=4, seed=1000, structures=("join",)), 4_000),
    "safe": (lambda: safe.run(steps=4, seed=1001, structures=("chain",)), 40),
    "contexts": (lambda: contexts.run(steps=3, seed=1000, structures=("chain", contexts.CHOICE)), 5_000),
    "robust": (lambda: robust.run(steps=2, seed=1000, structures=("chain", robust.PEAKS)), 10_000),
    "ranges": (lambda: ranges.run(steps=10, seed=1000, structures=("chain",)), 8_000),
    "steps": (lambda: steps.run(steps=4, seed=1000, structures=("shared", "branches")), 15_000),
}


@pytest.mark.parametrize("part", SLICES)
def test_no_part_reports_a_violation(part: str) -> None:
    run, enough = SLICES[part]
    ledger = run()
    assert ledger.violations == 0, ledger.failures()
    assert ledger.checks >= enough


@pytest.mark.parametrize("broken", [*BROKEN, *BROKEN_STEPS], ids=lambda broken: broken.name)
def test_a_broken_library_is_noticed(broken: Broken) -> None:
    assert broken.is_caught()


@pytest.mark.parametrize("part", SLICES)
def test_every_part_notices_some_broken_version(part: str) -> None:
    assert any(broken.part == part for broken in (*BROKEN, *BROKEN_STEPS))
