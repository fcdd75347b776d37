"""A stored study for those who only look at it: it follows the log, and nothing is written, whatever is found."""

from collections.abc import Sequence
from typing import Any

from cascada.algorithms import NAMES
from cascada.errors import ArgumentError, StoreError
from cascada.network import Network
from cascada.study.events import Event
from cascada.study.following import Following
from cascada.study.identity import canonical, describe
from cascada.study.opening import last_description, study_options
from cascada.study.rebuilding import network_from
from cascada.study.replay import refutes
from cascada.study.store import Store
from cascada.study.study import Study
from cascada.study.trial import Trial


class Looking(Following):
    """What a log says, as far as it was read by `refresh`."""

    changes = 0  # events that what is known of the process may depend on
    refuted = False  # whether somebody found, or said, that what is assumed now is wrong
    _last: Event | None = None

    def _forget(self) -> None:
        super()._forget()
        self.changes, self.refuted, self._last = 0, False, None

    def _appended(self) -> list[Event]:
        """What is new; but nothing if the log is another one than before, put back from a backup, say."""
        if self._last is None:
            return super()._appended()
        found = self._store.events(self._id, self._last.number)
        self._outdated |= found[:1] != [self._last]
        return [] if self._outdated else found[1:]

    def _take(self, event: Event) -> None:
        super()._take(event)
        self.changes += event.kind not in ("asked", "calibrated")
        self.refuted |= refutes(event, self._described)
        self._last = event

    @property
    def count(self) -> int:
        """How many events were read."""
        return self._fold.count

    @property
    def trials(self) -> list[Trial]:
        """All trials as they were then; the list does not change with later ones."""
        return list(self._fold.trials)

    @property
    def outdated(self) -> bool:
        """Whether the study was amended, or is another one: it has to be looked at anew."""
        return self._outdated

    @property
    def described(self) -> int:
        """The number of the event that says what is assumed."""
        return self._described

    def learned(self) -> Study:
        """A study in memory that has learned from all of it; this may take a while."""
        return self._engine


def look_at(store: Store, name: str, networks: Sequence[Network] = ()) -> Looking:
    """The study of this name. Its network comes from the store, or is one of those given if it is the same.

    `ArgumentError` where the network has a formula and was not given; `StoreError` where the log cannot be read.
    """
    try:
        described, stored = last_description(store, name)
        settings = stored["settings"]
        given = (either for network in networks for either in (network, network.mirrored()))
        same = (network for network in given if canonical(describe(network, settings)) == canonical(stored))
        network = next(same, None) or network_from(stored)
        options = study_options({**settings, "algorithm": _at_hand(settings["algorithm"])})
        return Looking(store, name, network, options, described)
    except (LookupError, ArithmeticError, AttributeError, TypeError, ValueError, RecursionError) as error:
        if isinstance(error, ArgumentError):
            raise
        raise StoreError(f"the log of the study {name!r} is damaged: {error!r:.300}.") from error


def _at_hand(algorithm: Any) -> str:
    """The algorithm, or any other if its code may not be at hand: what is known does not depend on who chose."""
    return algorithm if algorithm in (*NAMES, "auto") else "random_search"
