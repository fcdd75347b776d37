"""Replay of the trials of an Optuna study into a cascada study in memory, which depends on these trials alone.

Ended trials are added once, in the order in which they ended, and kept. Pending trials are added to a copy that is
discarded. So the same trials give the same point in every process, whenever it was started.
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
from cascada.study.silent_study import SilentStudy

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial


@dataclass(frozen=True)
class Snapshot:
    """A copy of the study with all trials at one moment, which the caller may change."""

    study: Study
    numbers: tuple[int, ...]  # Optuna's number of each trial of the study
    choosing: int  # number of other trials that choose a point at the same time and go first

    def translated(self, text: str) -> str:
        """Return a text with the study's trial numbers replaced by Optuna's."""

        def number(found: re.Match[str]) -> str:
            own = int(found[2])
            return f"{found[1]} {self.numbers[own] if own < len(self.numbers) else own}"

        return re.sub(r"\b([Tt]rial) (\d+)\b", number, text)


class Replay:
    """A study in memory to which trials are added as they end."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = dict(options)
        self._study: Study | None = None  # contains the ended runs only
        self._learned: list[Run] = []
        self._warned: set[str] = set()

    def snapshot(self, network: Network, trials: Sequence["FrozenTrial"], asking: int | None = None) -> Snapshot:
        """Return a study with all trials except the trial number `asking`, which needs a point."""
        ended = sorted((trial for trial in trials if trial.state.is_finished()), key=_when)
        others = [trial for trial in trials if not trial.state.is_finished() and trial.number != asking]
        study = self._replayed(network, [run for trial in ended if (run := self._run(network, trial))]).branch()
        pending = [run for trial in others if (run := read(network, trial).run)]
        for run in pending:
            _add(study, run)
        numbers = tuple(run.number for run in (*self._learned, *pending))
        # A running trial with a lower number and without a point is about to choose one in another process, which sees
        # the same trials: it gets the first point. If trials after it have points already, it is dead and is ignored.
        latest = max(numbers, default=-1)
        choosing = [t for t in others if t.state.name == "RUNNING" and t.number not in numbers]
        first = sum(asking is not None and latest < t.number < asking for t in choosing)
        snapshot = Snapshot(study, numbers, first)
        if study.state.scatter is not None:
            self.warn(snapshot.translated(study.state.scatter.reason))
        return snapshot

    def _replayed(self, network: Network, runs: list[Run]) -> Study:
        """Return the study with these runs: the cached one with new runs added, if it contains the first of them."""
        kept = self._study is not None and self._study.network.sign == network.sign
        if not kept or runs[: len(self._learned)] != self._learned:
            self._study, self._learned = None, []
        # Its warnings would have its own trial numbers; `snapshot` issues them with Optuna's.
        study = SilentStudy(network, **self._options, replayable=True) if self._study is None else self._study
        self._study = None  # incomplete if the loop is interrupted
        for run in runs[len(self._learned) :]:
            _add(study, run)
        self._study, self._learned = study, runs
        return study

    def _run(self, network: Network, trial: "FrozenTrial") -> Run | None:
        reading = read(network, trial)
        for text in (*map(str, reading.errors), *reading.remarks):
            self.warn(text)
        return reading.run

    def warn(self, text: str) -> None:
        """Issue a warning, once per text."""
        if text not in self._warned:
            self._warned.add(text)
            warnings.warn(text, UserWarning, stacklevel=2)


def _when(trial: "FrozenTrial") -> tuple[datetime, int]:
    return trial.datetime_complete or datetime.min, trial.number


def _add(study: Study, run: Run) -> None:
    trial = study.begin_trial(run.controls)
    try:
        if run.outputs:
            trial = study.tell(trial, run.outputs)
    except ContradictionError as error:  # the trial stays in the storage, so the contradiction becomes evidence
        study.refute(f"Trial {trial.number}: {str(error).removeprefix(f'trial {trial.number}: ')}")
    if run.state not in ("RUNNING", "WAITING") and trial.state != "complete":
        # A trial is pruned by the user's choice, which says nothing about the stage that did not run.
        end = study.abandon if run.state == "PRUNED" else study.fail
        end(trial, f"its state in Optuna is {run.state}")
