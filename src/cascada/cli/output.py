"""Output of results: a few lines of text for people, JSON for programs."""

import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import typer

from cascada.cli.terminal import shown
from cascada.network import Network
from cascada.outwards import as_percent
from cascada.space import ControlValue
from cascada.study import Result, Trial
from cascada.study.certificate import Certificate
from cascada.study.probable_gap import ProbableGap
from cascada.study.result import SENTENCES

_LONGEST_CELL = 1000  # characters


def summary(result: Result) -> str:
    """Return a result as a few lines of text."""
    certificate = result.certificate
    if not certificate.evaluations and certificate.recommended is None:
        reasons = [trial.reason for trial in result.trials if trial.reason]
        return "\n".join([f"{SENTENCES[result.status]} No run was completed.", *reasons[-1:]])
    others = ("partial", "failed", "abandoned", "running", "waiting")
    counts = {state: sum(trial.state == state for trial in result.trials) for state in others}
    counts["infeasible"] = sum(trial.feasible is False for trial in result.trials)
    remarks = ", ".join(f"{count} {state}" for state, count in counts.items() if count)
    lines, noisy = [SENTENCES[result.status]], certificate.best_reading is not None
    if result.best is None and not certificate.limits:
        lines += ["best value  none: no run is complete"]
    elif result.best is None:
        lines += [f"best value  none: no run satisfied {' and '.join(certificate.limits)}"]
    else:
        assert result.best.value is not None, "the best run is complete"
        what = "best reading" if noisy else "best value"
        lines += [f"{what:<11} {number_text(result.best.value)}", "best settings", settings(result.best.controls)]
    lines += recommended_lines(certificate)
    what = "steps" if any(trial.steps for trial in result.trials) else "runs"
    lines += [f"{what:<11} {len(result.trials)}" + (f" ({remarks})" if remarks else "")]
    lines += [f"cost        {result.cost:g}"] if what == "steps" else []
    shown = certificate.shown
    lines += gap_lines(certificate)
    lines += ["", str(certificate)]
    if result.probable is not None and result.probable.gap is not None:
        lines += ["", str(result.probable)]
    if result.recommendation is not None and (shown is None or not noisy):
        lines += ["", result.recommendation.summary]
    return "\n".join(lines)


def recommended_lines(certificate: Certificate) -> list[str]:
    """Return the recommended setting of a certificate, with all digits; empty if there is none."""
    found, shown = certificate.recommended, certificate.shown
    if found is None or shown is None:
        return []
    least = "at least" if certificate.maximised else "at most"
    feasible = "satisfy the limits and to " if certificate.limits else ""
    sure = "proven" if certificate.kind == "proven" else "estimated"
    if certificate.confidence is not None:
        sure = f"with probability {as_percent(certificate.confidence)} sure"
    why = f"{sure} to {feasible}give {least} {shown.best}"
    if found.estimate is not None:
        why = f"the run with the best mean, {number_text(found.estimate)}; estimated to give {least} {shown.best}"
    return [f"recommended ({why})", settings(found.controls)]


def gap_lines(certificate: Certificate) -> list[str]:
    """Return the gap with its kind and probability as a line; empty if there is none."""
    level = "" if certificate.confidence is None else f", {as_percent(certificate.confidence)}"
    return [] if certificate.shown is None else [f"gap         {certificate.shown.gap} ({certificate.kind}{level})"]


def certificate_json(certificate: Certificate) -> dict[str, Any]:
    """Return a certificate as the content of a JSON object."""
    return asdict(certificate) | {"answer": certificate.answer}


def probable_json(probable: ProbableGap | None) -> dict[str, Any] | None:
    """Return a probable gap as the content of a JSON object; None where it is not defined."""
    return None if probable is None else asdict(probable) | {"text": str(probable)}


