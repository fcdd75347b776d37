"""`cascada next`: print the stage to run next by itself, after it is stored."""

from dataclasses import asdict
from typing import Annotated

import typer

from cascada.cli.output import print_json, settings
from cascada.cli.stored import Algorithm, Amend, Json, Spec, Storage, StudyName, opened
from cascada.cli.terminal import say
from cascada.outwards import as_given
from cascada.study import Cost, Step


def next_(
    study: StudyName,
    storage: Storage = None,
    spec: Spec = None,
    lease: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS", help="After this long without a result, the next `next` returns the step again."
        ),
    ] = None,
    budget_cost: Annotated[
        float | None,
        typer.Option(metavar="COST", help="No step that would make the study cost more than this in all."),
    ] = None,
    algorithm: Algorithm = None,
    amend: Amend = False,
    json_output: Json = False,
) -> None:
    """Ask for one step: the stage to run next, with its inputs, its cost and the reason.

    With --spec, the study is created if it does not exist yet. Steps that wait come first: enqueued runs, and steps
    whose lease expired. What the step gave is told with `cascada tell-stage`. --json prints the step, or null when no
    step is worth its cost.

    For example: cascada next --storage sqlite:///alloy.db --study alloy --spec alloy.toml
    """
    limit = None if budget_cost is None else Cost(budget_cost)
    found = opened(storage, study, spec, algorithm=algorithm, create=True, amend=amend)
    step = found.ask_step(lease=lease, limit=limit)
    if json_output:
        print_json(None if step is None else asdict(step))
    elif step is not None:
        say(_text(step))
    if step is None:
        why = "costs too much for the budget" if found.budget_reached else "is worth its cost"
        say(f"{'The next step' if found.budget_reached else 'No step'} {why}.", err=True)


def _text(step: Step) -> str:
    lines = [f"trial {step.trial}: run {step.stage}, for {as_given(step.cost)}", settings(step.inputs)]
    lines += [f"  on the output of {stage} in trial {number}" for stage, number in step.takes.items()]
    lines += [f"  then {', '.join(step.then)}, directly after it"] if step.then else []
    return "\n".join([*lines, *([step.reason] if step.reason else [])])
