"""A progress bar with the best value and the gap (rich, imported only when it is shown)."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from cascada.study.cost import Cost
from cascada.study.reader import Reader


@contextmanager
def progress_bar(wanted: bool, budget: int | Cost) -> Iterator[Callable[[Reader], None]]:
    """A function to call after every run; it does nothing if no bar is wanted or standard error is not a terminal."""
    if not wanted or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[state]}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        money = isinstance(budget, Cost)
        task = bar.add_task("", total=budget.amount if isinstance(budget, Cost) else budget, state="")

        def show(study: Reader) -> None:
            best = study.best_trial
            none = (
                "none feasible" if study.network.limits and any(t.value is not None for t in study.trials) else "none"
            )
            value = none if best is None or best.value is None else f"{best.value:.6g}"
            gap = "at the end"
            if study.adaptive or study.tolerance is not None:  # else it is not computed after every run
                certificate = study.certificate()
                shown = certificate.shown
                none = "refuted" if certificate.kind == "refuted" else "none yet"
                none = "none: no setting satisfies the limits" if certificate.answer == "infeasible" else none
                gap = none if shown is None else f"{shown.gap} ({certificate.kind})"
                value = value if shown is None else shown.best
            ended = sum(trial.state != "running" for trial in study.trials)  # an executor may have more under way
            bar.update(task, completed=study.spent if money else ended, state=f"best {value}  gap {gap}")

        yield show
