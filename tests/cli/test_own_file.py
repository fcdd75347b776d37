"""Errors in a user's own file: its last lines and the message, without the traceback of the library."""

import pytest
from typer.testing import CliRunner

from cascada.cli.main import app
from cascada.cli.own_file import own_lines

STAGE = 'import cascada as cd\nmix = cd.Stage("mix", controls={"dose": cd.Real(0, 1)}, function=lambda dose: dose)\n'


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Return a function that writes a file with some code and runs `cascada run` with it."""
    monkeypatch.chdir(tmp_path)

    def ran(name, code, spec="network"):
        (tmp_path / f"{name}.py").write_text(code)
        return CliRunner().invoke(app, ["run", f"{name}.py:{spec}", "--budget", "2"])

    return ran


def test_an_error_while_the_file_is_run_shows_its_line(run):
    done = run("own_a", STAGE + "x = 1 / 0\n")
    assert done.exit_code == 1
    assert done.stderr == "cascada: ZeroDivisionError: division by zero\n  own_a.py, line 3\n    x = 1 / 0\n"


def test_an_error_in_a_function_shows_the_calls_that_led_to_it(run):
    done = run("own_b", STAGE + "def inner():\n    return {}['a']\n\ndef network():\n    return inner()\n")
    assert done.exit_code == 1
    assert done.stderr.splitlines() == [
        "cascada: KeyError: 'a'",
        "  own_b.py, line 7, in network",
        "    return inner()",
        "  own_b.py, line 4, in inner",
        "    return {}['a']",
    ]


def test_a_syntax_error_shows_its_line(run):
    done = run("own_c", "x = = 1\n")
    assert (done.exit_code, done.stderr.splitlines()[1:]) == (1, ["  own_c.py, line 1", "    x = = 1"])
    assert done.stderr.startswith("cascada: SyntaxError: invalid syntax")


def test_an_error_of_cascada_in_the_file_shows_its_line(run):
    done = run("own_d", 'import cascada as cd\nmix = cd.Stage("mix", norm=2)\n')
    assert done.exit_code == 2
    assert done.stderr.splitlines() == [
        "cascada: Stage() has no argument 'norm' (did you mean norm_bound?).",
        "  own_d.py, line 2",
        '    mix = cd.Stage("mix", norm=2)',
    ]


def test_an_error_of_a_library_that_the_file_calls_shows_the_line_of_the_file(run):
    done = run("own_e", "import json\n\nnetwork = json.loads('[')\n")
    assert done.exit_code == 1
    assert done.stderr.splitlines()[1:] == ["  own_e.py, line 3", "    network = json.loads('[')"]


def test_control_characters_are_not_printed(run):
    done = run("own_f", "raise ValueError('\\x1b[31mred')\n")
    assert "\x1b" not in done.stderr
    assert "\\x1b[31mred" in done.stderr


def test_an_error_without_a_line_of_the_user_keeps_its_traceback(monkeypatch):
    def broken(*_):
        raise ZeroDivisionError("ours")

    monkeypatch.setattr("cascada.cli.own_file._is_own", lambda _: False)
    monkeypatch.setattr("cascada.cli.run.process_of", broken)
    done = CliRunner().invoke(app, ["run", "certified-chain"])
    assert isinstance(done.exception, ZeroDivisionError)
    assert own_lines(done.exception) == []


@pytest.mark.parametrize(("name", "meant"), [("runn", "run"), ("tel-stage", "tell-stage"), ("statuss", "status")])
def test_a_mistyped_command_names_the_near_one(name, meant):
    done = CliRunner().invoke(app, [name])
    assert done.exit_code == 2
    assert f"(did you mean {meant}?)" in " ".join(done.stderr.split())


def test_a_store_in_a_missing_folder_names_the_folder(tmp_path):
    url = f"sqlite:///{tmp_path / 'none' / 'x.db'}"
    done = CliRunner().invoke(app, ["run", "certified-chain", "--storage", url])
    assert done.exit_code == 1
    assert f"there is no folder {tmp_path / 'none'}." in done.stderr


def test_problems_name_the_extra_that_one_needs(monkeypatch):
    monkeypatch.setattr("cascada.problems.optional_module.find_spec", lambda _: None)
    done = CliRunner().invoke(app, ["problems"])
    assert done.exit_code == 0
    assert "pip install 'cascada[problems]'" in done.stdout
