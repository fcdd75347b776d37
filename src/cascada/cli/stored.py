"""What the commands on a store share: their options, and how a study is opened from them."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cascada.errors import ArgumentError, StoreError

if TYPE_CHECKING:
    from cascada.network import Network
    from cascada.study.store import Store
    from cascada.study.stored import StoredStudy

#: Who asks, in the log: not the worker of `cascada run`, which takes up again what it left running.
WORKER = "command line"

Storage = Annotated[
    str | None,
    typer.Option(metavar="URL", envvar="CASCADA_STORAGE", help="The store, as in sqlite:///alloy.db."),
]
StudyName = Annotated[str, typer.Option("--study", metavar="NAME", help="The study's name in the store.")]
TheOnlyOne = Annotated[
    str | None,
    typer.Option("--study", metavar="NAME", help="The study's name in the store; not needed if it has only one."),
]
OneOrAll = Annotated[
    str | None, typer.Option("--study", metavar="NAME", help="The study's name; without one, all studies are listed.")
]
Spec = Annotated[
    str | None,
    typer.Option(
        metavar="SPEC",
        help="The process, as for `cascada run`; needed where it has stages that are formulas: no store holds them.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
TrialNumber = Annotated[int, typer.Argument(metavar="TRIAL", help="Its number, as `cascada ask` printed it.")]


def given(storage: str | None) -> str:
    """The URL of the store; an error that says how to give one."""
    if not storage:
        raise ArgumentError(
            "which store? Give --storage URL, as in --storage sqlite:///alloy.db, or set CASCADA_STORAGE."
        )
    return storage


def store_at(storage: str | None, *, create: bool = False) -> "Store":
    """The store; one that is not there is an error, unless it is to be created: a mistyped name makes no new file."""
    from cascada.study.store import Store

    url = given(storage)
    missing = None if create else missing_file(url)
    if missing is not None:
        raise StoreError(f"there is no store at {missing}; `cascada run` and `cascada ask --spec SPEC` create one.")
    return Store(url)


def missing_file(url: str) -> str | None:
    """The file of a store, if the store is a file that is not there."""
    scheme, _, file = url.partition(":///")
    return file if scheme.startswith("sqlite") and file and not Path(file.partition("?")[0]).exists() else None


def one_study(storage: str | None, study: str | None) -> str:
    """The name of a study, which need not be given where a store has only one."""
    if study is not None:
        return study
    store = store_at(storage)
    try:
        names = store.studies()
    finally:
        store.close()
    if len(names) != 1:
        raise ArgumentError(f"which study? Give --study NAME; this store has {', '.join(names) or 'none'}.")
    return names[0]


def opened(
    storage: str | None,
    study: str,
    spec: str | None = None,
    *,
    create: bool = False,
    worker: str = WORKER,
    horizon: int | None = None,
) -> "StoredStudy":
    """A study that is in the store; with `create` and a SPEC also one that is not yet."""
    from cascada.study import Study

    create = create and spec is not None
    sys.path.insert(0, "")  # an algorithm "module:Class" may live in this folder
    network = None if spec is None else network_of(spec)
    stored = described(storage, study, create=create)
    if stored is not None and network is not None:
        network = _as_stored(network, stored["objective"]["sense"])
    return Study.open(given(storage), study, network, worker=worker, horizon=horizon)


def described(storage: str | None, study: str, *, create: bool = False) -> dict[str, Any] | None:
    """What a study is, by its log; None if it is not there and is to be created."""
    from cascada.study.opening import stored_description

    store = store_at(storage, create=create)
    try:
        found, names = stored_description(store, study), store.studies()
    finally:
        store.close()
    if found is None and not create:
        raise StoreError(f"there is no study {study!r} in this store; it has {', '.join(names) or 'none'}.")
    return found


def without_password(url: str) -> str:
    """The URL of a store as it may be shown to anybody."""
    import sqlalchemy as sa

    return sa.make_url(url).render_as_string(hide_password=True)


def _as_stored(network: "Network", sense: str) -> "Network":
    """The network, minimised or maximised as the stored study is."""
    return network if (network.sign > 0) == (sense == "maximise") else network.mirrored()


def text_of(file: Path) -> str:
    """What is in a file, or comes by standard input if it is named `-`."""
    try:
        content = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
        return content.decode("utf-8-sig")  # spreadsheets put a mark at the beginning
    except UnicodeDecodeError as error:
        raise ArgumentError(f"{file} must be text in UTF-8: {error}.") from None
    except OSError as error:
        raise ArgumentError(f"cannot read {file}: {error.strerror or error}.") from None


def network_of(spec: str) -> "Network":
    """The process that a SPEC names."""
    from cascada.cli.spec import load  # all built-in problems: only where one is named

    return load(spec)
