"""No command prints the password of a store: not in its output, not in errors, not in files."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from typer.testing import CliRunner, Result

from cascada.cli.main import app
from cascada.store import database
from cascada.store.address import error_text, printable_url, without_secrets
from cascada.store.database import Store
from cascada.study import Study
from tests.fuzz.lab import Lab
from tests.thorough import THOROUGH

SECRET = "hunter2"
#: Addresses with a secret, and what may be printed of each.
ADDRESSES = {
    f"postgresql://lab:{SECRET}@127.0.0.1:1/studies": "postgresql://lab:***@127.0.0.1:1/studies",
    f"postgresql://lab@127.0.0.1:1/studies?password={SECRET}": "postgresql://lab@127.0.0.1:1/studies?password=***",
    f"postgresql://lab@127.0.0.1:1/studies?sslmode=disable&sslpassword={SECRET}&sslkey={SECRET}": (
        "postgresql://lab@127.0.0.1:1/studies?sslmode=disable&sslpassword=***&sslkey=***"
    ),
    f"postgresql://127.0.0.1:1/studies?pwd={SECRET}&token={SECRET}&token={SECRET}": (
        "postgresql://127.0.0.1:1/studies?pwd=***&token=***&token=***"
    ),
    f"postgresql://127.0.0.1:1/studies?our_own_word={SECRET}": "postgresql://127.0.0.1:1/studies?our_own_word=***",
    f"postgresql+psycopg://lab:{SECRET}%40%2F%3A@127.0.0.1:1/s": "postgresql+psycopg://lab:***@127.0.0.1:1/s",
    f"postgres://lab:{SECRET}@127.0.0.1/studies": "postgres://lab:***@127.0.0.1/studies",
    f"mysql://lab:{SECRET}@127.0.0.1/studies": "mysql://lab:***@127.0.0.1/studies",
    f"postgresql://lab:{SECRET}@127.0.0.1:port/studies": "postgresql://***",
    f"postgresql://lab:{SECRET}@127.0.0.1:99999999999/s": "postgresql://lab:***@127.0.0.1:99999999999/s",
    f"postgresql://lab:{SECRET}": "postgresql://***",
    f"postgresql://lab:first@{SECRET}@127.0.0.1:1/studies": "postgresql://***",
    f"postgresql://lab:a b'c\"{SECRET}@127.0.0.1:1/studies": "postgresql://lab:***@127.0.0.1:1/studies",
    f"postgresql://127.0.0.1:1/password={SECRET}": "postgresql://***",
    f"postgresql://lab%3A{SECRET}@127.0.0.1:1/studies": "postgresql://***",
    f"lab:{SECRET}@127.0.0.1/studies": "lab://***",
    f"host=127.0.0.1 password={SECRET}": "***",
    f"sqlite:///lab.db?token={SECRET}": "sqlite:///lab.db?token=***",
    f"sqlite:///missing.db?key={SECRET}": "sqlite:///missing.db?key=***",
    f"postgresql:lab:{SECRET}@127.0.0.1/studies": "postgresql://***",
    f"postgresql//lab:{SECRET}@127.0.0.1/studies": "***",
    f"postgresql://127.0.0.1:1/s?sslmode=disable?password={SECRET}": "postgresql://127.0.0.1:1/s?sslmode=***",
    f"postgresql://127.0.0.1:1/s?user=lab:{SECRET}": "postgresql://127.0.0.1:1/s?user=***",
    f"postgresql://127.0.0.1:1/s?dbname=password%3D{SECRET}": "postgresql://127.0.0.1:1/s?dbname=***",
    f"postgresql://127.0.0.1:1/s?password:{SECRET}": "postgresql://***",
    f"postgresql://127.0.0.1:1/s?sslmode=disable&{SECRET}": "postgresql://***",
    f"https://127.0.0.1/s?password={SECRET}": "https://127.0.0.1/s?password=***",
    f"lab:{SECRET}@": "lab://***",
}
STUDY = ("--study", "alloy")
COMMANDS: list[tuple[str, ...]] = [
    ("status",),
    ("status", *STUDY),
    ("studies",),
    ("best", *STUDY),
    ("trials", *STUDY),
    ("export", *STUDY, "--out", "out.jsonl"),
    ("report", *STUDY, "-o", "out.html"),
    ("report",),
    ("ask", *STUDY),
    ("ask", *STUDY, "--spec", "process.toml"),
    ("tell", *STUDY, "3", '{"mix": 9.0}'),
    ("tell-stage", *STUDY, "3", "mix", "9.0"),
    ("correct", *STUDY, "0", "mix", "9.0"),
    ("retract", *STUDY, "0", "mix"),
    ("fail", *STUDY, "3"),
    ("abandon", *STUDY, "3"),
    ("enqueue", *STUDY, '{"dose": 0.5, "heat": 0.5}'),
    ("add", "process.toml", *STUDY),
    ("import", "alloy.jsonl", "--study", "copy"),
    ("rename", "alloy", "other"),
    ("delete", "alloy", "--yes"),
    ("run", "process.toml", *STUDY, "--budget", "1"),
    ("worker", "process.toml", *STUDY, "--budget", "1"),
]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    return Lab(tmp_path_factory.mktemp("lab"))


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "AWAY", 0.0)


@pytest.mark.parametrize(("address", "shown"), ADDRESSES.items())
def test_an_address_is_printed_without_its_secrets(address: str, shown: str) -> None:
    assert printable_url(address) == shown
    for text in (
        f"cannot reach {address}.",
        f"cannot read {Path(address)}:",
        f"got {address!r};",
        f"({address})",
        f"{address}\n{address}",
    ):
        assert SECRET not in without_secrets(text)
        assert SECRET not in error_text(ValueError(text))


@pytest.mark.parametrize(
    "text",
    [
        f"sqlite:///a.db was not copied to postgresql://lab:{SECRET}@db/studies",
        f"9postgresql://lab:{SECRET}@db/studies",
        f"host=db password='a b{SECRET}' user=lab",
        f"password = {SECRET}",
    ],
)
def test_a_text_is_printed_without_the_secrets_in_it(text: str) -> None:
    assert SECRET not in without_secrets(text)


@pytest.mark.parametrize("part", ["ab:/ ", "a", "a:", "password ", "ab@ "])
def test_a_long_text_is_searched_for_addresses_once(part: str) -> None:
    # In time in proportion to its length: otherwise this takes many minutes, whatever the machine.
    times = 200_000 if THOROUGH else 50_000
    assert without_secrets(part * times + " ab:/").startswith(part[:2])


def test_reasons_are_printed_without_the_secrets_in_them(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    reason = f"no answer of postgresql://lab:{SECRET}@db/recipes"
    lab.call("fail", *STUDY, "3", reason)
    assert "lab:***@db" in lab.call("trials", *STUDY).output
    assert SECRET not in lab.call("trials", *STUDY).output
    lab.call("report", *STUDY, "-o", "out.html")
    page = (tmp_path / "out.html").read_text(encoding="utf-8")
    assert "lab:***@db" in page
    assert SECRET not in page


def secret_files(folder: Path) -> Iterator[str]:
    """Yield the names of the files of a folder that contain the secret, in their names or in their content."""
    for path in folder.rglob("*"):
        if SECRET in path.name or (path.is_file() and SECRET.encode() in path.read_bytes()):
            yield path.name


@pytest.mark.parametrize(("number", "address"), list(enumerate(ADDRESSES)))
def test_no_command_prints_a_secret(lab: Lab, number: int, address: str) -> None:
    """Each command with each address, and each of the two in every place; all places of each pair only if thorough."""
    for turn, command in enumerate(COMMANDS, number):
        calls = [(*command, "--storage", address), (*command, f"--nothing={address}")]
        if command[0] not in ("fail", "abandon"):  # which take any text as a reason
            calls.append((*command, address))
        for arguments in calls if THOROUGH else [calls[turn % len(calls)]]:
            result = lab.call(*arguments)
            assert SECRET not in result.output, arguments
            assert result.exit_code in (1, 2), (arguments, result.output)
            assert isinstance(result.exception, SystemExit), (arguments, result.exception)
    assert not list(secret_files(lab.folder))


def test_addresses_without_secrets_are_printed_as_they_are() -> None:
    for address in ("sqlite:///al@loy.db", "sqlite:////tmp/a b.db", "postgresql://lab@db:5432/studies?sslmode=require"):
        assert printable_url(address) == address
    for text in ("The live page is at http://127.0.0.1:8765/?study=a%40b (Ctrl-C ends it).", "tcp://10.0.0.1:8786."):
        assert without_secrets(text) == text
    assert len(printable_url("sqlite:///" + "x" * 10_000_000)) < 300
    assert printable_url(b"postgresql://lab:hunter2@db") == "bytes"


def test_the_errors_of_a_driver_are_printed_without_addresses(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise sa.exc.OperationalError("SELECT 1", {}, Exception(f"cannot reach postgresql://lab:{SECRET}@db/studies"))

    monkeypatch.setattr(Store, "_schema", fail)
    result = CliRunner().invoke(app, ["status", "--storage", f"sqlite:///{tmp_path}/lab.db"], catch_exceptions=False)
    (tmp_path / "lab.db").touch()
    result = CliRunner().invoke(app, ["status", "--storage", f"sqlite:///{tmp_path}/lab.db"], catch_exceptions=False)
    assert "cannot reach postgresql://lab:***@db/studies" in result.stderr


def check_silence(result: Result, folder: Path) -> None:
    assert result.exit_code == 0, result.output
    assert SECRET not in result.output
    assert not list(secret_files(folder))


def test_a_report_and_hints_of_a_server_with_a_password_do_not_contain_it(postgres_url: str, tmp_path: Path) -> None:
    secret = f"{postgres_url}?application_name=lab&password={SECRET}"  # which the server does not ask for
    lab = Lab(tmp_path)
    storage = ("--storage", secret)
    check_silence(lab.call("import", "alloy.jsonl", *storage), tmp_path)
    check_silence(lab.call("report", *storage, "-o", "out.html"), tmp_path)
    assert "password=***" in (tmp_path / "out.html").read_text(encoding="utf-8")
    told = lab.call("tell", *STUDY, *storage, "3", '{"mix": 9.0}')
    check_silence(told, tmp_path)
    assert "password=***" in told.stderr, "the hint how to correct the value"
    study = Study.open(secret, "alloy")
    assert SECRET not in f"{study!r} {study._journal.store!r}"  # type: ignore[attr-defined]
    study.close()


def test_child_processes_do_not_have_the_address_on_their_command_lines() -> None:
    from cascada.cli.live import _python_command
    from cascada.execution import process_pool

    for command in (_python_command("compute_figures"), _python_command("serve_in_background"), [process_pool._WORKER]):
        assert not re.search("storage|url|://", re.sub(r"sys\.path\[:\] = \[.*?\]", "", " ".join(command)))
    assert SECRET not in " ".join(os.environ.values())
