"""Verdicts: whether a claim holds on one chain and over a family of chains.

Most claims state that some numbers (margins over baselines, differences, ratios) lie in a band. On one chain the
verdict depends on the mean over its trials. Over the family it depends on the whole confidence interval: "held" if
inside the band, "not held" if outside, otherwise "undecided". A claim about several numbers holds if it holds for all,
so "held" needs no correction for multiple comparisons.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Literal

from cascada.experiments.statistics import Interval, mean_interval, ratio_interval, share_interval

Verdict = Literal["held", "not held", "undecided", "not applicable"]

_SEVERITY: Mapping[Verdict, int] = {"not held": 0, "undecided": 1, "held": 2, "not applicable": 3}
_DIGITS = 12  # so that rounding does not decide between equal numbers


@dataclass(frozen=True)
class Finding:
    """A finding: the decisive number, its text, and the verdict.

    `low` and `high` are the 95 % confidence interval over a family; `details` has every number when several count.
    """

    number: float | None
    text: str
    verdict: Verdict
    low: float | None = None
    high: float | None = None
    details: tuple[str, ...] = ()


@dataclass(frozen=True)
class Band:
    """The numbers x with low < x ≤ high: a tie does not outperform, and "at most" includes its end.

    With `ratio` the numbers are ratios: their mean is geometric, and its interval is computed from the logarithms.
    """

    low: float = -inf
    high: float = inf
    ratio: bool = False

    def on_chain(self, values: Mapping[str, float]) -> Finding:
        """The verdict on one chain; the number shown is the one closest to failing or the worst failure."""
        values = {name: round(value, _DIGITS) for name, value in values.items()}
        words = {name: self._words(value) for name, value in values.items()}
        worst = min(values, key=lambda name: self._slack(values[name]))
        held = all(self.low < value <= self.high for value in values.values())
        verdict: Verdict = "held" if held else "not held"
        return Finding(values[worst], _shown(worst, words), verdict, details=_details(words))

    def over_family(self, chains: Sequence[Mapping[str, float]]) -> Finding:
        """The verdict over a family; the number shown is the decisive one."""
        mean = ratio_interval if self.ratio else mean_interval
        found = {name: mean([round(chain[name], _DIGITS) for chain in chains]) for name in chains[0]}
        verdicts = {name: self._verdict(interval) for name, interval in found.items()}
        words = {name: self._words(interval.mean, interval) for name, interval in found.items()}
        worst = min(found, key=lambda name: (_SEVERITY[verdicts[name]], self._slack(found[name].mean)))
        shown = found[worst]
        return Finding(shown.mean, _shown(worst, words), verdicts[worst], shown.low, shown.high, _details(words))

    def _verdict(self, interval: Interval) -> Verdict:
        if interval.low is None or interval.high is None:
            return "undecided"
        low, high = round(interval.low, _DIGITS), round(interval.high, _DIGITS)
        if self.low < low and high <= self.high:
            return "held"
        return "not held" if high <= self.low or low > self.high else "undecided"

    def _slack(self, value: float) -> float:
        return min(value - self.low, self.high - value)

    def _words(self, value: float, interval: Interval | None = None) -> str:
        scale, unit = (1, "×") if self.ratio else (100, "%")
        number = f"{scale * value:.2f}{unit}"
        if interval is None or interval.low is None or interval.high is None:
            return number
        return f"{number} [{scale * interval.low:.2f}, {scale * interval.high:.2f}]"


def counted(happened: Sequence[bool], verdict: Verdict) -> Finding:
    """The share of chains in which something happened, with the given verdict."""
    interval = share_interval(sum(happened), len(happened))
    text = f"{sum(happened)} of {len(happened)} chains"
    return Finding(interval.mean, text, verdict, interval.low, interval.high)


def _shown(name: str, words: Mapping[str, str]) -> str:
    return f"{words[name]} ({name})" if len(words) > 1 else words[name]


def _details(words: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(f"{name} {text}" for name, text in words.items()) if len(words) > 1 else ()
