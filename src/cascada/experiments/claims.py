"""The claims of the paper: a verdict on every empirical sentence of `sec:exp` on g1, g2 and a family of chains.

The paper shows two chains and gives no seed, so its sentences are judged on our two chains and, with a paired
confidence interval, on a family of others. Verdicts follow from the numbers alone by the rules in `sentences`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from textwrap import fill

from cascada.experiments.findings import Finding
from cascada.experiments.sentences import About, rules
from cascada.experiments.statistics import Results, read
from cascada.tables import markdown_table


@dataclass(frozen=True)
class Claim:
    """A sentence with its criterion, the chain it is about, and the findings."""

    id: str
    sentence: str
    criterion: str
    about: About
    g1: Finding
    g2: Finding
    family: Finding


def claims(results: Results) -> list[Claim]:
    """Every claim with its findings; an error says which runs are missing."""
    sample = read(results)
    return [
        Claim(
            rule.id,
            rule.sentence,
            rule.criterion,
            rule.about,
            rule.on_chain(sample.g1),
            rule.on_chain(sample.g2),
            rule.over_family(sample.family),
        )
        for rule in rules(sample.samples)
    ]


def table(found: Sequence[Claim]) -> str:
    """The claims as a Markdown table, followed by their criteria and all numbers."""
    header = ("", "the paper says", "of", "g1", "g2", "family, mean [95% interval]")
    rows = [
        (
            claim.id,
            claim.sentence,
            claim.about,
            _cell(claim.g1, claim.about != "g2"),
            _cell(claim.g2, claim.about != "g1"),
            _cell(claim.family, True),
        )
        for claim in found
    ]
    notes = [line for claim in found for line in _notes(claim)]
    heading = (
        "A verdict in brackets is on a chain of which the sentence does not speak. The family is every chain that was\n"
        "run, g1 and g2 among them, with its first trial alone; an interval of few or of skewed values is rough.\n"
        "What is taken to be meant:"
    )
    return "\n".join([markdown_table(header, rows), "", heading, "", *notes, ""])


def _cell(finding: Finding, spoken_of: bool) -> str:
    verdict = finding.verdict if spoken_of else f"({finding.verdict})"
    return f"{verdict}: {finding.text}" if finding.text else verdict


def _notes(claim: Claim) -> list[str]:
    """The criterion and, if several numbers count, all of them."""
    wrap = partial(fill, width=118, break_on_hyphens=False)
    notes = [wrap(f"{claim.id}: {claim.criterion}", initial_indent="- ", subsequent_indent="  ")]
    for where, finding in (("g1", claim.g1), ("g2", claim.g2), ("family", claim.family)):
        if finding.details:
            every = f"{where}: {'; '.join(finding.details)}"
            notes.append(wrap(every, initial_indent="  - ", subsequent_indent="    "))
    return notes
