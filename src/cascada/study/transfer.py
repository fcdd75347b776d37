"""Studies as files: their logs as JSON lines, past runs as CSV. What is wrong in a file is said with its line."""

import csv
import json
import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from cascada.errors import ArgumentError, CascadaError, StoreError
from cascada.network import Network
from cascada.study.events import Event, event_from
from cascada.study.fold import Fold
from cascada.study.identity import amendable, describe, differences
from cascada.study.opening import checked_description, study_options
from cascada.study.rebuilding import network_from
from cascada.study.store import Store
from cascada.study.stored import StoredStudy
from cascada.study.study import Study


def exported(store: Store, name: str) -> list[str]:
    """The log of a study, one JSON object a line."""
    study = store.id_of(name)
    if study is None:
        raise StoreError(f"there is no study {name!r} in this store; it has {store.studies() or 'none'}.")
    return [event.to_json() for event in store.events(study)]


def import_log(store: Store, name: str, lines: Iterable[str], network: Network | None = None) -> int:
    """A new study from an exported log, all of it or nothing; how many events it has.

    `network` is needed where the study has stages that are formulas: their functions are in no log.
    """
    events = _checked(lines, network)
    with store.create(name) as log:
        if log is None:
            raise StoreError(f"there is a study {name!r} in this store already; import it under another name.")
        for event in events:
            log.append(event)
    return len(events)


def _checked(lines: Iterable[str], network: Network | None) -> list[Event]:
    events: list[Event] = []
    description: dict[str, Any] | None = None  # the last one: what the study is
    described = 0  # its line
    for number, line in enumerate(lines, 1):
        with _at_line(number):
            event = event_from(_parsed(line))
            if description is None and event.kind != "created":
                raise StoreError("a log begins with 'created'")
            if event.kind in ("created", "amended"):
                description, described = _amended(description, checked_description(event.data)), number
            events.append(event)
    if description is None:
        raise StoreError("the file has no events. Nothing was imported.")
    with _at_line(described):
        fold = Fold(_described(description, network))
    for number, event in enumerate(events, 1):
        with _at_line(number):
            fold.apply(event)
    return events


@contextmanager
def _at_line(number: int) -> Iterator[None]:
    """Errors with the line that is wrong."""
    try:
        yield
    except (CascadaError, LookupError, ArithmeticError, AttributeError, TypeError, ValueError) as error:
        said = str(error).rstrip(".") if isinstance(error, CascadaError) else f"no description of a study: {error!r}"
        raise StoreError(f"line {number}: {said}. Nothing was imported.") from error


def _amended(before: dict[str, Any] | None, after: dict[str, Any]) -> dict[str, Any]:
    """A description that may follow another one, or be the first."""
    if before is not None and not amendable(before, after):
        raise StoreError(f"a study cannot be amended like this: {'; '.join(differences(before, after))}")
    return after


def _described(description: Any, network: Network | None) -> Network:
    """The network of a description, which must be one that cascada writes."""
    made = network or network_from(description)
    if (made.sign > 0) != (description["objective"]["sense"] == "maximise"):
        made = made.mirrored()
    found = differences(description, describe(made, description["settings"]))
    if found:
        raise StoreError(f"the description is not that of the network: {'; '.join(found)}")
    settings = description["settings"]
    named = isinstance(settings["algorithm"], str)  # else whoever opens the study gives the algorithm again
    Study(made, **study_options(settings if named else settings | {"algorithm": "auto"}))  # refuses what is no setting
    return made


def _parsed(line: str) -> Any:
    try:
        return json.loads(line, parse_constant=_no_number, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise StoreError(f"no JSON: {error}") from None


def _finite(text: str) -> float:
    if not math.isfinite(value := float(text)):
        raise ValueError(f"{text} is too large")
    return value


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is no number in JSON")


def add_runs(study: StoredStudy, lines: Iterable[str]) -> int:
    """Past runs from CSV, all of them or none; how many.

    Its header names controls, and outputs as "stage.output" or "stage"; an empty cell was not observed.
    """
    reader = csv.reader(lines)
    try:
        rows = list(reader)
    except csv.Error as error:
        raise ArgumentError(f"line {reader.line_num}: {error}. Nothing was added.") from None
    if len(rows) < 2:
        raise ArgumentError("the file needs a header and at least one run.")
    header = [name.strip() for name in rows[0]]
    outputs = _columns(study.network, header)
    runs = [_run(header, outputs, row, number) for number, row in enumerate(rows[1:], 2) if any(map(str.strip, row))]
    study.add_trials(runs)
    return len(runs)


def _columns(network: Network, header: list[str]) -> dict[str, tuple[str, int]]:
    """The stage and position of every output that the header may name."""
    if len(set(header)) != len(header):
        raise ArgumentError(f"line 1: every column needs a name of its own; got {', '.join(header)}.")
    known = {
        f"{node.stage.name}.{output}": (node.stage.name, j)
        for node in network.nodes
        for j, output in enumerate(node.stage.outputs)
    }
    known |= {node.stage.name: (node.stage.name, 0) for node in network.nodes if len(node.stage.outputs) == 1}
    controls = set(network.domain.names)
    places = [known[name] for name in header if name in known and name not in controls]
    if len(set(places)) != len(places):
        raise ArgumentError(f"line 1: two columns name the same output; got {', '.join(header)}.")
    strange = [name for name in header if name not in known and name not in controls]
    if strange or not controls <= set(header):
        raise ArgumentError(
            f"line 1: columns must be the controls {', '.join(sorted(controls))} and any of the outputs "
            f"{', '.join(known)}; got {', '.join(header)}."
        )
    return {name: place for name, place in known.items() if name not in controls}


def _run(
    header: list[str], places: dict[str, tuple[str, int]], row: list[str], line: int
) -> tuple[dict[str, float], dict[str, list[float]], str]:
    if len(row) != len(header):
        raise ArgumentError(f"line {line}: {len(row)} cells where the header has {len(header)}.")
    controls: dict[str, float] = {}
    observed: dict[str, dict[int, float]] = {}
    for name, text in zip(header, row, strict=True):
        if name in places and not text.strip():
            continue
        try:
            value = float(text)
        except ValueError:
            raise ArgumentError(f"line {line}: {name} must be a number; got {text!r}.") from None
        if name in places:
            stage, position = places[name]
            observed.setdefault(stage, {})[position] = value
        else:
            controls[name] = value
    outputs = {stage: [values[j] for j in sorted(values)] for stage, values in observed.items()}
    return controls, outputs, f"line {line}"
