"""Which reported value to check first when the data refute an assumption."""

import re
from collections.abc import Sequence

_TRIALS = re.compile(r"(of the )?\b[Tt]rials? (\d+)(?: (and|to) (\d+))?")


def suspect(evidence: Sequence[str], stages: Sequence[str], trial: int, stage: str | None) -> tuple[int, str | None]:
    """The trial and the stage that evidence in words is about; the value reported last if that is part of it.

    `trial` and `stage` were reported last; None for several stages. The stage is None if the evidence names none of
    `stages` and several were reported.
    """
    found = [_named(text, stages) for text in evidence]
    if not found:
        return trial, stage
    name, trials = max(found, key=lambda one: (stage is None or one[0] in (stage, None), trial in one[1]))
    return trial if trial in trials or not trials else trials[-1], name or stage


def _named(text: str, stages: Sequence[str]) -> tuple[str | None, list[int]]:
    """The stage that a text names first, and the trials that it names first; None and an empty list without any."""
    places = {name: re.search(rf"\b[Ss]tage {re.escape(repr(name))}", text) for name in stages}
    named = min(((place.start(), name) for name, place in places.items() if place), default=(0, None))[1]
    for name in stages:
        text = text.replace(repr(name), "")  # a name may look like the number of a trial
    match = _TRIALS.search(text)
    if match is None:
        return named, []
    some, first, joint, last = match.groups()
    if joint == "to" and not some:
        return named, list(range(int(first), int(last) + 1))
    return named, [int(number) for number in (first, last) if number is not None]
