"""Timing of competing calls that is robust against load of the machine.

Contestants take turns, so that a slow moment affects all of them. The order is reversed in every other round, so that
no contestant always runs with the cache of the same predecessor. A short call is repeated until a turn lasts long
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
    """The number of rounds, the minimum duration of a turn, and the clock.

    `time.process_time` excludes other programs; it is suitable for work on one thread that does not wait. With
    `settled` the memory allocator is warmed up first.
    """

    rounds: int
    turn_seconds: float
    clock: Callable[[], float] = time.perf_counter
    settled: bool = True


@dataclass(frozen=True)
class Contestant:
    """A call to be timed. If it is not `repeatable` (each call changes its state), it is called once per turn."""

    name: str
    call: Callable[[], object]
    repeatable: bool = True


@dataclass(frozen=True)
class Timing:
    """Seconds of one call in each round."""

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
        """The median over rounds of the ratio to another contestant of the same race."""
        return median(a / b for a, b in zip(self.seconds, other.seconds, strict=True))


def race(contestants: Sequence[Contestant], effort: Effort) -> dict[str, Timing]:
    """The timing of each contestant by name, after at least one warm-up call of each."""
    if effort.settled:
        _settle_allocator()
    loops = {c.name: _calibrated(c, effort) for c in contestants}
    seconds: dict[str, list[float]] = {c.name: [] for c in contestants}
    for number in range(effort.rounds):
        for c in contestants if number % 2 == 0 else contestants[::-1]:
            seconds[c.name].append(_turn(c.call, loops[c.name], effort.clock))
    return {name: Timing(tuple(values)) for name, values in seconds.items()}


def _settle_allocator() -> None:
    """Free 31 MB once, after which glibc keeps freed memory instead of returning it to the system.

    Before that, arrays of a megabyte may be mapped and cleared at every call, depending on earlier calls, which can
    double the time of a call.
    """
    block = bytearray(31 << 20)
    del block


def _calibrated(contestant: Contestant, effort: Effort) -> int:
    """The number of calls that fill a turn, found with increasing turns so that it is based on warm calls."""
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
