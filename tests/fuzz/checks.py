"""What has to hold after every input, and the tour through an imported study."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from typer.testing import Result

from tests.fuzz.inputs import SECRET, Case
from tests.fuzz.lab import Lab

_LONGEST = 6000  # characters of an error, with the frame that Typer draws around it
_SECONDS = 60  # for one input, on a machine that does other things, too


class TooSlow(BaseException):
    """Raised in the middle of a call that takes too long."""


def violations(lab: Lab, case: Case) -> list[str]:
    """What is wrong with the reaction to an input; the store is what it was at the beginning afterwards."""
    for name, data in case.files.items():
        (lab.folder / name).write_bytes(data)
    try:
        with _time_limit():
            found = _reaction(lab, case)
    except TooSlow:
        found = [f"it takes more than {_SECONDS} s"]
    if lab.code_ran and not _is_named(case):
        found.append("code ran that only the store names")
    if lab.code_ran or lab.dump() != lab.base:
        lab.restore()
    return found


def _reaction(lab: Lab, case: Case) -> list[str]:
    result = lab.call(*case.arguments, text=case.text)
    found = _of_result(result, case)
    after = lab.dump()
    if result.exit_code and case.kind != "outputs" and after != lab.base:
        found.append("the command failed and changed the store")
    if not result.exit_code and case.kind in ("log", "toml"):
        made = ("--study", "made")
        for command in ("status", "trials", "best", "ask"):
            found += [f"then {command}: {text}" for text in _of_result(lab.call(command, *made), case)]
    opened = lab.call("studies", "--json")
    return found + ([f"the store cannot be listed: {opened.output:.300}"] if opened.exit_code else [])


def _is_named(case: Case) -> bool:
    """Whether the caller names the code in the folder."""
    return any("evil:" in word for word in case.arguments)


def violations_of_process(lab: Lab, case: Case) -> list[str]:
    """The same for a process of its own; nothing for arguments that no process can have."""
    if any("\0" in word or (not word.isascii() and "\ud800" in word) for word in case.arguments):
        return []
    for name, data in case.files.items():
        (lab.folder / name).write_bytes(data)
    text = case.text.encode(errors="surrogatepass") if isinstance(case.text, str) else case.text or b""
    done = lab.start(*case.arguments, text=text)
    found = _of_output((done.stdout + done.stderr).decode(errors="replace"), done.returncode)
    found += ["code ran that only the store names"] if lab.code_ran and not _is_named(case) else []
    lab.restore()
    return [f"in a process: {text}" for text in found]


def _of_result(result: Result, case: Case) -> list[str]:
    said = result.output
    found = _of_output(said, result.exit_code)
    if not isinstance(result.exception, SystemExit | None):
        found.append(f"{type(result.exception).__name__}: {result.exception!s:.300}")
    if result.exit_code:
        lines = result.stderr.splitlines()
        framed = any(line.startswith("╭") for line in lines)
        # Typer's test runner echoes what the question of `delete` is answered with; a terminal or a pipe does not.
        echoed = "delete" in case.arguments[:1]
        asked = case.kind == "outputs" or echoed
        if not said.strip() or (len(said) > _LONGEST and not echoed):
            found.append(f"its error has {len(said)} characters")
        elif not framed and not asked and (len(lines) != 1 or not lines[0].startswith("cascada: ")):
            found.append(f"its error is not one line: {result.stderr:.300}")
    return found


def _of_output(said: str, code: int) -> list[str]:
    found = []
    if code not in (0, 1, 2):
        found.append(f"its exit code is {code}")
    strange = {c for c in said if not c.isprintable() and c not in "\n\t"}
    if strange:
        found.append(f"it prints control characters: {sorted(strange)}")
    if SECRET in said:
        found.append(f"it prints a secret: {said:.300}")
    if "Traceback" in said:
        found.append("it prints a traceback")
    return found


@contextmanager
def _time_limit() -> Iterator[None]:
    """Raise `TooSlow` after some time, where signals can be received."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(_: int, __: FrameType | None) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
