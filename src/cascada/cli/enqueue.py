"""`cascada enqueue`: add a trial at chosen controls, which the next `ask` returns."""

from typing import Annotated, Any

import typer

from cascada.cli.output import print_json, settings, trial_json
from cascada.cli.stored import Json, Spec, Storage, StudyName, opened
from cascada.cli.terminal import say
from cascada.errors import ArgumentError
from cascada.literals import json_from
from cascada.study import Study


def enqueue(
    controls: Annotated[str, typer.Argument(metavar="JSON", help="The controls by name: a JSON object.")],
    study: StudyName,
    storage: Storage = None,
    spec: Spec = None,
    json_output: Json = False,
) -> None:
    """Add a trial at these controls; the next `ask` returns it.

    For example: cascada enqueue --storage sqlite:///alloy.db --study alloy '{"dose": 0.5, "heat": -0.3}'
    """
    trial = opened(storage, study, spec).enqueue_trial(controls_from(controls))
    if json_output:
        print_json(trial_json(trial))
    else:
        say(f"trial {trial.number} waits\n{settings(trial.controls)}")


def enqueue_start(study: Study, controls: Any) -> None:
    """Let a setting that is known to satisfy the limits wait, unless the study has a run of it or will have one."""
    if not any(trial.controls == controls and trial.state not in ("failed", "abandoned") for trial in study.trials):
        study.enqueue_trial(controls, known_safe=True)


def controls_from(text: str) -> Any:
    """Controls given as a JSON object on the command line; `ArgumentError` if they are not JSON."""
    try:
        return json_from(text)
    except ValueError as error:
        raise ArgumentError(
            f'the controls must be a JSON object, {{"name": number}}; got {text!r:.300}: {error}.'
        ) from None
