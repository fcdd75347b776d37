"""`cascada demo`: optimise a built-in process and print every run with its proven gap."""

import json
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from cascada.cli.output import as_json, summary
from cascada.cli.terminal import say
from cascada.errors import ArgumentError
from cascada.outwards import rounded_down
from cascada.problems import certified
from cascada.study import Study


def demo(
    budget: Annotated[int, typer.Option(help="At most this many runs of the process.", min=1)] = 40,
    tolerance: Annotated[float, typer.Option(help="Stop when the proven gap is at most this.")] = 0.01,
    seed: Annotated[int, typer.Option(help="Seed of the random process.")] = 0,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where the store and the report go.", show_default="a temporary folder"),
    ] = None,
    json_output: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Maximise a three-stage process with a control at every stage, and prove how good the answer is."""
    problem = certified("controls", seed)

    folder = _empty_folder(out)
    study = Study.open(f"sqlite:///{folder / 'demo.db'}", "demo", problem.network, seed=seed, tolerance=tolerance)

    def show(study: Study) -> None:
        trial, best, certificate = study.trials[-1], study.best_trial, study.certificate()
        settings = "".join(f"{value:8.3f}" for value in trial.controls.values())
        gap = "" if certificate.shown is None else f"{certificate.shown.gap:>14}"
        say(f"{trial.number + 1:5d}{settings}{trial.value:11.4f}{best.value if best else 0:11.4f}{gap}")

    if not json_output:
        say("Three stages in a row, each with a control of its own; only the assumptions are known beforehand.\n")
        say("  run       x       y       z     output       best    proven gap")
    callbacks = () if json_output else (show,)
    result = study.optimise(budget=budget, callbacks=callbacks, progress=False)
    page = _report(study, folder / "report.html")
    if json_output:
        typer.echo(json.dumps(as_json(result) | {"report": page, "store": str(folder / "demo.db")}))
        return
    regret = problem.optimum[1] - (result.best.value if result.best and result.best.value is not None else 0.0)
    away = rounded_down(regret, 3)  # rounded down, so that it never exceeds the printed gap
    say(
        f"\n{summary(result)}\n\nThe truth, from a dense search that the optimiser never saw: {away} away.\n\n"
        f"All runs are in {folder / 'demo.db'}; "
        + ("the report needs plotly: pip install 'cascada[report]'." if page is None else f"the report is {page}.")
    )


def _empty_folder(out: Path | None) -> Path:
    """Return a folder for the demo, without the store of an earlier one; `ArgumentError` if it cannot be written."""
    if out is None:
        return Path(tempfile.mkdtemp(prefix="cascada-demo-"))
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name in ("demo.db", "demo.db-wal", "demo.db-shm"):
            (out / name).unlink(missing_ok=True)
    except OSError as error:
        raise ArgumentError(f"cannot write to {out}: {error.strerror or error}.") from None
    return out


def _report(study: Study, path: Path) -> str | None:
    if find_spec("plotly") is None:
        return None
    from cascada.report import write_report

    write_report(study, "cascada demo", path, "cascada demo")
    return str(path)
