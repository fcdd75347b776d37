"""Summary of a study from its log alone, also where the formulas of its network are not at hand."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, get_args

from cascada.errors import CascadaError, StoreError
from cascada.store.description import checked
from cascada.store.event import Event
from cascada.store.trial import TrialState

_STATE_AFTER: Mapping[str, TrialState] = {
    "enqueued": "waiting",
    "expired": "waiting",
    "asked": "running",
    "told": "complete",
    "failed": "failed",
    "abandoned": "abandoned",
}


@dataclass(frozen=True)
class StudySummary:
    """A study as its log shows it, without computing a bound."""

    name: str
    objective: Mapping[str, str]  #: its "stage", "output" and "sense"
    trials: Mapping[str, int]  #: how many there are in each state
    best: float | None  #: the best value; None if there is none, or if it follows from others by a formula
    gap_kind: str  #: what a gap would be: proven, estimated, or refuted
    created: float  #: seconds since 1970
    last_event: float


@contextmanager
def damage_reported(name: str) -> Iterator[None]:
    """Raise `StoreError` where the log of a study holds other data than cascada writes, whatever they are."""
    try:
        yield
    except CascadaError:
        raise
    except (LookupError, ArithmeticError, AttributeError, TypeError, ValueError, RecursionError) as error:
        raise StoreError(f"the log of the study {name!r} is damaged: {error!r:.300}.") from error


def last_description(name: str, events: Sequence[Event]) -> tuple[int, dict[str, Any]]:
    """The number of the event that describes a study last, and that description, with its defaults."""
    found = [event for event in events if event.kind in ("created", "amended")]
    if not found or events[0].kind != "created":
        raise StoreError(f"the log of the study {name!r} does not begin with its creation: it is not a log of cascada.")
    return found[-1].number, checked(found[-1].data)


def summarised(name: str, events: Sequence[Event]) -> StudySummary:
    """The summary of a study with these events; `StoreError` if they are not those of a study."""
    with damage_reported(name):
        return _summarised(name, events)


def _summarised(name: str, events: Sequence[Event]) -> StudySummary:
    described, description = last_description(name, events)
    objective = description["objective"]
    stages = {stage["name"]: stage for stage in description["stages"]}
    stage = stages[objective["stage"]]
    states, outputs = _trials(events, stage["name"], _completing(stages, stage["name"]))
    # Formulas and copies follow from other outputs, which may have been corrected.
    derived = stage["known"] or objective["output"] in stage["passes"]
    values = [] if derived else [found[stage["outputs"].index(objective["output"])] for found in outputs.values()]
    pick = max if objective["sense"] == "maximise" else min
    estimated = any(
        not s["known"] and s["norm_bound"] is None and len(s["passes"]) < len(s["outputs"]) for s in stages.values()
    )
    return StudySummary(
        name=name,
        objective=objective,
        trials={state: sum(found == state for found in states.values()) for state in get_args(TrialState)},
        best=pick(values, default=None),
        gap_kind="refuted" if _refuted(events, described) else "estimated" if estimated else "proven",
        created=events[0].at,
        last_event=events[-1].at,
    )


def _completing(stages: Mapping[str, Any], name: str) -> set[str]:
    """The stages without whose outputs the objective's stage `name` has none: itself, or what its formula takes."""
    found = {name}
    if stages[name]["known"]:
        for parent in stages[name]["parents"]:
            found |= _completing(stages, parent.partition(".")[0])
    return found


def _trials(
    events: Iterable[Event], stage: str, completing: set[str]
) -> tuple[dict[int, TrialState], dict[int, Sequence[float]]]:
    """The states of all trials, and the outputs of the objective's stage by trial.

    A complete trial runs again when the outputs of a stage in `completing` are retracted.
    """
    states: dict[int, TrialState] = {}
    outputs: dict[int, Sequence[float]] = {}
    for event in events:
        if event.trial is None:
            continue
        if event.kind in _STATE_AFTER:
            states[event.trial] = _STATE_AFTER[event.kind]
        if event.kind in ("observed", "told") and stage in event.data["outputs"]:
            outputs[event.trial] = event.data["outputs"][stage]
        elif event.kind == "corrected" and event.data.get("stage") == stage:
            outputs[event.trial] = event.data["outputs"]
        elif event.kind == "retracted" and event.data["stage"] in completing:
            outputs.pop(event.trial, None)
            states[event.trial] = "running" if states[event.trial] == "complete" else states[event.trial]
    return states, outputs


def _refuted(events: Iterable[Event], described: int) -> bool:
    """Whether the log says that the present assumptions are wrong: see `State.refutations`."""
    found: list[Mapping[str, Any]] = []
    for event in events:
        if event.kind == "note" and "refuted" in event.data and event.data.get("assumed") in (None, described):
            found.append(event.data)
        elif event.kind in ("corrected", "retracted"):
            found = [n for n in found if n.get("assumed") is None and event.trial not in n.get("trials", ())]
    return bool(found)
