"""Commands as stages: input and output, error messages, and that no process is left running."""

import json
import math
import os
import pickle
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cascada.errors import ArgumentError, CascadaError
from cascada.network import Stage, StageError, chain
from cascada.process import Process, process_group
from cascada.process.command import MOST_OUTPUT, Command, CommandError, stop_all
from cascada.space import Integer, Real
from cascada.study import maximise
from tests.missing import need_program
from tests.starting import gone, started
from tests.thorough import examples
from tests.waiting import LONG, wait_until

SOURCE = Path(__file__).parents[2] / "src"
FINE = """echo '{"a": 1}'"""
NEVER = "sleep 1000"  # longer than any limit of a test
MANY = {f"x{i}": 0.1 for i in range(20_000)}  # more than a pipe holds


def shell(script: str, timeout: float | None = LONG, folder: Path | None = None) -> Command:
    """Return a command that runs a shell script."""
    return Command(["sh", "-c", script], folder, timeout)


def failure(command: Command, **inputs: float) -> CommandError:
    with pytest.raises(CommandError) as caught:
        command(**(inputs or {"x": 1.0}))
    return caught.value


def is_gone(file: Path, reaped: bool = False) -> bool:
    """Wait until the process whose id is in a file has ended and, if `reaped`, is no zombie either."""
    pid = int(file.read_text())
    return wait_until(lambda: gone(pid, reaped), f"process {pid} is gone")


def wait_for(file: Path) -> None:
    wait_until(lambda: file.exists() and file.read_text().strip(), f"{file.name} is written")


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    yield
    assert not process_group._running


# ---- input and output


def test_numbers_keep_their_value_and_type() -> None:
    numbers = {"a": 0.1, "b": 5e-324, "c": 1.7976931348623157e308, "d": 1 / 3, "e": -1e22, "n": 7, "m": 2**53 + 1}
    found = Command(["cat"])(**numbers)
    assert found == numbers
    assert {name: type(value) for name, value in found.items()} == {n: type(v) for n, v in numbers.items()}


@given(st.floats(allow_nan=False, allow_infinity=False))
@settings(max_examples=examples(25))
def test_every_float_round_trips(value: float) -> None:
    found = Command(["cat"])(x=value)["x"]
    assert (found, math.copysign(1, found)) == (value, math.copysign(1, value))


def test_the_input_is_one_line_of_utf8() -> None:
    script = (
        'import sys; b = sys.stdin.buffer.read(); print(\'{"lines": %d, "c3": %d}\' % (b.count(10), b.count(0xc3)))'
    )
    inputs = {"Größe ✓": 1.5, "n": 2}
    assert Command([sys.executable, "-c", script])(**inputs) == {"lines": 1, "c3": 2}
    assert Command(["cat"])(**inputs) == inputs


def test_numpy_scalars_are_valid_inputs() -> None:
    found = Command(["cat"])(x=np.float64(0.1), n=np.int64(3), y=np.array(2.5))  # type: ignore[arg-type]
    assert found == {"x": 0.1, "n": 3, "y": 2.5}


def test_an_input_may_have_any_name() -> None:
    assert Command(["cat"])(**{"self": 1.0, "argv": 2.0, "a b": 3.0}) == {"self": 1.0, "argv": 2.0, "a b": 3.0}


@pytest.mark.parametrize("value", [math.nan, math.inf, [1.0, 2.0], np.array([1.0, 2.0]), True, None])
def test_inputs_that_are_not_finite_numbers_raise(value: float) -> None:
    assert "was not run: its inputs must be finite numbers" in str(failure(Command(["cat"]), x=value))
    assert "was not run" in str(failure(Command(["cat"]), **{"\ud800": 1.0}))


def test_no_shell_interprets_the_words() -> None:
    error = failure(Command(["printf", "%s", "$HOME; touch x", "`id`"]))
    assert "'$HOME; touch x`id`'" in str(error)


def test_a_command_runs_in_its_folder(tmp_path: Path) -> None:
    program = tmp_path / "sim"
    program.write_text("#!/bin/sh\ncat data.json\n", encoding="utf-8")
    program.chmod(0o755)
    (tmp_path / "data.json").write_text('{"a": 4}', encoding="utf-8")
    assert Command(["./sim"], tmp_path)(x=1.0) == {"a": 4}
    folder = Command(["./sim"], os.path.relpath(tmp_path)).folder
    assert folder == str(tmp_path), "absolute, because another process may have another working folder"


