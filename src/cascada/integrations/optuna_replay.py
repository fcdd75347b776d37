"""The study in memory that follows from the trials of an Optuna study, and from nothing else.

What ended is learned once, in the order in which it ended, and kept; what is under way is learned by a copy that is
thrown away. So the same trials give the same point in every process, whenever it began to look.
"""

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from cascada.errors import ContradictionError
from cascada.integrations.optuna_runs import Run, read
from cascada.network import Network
from cascada.study import Study

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial


@dataclass(frozen=True)
class Snapshot:
    """A study that knows the trials of a moment, and belongs to whoever asked for it."""

    study: Study
    numbers: tuple[int, ...]  # Optuna's, by the study's own
    choosing: int  # how many trials that are asked for at the same time go first

    def translated(self, text: str) -> str:
        """A text with Optuna's numbers of trials instead of the study's."""

        def number(found: re.Match[str]) -> str:
            own = int(found[2])
            return f"{found[1]} {self.numbers[own] if own < len(self.numbers) else own}"

        return re.sub(r"\b([Tt]rial) (\d+)\b", number, text)


class Replay:
    """Learns from trials as they end."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = dict(options)
        self._study: Study | None = None  # knows the runs that ended, and nothing else
        self._learned: list[Run] = []
        self._said: set[str] = set()

    def snapshot(self, network: Network, trials: Sequence["FrozenTrial"], asking: int | None = None) -> Snapshot:
        """What all trials teach but the one that is asked for."""
        ended = sorted((trial for trial in trials if trial.state.is_finished()), key=_when)
        others = [trial for trial in trials if not trial.state.is_finished() and trial.number != asking]
        known = self._known(network, [run for trial in ended if (run := self._run(network, trial))])
        study = known.branch()
        under_way = [run for trial in others if (run := read(network, trial).run)]
        for run in under_way:
            _teach(study, run)
        numbers = tuple(run.number for run in (*self._learned, *under_way))
        # A trial of a lower number that runs without a point was asked for at the same time by somebody else, who sees
        # what is seen here: it gets the point that comes first. Unless others chose after it: then it has died.
        latest = max(numbers, default=-1)
        choosing = [t for t in others if t.state.name == "RUNNING" and t.number not in numbers]
        return Snapshot(study, numbers, sum(asking is not None and latest < t.number < asking for t in choosing))

    def _known(self, network: Network, runs: list[Run]) -> Study:
        """The study that knows these runs: the one that is kept, if they begin with what it has learned."""
        kept = self._study is not None and self._study.network.sign == network.sign
        if not kept or runs[: len(self._learned)] != self._learned:
            self._study, self._learned = None, []
        study = Study(network, **self._options, replayable=True) if self._study is None else self._study
        self._study = None  # half taught, if this is interrupted
        for run in runs[len(self._learned) :]:
            _teach(study, run)
        self._study, self._learned = study, runs
        return study

    def _run(self, network: Network, trial: "FrozenTrial") -> Run | None:
        reading = read(network, trial)
        for text in (*map(str, reading.errors), *reading.remarks):
            self.warn(text)
        return reading.run

    def warn(self, text: str) -> None:
        """Say something, once."""
        if text not in self._said:
            self._said.add(text)
            warnings.warn(text, UserWarning, stacklevel=2)


def _when(trial: "FrozenTrial") -> tuple[datetime, int]:
    return trial.datetime_complete or datetime.min, trial.number


def _teach(study: Study, run: Run) -> None:
    trial = study.begin_trial(run.controls)
    try:
        if run.outputs:
            trial = study.tell(trial, run.outputs)
    except ContradictionError as error:  # it is in the storage for good, so it is said and not lost
        study.refute(f"Trial {trial.number}: {str(error).removeprefix(f'trial {trial.number}: ')}")
    if run.state not in ("RUNNING", "WAITING") and trial.state != "complete":
        study.fail(trial, f"its state in Optuna is {run.state}")
