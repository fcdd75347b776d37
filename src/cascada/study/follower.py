"""A read-only view of a stored study that follows its log, for live pages."""

from cascada.store.event import Event
from cascada.store.journal import Journal
from cascada.study.reader import Reader
from cascada.study.settings import Settings
from cascada.study.state import State


class Follower(Reader):
    """What a log says, as far as it was read by `refresh`: other members do not read further."""

    def __init__(
        self, journal: Journal, state: State, settings: Settings, last: Event, *, name: str | None = None
    ) -> None:
        super().__init__(journal, state, settings, name=name)
        self._last, self._replaced = last, False

    @property
    def state(self) -> State:
        """The trials and all else that follows from the events that were read."""
        return self._state

    def refresh(self) -> None:
        """Read what is new; nothing if the log was replaced by another one, from a backup, say."""
        found = self._journal.events(self._last.number)
        self._replaced |= found[:1] != [self._last]
        if not self._replaced and len(found) > 1:
            self._state, self._last = self._state.replayed(found[1:]), found[-1]

    @property
    def outdated(self) -> bool:
        """Whether the study was amended or replaced, so that it has to be opened again."""
        return self._replaced or self._state.described > self._assumed

    @property
    def assumed(self) -> int:
        """The number of the event that says what is assumed."""
        return self._assumed

    @property
    def known_refuted(self) -> bool:
        """Whether the log says that an assumption is wrong."""
        return bool(self._state.refutations)
