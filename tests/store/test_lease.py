"""Detection of ended processes, whose leases need not expire first, and the clock by which leases run out."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from cascada.network import chain
from cascada.store.lease import is_gone, is_over, this_process
from cascada.study import Study
from tests.network.cases import X, stage


def named(number: int) -> str:
    return f"{this_process().rpartition(':')[0]}:{number}"


def test_a_process_is_gone_after_its_end() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert not is_gone(named(process.pid))
    process.communicate()
    assert is_gone(named(process.pid))


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only Linux reports that a process is a zombie")
def test_a_zombie_process_is_gone() -> None:
    process = subprocess.Popen([sys.executable, "-c", "print('on my way', flush=True)"], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.read()  # it has closed its output and is about to become a zombie
    stat = Path(f"/proc/{process.pid}/stat")
    while " Z " not in stat.read_text():
        pass
    assert is_gone(named(process.pid))
    process.wait()
    process.stdout.close()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only Linux says when a process began")
def test_a_process_whose_id_is_used_again_is_gone() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    begin = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[19]
    assert not is_gone(f"{named(process.pid)}@{begin}")
    assert is_gone(f"{named(process.pid)}@{int(begin) - 1}")
    assert not is_gone(named(process.pid))  # as 0.1.0 wrote it
    process.communicate()
    assert is_gone(f"{named(process.pid)}@{begin}")


def test_the_lease_of_a_process_ends_with_it_unless_it_lasts() -> None:
    process = subprocess.Popen([sys.executable, "-c", "pass"])
    process.wait()
    lasting = this_process(lasting=True).removeprefix(this_process())
    assert is_over(named(process.pid))
    assert not is_over(named(process.pid) + lasting)
    assert is_gone(named(process.pid) + lasting)
    assert not is_over(this_process())
    assert not is_over("elsewhere:1")


@pytest.mark.parametrize("name", ["elsewhere:1", "", "elsewhere", ":"])
def test_processes_of_other_machines_are_never_gone(name: str) -> None:
    assert not is_gone(name)
    assert not is_gone(f"{this_process()}{name}x")


def test_this_process_counts_as_gone_for_itself() -> None:
    assert is_gone(this_process())


@pytest.mark.parametrize("wrong", [30 * 86_400.0, -30 * 86_400.0], ids=["ahead", "behind"])
def test_leases_on_a_server_are_written_and_judged_by_its_clock(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, wrong: float
) -> None:
    study, true = Study.open(postgres_url, "alloy", chain(stage("f", controls=X)), algorithm="random_search"), time.time
    monkeypatch.setattr("cascada.store.transaction.this_process", lambda: "another machine:1")
    with monkeypatch.context() as clock:
        clock.setattr(time, "time", lambda: true() + wrong)
        written = study.ask(lease=600.0)
        again = study.ask(lease=600.0)
    assert written is not None
    assert again != written, "it is judged by the clock that wrote it"
    assert study.ask() not in (written, again)
    monkeypatch.undo()
    import psycopg  # type: ignore[import-not-found, unused-ignore]

    with psycopg.connect(postgres_url) as connection:
        rows = connection.execute("SELECT until - extract(epoch from now()) FROM cascada_leases").fetchall()
    assert len(rows) == 2
    assert all(0.0 < left <= 600.0 for (left,) in rows)
