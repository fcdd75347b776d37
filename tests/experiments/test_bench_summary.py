"""Tests of the numbers of the table, compared with numbers computed by hand."""

import re
from itertools import product
from typing import Any

import numpy as np
import pytest

from cascada.experiments.bench_plan import BenchSettings, Plan
from cascada.experiments.bench_summary import FLOOR, floor_of, median_ratio, regrets_at, sign_test_rank, summarise
from cascada.experiments.bench_table import table
from tests.experiments.bench_stubs import cpu, record

PLAN = Plan(("here",), ("ours", "theirs"), 3, BenchSettings(2))


def summary(records: list[dict[str, Any]], plan: Plan = PLAN, seconds: list[dict[str, Any]] | None = None):
    return summarise(plan, records, seconds or [cpu(r, [1.0] * 2, [0.5] * 2) for r in records])


@pytest.fixture
def records() -> list[dict[str, Any]]:
    """Final regrets 0.1, 0.2, 0.3 of ours, and 0.4, 0.1, 1.2 of theirs; ratios 4, 1/2, 4."""
    return [
        record("here", "ours", 0, [4.0, 2.0, 1.0, 0.1]),
        record("here", "ours", 1, [3.0, 3.0, 2.0, 0.2]),
        record("here", "ours", 2, [2.0, 2.0, 1.5, 0.3]),
        record("here", "theirs", 0, [4.0, 2.0, 0.8, 0.4]),
        record("here", "theirs", 1, [3.0, 3.0, 0.3, 0.1]),
        record("here", "theirs", 2, [2.0, 2.0, 2.0, 1.2]),
    ]


def test_quartiles_at_checkpoints(records):
    (found,) = summary(records)
    ours, theirs = found.standings
    (end,) = ours.quartiles
    assert (end.evaluations, end.low, end.median, end.high) == pytest.approx((2, 0.15, 0.2, 0.25))
    assert theirs.quartiles[0].median == pytest.approx(0.4)
    assert (ours.runs, ours.failed, ours.message, ours.gap) == (3, 0, None, None)


def test_paired_ratios(records):
    (found,) = summary(records)
    (comparison,) = found.comparisons
    assert (comparison.algorithm, comparison.reference) == ("theirs", "ours")
    assert (comparison.better, comparison.equal, comparison.worse) == (1, 0, 2)
    assert comparison.ratio == pytest.approx(4.0)
    assert (comparison.low, comparison.high, comparison.verdict) == (None, None, "undecided")


@pytest.mark.parametrize(("factor", "verdict"), [(3.0, "worse"), (1.0, "undecided"), (0.3, "better")])
def test_six_seeds_are_enough_for_a_verdict(factor, verdict):
    plan = Plan(("here",), ("ours", "theirs"), 6, BenchSettings(1))
    ours = [record("here", "ours", seed, [3.0, 2.0, 0.1 + 0.01 * seed]) for seed in range(6)]
    theirs = [record("here", "theirs", seed, [3.0, 2.0, factor * (0.1 + 0.01 * seed)]) for seed in range(6)]
    (comparison,) = summary([*ours, *theirs], plan)[0].comparisons
    assert comparison.verdict == verdict
    assert (comparison.low, comparison.ratio, comparison.high) == pytest.approx((factor, factor, factor))
    assert comparison.equal == (6 if factor == 1 else 0)


def test_regrets_at_or_below_zero_have_finite_ratios():
    """The scale is 1 − median(−2, −1) = 2.5, for the values 1 − 3 and 1 − 2 of the initial design."""
    ends = {"ours": [0.0, 0.0, 0.5], "theirs": [-1e-12, 1e-3, 0.0]}
    made = [record("here", name, seed, [3.0, 2.0, 1.0, end]) for name in ends for seed, end in enumerate(ends[name])]
    (found,) = summary(made)
    assert found.floor == pytest.approx(2.5 * FLOOR)
    assert found.beyond == 0
    (comparison,) = found.comparisons
    assert (comparison.better, comparison.equal, comparison.worse) == (1, 1, 1)
    assert comparison.ratio == 1
    assert found.standings[1].quartiles[0].low == 0


def test_a_run_beyond_the_optimum_is_reported():
    (found,) = summary([record("here", name, 0, [3.0, 2.0, 1.0, -0.25]) for name in PLAN.algorithms])
    assert found.beyond == 0.25
    assert "a run beats the optimum by 0.25" in table(PLAN, [found], [])


def test_the_floor_does_not_depend_on_algorithms_or_units(records):
    floor = floor_of(records)
    assert floor == floor_of(records[:3]) == floor_of([*records[:3], record("here", "failed", 0, [4.0])])
    thousandfold = [r | {"optimum": 1e3, "values": [1e3 * value for value in r["values"]]} for r in records]
    assert floor_of(thousandfold) == pytest.approx(1e3 * floor)
    assert floor_of([record("here", "flat", 0, [0.0, 0.0, 0.0])]) == FLOOR
    assert floor_of([record("here", "failed", 0, [])]) == FLOOR


