"""Which processes are surely gone, so that nobody has to wait for their leases."""

import subprocess
import sys
from pathlib import Path

import pytest

from cascada.store.lease import is_gone, this_process


def named(number: int) -> str:
    return f"{this_process().rpartition(':')[0]}:{number}"


def test_a_process_lives_until_it_ends() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert not is_gone(named(process.pid))
    process.communicate()
    assert is_gone(named(process.pid))


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only Linux tells that a process is a zombie")
def test_a_process_that_nobody_waits_for_is_gone_as_well() -> None:
    process = subprocess.Popen([sys.executable, "-c", "print('on my way', flush=True)"], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.read()  # it has closed its end: it is about to be a zombie
    stat = Path(f"/proc/{process.pid}/stat")
    while " Z " not in stat.read_text():
        pass
    assert is_gone(named(process.pid))
    process.wait()
    process.stdout.close()


@pytest.mark.parametrize("name", ["elsewhere:1", "", "elsewhere", ":"])
def test_of_other_machines_nothing_is_known(name: str) -> None:
    assert not is_gone(name)
    assert not is_gone(f"{this_process()}{name}x")


def test_this_process_is_no_obstacle_to_itself() -> None:
    assert is_gone(this_process())
