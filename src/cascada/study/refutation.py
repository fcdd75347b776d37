"""Statements that an assumption of a study is wrong."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Refutation:
    """A statement that an assumption is wrong."""

    reason: str
    #: The event that says what was assumed, if a bound showed it: it speaks against nothing else.
    assumed: int | None = None
    #: The trials whose observations contradict each other, if that is the reason: correcting one of them ends it.
    trials: tuple[int, ...] = ()
