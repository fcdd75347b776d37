"""Tests of performance profiles: shares by hand, failed runs, and problems that count alike."""

import pytest

from cascada.experiments.bench_plan import BenchSettings, Plan
from cascada.experiments.bench_profile import FACTORS, profile, profile_table
from tests.experiments.bench_stubs import record


def plan(problems: tuple[str, ...] = ("here",), algorithms: tuple[str, ...] = ("ours", "theirs")) -> Plan:
    return Plan(problems, algorithms, 2, BenchSettings(1))


def test_shares_of_two_seeds_by_hand() -> None:
    records = [
        record("here", "ours", 0, [3.0, 2.0, 0.1]),
        record("here", "ours", 1, [3.0, 2.0, 0.9]),
        record("here", "theirs", 0, [3.0, 2.0, 0.5]),  # 5 times ours
        record("here", "theirs", 1, [3.0, 2.0, 0.6]),  # the best; ours is 1.5 times as large
    ]
    found = profile(plan(), records)
    assert FACTORS[:3] == (1.0, 2.0, 10.0)
    assert found["ours"] == pytest.approx((0.5, 1.0, 1.0, 1.0, 1.0))
    assert found["theirs"] == pytest.approx((0.5, 0.5, 1.0, 1.0, 1.0))
    assert "| 50%" in profile_table(plan(), records)


def test_a_failed_run_is_within_no_factor_and_problems_count_alike() -> None:
    failed = record("there", "theirs", 0, [3.0, 2.0, 0.0]) | {"status": "failed"}
    records = [
        record("here", "ours", 0, [3.0, 2.0, 0.1]),
        record("here", "theirs", 0, [3.0, 2.0, 0.1]),
        record("here", "ours", 1, [3.0, 2.0, 0.1]),
        record("here", "theirs", 1, [3.0, 2.0, 0.1]),
        record("there", "ours", 0, [3.0, 2.0, 0.1]),
        failed,
    ]
    found = profile(plan(("here", "there")), records)
    assert found["ours"] == (1.0,) * len(FACTORS)
    assert found["theirs"] == (0.5,) * len(FACTORS)


def test_shares_grow_with_the_factor_and_somebody_is_the_best() -> None:
    records = [
        record("here", name, seed, [9.0, 5.0, 1.0 + 7 * seed * (name == "ours")])
        for name in ("ours", "theirs")
        for seed in (0, 1)
    ]
    found = profile(plan(), records)
    assert all(list(shares) == sorted(shares) for shares in found.values())
    assert sum(shares[0] for shares in found.values()) >= 1