@pytest.mark.parametrize("script", [FINE, f"exec 0<&-; sleep 0.1; {FINE}", f"sleep 0.1; {FINE}"])
def test_a_command_need_not_read_its_input(script: str) -> None:
    assert shell(script)(x=1.0) == {"a": 1}
    assert shell(script)(**MANY) == {"a": 1}


def test_long_inputs_and_outputs_do_not_block() -> None:
    assert Command(["cat"], timeout=LONG)(**MANY) == MANY


def test_ten_megabytes_on_standard_error_do_not_block() -> None:
    assert shell(f"head -c 10000000 /dev/zero >&2; {FINE}")(x=1.0) == {"a": 1}


def test_a_byte_order_mark_and_white_space_in_the_output_are_ignored() -> None:
    assert shell(r"""printf '\357\273\277\n {"a":\n 1}\n\n'""")(x=1.0) == {"a": 1}


# ---- error messages


@pytest.mark.parametrize(
    ("script", "parts"),
    [
        ("echo oh dear >&2; exit 3", ["exit code 3", '"oh dear"']),
        ("echo 'it is too hot'; exit 4", ["exit code 4", "'it is too hot\\n'"]),
        ("kill -SEGV $$", ["signal 11 (SIGSEGV)"]),
        ("kill -9 $$", ["signal 9 (SIGKILL)"]),
        ("exit 0", ["printed nothing"]),
        ("echo '  '", ["printed nothing"]),
        ("echo Starting; " + FINE, ["exactly one JSON object", "standard error", "Starting"]),
        (f"{FINE}; {FINE}", ["exactly one JSON object", "Extra data"]),
        ("echo '[1, 2]'", ["exactly one JSON object", "a list"]),
        ("echo 12.5", ["exactly one JSON object", "a number"]),
        ("echo null", ["exactly one JSON object", "null"]),
        ("""echo '{"a": NaN}'""", ["NaN is not a number in JSON"]),
        ("""echo '{"a": -Infinity}'""", ["-Infinity is not a number in JSON"]),
        ("""echo '{"a": 1e999}'""", ["1e999 is too large"]),
        ("""echo '{"a": "1.0"}'""", ["'a' is not a finite number"]),
        ("""echo '{"a": true}'""", ["'a' is not a finite number"]),
        ("""echo '{"a": {"b": 1}}'""", ["'a' is not a finite number"]),
        ("""echo '{"a": 1, "a": 2}'""", ["a is there twice"]),
        (r"""printf '%s' '{"\ud800": 1}'""", ["is no name"]),
        (r"""printf '\377\376'""", ["exactly one JSON object", "utf-8"]),
        ("head -c 100000 /dev/zero | tr '\\0' '['", ["exactly one JSON object", "[[["]),
        ("""head -c 5000 /dev/zero | tr '\\0' 1 | sed 's/^/{"a": /; s/$/}/'""", ["exactly one JSON object", "digits"]),
        ("head -c 10000000 /dev/zero", [f"more than {MOST_OUTPUT} bytes", "was killed"]),
        ("yes '{}'", [f"more than {MOST_OUTPUT} bytes", "'{}\\n{}"]),
    ],
)
def test_a_failed_command_has_a_short_error_with_its_reason(script: str, parts: list[str]) -> None:
    message = str(failure(shell(script)))
    for part in [*parts, "the command `sh -c"]:
        assert part in message
    assert len(message) < 1000


@pytest.mark.parametrize(
    ("argv", "parts"),
    [
        (["no-such-program"], ["'no-such-program' is not in PATH", "./no-such-program"]),
        (["./no-such-file"], ["there is no file './no-such-file' in"]),
        (["./data.txt"], ["'./data.txt' is not executable", "chmod +x"]),
        (["./data.txt/x"], ["there is no file './data.txt/x'"]),
        (["./no-interpreter"], ["the interpreter", "'./no-interpreter'"]),
        (["./no-first-line"], ["no program of this machine", "#!/bin/sh"]),
        (["./"], ["could not be started"]),
        (["echo", "x" * 4_000_000], ["could not be started", "echo xxx"]),
    ],
)
def test_a_command_that_cannot_be_started_has_an_error_with_the_reason(
    tmp_path: Path, argv: list[str], parts: list[str]
) -> None:
    (tmp_path / "data.txt").write_text("1 2 3", encoding="utf-8")
    for name, text in {"no-interpreter": "#!/no/such/interpreter\n", "no-first-line": "echo 1\n"}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    message = str(failure(Command(argv, tmp_path)))
    for part in [*parts, "could not be started"]:
        assert part in message
    assert len(message) < 1000


