"""`cascada tell-stage`: the outputs of one stage of a trial, as they come in."""

from typing import Annotated

import typer

from cascada.cli.output import outcome, print_json, trial_json
from cascada.cli.stored import Json, Spec, Storage, StudyName, TrialNumber, opened, warn_if_refuted
from cascada.cli.terminal import say
from cascada.errors import ArgumentError
from cascada.literals import number_from


def tell_stage(
    trial: TrialNumber,
    stage: Annotated[str, typer.Argument(metavar="STAGE", help="The stage's name.")],
    values: Annotated[list[str], typer.Argument(metavar="VALUES…", help="A number for each of its outputs, in order.")],
    study: StudyName,
    storage: Storage = None,
    spec: Spec = None,
    json_output: Json = False,
) -> None:
    """Tell the outputs of one stage of a trial; the next suggestion uses them, whatever becomes of the run.

    For example: cascada tell-stage --storage sqlite:///alloy.db --study alloy 0 mix 1.31
    """
    numbers = [as_number(value) for value in values]
    found = opened(storage, study, spec)
    after = found.tell_stage(trial, stage, numbers)
    if json_output:
        print_json(trial_json(after))
    else:
        say(outcome(after, found.network))
    warn_if_refuted(found, storage, trial, stage)


def as_number(text: str) -> float:
    """A number from the command line; `ArgumentError` if it is not one."""
    found = number_from(text.strip())
    if found is None:
        wrong = f"there is no option {text:.100}, and" if text.startswith("-") else f"{text!r:.100} is no number:"
        raise ArgumentError(f"{wrong} VALUES must be numbers.")
    return found
