"""The log of a study as a file of JSON lines, written and read; errors name the line."""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from cascada.algorithms import NAMES
from cascada.errors import CascadaError, StoreError
from cascada.literals import json_from
from cascada.network import Network
from cascada.store.database import Store
from cascada.store.description import amendable, checked, describe, differences, network_from
from cascada.store.event import Event, event_from
from cascada.store.event_data import check_data
from cascada.study.catalogue import study_options
from cascada.study.settings import Settings
from cascada.study.state import State

# An algorithm that is not a part of cascada; nothing is imported to see whether it exists.
_FOREIGN = re.compile(r"\w+(\.\w+)*:\w+(\.\w+)*")


def exported(store: Store, name: str) -> list[str]:
    """The log of a study, one JSON object per line; `StoreError` if there is no such study."""
    return [event.to_json() for event in store.get(name)[1]]


def import_log(store: Store, name: str, lines: Iterable[str], network: Network | None = None) -> int:
    """Create a study from an exported log, all of it or nothing; return how many events it has.

    `network` is needed if the study has stages that are formulas: no log contains functions.
    """
    events = _checked(lines, network)
    if store.create(name, events) is None:
        raise StoreError(f"there is a study {name!r} in this store already; import it under another name.")
    return len(events)


def _checked(lines: Iterable[str], network: Network | None) -> list[Event]:
    events: list[Event] = []
    description: dict[str, Any] | None = None  # the last one: what the study is
    described = 0  # its line
    for number, line in enumerate(lines, 1):
        with _at_line(number):
            event = event_from(_parsed(line))
            check_data(event)
            if description is None and event.kind != "created":
                raise StoreError("a log begins with 'created'")
            if event.kind in ("created", "amended"):
                description, described = _amended(description, checked(event.data)), number
            events.append(event)
    if description is None:
        raise StoreError("the file has no events. Nothing was imported.")
    with _at_line(described):
        draft = State.empty(_described(description, network)).draft()
    for number, event in enumerate(events, 1):
        with _at_line(number):
            draft.apply(event)
    return events


@contextmanager
def _at_line(number: int) -> Iterator[None]:
    """Raise errors as `StoreError` with the number of the line."""
    try:
        yield
    except (CascadaError, LookupError, ArithmeticError, AttributeError, TypeError, ValueError) as error:
        said = str(error).rstrip(".") if isinstance(error, CascadaError) else f"its data are invalid: {error!r}"
        raise StoreError(f"line {number}: {said}. Nothing was imported.") from error


def _amended(before: dict[str, Any] | None, after: dict[str, Any]) -> dict[str, Any]:
    """A description, if it may follow the one before."""
    if before is not None and not amendable(before, after):
        raise StoreError(f"a study cannot be amended like this: {'; '.join(differences(before, after))}")
    return after


def _described(description: Any, network: Network | None) -> Network:
    """The network of a description, which has to be one that cascada writes."""
    made = network or network_from(description)
    if (made.sign > 0) != (description["objective"]["sense"] == "maximise"):
        made = made.mirrored()
    found = differences(description, describe(made, description["settings"]))
    if found:
        raise StoreError(f"the description is not that of the network: {'; '.join(found)}")
    settings = description["settings"]
    algorithm = settings["algorithm"]
    if isinstance(algorithm, str) and algorithm not in NAMES and not _FOREIGN.fullmatch(algorithm):
        raise StoreError(f"algorithm must be one of {', '.join(NAMES)}, or 'module:Class'; got {algorithm!r:.100}")
    Settings.of(made, **study_options(settings, made))  # validates them
    return made


def _parsed(line: str) -> Any:
    try:
        return json_from(line)
    except ValueError as error:
        raise StoreError(f"not JSON: {error}") from None
