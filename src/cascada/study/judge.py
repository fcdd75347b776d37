"""The certificate of a study, from its trials, its beliefs and a bound."""

import numpy as np

from cascada.arrays import Array
from cascada.errors import RefutedError
from cascada.network import Beliefs
from cascada.network.slack import objective_slack
from cascada.outwards import difference_up
from cascada.search import Certificate, assumptions, beaten
from cascada.study.book import Book
from cascada.study.knowledge import Knowledge


def certificate_of(
    book: Book,
    known: Knowledge,
    candidates: Array | None,
    bound: float | None,
    spent: tuple[int, float, str],
    missing: str,
) -> Certificate:
    """The certificate for a bound of what is maximised; without one it has no gap.

    `spent`: cells and seconds of all searches so far, and what stopped the last one. `missing`: what an estimated bound
    lacks before its gap is shown, in words.
    """
    sign, best = known.judging.network.sign, book.best_value
    cells, seconds, stopped = spent
    return Certificate(
        kind=known.kind,
        best=sign * best if np.isfinite(best) else None,
        bound=None if bound is None else sign * bound,
        gap=None if bound is None else difference_up(bound, best),
        evaluations=book.complete,
        assumptions=(*assumptions(known.judging), *known.enlarged),
        evidence=known.evidence(),
        cells=cells,
        seconds=seconds,
        stopped=stopped,
        over="the box of controls" if candidates is None else f"the {len(candidates):,} candidates",
        maximised=sign > 0,
        missing=missing,
    )


def check_bound(beliefs: Beliefs, bound: float, best: float, run: Array) -> None:
    """Raise `RefutedError` if the best run (V,), which gave `best`, beats a bound over the domain that contains it."""
    if bound < best - objective_slack(beliefs, run):
        raise RefutedError(beaten(best, bound, beliefs.network.sign))
