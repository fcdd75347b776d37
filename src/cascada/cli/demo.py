"""`cascada demo`: the main job on a built-in process, run by run, down to the proven gap."""

import json
from typing import Annotated

import typer

from cascada.cli.output import as_json, summary
from cascada.problems import certified
from cascada.study import Study, maximise


def demo(
    budget: Annotated[int, typer.Option(help="At most this many runs of the process.", min=1)] = 40,
    tolerance: Annotated[float, typer.Option(help="Stop when the proven gap is at most this.")] = 0.01,
    seed: Annotated[int, typer.Option(help="Which random process.")] = 0,
    json_output: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Maximise a three-stage process with a control at every stage, and prove how good the answer is."""
    problem = certified("controls", seed)

    def show(study: Study) -> None:
        trial, best, certificate = study.trials[-1], study.best_trial, study.certificate()
        settings = "".join(f"{value:8.3f}" for value in trial.controls.values())
        gap = "" if certificate.gap is None else f"{certificate.gap:14.4f}"
        typer.echo(f"{trial.number + 1:5d}{settings}{trial.value:11.4f}{best.value if best else 0:11.4f}{gap}")

    if not json_output:
        typer.echo(
            "Three stages in a row, each with a control of its own; only the assumptions are known beforehand.\n"
        )
        typer.echo("  run       x       y       z     output       best    proven gap")
    callbacks = () if json_output else (show,)
    result = maximise(
        problem.network, budget=budget, tolerance=tolerance, seed=seed, callbacks=callbacks, progress=False
    )
    if json_output:
        typer.echo(json.dumps(as_json(result)))
        return
    regret = problem.optimum[1] - (result.best.value if result.best and result.best.value is not None else 0.0)
    typer.echo(
        f"\n{summary(result)}\n\nThe truth, from a dense search that the optimiser never saw: {regret:.4f} away."
    )
