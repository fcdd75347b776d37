"""Timing that a busy machine disturbs as little as possible.

Contestants take turns, round by round, so that a slow moment hits all of them; the order is reversed in every other
round, so that nobody always runs on the cache its neighbour left. A short call is looped until a turn lasts long
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
    """How many rounds there are, how long a contestant's turn lasts at least, and by which clock.

    `time.process_time` leaves out what other programs take; it suits work on one thread that waits for nothing.
    `settled` says whether the memory allocator is warmed up first.
    """

    rounds: int
    turn_seconds: float
    clock: Callable[[], float] = time.perf_counter
    settled: bool = True


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
    """The timing of each contestant by name, after at least one call of each to warm up."""
    if effort.settled:
        _settle_allocator()
    loops = {c.name: _calibrated(c, effort) for c in contestants}
    seconds: dict[str, list[float]] = {c.name: [] for c in contestants}
    for number in range(effort.rounds):
        for c in contestants if number % 2 == 0 else contestants[::-1]:
            seconds[c.name].append(_turn(c.call, loops[c.name], effort.clock))
    return {name: Timing(tuple(values)) for name, values in seconds.items()}


def _settle_allocator() -> None:
    """Free 31 MB once, after which glibc keeps freed memory instead of giving it back to the system.

    Until a program has done so, arrays of a megabyte are mapped and cleared anew at every call or not at all,
    depending on what ran before, and the same call takes once or twice as long.
    """
    block = bytearray(31 << 20)
    del block


def _calibrated(contestant: Contestant, effort: Effort) -> int:
    """The number of calls that fill a turn, by growing turns, so that it rests on warm calls."""
    loops, spent = 1, _turn(contestant.call, 1, effort.clock)
    while contestant.repeatable and loops * spent < effort.turn_seconds:
        loops = max(2 * loops, math.ceil(0.5 * effort.turn_seconds / spent)) if spent else 2 * loops
        spent = _turn(contestant.call, loops, effort.clock)
    return loops


def _turn(call: Callable[[], object], loops: int, clock: Callable[[], float]) -> float:
    """Seconds for one of `loops` calls, without garbage collection."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        start = clock()
        for _ in range(loops):
            call()
        return (clock() - start) / loops
    finally:
        if collecting:
            gc.enable()