@pytest.mark.parametrize(
    ("argv", "part"),
    [
        (["no-such-program"], "'no-such-program' is not in PATH"),
        (["./no-such-file"], "there is no file './no-such-file' in"),
        (["./data.txt"], "chmod +x"),
        (["./"], "there is no file './'"),
        (["./" + "x" * 300], "there is no file './xxx"),
        (["./data.txt/x"], "there is no file './data.txt/x'"),
        (["/no/such/program"], "there is no file '/no/such/program'"),
    ],
)
def test_check_program_raises_if_the_program_cannot_be_started(tmp_path: Path, argv: list[str], part: str) -> None:
    (tmp_path / "data.txt").write_text("1 2 3", encoding="utf-8")
    with pytest.raises(CommandError, match=f"cannot be started: .*{re.escape(part)}"):
        Command(argv, tmp_path).check_program()


def test_check_program_does_not_run_the_program(tmp_path: Path) -> None:
    (tmp_path / "tool").write_text("#!/bin/sh\ntouch ran\n", encoding="utf-8")
    (tmp_path / "tool").chmod(0o755)
    for argv in (["touch", str(tmp_path / "ran")], ["./tool"], [str(tmp_path / "tool")]):
        Command(argv, tmp_path).check_program()
    assert [path.name for path in tmp_path.iterdir()] == ["tool"]
    with pytest.raises(CommandError, match="there is no folder"):
        Command(["touch", "ran"], tmp_path / "gone").check_program()


@pytest.mark.parametrize("found", [True, False])
def test_relative_entries_of_path_are_relative_to_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found: bool
) -> None:
    """The operating system does the same: it searches for the program after it has changed to the folder."""
    place = (tmp_path if found else tmp_path / "elsewhere") / "bin"
    place.mkdir(parents=True)
    (place / "tool").write_text(f"#!/bin/sh\n{FINE}\n", encoding="utf-8")
    (place / "tool").chmod(0o755)
    monkeypatch.chdir(place.parent if not found else "/")
    monkeypatch.setenv("PATH", "bin:/usr/bin:/bin")
    command = Command(["tool"], tmp_path)
    if found:
        command.check_program()
        assert command(x=1.0) == {"a": 1}
    else:
        with pytest.raises(CommandError, match="is not in PATH"):
            command.check_program()
        assert "is not in PATH" in str(failure(command))


def test_programs_are_not_checked_in_advance_for_an_executor() -> None:
    """Its workers may be on other machines."""
    network = chain(Stage("f", controls={"x": Real(0, 1)}, function=Command(["no-such-program"])))
    with ThreadPoolExecutor(1) as executor:
        result = maximise(network, budget=2, executor=executor, progress=False)
    assert [trial.state for trial in result.trials] == ["failed", "failed"]
    with pytest.raises(ArgumentError, match=r"stage 'f': .*'no-such-program' is not in PATH"):
        maximise(network, budget=2, progress=False)


def test_the_error_names_a_folder_that_does_not_exist(tmp_path: Path) -> None:
    assert f"there is no folder {tmp_path / 'gone'}" in str(failure(Command(["cat"], tmp_path / "gone")))


def test_the_error_quotes_the_end_of_standard_error_without_control_characters() -> None:
    error = failure(shell("seq 1 100000 >&2; exit 1"))
    assert error.stderr.split() == [str(n) for n in range(99_991, 100_001)]
    assert len(failure(shell("head -c 100000 /dev/zero | tr '\\0' x >&2; exit 1")).stderr) == 2000
    strange = failure(shell(r"printf 'a\000b\033[31m\377 \303\274\n' >&2; exit 1")).stderr
    assert strange == "a\\x00b\\x1b[31m\ufffd ü", "safe for a terminal and a database"


