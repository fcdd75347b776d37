"""How many SQL statements and transactions a stored study takes, by what is done with it.

    python -m benchmarks.statements [--kinds sqlite,postgresql] [--list]

A server of PostgreSQL is started for this; where it is not installed, there are only the numbers of SQLite. `--list`
prints every statement.

Statements are counted as SQLAlchemy hands them to the driver, for all engines of this process, and BEGIN is one of them
for SQLite, where we send it ourselves. What a handler of new connections sends past SQLAlchemy (the PRAGMAs of a SQLite
connection) is not counted, nor what SQLAlchemy sends to learn about a server or to see whether a connection is alive. A
transaction ends with a COMMIT or a ROLLBACK; one that only reads is rolled back.

The smallest count of three rounds is shown, each in an empty database: where a transaction on a SQLite file takes more
than 10 ms, one more statement prolongs the leases of others.
"""

import argparse
import math
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from typer.testing import CliRunner

import cascada as cd
from benchmarks.markdown import NONE, table
from benchmarks.store import network
from cascada.cli.main import app
from tests.store.servers import postgres

TRIALS, ROUNDS = 50, 3


@dataclass
class Count:
    """What was sent to databases while this was counted."""

    statements: list[str] = field(default_factory=list)
    commits: int = 0
    rollbacks: int = 0

    def __str__(self) -> str:
        return f"{len(self.statements)} in {self.commits + self.rollbacks}"


@contextmanager
def counted() -> Iterator[Count]:
    """Count what all engines of this process send."""
    found = Count()

    def statement(_connection: Any, _cursor: Any, text: str, *_: Any) -> None:
        found.statements.append(" ".join(text.split()))

    def commit(_connection: Any) -> None:
        found.commits += 1

    def rollback(_connection: Any) -> None:
        found.rollbacks += 1

    listeners: dict[str, Callable[..., Any]] = {
        "before_cursor_execute": statement,
        "commit": commit,
        "rollback": rollback,
    }
    for event, listener in listeners.items():
        sa.event.listen(sa.Engine, event, listener)
    try:
        yield found
    finally:
        for event, listener in listeners.items():
            sa.event.remove(sa.Engine, event, listener)


def outputs(x: float) -> dict[str, float]:
    return {"f": math.sin(x), "g": math.sin(x) ** 2}


def tell(study: Any, trial: Any) -> None:
    study.tell(trial, outputs(trial.controls["x"]))


def measured(url: str) -> dict[str, Count]:
    """The counts by what is done, in a database that has no tables yet."""
    counts: dict[str, Count] = {}

    def count(name: str, work: Callable[[], Any]) -> Any:
        with counted() as counts[name]:
            return work()

    def opened(name: str, *given: cd.Network) -> Any:
        return cd.Study.open(url, name, *given)

    def called(*arguments: str) -> None:
        result = CliRunner().invoke(app, [*arguments, "--study", "bench", "--storage", url, "--json"])
        assert result.exit_code == 0, result.output

    def create(name: str) -> Any:
        return cd.Study.open(url, name, network(), algorithm="random_search")

    count("create the first study of a store", lambda: create("first")).close()
    study = count("create another study", lambda: create("bench"))
    count("add a trial", lambda: study.add_trial({"x": 0.5}, outputs(0.5)))
    for _ in range(3):
        tell(study, study.ask())
    trial = count("ask", study.ask)
    count("tell", lambda: tell(study, trial))
    trial = count("ask under a lease", lambda: study.ask(lease=60.0))
    count("tell one of two stages", lambda: study.tell_stage(trial, "f", outputs(trial.controls["x"])["f"]))
    count("tell the other stage", lambda: study.tell_stage(trial, "g", outputs(trial.controls["x"])["g"]))
    count("enqueue", lambda: study.enqueue_trial({"x": 0.25}))
    tell(study, study.ask())
    for trial in count("ask for 5 trials", lambda: study.ask(5)):
        tell(study, trial)
    while len(study.trials) < TRIALS:
        tell(study, study.ask())
    count("look at the trials", lambda: study.trials)
    count("look at the best trial", lambda: study.best_trial)
    count("look at the gap", lambda: study.gap)
    study.close()
    again = count(f"open a study of {TRIALS} trials", lambda: opened("bench"))
    count("its first look at the trials", lambda: again.trials)
    trial = count("its first ask", again.ask)
    count("its first tell", lambda: tell(again, trial))
    again.close()
    count("open it with its network", lambda: opened("bench", network())).close()
    count("`cascada status`", lambda: called("status"))
    count("`cascada ask`", lambda: called("ask"))
    return counts


def smallest(urls: Iterator[str]) -> dict[str, Count]:
    """The smallest counts of several rounds, in a database each."""
    rounds = [measured(url) for url in urls]
    return {name: min((counts[name] for counts in rounds), key=lambda c: len(c.statements)) for name in rounds[0]}


def databases(server: str) -> Iterator[str]:
    """The URLs of new databases of a server."""
    import psycopg  # type: ignore[import-not-found, unused-ignore]

    for i in range(ROUNDS):
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE statements_{i}")
        yield f"{server.removesuffix('postgres')}statements_{i}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", default="sqlite,postgresql")
    parser.add_argument("--list", action="store_true")
    given = parser.parse_args()
    found: dict[str, dict[str, Count]] = {}
    with ExitStack() as stack:
        if "sqlite" in given.kinds:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            found["SQLite"] = smallest(f"sqlite:///{Path(folder) / f'{i}.db'}" for i in range(ROUNDS))
        if "postgresql" in given.kinds:
            try:
                server = stack.enter_context(postgres())
            except pytest.skip.Exception as error:
                print(f"no PostgreSQL: {error}", file=sys.stderr)
            else:
                found["PostgreSQL"] = smallest(databases(server))
    if given.list:
        for kind, counts in found.items():
            for name, count in counts.items():
                print(f"\n{kind}, {name}: {count}", *count.statements, sep="\n    ")
    names = list(dict.fromkeys(name for counts in found.values() for name in counts))
    rows = [[name, *(str(counts.get(name, NONE)) for counts in found.values())] for name in names]
    print(f"cascada {cd.__version__}, sqlalchemy {version('sqlalchemy')}. SQL statements in transactions:\n")
    print(table(["what is done", *found], rows))


if __name__ == "__main__":
    main()
