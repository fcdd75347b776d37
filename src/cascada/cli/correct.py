"""`cascada correct` and `cascada retract`: results that were reported wrongly."""

from typing import Annotated, Any

import typer

from cascada.cli.output import outcome, print_json, trial_json
from cascada.cli.stored import Json, Spec, Storage, StudyName, TrialNumber, opened, warn_if_refuted
from cascada.cli.tell_stage import as_number
from cascada.cli.terminal import say
from cascada.errors import ArgumentError
from cascada.literals import json_from

Stage = Annotated[str | None, typer.Argument(metavar="STAGE", help="The stage's name.")]
Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why, in words; reports show it.")]


def correct(
    trial: TrialNumber,
    study: StudyName,
    stage: Stage = None,
    values: Annotated[
        list[str] | None, typer.Argument(metavar="VALUES…", help="The right number for each of its outputs, in order.")
    ] = None,
    controls: Annotated[
        str | None,
        typer.Option("--controls", metavar="JSON", help="The right controls by name instead, as a JSON object."),
    ] = None,
    reason: Reason = "",
    storage: Storage = None,
    spec: Spec = None,
    json_output: Json = False,
) -> None:
    """Correct the outputs of a stage, or the controls of a trial, that were reported wrongly.

    The log keeps both values; everything that followed from the wrong one is computed again.

    For example: cascada correct --storage sqlite:///alloy.db --study alloy 3 mix 2.812 --reason "decimal point"
    """
    outputs = None if not values else [as_number(value) for value in values]
    right = None if controls is None else _controls(controls)
    if (right is None) == (stage is None) or (stage is None) != (outputs is None):
        raise ArgumentError(
            "correct takes a stage with the right number for each of its outputs, as in `cascada correct 3 mix 2.812`, "
            "or --controls."
        )
    found = opened(storage, study, spec)
    after = found.correct(trial, stage, outputs, controls=right, reason=reason)
    if json_output:
        print_json(trial_json(after))
    else:
        say(f"Trial {after.number} was corrected. {outcome(after, found.network)}")
    warn_if_refuted(found, storage, trial, stage)


def retract(
    trial: TrialNumber,
    stage: Annotated[str, typer.Argument(metavar="STAGE", help="The stage's name.")],
    study: StudyName,
    reason: Reason = "",
    storage: Storage = None,
    spec: Spec = None,
    json_output: Json = False,
) -> None:
    """Withdraw the outputs of a stage: they do not count any more, and can be told again.

    A trial that was complete by them is running again.

    For example: cascada retract --storage sqlite:///alloy.db --study alloy 3 mix --reason "wrong sample"
    """
    found = opened(storage, study, spec)
    after = found.retract(trial, stage, reason)
    if json_output:
        print_json(trial_json(after))
    else:
        say(f"Stage {stage!r} of trial {after.number} was retracted. {outcome(after, found.network)}")


def _controls(text: str) -> dict[str, Any]:
    try:
        found = json_from(text)
    except ValueError as error:
        raise ArgumentError(
            f'--controls must be a JSON object, {{"name": number}}: {error}; got {text!r:.300}.'
        ) from None
    if not isinstance(found, dict):
        raise ArgumentError(f'--controls must be a JSON object, {{"name": number}}; got {text!r:.300}.')
    return found
