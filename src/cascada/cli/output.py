"""How results are printed: a few lines for people, JSON for programs."""

from dataclasses import asdict
from typing import Any

from cascada.study import Result, Trial
from cascada.study.result import SENTENCES


def summary(result: Result) -> str:
    """A few lines for people."""
    if result.best is None:
        reasons = [trial.reason for trial in result.trials if trial.reason]
        return "\n".join([f"{SENTENCES[result.status]} No run was completed.", *reasons[-1:]])
    failed = sum(trial.state == "failed" for trial in result.trials)
    lines = [SENTENCES[result.status], f"best value  {result.best.value:.8g}", "best settings"]
    lines += [f"  {name:<12} {value:.8g}" for name, value in result.best.controls.items()]
    lines += [f"runs        {len(result.trials)}" + (f" ({failed} failed)" if failed else "")]
    if result.gap is not None:
        lines += [f"gap         {result.gap:.3g} ({result.gap_kind})"]
    lines += ["", str(result.certificate)]
    if result.recommendation is not None:
        lines += ["", result.recommendation.summary]
    return "\n".join(lines)


def as_json(result: Result) -> dict[str, Any]:
    """All of a result."""
    return {
        "status": result.status,
        "best": None if result.best is None else trial_json(result.best),
        "recommended": result.recommended,
        "recommendation": None if result.recommendation is None else asdict(result.recommendation),
        "gap": result.gap,
        "gap_kind": result.gap_kind,
        "certificate": asdict(result.certificate),
        "trials": [trial_json(trial) for trial in result.trials],
    }


def trial_json(trial: Trial) -> dict[str, Any]:
    """One trial."""
    return {
        "number": trial.number,
        "state": trial.state,
        "controls": dict(trial.controls),
        "outputs": {name: list(values) for name, values in trial.outputs.items()},
        "value": trial.value,
        "reason": trial.reason,
    }