def test_a_command_does_not_get_the_settings_of_cascada(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CASCADA_STORAGE", "postgresql://lab:hunter2@db/studies")
    monkeypatch.setenv("CASCADA_OTHER", "hunter2")
    monkeypatch.setenv("SOLVER_LICENCE", "mine")
    told = failure(shell("env >&2; exit 1")).stderr
    assert "hunter2" not in told
    assert shell(
        """test -z "$CASCADA_STORAGE$CASCADA_OTHER" && test "$SOLVER_LICENCE" = mine && echo '{"a": 1}'"""
    )() == {"a": 1}


def test_output_is_read_up_to_a_limit() -> None:
    ended = process_group.run_group(["yes"], None, b"", 20.0, limit=1000)
    assert ended.how == "too much"
    assert 1000 < len(ended.output) <= 1000 + (1 << 16)
    ended = process_group.run_group(["sh", "-c", "yes >&2"], None, b"", 0.3, limit=1000)
    assert ended.how == "too long"
    assert 0 < len(ended.errors) <= 1 << 13


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ("awk -f melt.awk", "a list of words"),
        ([], "a list of words"),
        (None, "a list of words"),
        ({"a"}, "a list of words"),
        (["awk", 3], "text without NUL; got 3"),
        (["awk", "a\0b"], "text without NUL"),
        (["awk", "\ud800"], "text without NUL"),
        ([""], "must name a program"),
    ],
)
def test_a_command_must_be_a_list_of_words(argv: list[str], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        Command(argv)


@pytest.mark.parametrize("timeout", [0, -1, math.nan, math.inf, True, "3", 10**400])
def test_a_timeout_must_be_a_number_of_seconds(timeout: float) -> None:
    with pytest.raises(ArgumentError, match="timeout must be a number of seconds above 0"):
        Command(["cat"], timeout=timeout)


# ---- no process is left running


@pytest.mark.parametrize("polite", [True, False])
def test_a_command_that_hangs_is_killed_with_its_children(tmp_path: Path, polite: bool) -> None:
    trap = "" if polite else "trap '' TERM HUP INT; "
    error = failure(shell(f"{trap}{NEVER} & echo $! >child; echo $$ >self; echo busy >&2; wait; wait", 2, tmp_path))
    assert "timed out after 2 s" in str(error)
    assert error.stderr == "busy"
    assert is_gone(tmp_path / "child")
    assert is_gone(tmp_path / "self", reaped=True)


@pytest.mark.parametrize("script", [f"{FINE}", "exit 3", "kill -9 $$", "yes"])
def test_children_do_not_outlive_a_command(tmp_path: Path, script: str) -> None:
    try:  # the child holds standard output open
        shell(f"{NEVER} & echo $! >child; {script}", None, tmp_path)(x=1.0)
    except CommandError:
        assert script != FINE
    assert is_gone(tmp_path / "child")


def test_a_child_that_leaves_the_session_does_not_block(tmp_path: Path) -> None:
    need_program("setsid", package="util-linux")
    begin = "setsid sh -c 'echo $$ >child; exec yes >&2' & until test -s child; do sleep 0.01; done"
    assert shell(f"{begin}; {FINE}", LONG, tmp_path)(x=1.0) == {"a": 1}
    with_pipe_closed = is_gone(tmp_path / "child")  # `yes` ends when its pipe is closed
    assert with_pipe_closed


def test_a_command_may_close_its_output_and_continue(tmp_path: Path) -> None:
    assert shell(f"{FINE}; exec >&- 2>&-; sleep 0.3; echo done >file", None, tmp_path)(x=1.0) == {"a": 1}
    assert (tmp_path / "file").exists()


def test_commands_in_several_threads_are_independent() -> None:
    def call(i: int) -> float:
        if i % 4 == 3:
            return float("timed out" in str(failure(shell(NEVER, 0.2))))
        return float(Command(["cat"])(x=float(i))["x"])

    with ThreadPoolExecutor(8) as executor:
        assert list(executor.map(call, range(32))) == [1.0 if i % 4 == 3 else float(i) for i in range(32)]


def test_stop_all_ends_all_running_commands(tmp_path: Path) -> None:
    files = [tmp_path / f"child{i}" for i in range(3)]
    with ThreadPoolExecutor(3) as executor:
        calls = [executor.submit(failure, shell(f"{NEVER} & echo $! >{file}; wait", None)) for file in files]
        for file in files:
            wait_for(file)
        stop_all()
        errors = [str(call.result(LONG)) for call in calls]
    assert all("signal 9 (SIGKILL)" in error for error in errors)
    assert all(map(is_gone, files))
    stop_all()  # nothing to stop


def script_with(body: str, folder: Path) -> subprocess.Popen[str]:
    """Start a script in another Python process, because its signals would disturb this one."""
    head = "import os, signal, sys, threading, time\nfrom cascada.process.command import Command, stop_all\n"
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    return started([sys.executable, "-W", "ignore", "-c", head + body], cwd=folder, env=environment)


def test_an_interrupt_leaves_nothing_running(tmp_path: Path) -> None:
    body = 'Command(["sh", "-c", "trap \'\' TERM; sleep 1000 & echo $! >child; wait; wait"])(x=1.0)'
    with script_with(body, tmp_path) as process:
        wait_for(tmp_path / "child")
        process.send_signal(signal.SIGINT)
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)  # a second time, while the command is being ended
        _, errors = process.communicate(timeout=LONG)
    assert "KeyboardInterrupt" in errors
    assert is_gone(tmp_path / "child")


