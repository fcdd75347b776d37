"""What a study has spent, and the stock of its outputs, as `cascada status` prints them."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cascada.cli.output import number_text
from cascada.study.stock import portions_left

if TYPE_CHECKING:
    from cascada.study.reader import Reader

_MOST = 20  # lines of the stock


def money_json(study: "Reader") -> dict[str, Any]:
    """Return what was spent, in all and by stage, the outputs that can still feed a run, and the measurements."""
    by_stage = {stage.name: 0.0 for stage in study.network.stages if not stage.known}
    for trial in study.trials:
        for name, cost in trial.costs.items():
            by_stage[name] += cost
    kept = [
        {"trial": number, "stage": stage, "outputs": list(study.trials[number].outputs[stage]), "left": _finite(left)}
        for (number, stage), left in portions_left(study.network, study.trials).items()
        if any(left.values())
    ]
    told = [m for m in study.measurements if m.outputs is not None]
    return {"spent": study.spent, "spent_by_stage": by_stage, "stock": kept, "measurements": len(told)}


def _finite(left: Mapping[str, float]) -> dict[str, float | None]:
    return {child: int(count) if math.isfinite(count) else None for child, count in left.items()}


def spent_lines(content: Mapping[str, Any]) -> list[str]:
    """Return a line about what was spent."""
    parts = ", ".join(f"{name} {cost:g}" for name, cost in content["spent_by_stage"].items())
    more = [f"measured    {content['measurements']} of single stages"] if content["measurements"] else []
    return [f"spent       {content['spent']:g} ({parts})", *more]


def stock_lines(content: Mapping[str, Any]) -> list[str]:
    """Return the outputs that were kept, the latest last, with the runs that each can still feed."""
    kept = content["stock"]
    if not kept:
        return []
    lines = ["", "stock"]
    lines += [f"  {len(kept) - _MOST} earlier outputs"] if len(kept) > _MOST else []
    for item in kept[-_MOST:]:
        left = ", ".join(f"{child}: {'any number' if n is None else n}" for child, n in item["left"].items())
        values = ", ".join(map(number_text, item["outputs"]))
        lines.append(f"  {item['stage']} of trial {item['trial']} = {values}; runs left of {left}")
    return lines
