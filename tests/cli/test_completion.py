"""Completion of commands, options and names in bash, zsh and fish."""

import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from cascada.cli.main import app
from tests.forked import Fork
from tests.waiting import LONG

NEW = [sys.executable, "-c", "from cascada.cli.main import app; app(prog_name='cascada')"]


def completed(words, shell="bash", new=False):
    """Return what a shell is offered after these words, by a new interpreter or by a fork."""
    variables = {
        "_CASCADA_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split(" ")) - 1),
        "_TYPER_COMPLETE_ARGS": words,
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    environment = os.environ | variables
    if new:
        done = subprocess.run(NEW, env=environment, capture_output=True, text=True, check=False)
        output, errors = done.stdout, done.stderr
    else:
        output, errors = Fork("cascada", [], env=environment).communicate(timeout=LONG)
    assert errors == ""
    return output


def test_bash_is_offered_commands_options_problems_and_algorithms():
    assert completed("cascada tel", new=True).split() == ["tell", "tell-stage"]
    assert "--tolerance" in completed("cascada run certified-chain --to")
    assert completed("cascada run certified-cha").split() == ["certified-chain", "certified-chain-3d"]
    assert completed("cascada run certified-chain --algorithm gpn").split() == ["gpn_mixed", "gpn_ucb", "gpn_ei"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_are_offered_commands(shell):
    found = completed("cascada tell", shell)
    assert "tell-stage" in found
    assert "rename" not in found


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_is_printed(shell, monkeypatch):
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    done = CliRunner().invoke(app, ["--show-completion", shell], prog_name="cascada")
    assert done.exit_code == 0, done.output
    assert "_CASCADA_COMPLETE=complete_" in done.stdout
