"""Paired comparison of versions of the library (`benchmarks.paired`)."""

import json
import math
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from benchmarks import paired
from benchmarks.paired import FLOOR, Job, Record, Variant, compare, initial, read, rows, run_all, seeds_of
from cascada.problems import by_name


def record(variant: str, seed: int, regret: float, problem: str = "drop-wave") -> Record:
    return Record(problem, variant, seed, 2, [1.0, regret], 1.0 if variant == "a" else 0.5)


def test_equal_regrets_have_the_ratio_one() -> None:
    found = compare([0.1, 0.2, 0.3], [0.1, 0.2, 0.3])
    assert (found.better, found.worse, found.p_value) == (0, 0, 1.0)
    assert (found.ratio, found.low, found.high) == (1.0, 1.0, 1.0)


def test_a_variant_that_halves_every_regret_is_better_in_all_seeds() -> None:
    first = [10.0**-k for k in range(8)]
    found = compare(first, [x / 2 for x in first])
    assert (found.better, found.worse) == (8, 0)
    assert found.p_value == pytest.approx(2 / 2**8)
    assert found.ratio == pytest.approx(0.5)
    assert found.low == pytest.approx(0.5)
    assert found.high == pytest.approx(0.5)


def test_the_interval_is_that_of_the_signed_ranks() -> None:
    # The log ratios −3, −1, 2, 4, 5, 6, 7, 8, 9, 10: by tables of Wilcoxon's test (n = 10, 5 %), 8 averages are left
    # out at each end, where a sum of ranks of 8 is still significant.
    logs = [-3.0, -1.0, 2.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0]
    averages = sorted((a + b) / 2 for i, a in enumerate(logs) for b in logs[i:])
    found = compare([1.0] * 10, [math.exp(x) for x in logs])
    assert math.log(found.low) == pytest.approx(averages[8])
    assert math.log(found.high) == pytest.approx(averages[-9])
    assert math.log(found.ratio) == pytest.approx(averages[27])


def test_regrets_below_the_accuracy_of_the_optimum_are_equal() -> None:
    found = compare([FLOOR / 10, -1e-16], [0.0, FLOOR])
    assert (found.better, found.worse) == (0, 0)


def test_only_seeds_that_both_variants_have_are_compared() -> None:
    made = [record("a", 0, 0.1), record("a", 1, 0.2), record("b", 1, 0.1), record("b", 2, 0.4)]
    found = rows({each.job: each for each in made}, ["drop-wave", "ackley"], ["a", "b"])
    assert found[0][:6] == ["drop-wave", "b", "1", "0.2", "0.1", "1 : 0"]
    assert found[0][-1] == "0.50"
    assert found[1][:3] == ["ackley", "b", "0"]


def test_finished_jobs_are_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[Job] = []

    class Stub:
        def __init__(self, variant: Variant) -> None:
            self.name = variant.name

        def run(self, job: Job) -> str:
            done.append(job)
            return json.dumps(asdict(Record(**asdict(job), regrets=[0.5], seconds=0.1))) + "\n"

        def close(self) -> None:
            pass

    monkeypatch.setattr(paired, "Worker", Stub)
    path, variants = tmp_path / "records.jsonl", [Variant("a", Path("src")), Variant("b", Path("src"))]
    jobs = [Job("drop-wave", name, seed, 3) for seed in range(2) for name in "ab"]
    run_all(variants, jobs[:1], path)
    run_all(variants, jobs, path)
    assert done == jobs
    assert list(read(path)) == jobs


def test_a_control_moves_every_initial_point_a_little_into_the_box() -> None:
    problem = by_name("drop-wave")
    low, high = problem.network.domain.lower, problem.network.domain.upper
    exact, moved = (initial(problem, 3, amount) for amount in (0.0, 1e-9))
    np.testing.assert_allclose(np.abs(moved - exact) / (high - low), 1e-9, rtol=1e-3)
    assert (np.abs(moved - (low + high) / 2) < np.abs(exact - (low + high) / 2)).all()


@pytest.mark.parametrize(
    ("text", "seeds"), [("3", [0, 1, 2]), ("100-102", [100, 101, 102]), ("7-7", [7])], ids=["count", "range", "one"]
)
def test_seeds_are_a_count_or_a_range(text: str, seeds: list[int]) -> None:
    assert seeds_of(text) == seeds


def test_a_variant_has_a_name_a_folder_and_may_have_an_amount() -> None:
    assert Variant.parsed("now=src") == Variant("now", Path("src"))
    assert Variant.parsed("control=../before/src~1e-12") == Variant("control", Path("../before/src"), 1e-12)
    with pytest.raises(SystemExit, match=r"a variant is NAME=FOLDER or NAME=FOLDER~AMOUNT; got 'src'\."):
        Variant.parsed("src")
