"""Timing that a busy machine disturbs as little as possible.

Contestants take turns, round by round, so that a slow moment hits all of them; the order is reversed in every other
round, so that nobody always runs on the cache its neighbour left. A short call is looped until a round lasts long
enough to be measured.
"""

import gc
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Effort:
    """How many rounds there are, and how long a contestant's turn lasts at least."""

    rounds: int
    turn_seconds: float


@dataclass(frozen=True)
class Contestant:
    """A call to be timed. One that is not `repeatable` (each call moves its state on) is called once a turn."""

    name: str
    call: Callable[[], object]
    repeatable: bool = True


@dataclass(frozen=True)
class Timing:
    """Seconds for one call, round by round."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return median(self.seconds)

    @property
    def best(self) -> float:
        return min(self.seconds)

    @property
    def noise(self) -> float:
        """median / best: 1 on a quiet machine."""
        return self.median / self.best

    def over(self, other: "Timing") -> float:
        """How many times as long as another contestant of the same race: the median of the ratios within a round."""
        return median(a / b for a, b in zip(self.seconds, other.seconds, strict=True))


def race(contestants: Sequence[Contestant], effort: Effort) -> dict[str, Timing]:
    """The timing of each contestant by name, after one call of each to warm up."""
    loops = {c.name: _calibrated(c, effort.turn_seconds) for c in contestants}
    seconds: dict[str, list[float]] = {c.name: [] for c in contestants}
    for number in range(effort.rounds):
        for c in contestants if number % 2 == 0 else contestants[::-1]:
            seconds[c.name].append(_turn(c.call, loops[c.name]))
    return {name: Timing(tuple(values)) for name, values in seconds.items()}


def _calibrated(contestant: Contestant, turn_seconds: float) -> int:
    """The number of calls that fill a turn; doubled until it does, so that it rests on warm calls."""
    loops, spent = 1, _turn(contestant.call, 1)
    while contestant.repeatable and loops * spent < turn_seconds:
        loops = max(2 * loops, math.ceil(0.5 * turn_seconds / spent))
        spent = _turn(contestant.call, loops)
    return loops


def _turn(call: Callable[[], object], loops: int) -> float:
    """Seconds for one of `loops` calls, without garbage collection."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        start = time.perf_counter()
        for _ in range(loops):
            call()
        return (time.perf_counter() - start) / loops
    finally:
        if collecting:
            gc.enable()