def test_interrupts_at_any_time_leave_nothing_running(tmp_path: Path) -> None:
    body = """
import random, signal
random.seed(1)
def interrupt():
    while True:
        time.sleep(random.random() * 0.01)
        os.kill(os.getpid(), signal.SIGINT)
def handle(number, frame):
    if armed:
        raise KeyboardInterrupt
armed = False
signal.signal(signal.SIGINT, handle)
threading.Thread(target=interrupt, daemon=True).start()
for _ in range(100):
    try:
        armed = True
        Command(["sh", "-c", "echo $$ >>pids; exec sleep 1000"], timeout=1000)(x=1.0)
    except KeyboardInterrupt:
        armed = False
"""
    with script_with(body, tmp_path) as process:
        _, errors = process.communicate(timeout=LONG)
        assert process.returncode == 0, errors
    for pid in (tmp_path / "pids").read_text().split():
        one = tmp_path / "one"
        one.write_text(pid)
        assert is_gone(one)


def test_a_fork_does_not_stop_what_its_parent_started(tmp_path: Path) -> None:
    body = """
found = []
script = "echo 1 >begun; until test -e forked; do sleep 0.01; done; echo '{}'"
thread = threading.Thread(target=lambda: found.append(Command(["sh", "-c", script])()))
thread.start()
while not os.path.exists("begun"):
    time.sleep(0.01)
if os.fork() == 0:
    stop_all()
    os._exit(0)
os.wait()
open("forked", "w").close()
thread.join()
print(found)
"""
    with script_with(body, tmp_path) as process:
        output, errors = process.communicate(timeout=LONG)
    assert output == "[{}]\n", errors


def test_no_command_starts_after_stop_all_for_good(tmp_path: Path) -> None:
    body = """
stop_all(for_good=True)
try:
    Command(["touch", "file"])(x=1.0)
except Exception as error:
    print(error)
"""
    with script_with(body, tmp_path) as process:
        output, errors = process.communicate(timeout=LONG)
    assert "could not be started: all was stopped" in output, errors
    assert not (tmp_path / "file").exists()


# ---- as the function of a stage


def test_commands_and_their_errors_can_be_pickled() -> None:
    command = Command(["cat"], "/", 3)
    assert pickle.loads(pickle.dumps(command)) == command
    assert hash(command) == hash(Command(("cat",), Path("/"), 3.0))
    error = failure(shell("echo oh dear >&2; exit 3"))
    copied = pickle.loads(pickle.dumps(error))
    assert (type(copied), str(copied), copied.reason, copied.stderr) == (
        CommandError,
        str(error),
        "ended with exit code 3",
        "oh dear",
    )
    assert isinstance(copied, CascadaError)


def process_of(second: str) -> Process:
    heat = Stage(
        "heat", {"T": Real(0, 1), "n": Integer(1, 9)}, function=Command(["sed", 's/"T"/"heat"/; s/, "n".*/}/'])
    )
    cool = Stage("cool", {"x": Real(0, 1)}, function=shell(second))
    return Process(chain(heat, cool))


def test_a_stage_may_be_a_command() -> None:
    assert process_of("""cat >/dev/null; echo '{"cool": 3}'""")({"T": 0.25, "n": 3, "x": 0.5}) == {
        "heat": (0.25,),
        "cool": (3.0,),
    }


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo oh dear >&2; exit 3", 'exit code 3; the end of its standard error: "oh dear" at T=0.25, n=3, x=0.5'),
        ("""echo '{"cold": 3}'""", "must return the output cool; got cold"),
        ("echo '{}'", "must return the output cool"),
    ],
)
def test_the_error_of_a_command_keeps_the_outputs_of_earlier_stages(script: str, message: str) -> None:
    with pytest.raises(StageError, match="stage 'cool'") as caught:
        process_of(script)({"T": 0.25, "n": 3, "x": 0.5})
    assert message in str(caught.value)
    assert caught.value.outputs == {"heat": (0.25,)}


def test_integer_controls_are_sent_as_integers() -> None:
    seen: Callable[..., dict[str, float]] = Command(["cat"])
    network = chain(Stage("heat", {"n": Integer(1, 9)}, function=lambda n: float(json.dumps(seen(n=n)) == '{"n": 3}')))
    assert Process(network)(network.domain.named(np.array([3.0]))) == {"heat": (1.0,)}
