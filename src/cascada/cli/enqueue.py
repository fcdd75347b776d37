"""`cascada enqueue`: a trial at controls of one's own choice, the next to be asked for."""

import json
from typing import Annotated

import typer

from cascada.cli.output import print_json, settings, trial_json
from cascada.cli.stored import Json, Spec, Storage, StudyName, opened
from cascada.errors import ArgumentError


def enqueue(
    controls: Annotated[str, typer.Argument(metavar="JSON", help="The controls by name: a JSON object.")],
    study: StudyName,
    storage: Storage = None,
    spec: Spec = None,
    json_output: Json = False,
) -> None:
    """Let the next who asks get a trial at these controls.

    For example: cascada enqueue --storage sqlite:///alloy.db --study alloy '{"dose": 0.5, "heat": -0.3}'
    """
    try:
        wanted = json.loads(controls)
    except ValueError as error:
        raise ArgumentError(f'the controls must be a JSON object, {{"name": number}}: {error}.') from None
    trial = opened(storage, study, spec).enqueue_trial(wanted)
    if json_output:
        print_json(trial_json(trial))
    else:
        typer.echo(f"trial {trial.number} waits\n{settings(trial.controls)}")
