"""Progress of a run: a bar on a terminal, a line that changes in a notebook, lines in a log file.

Every run is also reported to the logger `cascada`, at the level INFO, whatever is shown.
"""

import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from cascada.printable import one_line
from cascada.study.cost import Cost
from cascada.study.reader import Reader

LOGGER = logging.getLogger("cascada")
LOGGER.addHandler(logging.NullHandler())  # a library prints nothing unless its user wants it

_BETWEEN_LINES = 60.0  # seconds between two lines where they cannot be replaced: short runs print none
_BETWEEN_UPDATES = 0.5  # seconds between two changes of a notebook's line

Show = Callable[[Reader], None]


@contextmanager
def progress_bar(wanted: bool, budget: int | Cost) -> Iterator[Show]:
    """A function to call after every run, which logs it and, if wanted, shows how far the optimisation is."""
    with _display(wanted, budget) as show:

        def ended(study: Reader) -> None:
            show(study)
            if LOGGER.isEnabledFor(logging.INFO):
                LOGGER.info("%s", one_line(in_words(study, budget)))

        yield ended


def in_words(study: Reader, budget: int | Cost) -> str:
    """How far the optimisation is: ended runs or what was spent, best value and gap."""
    if isinstance(budget, Cost):
        return f"{study.spent:g} of {budget.amount:g} spent, {state_of(study)}"
    return f"{_ended(study)} of {budget} runs, {state_of(study)}"


def state_of(study: Reader) -> str:
    """The best value and the gap, in short."""
    best = study.best_trial
    none = "none feasible" if study.network.limits and any(t.value is not None for t in study.trials) else "none"
    value = none if best is None or best.value is None else f"{best.value:.6g}"
    gap = "at the end"
    if study.adaptive or study.tolerance is not None:  # else it is not computed after every run
        certificate = study.certificate()
        shown = certificate.shown
        none = "refuted" if certificate.kind == "refuted" else "none yet"
        none = "none: no setting satisfies the limits" if certificate.answer == "infeasible" else none
        gap = none if shown is None else f"{shown.gap} ({certificate.kind})"
        value = value if shown is None else shown.best
    return f"best {value}  gap {gap}"


def _ended(study: Reader) -> int:
    return sum(trial.state != "running" for trial in study.trials)  # an executor may have more under way


@contextmanager
def _display(wanted: bool, budget: int | Cost) -> Iterator[Show]:
    if not wanted:
        yield lambda _: None
    elif sys.stderr.isatty():
        with _bar(budget) as show:
            yield show
    elif _in_notebook():
        with _notebook_line(budget) as show:
            yield show
    else:
        yield _occasional_lines(budget)


@contextmanager
def _bar(budget: int | Cost) -> Iterator[Show]:
    """A bar of rich, which is imported only here."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[state]}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        if isinstance(budget, Cost):
            task = bar.add_task("", total=budget.amount, state="")
            yield lambda study: bar.update(task, completed=study.spent, state=state_of(study))
            return
        task = bar.add_task("", total=budget, state="")
        yield lambda study: bar.update(task, completed=_ended(study), state=state_of(study))


def _in_notebook() -> bool:
    """Whether a kernel of Jupyter runs this: then output can be replaced."""
    ipython: Any = sys.modules.get("IPython")  # not imported: without it this is no notebook
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


@contextmanager
def _notebook_line(budget: int | Cost) -> Iterator[Show]:
    """A line in the output of a notebook's cell, which is replaced."""
    from IPython.display import display  # type: ignore[import-not-found, unused-ignore]

    line: Any = None
    shown_at = 0.0
    waiting: Reader | None = None  # a state that is not shown yet

    def write(study: Reader) -> None:
        nonlocal line
        content = {"text/plain": in_words(study, budget)}
        if line is None:
            line = display(content, raw=True, display_id=True)
        else:
            line.update(content, raw=True)

    def show(study: Reader) -> None:
        nonlocal shown_at, waiting
        now = time.monotonic()
        if line is not None and now - shown_at < _BETWEEN_UPDATES:
            waiting = study
            return
        write(study)
        shown_at, waiting = now, None

    try:
        yield show
    finally:
        if waiting is not None:
            write(waiting)


def _occasional_lines(budget: int | Cost) -> Show:
    """Lines on standard error, a minute apart: a log of a long run shows that it goes on, and stays short."""
    last = time.monotonic()

    def show(study: Reader) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= _BETWEEN_LINES:
            last = now
            sys.stderr.write(f"cascada: {one_line(in_words(study, budget))}\n")
            sys.stderr.flush()

    return show
