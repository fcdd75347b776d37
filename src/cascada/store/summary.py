"""Summary of a study from its log alone, also where the formulas of its network are not at hand."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from cascada.errors import CascadaError, StoreError
from cascada.store.description import checked
from cascada.store.event import Event
from cascada.store.trial import TrialState, counted

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
    #: The best value of a run that satisfies the limits; None if there is none, or if it follows by a formula.
    best: float | None
    gap_kind: str  #: what a gap would be: proven, estimated, or refuted
    created: float  #: seconds since 1970
    last_event: float
    #: How many runs satisfy the limits; None if the process has none, or if it follows by a formula.
    feasible: int | None = None


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
    limited = {name for name, one in stages.items() if one["limits"]}
    needed = {stage["name"], *limited}
    completing: set[str] = set().union(*(_completing(stages, name) for name in needed))
    states, outputs = _trials(events, needed, completing, {name: _upstream(stages, name) for name in stages})
    # Formulas and copies follow from other outputs, which may have been corrected.
    derived = any(_derived(stages[name], _judged(stages[name], objective)) for name in needed)
    position = stage["outputs"].index(objective["output"])
    runs = [] if derived else [found for found in outputs.values() if needed <= found.keys()]
    values = [run[stage["name"]][position] for run in runs if all(_satisfies(stages[n], run[n]) for n in limited)]
    pick = max if objective["sense"] == "maximise" else min
    estimated = any(
        not s["known"] and s["norm_bound"] is None and len(s["passes"]) < len(s["outputs"]) for s in stages.values()
    )
    return StudySummary(
        name=name,
        objective=objective,
        trials=counted(states.values()),
        best=pick(values, default=None),
        gap_kind=_gap_kind(events, described, estimated, any("sub_gaussian" in _error(s) for s in stages.values())),
        created=events[0].at,
        last_event=events[-1].at,
        feasible=len(values) if limited and not derived else None,
    )


def _error(stage: Mapping[str, Any]) -> Mapping[str, Any]:
    """The parts of the error of a stage; empty if it has none, or if its noise is estimated."""
    error = stage["error"]
    return error if isinstance(error, Mapping) else {}


def _gap_kind(events: Sequence[Event], described: int, estimated: bool, scattered: bool) -> str:
    """The kind of gap, as far as the log shows it without computing a bound."""
    if _refuted(events, described):
        return "refuted"
    if estimated or not scattered:
        return "estimated" if estimated else "proven"
    read = {event.trial for event in events if event.kind in ("observed", "told")}
    selective = any(
        event.kind in ("corrected", "retracted", "amended")
        or (event.kind == "failed" and event.trial in read)
        or event.data.get("past") is True
        for event in events
    )
    return "estimated" if selective else "confident"


def _judged(stage: Mapping[str, Any], objective: Mapping[str, str]) -> set[str]:
    """The outputs of a stage that say how good a run is: the objective, and those with limits."""
    return {*stage["limits"], *([objective["output"]] if stage["name"] == objective["stage"] else [])}


def _derived(stage: Mapping[str, Any], outputs: set[str]) -> bool:
    """Whether some of these outputs of a stage follow from other outputs."""
    return bool(stage["known"] or outputs & set(stage["passes"]))


def _satisfies(stage: Mapping[str, Any], values: Sequence[float]) -> bool:
    """Whether the outputs of a stage satisfy its limits."""
    named = dict(zip(stage["outputs"], values, strict=True))
    return all(
        (low is None or low <= named[output]) and (high is None or named[output] <= high)
        for output, (low, high) in stage["limits"].items()
    )


def _completing(stages: Mapping[str, Any], name: str) -> set[str]:
    """The stages without whose outputs the stage `name` has none: itself, or what its formula takes."""
    found = {name}
    if stages[name]["known"]:
        for parent in stages[name]["parents"]:
            found |= _completing(stages, parent.partition(".")[0])
    return found


def _upstream(stages: Mapping[str, Any], name: str) -> set[str]:
    """A stage and all before it."""
    return {name}.union(*(_upstream(stages, parent.partition(".")[0]) for parent in stages[name]["parents"]))


def _trials(
    events: Iterable[Event], needed: set[str], completing: set[str], upstream: Mapping[str, set[str]]
) -> tuple[dict[int, TrialState], dict[int, dict[str, Sequence[float]]]]:
    """The states of all trials, and the outputs of the stages in `needed` by trial and stage.

    A complete trial runs again when the outputs of a stage in `completing` are retracted. A step has the outputs that
    it takes from other trials, and those of `upstream` stages with them.
    """
    states: dict[int, TrialState] = {}
    steps: dict[int, set[str]] = {}  # the stages of steps that gave nothing yet
    apart: set[int] = set()  # steps at inputs of their own, whose outputs are of no run
    outputs: dict[int, dict[str, Sequence[float]]] = {}
    for event in events:
        if event.trial is None:
            continue
        if event.kind in _STATE_AFTER:
            states[event.trial] = _STATE_AFTER[event.kind]
        found = outputs.setdefault(event.trial, {})
        if event.kind == "asked" and "steps" in event.data and event.trial not in steps:
            steps[event.trial] = set(event.data["steps"])
            apart |= {event.trial} if "set" in event.data else set()
            for stage, number in event.data.get("from", {}).items():
                found |= {name: values for name, values in outputs[number].items() if name in upstream[stage]}
        if event.kind in ("observed", "told") and event.trial in steps:
            steps[event.trial] -= set(event.data["outputs"])
            if not steps[event.trial] and event.kind == "observed":
                states[event.trial] = "partial"
        if event.kind in ("observed", "told") and event.trial not in apart:
            found |= {name: values for name, values in event.data["outputs"].items() if name in needed}
        elif event.kind == "corrected" and event.data.get("stage") in needed:
            found[event.data["stage"]] = event.data["outputs"]
        elif event.kind == "retracted" and event.data["stage"] in completing:
            found.pop(event.data["stage"], None)
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