def test_a_run_that_ended_early_keeps_its_last_regret():
    short = record("here", "ours", 0, [3.0, 2.0, 0.5], status="exhausted")
    np.testing.assert_array_equal(regrets_at([short], [0, 1, 2, 50]), [[2.0, 0.5, 0.5, 0.5]])


def test_failed_runs_are_counted_and_left_out(records):
    records[1] |= {"status": "failed", "message": "ZeroDivisionError: why\nand where", "regret": [3.0]}
    (found,) = summary(records)
    ours = found.standings[0]
    assert (ours.runs, ours.failed) == (3, 1)
    assert ours.quartiles[0].median == pytest.approx(0.2)  # of 0.1 and 0.3
    assert found.comparisons[0].ratio == pytest.approx(4.0)  # of seeds 0 and 2
    text = table(PLAN, [found], records)
    assert "1 of 3 runs of ours failed, the first with: ZeroDivisionError: why\n" in text
    for each in records:
        each |= {"status": "failed", "message": "why"}
    (found,) = summary(records)
    assert (found.standings[0].quartiles, found.standings[0].cpu, found.comparisons[0].ratio) == ((), None, None)
    assert re.search(r"\| ours +\| 3 +\| 3 +\| – +\| – +\|", table(PLAN, [found], records))


def test_cpu_seconds_are_of_the_last_ten_asks_with_their_tells():
    plan = Plan(("here",), ("ours",), 2, BenchSettings(12))
    made = [record("here", "ours", seed, [1.0] * 14) for seed in range(2)]
    ask = [100.0, 100.0, *range(1, 11)]
    seconds = [
        cpu(made[0], ask, [0.25] * 12),
        cpu(made[1], [*ask, 50.0], [0.25] * 12),
    ]  # the last ask returned no point
    (found,) = summary(made, plan, seconds)
    assert found.standings[0].cpu == 5.5 + 0.25


def test_gaps_at_the_end(records):
    plan = Plan(("here",), ("ours", "theirs"), 3, BenchSettings(2, gaps=True))
    ends: list[tuple[float | None, str]] = [(0.5, "proven"), (0.7, "estimated"), (None, "refuted")]
    for r, (gap, kind) in zip(records[:3], ends, strict=True):
        r["gaps"] = [{"evaluations": 2, "gap": gap, "kind": kind}]
    (found,) = summary(records, plan)
    assert found.standings[0].gap == pytest.approx(0.6)
    assert found.standings[1].gap is None
    text = table(plan, [found], records)
    assert "| 0.6 (1 proven, 1 estimated, 1 refuted) |" in text
    assert re.search(r"\| theirs .* \| – +\| 1.5 +\|", text)


def test_the_rank_of_the_sign_test_agrees_with_enumeration():
    """Enumerate all signs of n values: how often do the k-th smallest and largest enclose the median?"""
    for count in range(1, 13):
        above = np.array([sum(signs) for signs in product((0, 1), repeat=count)])
        enclosing = [k for k in range(1, count // 2 + 1) if np.mean((above >= k) & (above <= count - k)) >= 0.95]
        assert sign_test_rank(count) == max(enclosing, default=0)
    assert sign_test_rank(5) == 0
    assert sign_test_rank(6) == 1
    assert sign_test_rank(10) == 2  # as in tables of the sign test


def test_swapping_a_pair_inverts_the_median_ratio():
    ratios = [0.5, 3.0, 8.0, 1.0, 2.0, 5.0, 0.1, 4.0, 6.0, 7.0]
    median, low, high = median_ratio(ratios)
    assert (median, low, high) == pytest.approx(((3 * 4) ** 0.5, 0.5, 7.0))
    turned = median_ratio([1 / ratio for ratio in ratios])
    assert turned == pytest.approx((1 / (3 * 4) ** 0.5, 1 / 7, 2.0))
    assert median_ratio([]) == (None, None, None)


def test_the_table_as_text(records):
    plan = Plan(("here", "there"), ("ours", "theirs"), 3, BenchSettings(2))
    both = [*records, *(r | {"problem": "there", "replaced": 2} for r in records)]
    text = table(plan, summary(both, plan), both)
    assert "2 evaluations after 2(d + 1) uniform random ones, 3 seeds. cascada 0." in text
    assert "| ours      | 3    | 0      | 0.2 [0.15, 0.25] | 1.5   |" in text
    assert "| theirs    | 1      | 0     | 2     | 4     | undecided |" in text
    assert "| theirs    | 0      | 0     | 2         |" in text
    assert "theirs asked 6 times for a point that was run before" in text
    assert text.endswith("\n")
