"""The tolerance of a run without `--tolerance`: 1 % of the spread of the first runs, fixed once they are complete.

Only a proven (or confident) gap stops a run, so a process without norms gets no default. The tolerance is written into
the log, so that later calls use the same one.
"""

from collections.abc import Callable

from cascada.cli.terminal import say
from cascada.outwards import as_given
from cascada.store.event import is_number
from cascada.study import Study

_PART = 0.01  # of the spread


class DefaultTolerance:
    """A callback that gives a study a tolerance once its first runs are complete, if it has none.

    `wanted` is what was asked for: None for the default, 0 for no tolerance.
    """

    def __init__(self, study: Study, wanted: float | None, say: Callable[[str], None] | None) -> None:
        self._say = say or (lambda _: None)
        # Without an adaptive algorithm the gap is not computed after every run, and need not be.
        self._due = wanted is None and study.adaptive and not study.network.estimated
        if self._due:
            stored = stored_tolerance(study)
            if stored is not None:
                self._due = False
                study.stop_at(stored)
                self._say(f"It ends at a proven gap of {as_given(stored)}, as stored; --tolerance changes that.")
        self(study)  # a study from before may have its first runs

    def __call__(self, study: Study) -> None:
        """Fix the tolerance if the first runs are complete; called after every run."""
        if self._due and (tolerance := tolerance_of(study)) is not None:
            self._due = False
            text = (
                f"it ends at a proven gap of {as_given(tolerance)}, which is 1 % of the spread of the first "
                f"{first_runs(study)} runs"
            )
            study.stop_at(tolerance, text)
            self._say(f"No --tolerance was given, so {text}; --tolerance 0 switches this off.")


def first_runs(study: Study) -> int:
    """How many runs the default is taken from: as many as a design has, 2(d + 1)."""
    return 2 * (study.network.domain.dimension + 1)


def tolerance_of(study: Study) -> float | None:
    """The default tolerance; None before the first runs are complete, or while all of them gave the same."""
    values = [trial.value for trial in study.trials if trial.value is not None][: first_runs(study)]
    if len(values) < first_runs(study) or max(values) == min(values):
        return None
    return float(f"{_PART * (max(values) - min(values)):.2g}")


def stored_tolerance(study: Study) -> float | None:
    """The default tolerance that an earlier run wrote into the log; None if there is none."""
    for event in reversed(study.events):
        value = event.data.get("tolerance") if event.kind == "note" else None
        if value is not None and is_number(value) and value > 0:
            return float(value)
    return None


def announced(quiet: bool) -> Callable[[str], None] | None:
    """What says on standard error which tolerance is used; nothing if `quiet`."""
    return None if quiet else lambda text: say(text, err=True)