def as_json(result: Result) -> dict[str, Any]:
    """Return a whole result as the content of a JSON object."""
    return {
        "status": result.status,
        "best": None if result.best is None else trial_json(result.best),
        "recommended": result.recommended,
        "recommendation": None if result.recommendation is None else asdict(result.recommendation),
        "gap": result.gap,
        "gap_kind": result.gap_kind,
        "certificate": certificate_json(result.certificate),
        "cost": result.cost,
        "probable": probable_json(result.probable),
        "trials": [trial_json(trial) for trial in result.trials],
    }


def trial_json(trial: Trial) -> dict[str, Any]:
    """Return a trial as the content of a JSON object."""
    return {
        "number": trial.number,
        "state": trial.state,
        "controls": dict(trial.controls),
        "outputs": {name: list(values) for name, values in trial.outputs.items()},
        "value": trial.value,
        "reason": trial.reason,
        "feasible": trial.feasible,
        "cost": trial.cost,
    } | (_step_json(trial) if trial.steps else {})


def _step_json(trial: Trial) -> dict[str, Any]:
    """Return what a trial has as a step."""
    given = {name: [v if math.isfinite(v) else None for v in o] for name, o in (trial.set_outputs or {}).items()}
    return {"steps": list(trial.steps), "taken": dict(trial.taken), "set": given, "why": trial.why}


def print_json(content: Any) -> None:
    """Print one JSON document; infinite numbers and NaN, which JSON lacks, become null."""
    typer.echo(json.dumps(_finite(content), allow_nan=False))


def _finite(content: Any) -> Any:
    if isinstance(content, float):
        return content if math.isfinite(content) else None
    if isinstance(content, Mapping):
        return {key: _finite(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_finite(value) for value in content]
    return content


def print_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table; on a terminal no wider than the terminal, otherwise as wide as its content."""
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for heading in headings:
        table.add_column(shown(heading, _LONGEST_CELL))
    for row in rows:
        table.add_row(*(shown(cell, _LONGEST_CELL) for cell in row))
    width = None if sys.stdout.isatty() else 10_000
    Console(width=width, markup=False, emoji=False, highlight=False).print(table)


def settings(controls: Mapping[str, ControlValue]) -> str:
    """Return controls, one per line, with all digits: a run at rounded settings is a different run."""
    return "\n".join(f"  {name:<12} {number_text(value)}" for name, value in controls.items())


def number_text(value: ControlValue) -> str:
    """Return a number with all its digits; a value of a choice as it is."""
    return value if isinstance(value, str) else repr(value)


def rounded(value: ControlValue | None) -> str:
    """Return a number with six digits, for tables; a value of a choice as it is; an empty text for None."""
    return "" if value is None else value if isinstance(value, str) else f"{value:.6g}"


def outcome(trial: Trial, network: Network) -> str:
    """Return a sentence about the state of a trial after a change."""
    if trial.value is not None:
        text = f"Trial {trial.number} is complete: {network.objective[1]} = {number_text(trial.value)}."
    elif trial.state == "partial":
        text = f"Trial {trial.number} gave {', '.join(trial.steps)}; its outputs are kept for later steps."
    else:
        missing = [stage.name for stage in network.stages if stage.name not in trial.outputs]
        text = f"Trial {trial.number} is {trial.state}; not told yet: {', '.join(missing)}."
    return text + feasibility(trial, network)


def feasibility(trial: Trial, network: Network) -> str:
    """Return a sentence, after a space, about the limits that a trial satisfies or breaks; empty if that is unknown."""
    if trial.feasible is None:
        unsure = network.read_with_errors and network.limits and trial.value is not None
        return " Whether it satisfies the limits is not sure, because of the errors of its readings." if unsure else ""
    if trial.feasible:
        return " It satisfies the limits."
    broken = [
        f"{limit}, because {limit.output} = {number_text(v)}" for limit, v in network.broken_limits(trial.outputs)
    ]
    return f" It breaks {'; and '.join(broken) or 'a limit'}."
