"""`cascada studies`, `delete` and `rename`: the studies of a store."""

import time
from dataclasses import asdict
from typing import Annotated

import typer

from cascada.cli.output import number_text, print_json, print_table
from cascada.cli.stored import Json, Storage, store_at
from cascada.cli.terminal import say
from cascada.errors import ArgumentError
from cascada.store.summary import StudySummary, summarised

Name = Annotated[str, typer.Argument(metavar="STUDY", help="The study's name.")]
_UNITS = ((86_400.0, "day"), (3_600.0, "hour"), (60.0, "minute"), (1.0, "second"))


def studies(storage: Storage = None, json_output: Json = False) -> None:
    """List the studies of a store: trials, best value, kind of gap, age. Nothing is computed or written.

    How good the best run of a study is, `cascada status --study NAME` says.
    """
    store = store_at(storage, read_only=True)
    try:
        found = [summarised(name, store.get(name)[1]) for name in store.studies()]
    finally:
        store.close()
    if json_output:
        print_json({"studies": [asdict(study) for study in found]})
    elif found:
        print_table(["study", "objective", "trials", "best", "gap", "last event"], [_row(study) for study in found])
    else:
        say("The store has no studies.")


def delete(
    study: Name,
    storage: Storage = None,
    yes: Annotated[bool, typer.Option("--yes", help="Delete without asking.")] = False,
    json_output: Json = False,
) -> None:
    """Delete a study with all its trials. `cascada export` keeps a copy of it.

    For example: cascada delete --storage sqlite:///alloy.db alloy
    """
    store = store_at(storage)
    try:
        count = len({event.trial for event in store.get(study)[1] if event.trial is not None})
        if not yes:
            if json_output:
                raise ArgumentError("nothing was deleted: with --json, say --yes as well.")
            typer.confirm(f"Delete the study {study!r} with its {_counted(count, 'trial')}?", abort=True)
        store.delete(study)
    finally:
        store.close()
    if json_output:
        print_json({"deleted": study, "trials": count})
    else:
        say(f"The study {study!r} was deleted.")


def rename(
    study: Name,
    new: Annotated[str, typer.Argument(metavar="NEW", help="Its new name.")],
    storage: Storage = None,
    json_output: Json = False,
) -> None:
    """Give a study another name.

    For example: cascada rename --storage sqlite:///alloy.db alloy alloy-2026
    """
    store = store_at(storage)
    try:
        store.rename(study, new)
    finally:
        store.close()
    if json_output:
        print_json({"study": new, "was": study})
    else:
        say(f"The study {study!r} is now {new!r}.")


def _row(study: StudySummary) -> list[str]:
    states = ", ".join(f"{count} {state}" for state, count in study.trials.items() if count)
    best = "" if study.best is None else number_text(study.best)
    gap = study.gap_kind
    if study.feasible == 0 and study.trials["complete"]:
        best = "none feasible"
        gap = gap if gap == "refuted" else ""  # whether there is a gap, only a search can say: `cascada status`
    objective = "{sense} {stage}.{output}".format(**study.objective)
    return [study.name, objective, states or "none", best, gap, f"{_age(study.last_event)} ago"]


def _age(at: float) -> str:
    """The time since a moment, in its largest unit."""
    seconds = max(time.time() - at, 0.0)
    size, unit = next(((size, unit) for size, unit in _UNITS if seconds >= size), _UNITS[-1])
    return _counted(int(seconds // size), unit)


def _counted(count: int, thing: str) -> str:
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"
