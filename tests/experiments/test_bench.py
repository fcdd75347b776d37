"""Tests of a complete benchmark: independence of the number of jobs, resumption, and failed runs."""

import json
import shutil
from functools import partial
from pathlib import Path

import pytest

from cascada.errors import ArgumentError
from cascada.experiments.bench import Benchmark, Work, bench
from cascada.experiments.bench_plan import BenchSettings, Plan
from cascada.experiments.pool import UnfinishedError
from tests.experiments import bench_stubs
from tests.experiments.bench_stubs import PLACE
from tests.experiments.stubs import silent

FAILING = f"{PLACE}:Failing"
PLAN = Plan(("certified-feed-forward", "certified-chain"), ("random_search", "ei", FAILING), 2, BenchSettings(2))


def logged(log: Path) -> Work:
    return partial(bench_stubs.logged, str(log))


def done(log: Path) -> list[str]:
    return sorted(log.read_text(encoding="utf-8").splitlines()) if log.exists() else []


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Benchmark:
    return bench(PLAN, tmp_path_factory.mktemp("made") / "deep" / "out", 1, silent)


@pytest.fixture
def copied(made, tmp_path) -> Path:
    return Path(shutil.copytree(made.records.parent, tmp_path / "out"))


def test_records_do_not_depend_on_the_number_of_jobs(made, tmp_path):
    other = bench(PLAN, tmp_path / "out", 2, silent, plots=False)
    assert other.records.read_bytes() == made.records.read_bytes()
    assert other.figures == ()
    assert other.cpu.read_bytes() != made.cpu.read_bytes()


def test_a_benchmark_writes_its_files(made):
    lines = made.records.read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    keys = [(r["problem"], r["algorithm"], r["seed"]) for r in records]
    assert len(keys) == 12
    assert keys == sorted(keys)
    cpu = [json.loads(line) for line in made.cpu.read_text(encoding="utf-8").splitlines()]
    assert [(r["problem"], r["algorithm"], r["seed"]) for r in cpu] == keys
    assert made.table.read_text(encoding="utf-8") == made.text
    kinds = [path.suffix for path in made.figures]
    assert kinds == [".pdf", ".png"] * 2
    assert all(path.stat().st_size > 0 for path in made.figures)
    assert [found.problem for found in made.summary] == list(PLAN.problems)
    assert [standing.algorithm for standing in made.summary[0].standings] == list(PLAN.algorithms)


def test_a_failed_run_is_recorded_and_does_not_stop_others(made):
    records = [json.loads(line) for line in made.records.read_text(encoding="utf-8").splitlines()]
    failed = [r for r in records if r["status"] == "failed"]
    assert {r["algorithm"] for r in failed} == {FAILING}
    assert len(failed) == 4
    assert {r["message"] for r in failed} == {"ZeroDivisionError: a fault\nof this algorithm"}
    assert {len(r["values"]) for r in failed} == {7}
    assert {len(r["values"]) for r in records if r["status"] == "budget"} == {8}
    assert f"2 of 2 runs of {FAILING} failed, the first with: ZeroDivisionError: a fault\n" in made.text


def test_finished_runs_are_reused_and_new_ones_added(made, copied, tmp_path):
    log = tmp_path / "log"
    again = bench(PLAN, copied, 1, silent, plots=False, work=logged(log))
    assert done(log) == []
    assert again.records.read_bytes() == made.records.read_bytes()
    assert again.text == made.text
    (copied / "runs" / "certified-chain--ei--0001.json").unlink()
    more = Plan(("certified-chain",), ("ei", "oi"), 3, BenchSettings(2))
    counts: list[tuple[int, int]] = []
    found = bench(more, copied, 1, lambda *count: counts.append(count), plots=False, work=logged(log))
    assert done(log) == [f"certified-chain--{name}" for name in ("ei--0001", "ei--0002")] + [
        f"certified-chain--oi--000{seed}" for seed in range(3)
    ]
    assert counts == [(i, 6) for i in range(1, 7)]
    before, now = (b.records.read_text(encoding="utf-8").splitlines() for b in (made, found))
    assert now[:2] == [line for line in before if '"certified-chain"' in line and '"ei"' in line]


def test_other_settings_raise_an_argument_error(copied):
    for settings, difference in (
        (BenchSettings(3), "budget 2 there, 3 now"),
        (BenchSettings(2, initial=4), "initial None there, 4 now"),
        (BenchSettings(2, gaps=True), "gaps False there, True now"),
    ):
        with pytest.raises(ArgumentError, match=rf"holds results of other settings \({difference}\)"):
            bench(Plan(PLAN.problems, PLAN.algorithms, 2, settings), copied, 1, silent)


def test_invalid_arguments_are_detected_before_the_first_run(tmp_path):
    with pytest.raises(ArgumentError, match="there is no problem 'nowhere'"):
        bench(Plan(("nowhere",), ("ei",), 1, BenchSettings(1)), tmp_path / "out", 1, silent)
    with pytest.raises(ArgumentError, match="jobs must be a whole number ≥ 1; got 0"):
        bench(PLAN, tmp_path / "out", 0, silent)
    assert not (tmp_path / "out").exists()


def test_retry_repeats_failed_runs(tmp_path, monkeypatch):
    switch, log = tmp_path / "switch", tmp_path / "log"
    monkeypatch.setenv("CASCADA_TEST_MAY_GO_ON", str(switch))
    plan = Plan(("certified-feed-forward",), ("random_search", f"{PLACE}:Sometimes"), 1, BenchSettings(1))

    def failed(**options: bool) -> int:
        found = bench(plan, tmp_path / "out", 1, silent, plots=False, work=logged(log), **options)
        return sum(standing.failed for standing in found.summary[0].standings)

    assert failed() == 1
    switch.touch()
    assert failed() == 1, "a failure is a result like others"
    assert len(done(log)) == 2
    assert failed(retry=True) == 0
    assert len(done(log)) == 3


def test_the_error_of_an_interrupt_says_how_to_continue(tmp_path):
    def interrupt(_done: int, _total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(UnfinishedError, match=r"interrupted. Finished runs are kept in .*out; the same command"):
        bench(PLAN, tmp_path / "out", 1, interrupt, plots=False)
