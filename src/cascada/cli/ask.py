"""`cascada ask`: print the next trial to run, after it is stored."""

from collections.abc import Sequence
from typing import Annotated

import typer

from cascada.cli.enqueue import controls_from, enqueue_start
from cascada.cli.output import print_json, settings, trial_json
from cascada.cli.stored import (
    Algorithm,
    Amend,
    Confidence,
    Context,
    Json,
    Safe,
    Spec,
    Start,
    Storage,
    StudyName,
    object_from,
    opened,
)
from cascada.cli.terminal import say
from cascada.study import Study, Trial
from cascada.study.result import SENTENCES


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
    fix: Annotated[
        str | None,
        typer.Option(metavar="JSON", help="Values of some controls for this trial, as in '{\"force\": 35}'."),
    ] = None,
    context: Context = None,
    safe: Safe = False,
    start: Start = None,
    confidence: Confidence = None,
    amend: Amend = False,
    json_output: Json = False,
) -> None:
    """Ask for a trial to run: print its number and its controls.

    With --spec, the study is created if it does not exist yet. Waiting trials come first: enqueued ones, and ones whose
    lease expired. --fix gives values of some controls for this trial. --context gives what was measured of controls
    that are no choice; it is needed if there are any. --json prints one trial, or null when no point is worth a run;
    with -n an array of trials.

    A study that is created with --safe asks only for settings that are proven to satisfy the limits. Its first trial is
    --start. --amend takes over changed limits, ranges, kernels and norm bounds of the SPEC; all runs are kept.

    For example: cascada ask --storage sqlite:///alloy.db --study alloy --spec alloy.py:network
    """
    first = None if start is None else controls_from(start)
    given = {"fixed": object_from(fix, "--fix"), "context": object_from(context, "--context")}
    found = opened(
        storage, study, spec, algorithm=algorithm, create=True, safe=safe, confidence=confidence, amend=amend
    )
    if first is not None:
        enqueue_start(found, first)
    trials = found.ask(count or 1, lease=lease, **given)
    _print(trials, count, json_output)
    if len(trials) < (count or 1):
        where = " with these values" if fix is not None else ""
        say(
            "No other point is worth a run." if trials else f"No point{where} is worth a run.{_reason(found)}", err=True
        )


def _reason(study: Study) -> str:
    """Why no point is worth a run, if limits are the reason; else an empty text."""
    if not study.network.limits:
        return ""
    certificate = study.certificate()
    if certificate.answer == "infeasible":
        return f" {certificate.infeasibility}"
    if not study.lacks_safe_setting:
        return ""
    begun = [trial.number for trial in study.trials if trial.state == "running"]
    if study.best_trial is None and begun:
        return f" The study is safe, and no run satisfies the limits yet: tell what trial {begun[0]} gave."
    if study.best_trial is None:
        return " The study is safe, and no run satisfies the limits: add one that does (cascada add), or give --start."
    return f" {SENTENCES['no safe setting']}"


def _print(trials: Sequence[Trial], count: int | None, json_output: bool) -> None:
    if json_output:
        shown = [trial_json(trial) for trial in trials]
        print_json(shown if count is not None else shown[0] if shown else None)
        return
    for trial in trials:
        say(f"trial {trial.number}\n{settings(trial.controls)}")
