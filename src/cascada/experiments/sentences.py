"""The empirical sentences of `sec:exp` as rules with explicit criteria.

Words such as "near-optimal", "slightly" and "similar" get their thresholds here. A rule judges one chain with all its
trials, or a family of chains with one trial each.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Literal

import numpy as np

from cascada.arrays import Array
from cascada.experiments.findings import Band, Finding, counted
from cascada.experiments.statistics import (
    BASELINES,
    NON_ADAPTIVE,
    OI,
    OURS,
    REGRET_FLOOR,
    SWEEP,
    ChainRuns,
)

NEAR = 0.05  # a near-optimal point is within this share of the range from the best
SHORT_TIME = 50  # the paper's "by T = 50"
EARLY = 10  # "at an early time", in runs
CANDIDATES, GRID, LATER_STAGES = 2500, 100, 2  # n, |D| and m − 1 of sec:exp
MUCH = 10.0  # "significantly higher"

About = Literal["g1", "g2", "both"]
Family = Sequence[ChainRuns]
Measure = Callable[[ChainRuns], Mapping[str, float]]  # numbers by what they are about


@dataclass(frozen=True)
class Rule:
    """A sentence, its criterion, the chain it is about, and its checks."""

    id: str
    sentence: str
    criterion: str
    about: About
    on_chain: Callable[[ChainRuns], Finding]
    over_family: Callable[[Family], Finding]


def rules(samples: int) -> Iterator[Rule]:
    """All rules in the order of the paper's text; `samples` is S of cEI."""
    for id_, label, runs in (("1a", OURS, SHORT_TIME), ("1b", NON_ADAPTIVE, 49)):
        yield _banded(
            id_,
            f"{label} “locate[s] a near-optimal point […] (by T = 50)”",
            f"The simple regret of {label} at T = {runs} is at most {NEAR:.0%} of the range.",
            "both",
            Band(high=NEAR),
            partial(_simple_regret_at, label=label, runs=runs),
            needs=runs,
        )
    yield _banded(
        "2",
        "cumulative regret: “GPN-UCB outperforms all of the baselines”",
        f"R_T of every baseline over that of GPN-UCB is above 1 (an R_T below {REGRET_FLOOR:.1%} of the range counts "
        "as that); family: the whole interval of every baseline's geometric mean is above 1.",
        "both",
        Band(low=1.0, ratio=True),
        lambda chain: {label: chain.regret_ratio(label) for label in BASELINES},
    )
    yield _banded(
        "3",
        "simple regret, g2: “NonAda outperforms all the baselines”",
        "The simple regret, averaged over T = 2², 3², … (up to 14², or the horizon), of every baseline minus that of "
        "NonAda is above 0.",
        "g2",
        Band(low=0.0),
        partial(_margins, ours=(NON_ADAPTIVE,), others=BASELINES),
    )
    yield _banded(
        "4",
        "simple regret, g2: “GPN-UCB has very similar performance to cEI”",
        "The averaged simple regrets of GPN-UCB and cEI differ by at most 2% of the range.",
        "g2",
        Band(-0.02, 0.02),
        lambda chain: {"": chain.performance(OURS) - chain.performance("cEI")},
    )
    yield _banded(
        "5a",
        "simple regret, g1: “our algorithms are slightly outperformed by cEI”",
        "The averaged simple regrets of GPN-UCB and of NonAda are above that of cEI, by at most 5% of the range.",
        "g1",
        Band(0.0, 0.05),
        lambda chain: {ours: chain.performance(ours) - chain.performance("cEI") for ours in (OURS, NON_ADAPTIVE)},
    )
    yield _banded(
        "5b",
        "simple regret, g1: “but still surpass other baselines”",
        "The averaged simple regret of every other baseline minus that of GPN-UCB, and of NonAda, is above 0.",
        "g1",
        Band(low=0.0),
        partial(_margins, ours=(OURS, NON_ADAPTIVE), others=tuple(b for b in BASELINES if b != "cEI")),
    )
    theirs, ours = CANDIDATES * (1 + LATER_STAGES * samples), CANDIDATES + LATER_STAGES * GRID
    cost = Finding(theirs / ours, f"{theirs / ours:.0f}×", "held" if theirs >= MUCH * ours else "not held")
    yield Rule(
        "6",
        "cEI “requires significantly higher computation resources”",
        f"Posterior evaluations a step, by definition: n(1 + 2S) = {theirs:,} of cEI are at least {MUCH:g} times the "
        f"n + 2·{GRID} = {ours:,} of GPN-UCB, with n = {CANDIDATES:,} candidates and S = {samples:,}. A count, and the "
        "same for every chain; not a measurement.",
        "both",
        lambda _: cost,
        lambda _: cost,
    )
    yield _banded(
        "7",
        "“OI with b ≤ 1 has similar performance to cUCB”",
        "The averaged simple regrets of cUCB and of OI with each b ≤ 1 differ by at most 5% of the range "
        "(family: b = 1).",
        "both",
        Band(-0.05, 0.05),
        _small_factor_differences,
    )
    yield Rule(
        "8",
        "g1: “OI with b = 0.0001 and cUCB […] are indistinguishable”",
        "The mean curves of simple regret are nowhere more than 0.5% of the range apart.",
        "g1",
        lambda chain: Band(high=0.005).on_chain(_curve_distance(chain)),
        lambda _: _not_applicable("b = 0.0001 not run"),
    )
    yield from _black_box_rules()
    yield Rule(
        "10",
        "cEI, cUCB: “a good point at an early time […] does not always help”",
        f"Of the trials of cEI and cUCB whose simple regret at t = {EARLY} is below the mean of GPN-UCB's there, "
        f"some come within {NEAR:.0%} of the range later than GPN-UCB's median trial; the number is their share.",
        "both",
        lambda chain: _late_starters([chain]),
        _late_starters,
    )


