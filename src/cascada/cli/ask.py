"""`cascada ask`: print the next trial to run, after it is stored."""

from collections.abc import Sequence
from typing import Annotated

import typer

from cascada.cli.output import print_json, settings, trial_json
from cascada.cli.stored import Algorithm, Json, Spec, Storage, StudyName, opened
from cascada.cli.terminal import say
from cascada.study import Trial


def ask(
    study: StudyName,
    storage: Storage = None,
    spec: Spec = None,
    lease: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS", help="After this long without a result, the next `ask` returns the trial again."
        ),
    ] = None,
    count: Annotated[
        int | None, typer.Option("-n", metavar="COUNT", help="Number of trials, to be run in parallel.", min=1)
    ] = None,
    algorithm: Algorithm = None,
    json_output: Json = False,
) -> None:
    """Ask for a trial to run: print its number and its controls.

    With --spec, the study is created if it does not exist yet. Waiting trials come first: enqueued ones, and ones whose
    lease expired. --json prints one trial, or null when no point is worth a run; with -n an array of trials.

    For example: cascada ask --storage sqlite:///alloy.db --study alloy --spec alloy.py:network
    """
    found = opened(storage, study, spec, algorithm=algorithm, create=True)
    trials = found.ask(count or 1, lease=lease)
    _print(trials, count, json_output)
    if len(trials) < (count or 1):
        certificate = None if trials or not found.network.limits else found.certificate()
        why = f" {certificate.infeasibility}" if certificate is not None and certificate.answer == "infeasible" else ""
        say("No other point is worth a run." if trials else f"No point is worth a run.{why}", err=True)


def _print(trials: Sequence[Trial], count: int | None, json_output: bool) -> None:
    if json_output:
        shown = [trial_json(trial) for trial in trials]
        print_json(shown if count is not None else shown[0] if shown else None)
        return
    for trial in trials:
        say(f"trial {trial.number}\n{settings(trial.controls)}")
