import subprocess
import sys
import types

import pytest
from typer.testing import CliRunner

import cascada
from cascada.cli import main
from cascada.errors import ArgumentError, ContradictionError


def _succeed(times: int = 1) -> None:
    """Say hello."""
    print("hello " * times)


def _fail() -> None:
    """Fail on purpose."""
    raise ArgumentError("budget must be positive; got -1; give a whole number from 1")


@pytest.fixture
def runner(monkeypatch):
    module = types.ModuleType("synthetic_commands")
    module.__dict__.update(hello=_succeed, fail=_fail)
    monkeypatch.setitem(sys.modules, "synthetic_commands", module)
    commands = {"hello": "synthetic_commands:hello", "fail": "synthetic_commands:fail"}
    monkeypatch.setattr(main, "COMMANDS", commands)
    monkeypatch.setattr("cascada.cli.own_file._is_own", lambda _: False)  # the commands of this file are not a user's
    return CliRunner()


def test_the_version_option_prints_the_version(runner):
    result = runner.invoke(main.app, ["--version"])
    assert (result.exit_code, result.output) == (0, f"cascada {cascada.__version__}\n")


def test_help_lists_every_command_with_its_docstring(runner):
    result = runner.invoke(main.app, ["--help"])
    assert result.exit_code == 0
    for text in ("hello", "Say hello.", "fail", "Fail on purpose."):
        assert text in result.output


def test_a_command_takes_its_options_from_its_function(runner):
    result = runner.invoke(main.app, ["hello", "--times", "2"])
    assert (result.exit_code, result.output) == (0, "hello hello \n")


def test_an_argument_error_is_one_line_and_exit_code_2(runner):
    result = runner.invoke(main.app, ["fail"])
    assert result.exit_code == 2
    assert result.output == "cascada: budget must be positive; got -1; give a whole number from 1\n"


def test_any_other_cascada_error_is_one_line_and_exit_code_1(runner, monkeypatch):
    def clash() -> None:
        """Contradict."""
        raise ContradictionError("observation 2 contradicts observation 1")

    monkeypatch.setattr(sys.modules["synthetic_commands"], "fail", clash)
    result = runner.invoke(main.app, ["fail"])
    assert (result.exit_code, result.output) == (1, "cascada: observation 2 contradicts observation 1\n")


@pytest.mark.parametrize("arguments", [["no-such-command"], ["--no-such-option"], ["hello", "--times", "x"]])
def test_unknown_commands_and_options_exit_with_code_2(runner, arguments):
    assert runner.invoke(main.app, arguments).exit_code == 2


def test_commands_are_imported_only_when_called():
    code = "import sys, cascada.cli.main; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    modules = {command.split(":")[0] for command in main.COMMANDS.values()}
    assert not modules.intersection(done.stdout.split())
