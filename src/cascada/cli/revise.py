"""`cascada revise`: how to go on with a run in progress, or whether to discard it."""

from dataclasses import asdict
from typing import Annotated

import typer

from cascada.cli.output import outcome, print_json
from cascada.cli.stored import Json, Spec, Storage, StudyName, TrialNumber, opened
from cascada.cli.terminal import say


def revise(
    trial: TrialNumber,
    study: StudyName,
    apply: Annotated[
        bool,
        typer.Option("--apply", help="Write it down: the new controls, or that the trial is abandoned and why."),
    ] = False,
    storage: Storage = None,
    spec: Spec = None,
    json_output: Json = False,
) -> None:
    """Print how to go on with a run of which some stages were reported, what it can still give, or why to discard it.

    Controls of stages that were run stay as they are. A batch is discarded by a proof, that nothing from it beats the
    best, or by a rule, that a new run promises more per stage; the output says by which. Without --apply nothing is
    written.

    For example: cascada revise --storage sqlite:///alloy.db --study alloy 4
    """
    found = opened(storage, study, spec)
    revision = found.revise(trial, apply=apply)
    if json_output:
        print_json(asdict(revision))
        return
    say(str(revision))
    if apply:
        after = found.trials[trial]
        say(outcome(after, found.network) if after.state != "abandoned" else f"Trial {trial} was abandoned.")
