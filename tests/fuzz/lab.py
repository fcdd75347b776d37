"""A folder with a store, files and code that must never run, in which generated commands are called."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

import cascada as cd
from cascada.calibration import Calibration
from cascada.cli.main import app
from cascada.store.database import Store
from cascada.study.log_file import exported
from tests.waiting import LONG

STORE = "lab.db"
#: Code that a store names. It leaves a file behind if anything imports it.
EVIL = "import pathlib; pathlib.Path('imported').write_text('')\nclass Boom: ...\n"
#: Escape sequences as names and reasons: valid in a store, never obeyed by a terminal.
RED = "\x1b[31mred\x1b[0m\u202e"

PROCESS = """objective = "cure"
[[stage]]
name = "mix"
command = ["cat", "out.json"]
norm_bound = 2.0
kernel = { type = "squared-exponential", lengthscale = 1.0 }
[stage.controls]
dose = { low = -2.0, high = 2.0 }
[[stage]]
name = "cure"
command = ["cat", "out.json"]
norm_bound = [2.0]
kernel = { type = "matern", nu = 2.5, lengthscale = [1.0, 1.0] }
[stage.controls]
heat = { low = -2.0, high = 2.0 }
"""


def network(mix: str = "mix", **options: object) -> cd.Network:
    """Two stages; `options` replace the assumptions about the first."""
    kernel = cd.SquaredExponential(1.0)
    assumed = {"kernel": kernel, "norm_bound": 2.0} | options
    first = cd.Stage(mix, controls={"dose": cd.Real(-2, 2)}, **assumed)  # type: ignore[arg-type]
    return cd.chain(first, cd.Stage("cure", controls={"heat": cd.Real(-2, 2)}, kernel=kernel, norm_bound=2.0))


class Lab:
    """The folder: `call` runs a command in it, `dump` is the content of its store, `restore` undoes all changes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._base = folder / "base.db"
        url = f"sqlite:///{self._base}"
        (folder / "evil.py").write_text(EVIL, encoding="utf-8")
        (folder / "process.toml").write_text(PROCESS, encoding="utf-8")
        self._fill(url)
        self.log = exported(Store(url), "alloy")
        self.calibrated_log = exported(Store(url), "estimated")
        (folder / "alloy.jsonl").write_text("\n".join(self.log), encoding="utf-8")
        self.restore()
        self.base = self.dump()

    @staticmethod
    def _fill(url: str) -> None:
        learning: dict[str, Any] = {"calibration": Calibration(family="se", initial=2), "horizon": 9}
        for name, made, options in (
            ("alloy", network(), {"algorithm": "random_search"}),
            ("estimated", network(kernel=None, norm_bound=None), {"algorithm": "gpn_ei"} | learning),
        ):
            study = cd.Study.open(url, name, made, **options)
            study.add_trial({"dose": 0.5, "heat": 0.25}, {"mix": 1.25, "cure": 1.5})
            study.add_trial({"dose": -0.5, "heat": 0.25}, {"mix": 0.75, "cure": 1.25})
            study.ask(2)
            study.enqueue_trial({"dose": 1.0, "heat": 1.0})
            study.fail(2, RED)
            study.close()
        odd = cd.Study.open(url, "odd", network(RED), algorithm="random_search")
        odd.add_trial({"dose": 0.5, "heat": 0.25}, {RED: 1.25, "cure": 1.5})
        odd.correct(0, RED, 1.125, reason=RED)
        odd.close()
        cd.Study.open(url, "foreign", network(), algorithm="random_search").close()
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection, connection:
            (text,) = connection.execute(
                "SELECT data FROM cascada_events WHERE number = 0 AND study = (SELECT max(id) FROM cascada_studies)"
            ).fetchone()
            described = json.loads(text)
            described["settings"]["algorithm"] = "evil:Boom"
            connection.execute(
                "UPDATE cascada_events SET data = ? WHERE number = 0 AND study = (SELECT max(id) FROM cascada_studies)",
                [json.dumps(described)],
            )

    def restore(self) -> None:
        """Make the store what it was at the beginning."""
        for end in ("", "-wal", "-shm", "-journal"):
            (self.folder / f"{STORE}{end}").unlink(missing_ok=True)
        shutil.copy(self._base, self.folder / STORE)
        (self.folder / "imported").unlink(missing_ok=True)
        sys.modules.pop("evil", None)  # so that it would be run again
        (self.folder / "out.json").write_text('{"mix": 1.0}', encoding="utf-8")

    def call(self, *arguments: str, text: str | bytes | None = None) -> Result:
        """Call a command in this process, in the folder."""
        before = os.getcwd()
        os.chdir(self.folder)
        try:
            return CliRunner(env={"CASCADA_STORAGE": f"sqlite:///{STORE}"}).invoke(app, list(arguments), input=text)
        finally:
            os.chdir(before)

    def start(self, *arguments: str, text: bytes) -> "subprocess.CompletedProcess[bytes]":
        """Call a command in a process of its own, in the folder."""
        return subprocess.run(
            [sys.executable, "-c", "from cascada.cli.main import app; app()", *arguments],
            cwd=self.folder,
            env=os.environ | {"CASCADA_STORAGE": f"sqlite:///{STORE}"},
            input=text,
            capture_output=True,
            check=False,
            timeout=LONG,
        )

    def dump(self) -> list[tuple[object, ...]]:
        """All rows of all tables of the store."""
        with closing(sqlite3.connect(self.folder / STORE)) as connection:
            tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            return [(table, *row) for table in sorted(tables) for row in connection.execute(f"SELECT * FROM {table}")]

    @property
    def code_ran(self) -> bool:
        """Whether code was run that only the store names."""
        return (self.folder / "imported").exists()
