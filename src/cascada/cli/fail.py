"""`cascada fail` and `cascada abandon`: end a trial that will not be completed."""

from typing import Annotated

import typer

from cascada.cli.output import print_json, trial_json
from cascada.cli.stored import Json, Spec, Storage, StudyName, TrialNumber, opened
from cascada.cli.terminal import say
from cascada.study import Trial

Reason = Annotated[str, typer.Argument(metavar="REASON", help="The reason, in words.")]


def fail(
    trial: TrialNumber,
    study: StudyName,
    reason: Reason = "it failed",
    storage: Storage = None,
    spec: Spec = None,
    json_output: Json = False,
) -> None:
    """Record that a run failed; the stages that were reported are kept and used.

    For example: cascada fail --storage sqlite:///alloy.db --study alloy 3 "the furnace broke"
    """
    _print(opened(storage, study, spec).fail(trial, reason), json_output)


def abandon(
    trial: TrialNumber,
    study: StudyName,
    reason: Reason = "abandoned",
    storage: Storage = None,
    spec: Spec = None,
    json_output: Json = False,
) -> None:
    """Record that a trial will not be run; the stages that were reported are kept and used.

    For example: cascada abandon --storage sqlite:///alloy.db --study alloy 3 "too dangerous"
    """
    _print(opened(storage, study, spec).abandon(trial, reason), json_output)


def _print(trial: Trial, json_output: bool) -> None:
    if json_output:
        print_json(trial_json(trial))
    else:
        say(f"trial {trial.number} {trial.state}: {trial.reason}")
