"""The trials of a study in memory, and the points that they are at."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from cascada.arrays import Array
from cascada.errors import ArgumentError, ContradictionError
from cascada.network import Network
from cascada.study.repeats import Repeats
from cascada.study.trial import State, Trial, best_of, trial_number


class Book:
    """Trials by their numbers; a trial is a value, and what happens to it puts another one in its place."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self.trials: list[Trial] = []
        self.taken: set[bytes] = set()  # their points, as `point_key`
        self.repeats = Repeats(network)

    def new(self, controls: Mapping[str, Any], state: State = "running") -> Trial:
        """A trial at these controls, checked, that is not in the book yet."""
        named = self._network.domain.named(self._network.domain.row(controls))
        return Trial(len(self.trials), named, state=state)

    def add(self, trial: Trial) -> Trial:
        """Write a new trial down."""
        domain = self._network.domain
        self.trials.append(trial)
        row = domain.row(trial.controls)[None]
        again = domain.decode(domain.encode(row))  # exp(ln x) may be the float next to x: both name the point
        self.taken |= {(point + 0.0).tobytes() for point in (row, again)}
        return trial

    def put(self, trial: Trial) -> Trial:
        """What became of a trial."""
        self.trials[trial.number] = trial
        return trial

    def get(self, trial: Trial | int) -> Trial:
        """The trial of this number as it is now."""
        number = trial_number(trial)
        if 0 <= number < len(self.trials):
            return self.trials[number]
        raise ArgumentError(f"there is no trial {number}; {len(self.trials)} were asked for.")

    def end(self, trial: Trial | int, state: State, reason: str) -> Trial:
        """A trial that will not be complete."""
        before = self.get(trial)
        if before.state == "complete":
            raise ContradictionError(f"trial {before.number} is complete: it cannot be {state} any more.")
        return self.put(replace(before, state=state, reason=reason))

    def taken_up(self, number: int | None = None) -> Trial | None:
        """The first trial that waits, or the one of this number if it does; it runs from now on."""
        chosen = self.trials if number is None else [self.get(number)]
        waiting = next((trial for trial in chosen if trial.state == "waiting"), None)
        return None if waiting is None else self.put(replace(waiting, state="running"))

    def put_back(self, number: int) -> None:
        """Let a trial that runs wait again."""
        if self.trials[number].state == "running":
            self.put(replace(self.trials[number], state="waiting"))

    @contextmanager
    def all_or_none(self) -> Iterator[None]:
        """Take back what was added or taken up inside when something is raised: nobody heard of it."""
        trials, taken = list(self.trials), set(self.taken)
        try:
            yield
        except BaseException:
            self.trials, self.taken = trials, taken
            raise

    @property
    def running(self) -> list[Trial]:
        """The trials under way."""
        return [trial for trial in self.trials if trial.state == "running"]

    @property
    def complete(self) -> int:
        """How many trials gave a value of the objective."""
        return sum(trial.value is not None for trial in self.trials)

    @property
    def best(self) -> Trial | None:
        """The complete trial with the best objective; the earliest where several are equal."""
        return best_of(self.trials, self._network.sign)

    @property
    def best_value(self) -> float:
        """The best objective, as it is maximised; −∞ if there is none."""
        trial = self.best
        return -np.inf if trial is None or trial.value is None else self._network.sign * trial.value

    def covers(self, points: Array) -> bool:
        """Whether all points (n, d) in user units were run."""
        row = self._network.domain.row
        complete = {row(trial.controls).tobytes() for trial in self.trials if trial.value is not None}
        return len(complete) >= len(points) and all(point.tobytes() in complete for point in points)
