"""A study that can be changed: transactions on its journal, and leases of the trials that a worker runs."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TypeVar

from cascada.errors import StoreError
from cascada.store.journal import MemoryJournal, Transaction
from cascada.store.lease import LONGEST_LEASE, checked_lease, signs_of_life
from cascada.store.trial import Trial, trial_at, trial_number
from cascada.study.change import Change
from cascada.study.reader import Reader
from cascada.study.state import State

_Made = TypeVar("_Made")


class Writer(Reader):
    """What writes to the journal of a study. Every event is in the journal before a method returns."""

    worker = "main"  #: the name of this process in the log
    _lease: float | None = None  # of trials asked for without a lease of their own

    # ---- workers and leases

    def beat(self, trial: Trial | int) -> bool:
        """A sign of life for a trial under a lease; False when the lease ran out and another worker has the trial."""
        self.refresh()
        return self._journal.beat(self.worker, trial_at(self._state.trials, trial_number(trial)).number)

    @contextmanager
    def beating(self, lease: float) -> Iterator[None]:
        """Until the block ends, trials are asked for under a lease, and signs of life are given for them."""
        before = self._lease
        # In memory only this process can take a trial over, and it knows what it runs.
        stored = not isinstance(self._journal, MemoryJournal)
        self._lease = checked_lease(lease) if stored else LONGEST_LEASE
        beats = signs_of_life(lambda: self._journal.beat(self.worker), lease) if stored else nullcontext()
        try:
            with beats:
                yield
        finally:
            self._lease = before

    def take_up(self) -> int:
        """Let trials wait again that a worker of this name ran under a lease when it was stopped; how many.

        `StoreError` if a process of this name is alive, as far as can be known.
        """

        def take(change: Change) -> int:
            alive = change.log.alive(self.worker)
            if alive:
                raise StoreError(
                    f"a worker named {self.worker!r} is running trial {alive[0]} of this study; wait for it, or give "
                    f"this one another name."
                )
            return change.give_back(self.worker)

        return self._changed(take)

    def put_back(self, numbers: Iterable[int]) -> None:
        """Let trials wait again that were asked for here under a lease and are not run any more."""
        mine = set(numbers)
        self._changed(lambda change: change.give_back(self.worker, mine))

    def others_at_work(self) -> bool:
        """Whether another worker runs a trial under a lease."""
        self.refresh()
        return any(worker != self.worker for worker in self._state.holders.values())

    # ---- inside

    def _record(self, refutations: list[str], revision: int) -> None:
        """Write contradictions that a bound showed into the log, for all processes, unless a correction came first."""

        def write(change: Change) -> None:
            for reason in refutations if change.state.revision == revision else ():
                change.append("note", None, {"refuted": reason, "assumed": self._assumed})

        self._changed(write)

    def _changed(self, act: Callable[[Change], _Made]) -> _Made:
        """Change the study, after all that others appended before, and return what `act` returns.

        Nothing is changed if it raises. It is called again if a server was away before the change was committed.
        """

        def attempt(log: Transaction) -> tuple[_Made, State]:
            change = Change(log, self._followed(log.since))
            return act(change), change.state

        made, self._state = self._journal.change(attempt, self._lease or 0.0)
        return made
