"""Options of the commands on a store, and how they open a study."""

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cascada.cli.terminal import say
from cascada.errors import ArgumentError, StoreError
from cascada.literals import json_from

if TYPE_CHECKING:
    from cascada.network import Network
    from cascada.process import Process
    from cascada.store.database import Store
    from cascada.study import Study
    from cascada.study.follower import Follower

#: The worker in the log; another one than that of `cascada run`, which takes up again what it left running.
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
Algorithm = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="The algorithm, as for `cascada run`; needed if it is module:Class: a store alone does not get code run.",
        show_default="auto, or that of the stored study",
    ),
]
Context = Annotated[
    str | None,
    typer.Option(metavar="JSON", help="What was measured of the context, as in '{\"humidity\": 0.4}'."),
]
Safe = Annotated[
    bool,
    typer.Option(
        "--safe", help="Only settings that are proven to satisfy the limits; for a new study, or one that is safe."
    ),
]
Confidence = Annotated[
    float | None,
    typer.Option(
        metavar="P",
        help="Probability with which bounds hold if readings scatter; fixed when the study is created.",
        show_default="0.95, or that of the stored study",
    ),
]
Start = Annotated[
    str | None,
    typer.Option(metavar="JSON", help="Controls of a setting that is known to satisfy the limits; run first."),
]
Amend = Annotated[
    bool,
    typer.Option(
        "--amend", help="Continue with other kernels, norm bounds, offsets, limits or ranges than the stored ones."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
TrialNumber = Annotated[int, typer.Argument(metavar="TRIAL", help="Its number, as `cascada ask` printed it.")]


def object_from(text: str | None, option: str) -> Any:
    """A JSON object from an option of the command line, None without it; `ArgumentError` if it is not one."""
    if text is None:
        return None
    try:
        found = json_from(text)
    except ValueError as error:
        raise ArgumentError(
            f'{option} must be a JSON object, {{"name": number}}; got {text!r:.300}: {error}.'
        ) from None
    if not isinstance(found, dict):
        raise ArgumentError(f'{option} must be a JSON object, {{"name": number}}; got {text!r:.300}.')
    return found


def given(storage: str | None) -> str:
    """The URL of the store; an error that says how to give one."""
    if not storage:
        raise ArgumentError(
            "which store? Give --storage URL, as in --storage sqlite:///alloy.db, or set CASCADA_STORAGE."
        )
    return storage


def store_at(storage: str | None, *, create: bool = False, read_only: bool = False) -> "Store":
    """The store; one that is not there is an error, unless it is to be created: a mistyped name makes no new file."""
    from cascada.store.database import Store

    url = given(storage)
    missing = None if create else missing_file(url)
    if missing is not None:
        raise StoreError(f"there is no store at {missing}; `cascada run` and `cascada ask --spec SPEC` create one.")
    return Store(url, read_only=read_only, create=create)


def missing_file(url: str) -> str | None:
    """The file of a store, if the store is a file that is not there."""
    from cascada.store.address import checked_url

    parsed = checked_url(url)
    file = parsed.database if parsed.get_backend_name() == "sqlite" else None
    return file if file is not None and not os.path.exists(file) else None


def one_study(storage: str | None, study: str | None) -> str:
    """The name of a study, which need not be given where a store has only one."""
    if study is not None:
        return study
    store = store_at(storage, read_only=True)
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
    algorithm: str | None = None,
    create: bool = False,
    safe: bool = False,
    confidence: float | None = None,
    amend: bool = False,
) -> "Study":
    """A study in the store; with `create` and a SPEC, one that is not there is created.

    Without `safe` it is as stored. `amend` needs a SPEC: what is assumed from now on.
    """
    from cascada.study.catalogue import open_study

    if amend and spec is None:
        raise ArgumentError(
            "--amend continues a study with the kernels, norm bounds, limits and ranges of another SPEC, and got none; "
            "give --spec SPEC."
        )
    create = create and spec is not None
    import_from_here(spec, algorithm)
    network = None if spec is None else network_of(spec)
    store = store_at(storage, create=create)
    # The command ends long before its trials do, so a lease of theirs does not end with it.
    return open_study(
        store,
        study,
        network,
        algorithm=algorithm,
        worker=WORKER,
        create=create,
        any_sense=True,
        lasting=True,
        safe=safe or None,
        confidence=confidence,
        amend=amend,
    )


def followed(storage: str | None, study: str, spec: str | None = None) -> "Follower":
    """A study in the store for a command that only reads: nothing is created or written."""
    from cascada.study.catalogue import read_study

    import_from_here(spec)
    network = None if spec is None else network_of(spec)
    return read_study(store_at(storage, read_only=True), study, network)


def import_from_here(*names: str | None) -> None:
    """Let Python import from this folder, if the caller names code: a SPEC or an algorithm with a colon.

    Otherwise a file in the folder with the name of some package would be run by commands that only read.
    """
    if "" not in sys.path and any(":" in name for name in names if name is not None):
        sys.path.insert(0, "")


def warn_if_refuted(study: "Study", storage: str | None, trial: int, stage: str | None = None) -> None:
    """Say on standard error that the data refute an assumption, and how a wrong value is corrected.

    `trial` and `stage` were reported last; they are named in the command only if the evidence is about them.
    """
    from cascada.cli.suspect import suspect
    from cascada.store.address import printable_url

    if not study.refuted:
        return
    evidence = study.model.evidence()
    number, name = suspect(evidence, [one.name for one in study.network.stages], trial, stage)
    where = f"--storage {printable_url(given(storage))} --study {shlex.quote(str(study.name))}"
    say(
        f"The data now refute an assumption: {' '.join(evidence)}\nIf a value is wrong, correct it: "
        f"cascada correct {where} {number} {'STAGE' if name is None else shlex.quote(name)} VALUES --reason TEXT",
        err=True,
    )


def text_of(file: Path) -> str:
    """What is in a file, or comes by standard input if it is named `-`."""
    try:
        content = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
        return content.decode("utf-8-sig")  # spreadsheets put a mark at the beginning
    except UnicodeDecodeError as error:
        raise ArgumentError(f"{file} must be text in UTF-8: {error}.") from None
    except OSError as error:
        raise ArgumentError(f"cannot read {file}: {error.strerror or error}.") from None


def process_of(spec: str, algorithm: str | None = None) -> "Process":
    """The process that a SPEC names, ready to run: `ArgumentError` if a stage has no function.

    The module of an `algorithm` "module:Class" may be in this folder.
    """
    from cascada.process import Process

    import_from_here(spec, algorithm)
    network = network_of(spec)
    lacking = [stage.name for stage in network.stages if stage.function is None]
    if lacking:
        noun = "command" if spec.lower().endswith(".toml") else "function"
        which = f"stage {lacking[0]!r} has" if len(lacking) == 1 else f"stages {', '.join(map(repr, lacking))} have"
        raise ArgumentError(
            f"{spec}: {which} no {noun}, so it cannot be run from here. Give one; or, where people run the stage, ask "
            f"for settings with `cascada ask --spec {shlex.quote(spec)}` and tell what each stage gave with `cascada "
            f"tell-stage`."
        )
    return Process(network)


def network_of(spec: str) -> "Network":
    """The process that a SPEC names."""
    from cascada.specs.spec import load  # all built-in problems: only where one is named

    return load(spec)
