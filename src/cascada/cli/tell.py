"""`cascada tell`: the outputs of a trial, of every stage or of those that were observed."""

from pathlib import Path
from typing import Annotated, Any

import typer

from cascada.cli.output import outcome, print_json, trial_json
from cascada.cli.stored import Json, Spec, Storage, StudyName, TrialNumber, opened, text_of, warn_if_refuted
from cascada.cli.terminal import say
from cascada.errors import ArgumentError
from cascada.literals import json_from


def tell(
    trial: TrialNumber,
    outputs: Annotated[
        str,
        typer.Argument(
            metavar="OUTPUTS",
            help='JSON, {"stage": value, …}, or a list of values by stage; - reads it from standard input.',
        ),
    ],
    study: StudyName,
    storage: Storage = None,
    spec: Spec = None,
    json_output: Json = False,
) -> None:
    """Tell what a trial gave; telling the same again changes nothing, telling something else is refused.

    For example: cascada tell --storage sqlite:///alloy.db --study alloy 0 '{"mix": 1.31, "cure": [1.62]}'
    """
    observed = _parsed(text_of(Path("-")) if outputs == "-" else outputs)
    found = opened(storage, study, spec)
    after = found.tell(trial, observed)
    if json_output:
        print_json(trial_json(after))
    else:
        say(outcome(after, found.network))
    warn_if_refuted(found, storage, trial)


def _parsed(text: str) -> dict[str, Any]:
    try:
        found = json_from(text)
    except ValueError as error:
        raise ArgumentError(f"OUTPUTS must be JSON, as in '{{\"mix\": 1.31}}': {error}; got {text!r:.300}.") from None
    if not isinstance(found, dict):
        raise ArgumentError(f"OUTPUTS must be a JSON object of stages, as in '{{\"mix\": 1.31}}'; got {text!r:.300}.")
    return found