def _black_box_rules() -> Iterator[Rule]:
    """OI and cUCB are outperformed if the better black box beats both; GPN-UCB and cEI if it beats either."""
    measures: tuple[tuple[str, str, Callable[[ChainRuns, str], float]], ...] = (
        ("averaged simple regret", "simple regret", ChainRuns.performance),
        ("R_T / T", "cumulative regret", lambda chain, label: chain.cumulative(label) / chain.horizon),
    )
    for id_, (name, short, measure) in zip(("9a", "9b"), measures, strict=True):
        yield _occurrence(
            id_,
            f"{short}: “OI and cUCB […] are sometimes outperformed by” black boxes",
            f"The smaller {name} of GP-UCB and EI is below that of both OI (b = 1) and cUCB, on the chain or on at "
            "least one of the family; the number is by how much, as a share of the range (family: the share "
            "of chains).",
            partial(_lead_of_black_box, over=(OI, "cUCB"), pick=min, measure=measure),
            wanted=True,
        )
    for id_, (name, short, measure) in zip(("9c", "9d"), measures, strict=True):
        yield _occurrence(
            id_,
            f"{short}: “but not GPN-UCB and cEI” by black boxes",
            f"The smaller {name} of GP-UCB and EI is below that of neither GPN-UCB nor cEI, on the chain or on any of "
            "the family; the number is how far it is below (negative: above) the larger of theirs, as a share of the "
            "range (family: the share of chains where it is).",
            partial(_lead_of_black_box, over=(OURS, "cEI"), pick=max, measure=measure),
            wanted=False,
        )


def _banded(
    id_: str, sentence: str, criterion: str, about: About, band: Band, measure: Measure, needs: int = 0
) -> Rule:
    """A claim that numbers lie in a band, on runs of at least `needs` steps."""

    def on_chain(chain: ChainRuns) -> Finding:
        return band.on_chain(measure(chain)) if chain.horizon >= needs else _too_short(chain)

    def over_family(chains: Family) -> Finding:
        if chains[0].horizon < needs:
            return _too_short(chains[0])
        return band.over_family([measure(chain) for chain in chains])

    return Rule(id_, sentence, criterion, about, on_chain, over_family)


def _occurrence(id_: str, sentence: str, criterion: str, lead: Callable[[ChainRuns], float], *, wanted: bool) -> Rule:
    """A claim that a lead is above 0 somewhere (wanted) or nowhere (not wanted)."""
    band = Band(low=0.0) if wanted else Band(high=0.0)

    def over_family(chains: Family) -> Finding:
        happened = [round(lead(chain), 12) > 0 for chain in chains]
        return counted(happened, "held" if any(happened) == wanted else "not held")

    return Rule(id_, sentence, criterion, "both", lambda chain: band.on_chain({"": lead(chain)}), over_family)


def _not_applicable(text: str) -> Finding:
    return Finding(None, text, "not applicable")


def _too_short(chain: ChainRuns) -> Finding:
    return _not_applicable(f"the runs stop at T = {chain.horizon}")


def _simple_regret_at(chain: ChainRuns, label: str, runs: int) -> Mapping[str, float]:
    return {label: chain.simple(label, runs)}


def _margins(chain: ChainRuns, ours: Sequence[str], others: Sequence[str]) -> Mapping[str, float]:
    """The margin of each of our algorithms over each other one in averaged simple regret."""
    return {
        other if len(ours) == 1 else f"{mine} over {other}": chain.performance(other) - chain.performance(mine)
        for mine in ours
        for other in others
    }


def _small_factor_differences(chain: ChainRuns) -> Mapping[str, float]:
    labels = [label for label in SWEEP[: SWEEP.index(OI) + 1] if label in chain.regret]
    return {label.removeprefix("OI "): chain.performance(label) - chain.performance("cUCB") for label in labels}


def _curve_distance(chain: ChainRuns) -> Mapping[str, float]:
    first, second = (chain.curves(label).mean(axis=0) for label in (SWEEP[0], "cUCB"))
    return {"": float(np.abs(first - second).max())}


def _lead_of_black_box(
    chain: ChainRuns,
    over: Sequence[str],
    pick: Callable[[Sequence[float]], float],
    measure: Callable[[ChainRuns, str], float],
) -> float:
    """How far the better of GP-UCB and EI is below the selected one of the others; above 0 if it outperforms it."""
    return pick([measure(chain, label) for label in over]) - min(measure(chain, label) for label in ("GP-UCB", "EI"))


def _late_starters(chains: Family) -> Finding:
    """The share of late arrivals among early leaders over all trials; no interval, because trials of a chain depend."""
    late = early = 0
    for chain in chains:
        if chain.horizon < EARLY:
            return _too_short(chain)
        ours = chain.curves(OURS)
        for label in ("cEI", "cUCB"):
            curves = chain.curves(label)
            ahead = curves[curves[:, EARLY - 1] < ours[:, EARLY - 1].mean()]
            early += len(ahead)
            late += int((_arrival(ahead) > np.median(_arrival(ours))).sum())
    if not early:  # the sentence states that there are some
        return Finding(None, f"none ahead at t = {EARLY}", "not held")
    return Finding(late / early, f"{late} of {early}", "held" if late else "not held")


def _arrival(curves: Array) -> Array:
    """The number of runs until each trial is near-optimal, (trials,); infinite if it never is."""
    near = curves <= NEAR
    return np.where(near.any(axis=1), near.argmax(axis=1) + 1, inf)
