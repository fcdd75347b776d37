"""Detection of ended processes, whose leases need not expire first."""

import subprocess
import sys
from pathlib import Path

import pytest

from cascada.store.lease import is_gone, is_over, this_process


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
