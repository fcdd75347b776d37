"""`cascada trials`: all trials of a study as a table."""

from typing import Annotated

import typer

from cascada.cli.output import print_json, print_table, rounded, trial_json
from cascada.cli.stored import Json, Spec, Storage, StudyName, followed
from cascada.errors import ArgumentError
from cascada.printable import printable


def trials(
    study: StudyName,
    storage: Storage = None,
    spec: Spec = None,
    csv: Annotated[
        bool, typer.Option("--csv", help="Print controls and outputs as CSV, as `cascada add` reads it.")
    ] = False,
    json_output: Json = False,
) -> None:
    """Print all trials of a study: state, controls, outputs of every stage, value, and whether limits are satisfied.

    --json prints an array of them; --csv prints those that have outputs, with all digits.
    """
    from cascada.study.step_trial import controls_set
    from cascada.study.tabular import FEASIBLE, FEASIBLE_CELLS, output_columns, trials_csv

    if csv and json_output:
        raise ArgumentError("--csv and --json are two formats; give one of them.")
    found = followed(storage, study, spec)
    all_trials = found.trials
    if csv:
        typer.echo(printable(trials_csv(found.network, all_trials)), nl=False)
        return
    if json_output:
        print_json([trial_json(trial) for trial in all_trials])
        return
    controls = found.network.domain.names
    columns, corrections = output_columns(found.network), found.state.notes
    rows = []
    for trial in all_trials:
        seen = [trial.outputs[stage][j] if stage in trial.outputs else None for _, stage, j in columns]
        given = controls_set(found.network, trial)
        numbers = [*map(given.get, controls), *seen, trial.value]
        numbers += [trial.cost] if found.network.priced else []
        step = [f"step {', '.join(trial.steps)}"] if trial.steps else []
        remarks = "; ".join([*step, *([trial.reason] if trial.reason else []), *corrections.get(trial.number, ())])
        judged = [FEASIBLE_CELLS[trial.feasible]] if found.network.limits else []
        rows.append([str(trial.number), trial.state, *map(rounded, numbers), *judged, remarks])
    headings = ["trial", "state", *controls, *(heading for heading, _, _ in columns), "value"]
    headings += ["cost"] if found.network.priced else []
    print_table([*headings, *([FEASIBLE] if found.network.limits else []), ""], rows)
