"""Figures of simple regret by evaluations, one per problem: medians with a band between the quartiles.

matplotlib is optional and imported by the functions that draw. pyplot is not used, so drawing leaves no state behind.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cascada.errors import ArgumentError
from cascada.experiments.bench_plan import Plan, plain_name
from cascada.experiments.bench_summary import Record, finished, floor_of, regrets_at
from cascada.experiments.figures import LOOK
from cascada.whole_file import whole_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The colours of Okabe and Ito, which are safe for colour blindness; further algorithms reuse them with other dashes.
_COLOURS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_DASHES = ("-", "--", ":", "-.")


def require_matplotlib() -> None:
    """Raise `ArgumentError` if matplotlib is missing, before any run is made."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ArgumentError(
            f"the figures need matplotlib ({error}). Run: pip install 'cascada[paper]', or leave them out: --no-plots."
        ) from error


def draw(plan: Plan, records: Sequence[Record], out: Path) -> list[Path]:
    """Write a figure as PDF and PNG for every problem with a finished run; return the paths."""
    require_matplotlib()
    from matplotlib import style

    written = []
    with style.context(["default", LOOK]):  # independent of the user's settings
        for problem in plan.problems:
            found = [record for record in records if record["problem"] == problem]
            if not finished(found):
                continue
            drawn = _figure(plan, problem, found)
            for kind, metadata in (("pdf", {"CreationDate": None}), ("png", {})):
                path = out / f"regret-{plain_name(problem)}.{kind}"
                with whole_file(path) as file:
                    drawn.savefig(file, format=kind, metadata=metadata, dpi=160)
                written.append(path)
    return written


def _figure(plan: Plan, problem: str, records: Sequence[Record]) -> "Figure":
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    axes = figure.add_subplot()
    steps = np.arange(plan.settings.budget + 1)
    floor = floor_of(records)
    for i, algorithm in enumerate(plan.algorithms):
        good = finished([record for record in records if record["algorithm"] == algorithm])
        if not good:
            continue
        regrets = np.maximum(regrets_at(good, steps.tolist()), floor)  # (runs, steps)
        low, median, high = np.quantile(regrets, (0.25, 0.5, 0.75), axis=0)
        colour, dash = _COLOURS[i % len(_COLOURS)], _DASHES[i // len(_COLOURS) % len(_DASHES)]
        count = "" if len(good) == plan.seeds else f" ({len(good)} of {plan.seeds} runs)"
        axes.plot(steps, median, color=colour, linestyle=dash, label=algorithm + count)
        axes.fill_between(steps, low, high, color=colour, alpha=0.15, linewidth=0)
    axes.set_yscale("log")
    axes.set(
        xlabel="evaluations after the initial design",
        ylabel=f"simple regret (at least {floor:.1g} is shown)",
        xlim=(0, plan.settings.budget),
    )
    seeds = "one seed" if plan.seeds == 1 else f"median and quartiles of {plan.seeds} seeds"
    axes.set_title(f"{problem}: {seeds}", loc="left")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure
