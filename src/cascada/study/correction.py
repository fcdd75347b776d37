"""Corrections: trials and lessons with other outputs than before, and what was changed, in words."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from cascada.errors import ArgumentError
from cascada.network import Network
from cascada.store.event import Event
from cascada.store.trial import Trial
from cascada.study.measurement import Measurement
from cascada.study.refutation import Refutation
from cascada.study.step_trial import position
from cascada.study.validation import Rules

Output = tuple[float, ...]
#: What a model learns from.
Lesson = Trial | Refutation | Measurement


def relearned(lessons: Iterable[Lesson], after: Trial, network: Network, rules: Rules) -> Iterator[Lesson]:
    """The lessons with a corrected trial: each as far as it was observed then, and each only where it teaches more."""
    last: Mapping[str, Any] = {}
    for lesson in lessons:
        if isinstance(lesson, Refutation):
            if lesson.assumed is None and after.number not in lesson.trials:
                yield lesson
        elif isinstance(lesson, Measurement) or lesson.number != after.number:
            yield lesson
        else:
            outputs = {name: after.outputs[name] for name in lesson.outputs if name in after.outputs}
            if outputs != last:
                if after.closed:
                    feasible = rules.feasible(after.controls, outputs)
                    yield replace(after, outputs=outputs, value=network.objective_of(outputs), feasible=feasible)
                else:
                    yield replace(after, outputs=outputs)
                last = outputs


def change_text(before: Trial, event: Event) -> str:
    """What a correction or a revision changed, for people who read a report."""
    data, reason = event.data, event.data.get("reason")
    because = f" ({reason})" if reason else ""
    if event.kind == "retracted":
        return f"{data['stage']} = {_numbers(before.outputs[data['stage']])} was retracted{because}"
    if "controls" in data:
        old = ", ".join(f"{k} = {before.controls[k]!r}" for k, v in data["controls"].items() if before.controls[k] != v)
        return f"the controls were {event.kind}{f', before: {old}' if old else ''}{because}"
    return f"{data['stage']} was corrected, before: {_numbers(before.outputs[data['stage']])}{because}"


def _numbers(values: Iterable[float]) -> str:
    return ", ".join(map(repr, values))


def check_origin(network: Network, trial: Trial, trials: Sequence[Trial], data: Mapping[str, Any]) -> None:
    """Raise `ArgumentError` for a correction of what was taken from another trial, or of controls that others took."""
    stage, number = str(data.get("stage")), trial.number
    if stage in trial.taken:
        raise ArgumentError(
            f"trial {number} took the outputs of stage {stage!r} from trial {trial.taken[stage]}; correct or retract "
            f"them there, and they change here, too."
        )
    changed = {k for k, v in data.get("controls", {}).items() if trial.controls.get(k) != v}
    for node in network.nodes if changed else ():
        name = node.stage.name
        if not changed & set(node.stage.controls):
            continue
        if name in trial.taken:
            raise ArgumentError(
                f"trial {number} took the outputs of stage {name!r}, and with them its controls, from trial "
                f"{trial.taken[name]}; they cannot be corrected here."
            )
        takers = [other.number for other in trials if other.taken.get(name) == number]
        if takers:
            raise ArgumentError(
                f"the controls of stage {name!r} in trial {number} cannot be corrected: trials "
                f"{', '.join(map(str, takers))} went on from its outputs at these controls. Retract its outputs, and "
                f"tell them as a trial of their own (study.add_trial)."
            )


def copies(rules: Rules, trials: Sequence[Trial], after: Trial, stage: str) -> Iterator[Trial]:
    """The trials that took the outputs of a stage from a corrected trial, with its outputs as they are now.

    A step at inputs of its own that took them through a formula has unknown inputs from then on: it is not learned.
    """
    values = after.outputs.get(stage)
    for trial in trials:
        if trial.number == after.number or trial.taken.get(stage) != after.number:
            continue
        if trial.set_outputs is None:
            if values is None:
                yield rules.retracted(trial, stage) if stage in trial.outputs else trial
            else:
                yield rules.retold(trial, stage, values)
        else:
            yield replace(trial, set_outputs=_set_anew(rules.network, trial.set_outputs, stage, values))


def _set_anew(network: Network, before: Mapping[str, Output], stage: str, values: Output | None) -> dict[str, Output]:
    """What a step is run on after the outputs of a stage changed; NaN for what is not known any more."""
    found = dict(before)
    for name, old in before.items():
        if name == stage and values is not None:
            found[name] = tuple(math.nan if math.isnan(o) else v for o, v in zip(old, values, strict=True))
        elif name == stage or _is_formula_of(network, name, stage):
            found[name] = (math.nan,) * len(old)
    return found


def _is_formula_of(network: Network, name: str, stage: str) -> bool:
    """Whether a stage is a formula of the outputs of another one, directly or through other formulas."""
    return network.node(name).stage.known and position(network, stage) in network.feeders[position(network, name)]
