"""Tests of the complete reproduction: independence of the number of jobs, and resumption."""

import json
import os
import shutil
import signal
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from cascada.errors import ArgumentError
from cascada.experiments.pool import UnfinishedError
from cascada.experiments.reproduce import compute
from cascada.experiments.result_store import as_text
from tests.experiments import stubs
from tests.experiments.stubs import TINY, silent
from tests.experiments.workers import forked_workers
from tests.starting import gone, started
from tests.waiting import LONG, wait_until

ROOT = Path(__file__).parents[2]
JOBS = (
    3 + 2 * 14 * 2 + 6 + 3
)  # profiles, all trials on g1 and g2, one trial of each algorithm on the third chain, NonAda


def done(log: Path) -> list[str]:
    return [line.split()[0] for line in log.read_text(encoding="utf-8").splitlines()] if log.exists() else []


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> tuple[Path, dict[str, Any]]:
    """A folder with all results of `stubs.instant` and the results."""
    out = tmp_path_factory.mktemp("made") / "out"
    with forked_workers():
        return out, compute(TINY, out, 2, silent, stubs.instant)


@pytest.fixture
def forks():
    """Workers that start quickly."""
    with forked_workers():
        yield


@pytest.fixture
def copied(made, tmp_path) -> Path:
    return Path(shutil.copytree(made[0], tmp_path / "out"))


def test_results_do_not_depend_on_the_number_of_jobs(tmp_path):
    two = compute(TINY, tmp_path / "2", 2, silent, stubs.random_search)
    with forked_workers():
        one = compute(TINY, tmp_path / "1", 1, silent, stubs.random_search)
    assert as_text(one).encode() == as_text(two).encode()
    assert list(one) == ["settings", "family", "chains", "g1", "g2", "runs", "non_adaptive"]
    assert len(one["runs"]) == 2 * 14 * 2 + 6
    assert one["runs"][0].keys() == {"chain", "algorithm", "trial", "regret"}
    assert all(len(each["regret"]) == 5 and min(each["regret"]) >= 0 for each in one["runs"])
    assert [each["runs"] for each in one["non_adaptive"]] == [4] * 3
    assert one["settings"]["version"]


def test_finished_jobs_are_not_repeated(tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    log = tmp_path / "log"
    counts: list[tuple[int, int]] = []
    first = compute(TINY, tmp_path / "out", 2, lambda *count: counts.append(count), partial(stubs.logged, str(log)))
    assert len(done(log)) == len(set(done(log))) == JOBS
    assert counts == [(i, JOBS - 3) for i in range(JOBS - 2)]
    assert {line.split()[2] for line in log.read_text(encoding="utf-8").splitlines()} == {"1"}, "one thread each"
    assert os.environ["OMP_NUM_THREADS"] == "7", "and here as before"
    assert "MKL_NUM_THREADS" not in os.environ
    log.unlink()
    assert compute(TINY, tmp_path / "out", 2, silent, partial(stubs.logged, str(log))) == first
    assert done(log) == []


@pytest.mark.usefixtures("forks")
def test_a_damaged_file_is_recomputed(tmp_path, copied, made):
    log = tmp_path / "log"
    files = sorted((copied / "runs").glob("chain-001-OI-*-00.json"))[:5]
    texts = [path.read_text(encoding="utf-8") for path in files]
    cut, changed, others, strange, gone = files
    cut.write_text(texts[0][: len(texts[0]) // 2], encoding="utf-8")
    changed.write_text(texts[1].replace(str(json.loads(texts[1])["result"][2]), "0.25"), encoding="utf-8")
    others.write_text(texts[2].replace('"seed": 0', '"seed": 8'), encoding="utf-8")
    strange.write_text("[]", encoding="utf-8")
    gone.unlink()
    assert compute(TINY, copied, 1, silent, partial(stubs.logged, str(log))) == made[1]
    assert sorted(done(log)) == [path.stem for path in files]
    assert [path.read_text(encoding="utf-8") for path in files] == texts


def test_results_of_other_settings_raise_an_argument_error(copied):
    with pytest.raises(ArgumentError, match=r"holds results of other settings \(seed 0 there, 1 now\). Give another"):
        compute(replace(TINY, seed=1), copied, 1, silent, stubs.instant)
    path = copied / "settings.json"
    settings = json.loads(path.read_text(encoding="utf-8"))
    for text, message in (
        (json.dumps({**settings, "version": "0.0.1"}), "version 0.0.1 there"),
        ("[]", "not readable as settings"),
        ("{", r"settings.json is damaged.*Delete"),
    ):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(ArgumentError, match=message):
            compute(TINY, copied, 1, silent, stubs.instant)


def test_an_unusable_folder_raises_an_argument_error(tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(ArgumentError, match=r"results cannot be stored in .*file.*Give another folder"):
        compute(TINY, tmp_path / "file", 1, silent, stubs.instant)
    with pytest.raises(ArgumentError, match="jobs must be a whole number ≥ 1; got 0"):
        compute(TINY, tmp_path, 0, silent, stubs.instant)


@pytest.mark.usefixtures("forks")
def test_a_dead_worker_is_reported_and_finished_jobs_are_kept(tmp_path):
    log, out = tmp_path / "log", tmp_path / "out"
    with pytest.raises(UnfinishedError, match=r"a worker process died.*the same command continues.*fewer --jobs"):
        compute(TINY, out, 2, silent, partial(stubs.fatal, str(log)))
    kept = {path.stem for path in (out / "runs").glob("*.json")}
    assert len(kept) >= 3  # the profiles, at least
    log.unlink()
    compute(TINY, out, 2, silent, partial(stubs.logged, str(log)))
    assert not kept.intersection(done(log))
    assert len(kept) + len(done(log)) == JOBS


@pytest.mark.usefixtures("forks")
def test_an_error_in_a_run_is_raised_unchanged(tmp_path):
    with pytest.raises(ZeroDivisionError, match="a fault of this job"):
        compute(TINY, tmp_path, 2, silent, stubs.faulty)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=["interrupted", "killed"])
def test_an_interrupted_reproduction_continues(tmp_path, number, made):
    """A real process with real workers, which end with it in every case."""
    log, out = tmp_path / "log", tmp_path / "out"
    code = f"from tests.experiments.stubs import slowly; slowly({str(out)!r}, {str(log)!r})"
    process = started([sys.executable, "-c", code], cwd=ROOT)
    try:
        # The profiles, cEI, and one for each of the two workers.
        wait_until(lambda: len(done(log)) == 3 + 5 + 2, "both workers are at work")
        wait_until(lambda: len(list((out / "runs").glob("*.json"))) == 3 + 5, "the results are kept")
        process.send_signal(number)
        _, errors = process.communicate(timeout=LONG)
    finally:
        process.kill()
    if number == signal.SIGINT:
        assert "UnfinishedError: interrupted. Finished runs are kept in" in errors
        assert "the same command continues" in errors
    workers = {int(line.split()[1]) for line in log.read_text(encoding="utf-8").splitlines()}
    wait_until(lambda: all(map(gone, workers)), "the workers are gone")
    kept = {path.stem for path in (out / "runs").glob("*.json")}
    assert len(kept) == 3 + 5
    log.unlink()
    with forked_workers():
        assert compute(TINY, out, 1, silent, partial(stubs.logged, str(log))) == made[1]
    assert not kept.intersection(done(log))
