"""The table of a study's runs, and the facts about them that need no bound."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from cascada.network import Network
from cascada.outwards import no_better
from cascada.store.trial import Trial, best_of
from cascada.study.step_trial import controls_set


def columns(network: Network) -> list[str]:
    """Return the column names of the table."""
    outputs = [(node.stage.name, output) for node in network.nodes for output in node.stage.outputs]
    return ["trial", "state", *network.controls, *(o if o == s else f"{s}.{o}" for s, o in outputs)]


def row(network: Network, trial: Trial, corrections: Sequence[str] = ()) -> list[Any]:
    """Return one run in the order of the columns; None for missing outputs.

    Its state says why it failed, which limits it breaks, and what was corrected. What a program or a person wrote may
    hold addresses: people mail reports.
    """
    own = trial.outputs if trial.closed else {}  # else they are of no run: no cell of a row
    broken = [f"infeasible: not {limit}" for limit, _ in network.broken_limits(own)]
    outputs = [
        own[node.stage.name][j] if node.stage.name in own else None
        for node in network.nodes
        for j in range(len(node.stage.outputs))
    ]
    state = "; ".join(
        [f"{trial.state}: {trial.reason}" if trial.reason else trial.state, *_step(trial), *broken, *corrections]
    )
    if trial.reason or corrections:
        from cascada.store.address import without_secrets  # imports SQLAlchemy, which takes time

        state = without_secrets(state)
    return [trial.number, state, *map(controls_set(network, trial).get, network.controls), *outputs]


def _step(trial: Trial) -> list[str]:
    """Return what a trial is a step of, and what it gave if that is of no run."""
    if not trial.steps:
        return []
    alone = {} if trial.closed else trial.outputs
    given = [f"{stage} = {', '.join(f'{value:.6g}' for value in values)}" for stage, values in alone.items()]
    return [f"step {', '.join(trial.steps)}", *([f"{', '.join(given)} at inputs of its own"] if given else [])]


def objective_at(network: Network) -> int:
    """Return the index of the objective in a row."""
    outputs = [(node.stage.name, output) for node in network.nodes for output in node.stage.outputs]
    return 2 + len(network.controls) + outputs.index(network.objective)


def limits_at(network: Network) -> list[tuple[int, float | None, float | None]]:
    """Return the limits as indices in a row with their low and high ends, None where there is none.

    What is read with errors breaks a limit if it is farther outside than its error.
    """
    errors = [network.node(limit.stage).stage.error_of(limit.output) for limit in network.limits]
    wide = [(limit.low - error, limit.high + error) for limit, error in zip(network.limits, errors, strict=True)]
    ends = [[end if math.isfinite(end) else None for end in pair] for pair in wide]
    return [(2 + limit.column, low, high) for limit, (low, high) in zip(network.limits, ends, strict=True)]


def table(network: Network, trials: Sequence[Trial], corrections: Mapping[int, Sequence[str]]) -> dict[str, Any]:
    """Return the table: its columns, all rows with their `corrections` by number, and the number of the best run."""
    rows = [row(network, trial, corrections.get(trial.number, ())) for trial in trials]
    return {"columns": columns(network), "rows": rows, "best": best_number(network, trials)}


def best_number(network: Network, trials: Sequence[Trial]) -> int | None:
    """Return the number of the best run that satisfies the limits; None if there is none."""
    best = best_of(trials, network.sign, limited=bool(network.limits))
    return None if best is None else best.number


def facts_of_runs(network: Network, trials: Sequence[Trial]) -> list[list[str]]:
    """Return the facts at the top of the page, each a label and a value."""
    best = best_of(trials, network.sign, limited=bool(network.limits))
    complete = sum(trial.value is not None for trial in trials)
    feasible = sum(trial.value is not None and trial.feasible is True for trial in trials)
    none = "none feasible" if complete else "none yet"  # without limits, a complete run is feasible
    return [
        [
            "best reading" if network.read_with_errors or network.noisy else "best value",
            none if best is None or best.value is None else no_better(best.value, 8, network.sign > 0),
        ],
        ["runs", f"{complete} complete of {len(trials)}" + (f", {feasible} feasible" if network.limits else "")],
    ]
