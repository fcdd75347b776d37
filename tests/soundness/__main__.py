"""Command `python -m tests.soundness [--checks N] [--rounds F] [--jobs J] [--write FILE]`: all parts, in Markdown.

With `--parts limits,safe` only these are run, and `--write` replaces their sections of the file or adds them.
"""

import argparse
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import count, islice
from pathlib import Path

from tests.soundness import (
    choices,
    contexts,
    crowds,
    extremes,
    foundation,
    histories,
    limits,
    matrices,
    neighbours,
    networks,
    ranges,
    read_choices,
    read_studies,
    readings,
    refusals,
    robust,
    safe,
    scales,
    scatter_shares,
    steps,
    subsets,
)
from tests.soundness.broken import BROKEN, Broken, table
from tests.soundness.broken_choices import BROKEN_CHOICES
from tests.soundness.broken_read_choices import BROKEN_READ_CHOICES
from tests.soundness.broken_read_studies import BROKEN_READ_STUDIES
from tests.soundness.broken_readings import BROKEN_READINGS
from tests.soundness.broken_steps import BROKEN_STEPS
from tests.soundness.harness import Ledger, Tally

TEXT = """# Soundness

Every assumption is true by construction here, so every bound must contain the truth at every query; the margin is the
smallest distance from the truth to the end of a bound. A kind of check without a margin is one of yes or no: true runs
are accepted, impossible values are refused. Written by

    make soundness

which made {checks:,} checks with {violations} violations, and broke the library in {broken} ways, of which {caught}
were noticed.

## Stages

Functions of exact norm B = 2 (30 random centres in [−2, 2]^d, N(0, 1) coefficients, scaled), scalar and vector-valued,
d = 1 to 4, squared exponential and Matérn kernels (ν = 1/2, 1, 3/2, 5/2, 3.7), radial and additive, 1 to 60
observations: spread out, nearly coinciding, and such that they use up all of B².

{stages}

## Networks

Stages of exact norm, squared exponential and Matérn kernels (ν = 3/2, 5/2, 3.7), radial and additive, 0 to 40 runs of
which a third are partial: every output over points and over cells of all sizes, in both forms; then optimisations by
GPN-UCB, whose proven gap after each run must be at least the true regret.

{networks}

## Matrices

Joint norms under `Separable(k, A)`: outputs whose scales differ by up to 7e13 (A by its square), correlations up to
1 − 1e-12, and singular A of rank 1 or 2. Functions have their joint norm to 60 digits, and their outputs are rounded
once. An output at three times the most that it can be must be refused.

{matrices}

## Units

Controls, outputs and norms in units from 1e-90 to 1e90, offsets of up to 1e12 norm bounds. In units that are powers of
two all bounds must scale exactly. Norm bounds beyond 1e±90 must be refused, or their bounds must hold.

{scales}

## Impossible values

Studies with true values, and with values that contradict an assumption by a factor of two or more, in units from
1e-90 to 1e90 and with offsets of up to 1e10 norm bounds: the objective without its inputs, whole runs, formulas,
slopes, and one input with two outputs.

{refusals}

## Neighbouring floats

Runs one float apart in real, logarithmic and integer controls, at both ends of their ranges and inside, shared by two
stages or not. All values are computed with 60 digits from the exact setting, and rounded once.

{neighbours}

## Extremal functions

The functions μ ± ρ·k_t(·, x)/σ_t(x), of norm exactly B, that attain the bound at x: coefficients solved for with 60
digits, through up to 12 observations. A pointwise bound may lie at most 1e-5 B above them ("sharp").

{extremes}

## Crowds

300 runs, half of them in clusters of radius 1e-1 to 1e-12, a tenth of them repeats, learned in batches of random size.

{crowds}

## Histories

Studies in memory and in a SQLite store, with asks and tells in random order, stage by stage, repeated, abandoned,
closed, reopened, and amended to other true norm bounds: after each step nothing is refuted, the proven bound is at
least the true optimum, and the gap at least the true regret.

{histories}

## Subsets

The same after 36 runs of the past, with models that learn from at most 12 runs (1,500 by default), so that selections
are made all the time; and searches with limits after such runs.

{subsets}

## Limits

Searches with a limit on the first stage that cuts off the optimum ("cut"), leaves a narrow band, or cannot be met
("none"), and with a limit on every stage, the objective included; some are minimised. After each run the gap is at
least the true regret among feasible settings, the incumbent (run or not) is feasible and gives what it is said to give,
and "no setting satisfies the limits" is true. The bounds of random cells are compared with the values at their points.

{limits}

## Safe mode

Searches that run only settings that are proven to satisfy the limits, one to three at a time, over boxes and
candidates: no run breaks a limit.

{safe}

## Contexts

One control is measured, not chosen; in one structure it is a choice. After each run the bound, the gap and the
recommended setting for random contexts are compared with the values of many settings there, and in the end a decision
table with the values at many contexts.

{contexts}

## Choices

Stages in which every value of a choice has a function of its own, of exactly its norm, and stages in which all values
share one norm; choices at any stage, shared by two stages, alone at a stage, and in a formula. All outputs over points,
over cells with one value, and over cells with several; then searches, whose proven gap after each run must be at least
the true regret.

{choices}

## Uncertain controls

One or two controls deviate from their settings by up to 0.3. After each run, what a setting is proven to give in the
worst case is compared with its values at many shifts, and the bound with the worst cases of many settings. One process
has a narrow peak and a broad one: its best setting without deviations loses more than a quarter of its value in the
worst case.

{robust}

## Ranges

Searches with the ranges of all outputs, which hold at all settings but not at inputs that no setting reaches. There,
the bounds of stages are checked as well.

{ranges}

## Steps

Stages that are run one at a time, on outputs that are used up, kept, or set freely, as the rule says and at random:
after every step of the rule the bound is compared with many settings, the gap with the true regret, and the setting
that is proven to be best with what it gives; after random steps, with and without errors, all bounds of values over
points and cells are compared with the values. Some processes are minimised, some have a limit on the first stage.

{steps}

## Readings with errors

Every structure, one with a nearly singular joint norm, and one with copies, offsets and a logarithmic control. Errors
are uniform, at the extremes, or constant; some stages are exact, some forward their reading, some runs are read in
part; crowds and repeats.

{readings}

## Choices that are read with errors

The processes of "Choices" with the errors of "Readings with errors": bounds of all values over points and cells,
slopes, and single stages at growing numbers of runs, and whole studies with and without limits.

{read_choices}

## Studies of readings with errors

Whole studies of the same processes, with limits and candidates, stage by stage, while runs are pending, with past runs,
repeats, corrections and batches in progress: after every step the gap is at least the true regret of the recommended
setting, which gives what it is said to give and satisfies the limits.

{read_studies}

## Readings with scatter

Bounds hold with a probability, so a process counts as broken if any bound is ever violated. One stage with a risk of
one half, 60 readings, inputs that are chosen where the fit is worst, and true inputs that differ from the nominal ones
on the side that raises the function. Whole networks are far from their risk; tests check them.

{scatter}

## Broken on purpose

What the harness reports when one part of the library is wrong.

{broken_table}
"""

#: For every part, its function of a seed, and the number of rounds in a whole run.
PARTS: dict[str, tuple[Callable[[int], Ledger], int]] = {
    "stages": (lambda seed: foundation.run(400, seed), 0),
    "networks": (lambda seed: networks.run(2000, seed), 0),
    "matrices": (lambda seed: matrices.run(400, seed), 60),
    "scales": (lambda seed: scales.run(300, seed), 20),
    "refusals": (lambda seed: refusals.run(20, seed), 20),
    "neighbours": (lambda seed: neighbours.run(60, seed), 80),
    "extremes": (lambda seed: extremes.run(3, seed), 60),
    "crowds": (lambda seed: crowds.run(500, seed), 60),
    "histories": (lambda seed: histories.run(30, seed), 20),
    "subsets": (lambda seed: subsets.run(20, seed), 10),
    "limits": (lambda seed: limits.run(40, seed), 10),
    "safe": (lambda seed: safe.run(40, seed), 10),
    "robust": (lambda seed: robust.run(15, seed), 10),
    "contexts": (lambda seed: contexts.run(15, seed), 10),
    "choices": (lambda seed: choices.run(600, seed, 6), 8),
    "ranges": (lambda seed: ranges.run(20, seed), 10),
    "steps": (lambda seed: steps.run(24, seed), 6),
    "readings": (lambda seed: readings.run(200, seed), 5),
    "read_choices": (lambda seed: read_choices.run(60, seed, 4), 5),
    "read_studies": (read_studies.run, 4),
}

#: The part that has shares of broken processes instead of checks.
SCATTER = "scatter"

EVERY_BROKEN = (*BROKEN, *BROKEN_CHOICES, *BROKEN_STEPS, *BROKEN_READINGS, *BROKEN_READ_CHOICES, *BROKEN_READ_STUDIES)

# Rounds between two counts of the checks; the result must not depend on the number of processes.
_CHUNK = 2


def one_round(part: str, seed: int) -> Ledger:
    """One round of a part."""
    warnings.simplefilter("error", RuntimeWarning)  # an overflow is not a bound
    return PARTS[part][0](seed)


def one_broken(number: int) -> Ledger:
    """The violations that the harness reports for one broken version."""
    warnings.simplefilter("error", RuntimeWarning)
    return EVERY_BROKEN[number].caught()


class Rounds:
    """Runs rounds in `jobs` processes, and merges them in the order of their seeds."""

    def __init__(self, jobs: int, seed: int) -> None:
        self._pool = ProcessPoolExecutor(jobs) if jobs > 1 else None
        self._seed = seed

    def map(self, function: Callable[..., Ledger], *arguments: Iterable[object]) -> Iterator[Ledger]:
        """Like the builtin `map`, in parallel."""
        return map(function, *arguments) if self._pool is None else self._pool.map(function, *arguments)

    def fixed(self, part: str, rounds: int) -> Ledger:
        """A fixed number of rounds."""
        return self._merged(part, Ledger(), range(self._seed, self._seed + rounds))

    def until(self, part: str, enough: int, group: Callable[[Tally], str]) -> Ledger:
        """Rounds until every group of tallies has enough checks."""
        ledger, seeds, fewest = Ledger(), count(self._seed), 0
        while fewest < enough:
            self._merged(part, ledger, list(islice(seeds, _CHUNK)))
            counts: dict[str, int] = {}
            for tally in ledger.tallies:
                counts[group(tally)] = counts.get(group(tally), 0) + tally.checks
            fewest = min(counts.values())
        return ledger

    def _merged(self, part: str, ledger: Ledger, seeds: Iterable[int]) -> Ledger:
        numbers = list(seeds)
        for number, found in zip(numbers, self.map(one_round, [part] * len(numbers), numbers), strict=True):
            ledger.merge(found.tallies)
            log(f"{part}, seed {number}: {ledger.checks:,} checks, {ledger.violations} violations")
        return ledger


def introduction(part: str) -> str:
    """The heading of a part, and the text before its table."""
    before, after = TEXT.split(f"{{{part}}}")
    assert after, "every part is followed by another section"
    return before[before.rindex("\n## ") + 1 :]


def section(part: str, command: str, ledger: Ledger, broken: list[tuple[Broken, Ledger]]) -> str:
    """The section of one part that was run alone: its text, its command and counts, and what was broken on purpose."""
    counts = f"Written by `{command}`: {ledger.checks:,} checks with {ledger.violations} violations."
    return "\n\n".join([f"{introduction(part)}{counts}", ledger.table(), *([table(broken)] if broken else [])]) + "\n\n"


def with_sections(page: str, sections: Iterable[str]) -> str:
    """The page with these sections in the place of those with the same headings; new ones stand before the last."""
    for one in sections:
        heading = one.partition("\n")[0]
        start = page.find(f"{heading}\n")
        at = page.rindex("\n## ") + 1 if start < 0 else start
        end = at if start < 0 else page.find("\n## ", start) + 1
        page = page[:at] + one + page[end:]
    return page


def run_parts(rounds: Rounds, parts: list[str], command: str, share: float, write: Path | None) -> int:
    """Run some parts with their broken versions, and print or write their sections; 1 if one is not as it must be."""
    ledgers = {part: rounds.fixed(part, max(1, round(share * PARTS[part][1]))) for part in parts if part != SCATTER}
    sections, missed = [], 0
    for part, ledger in ledgers.items():
        own = [(broken, one_broken(i)) for i, broken in enumerate(EVERY_BROKEN) if broken.part == part]
        missed += sum(not found.violations for _, found in own)
        sections.append(section(part, command, ledger, own))
    if SCATTER in parts:
        shares, right = scatter_shares.report(share, log)
        sections.append(f"{introduction(SCATTER)}Written by `{command}`.\n\n{shares}\n\n")
        missed += not right
    print("".join(sections))
    if write:
        write.write_text(with_sections(write.read_text(encoding="utf-8"), sections), encoding="utf-8")
    return 1 if missed or any(ledger.violations for ledger in ledgers.values()) else 0


def log(text: str) -> None:
    """Print the progress of the run to standard error."""
    print(text, file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checks", type=int, default=1_000_000, help="of every bound of a stage, and every structure")
    parser.add_argument("--rounds", type=float, default=1.0, help="how much of the usual rounds of the other parts")
    parser.add_argument("--gap-steps", type=int, default=12, help="runs of every optimisation")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="processes; the result does not depend on it")
    parser.add_argument("--write", type=Path, help="write the tables to this file")
    parser.add_argument("--parts", type=lambda text: text.split(","), help="only these parts, with commas between them")
    options = parser.parse_args()
    rounds = Rounds(options.jobs, options.seed)
    if options.parts:
        alone = [*(name for name, (_, usual) in PARTS.items() if usual), SCATTER]
        if not set(options.parts) <= set(alone):
            parser.error(f"--parts must be some of {', '.join(alone)}; got {', '.join(options.parts)}")
        parts = [name for name in alone if name in options.parts]  # in the order of the page
        command = f"python -m tests.soundness --parts {','.join(parts)} --rounds {options.rounds:g}"
        return run_parts(rounds, parts, command, options.rounds, options.write)
    ledgers = {
        "stages": rounds.until("stages", options.checks, lambda tally: tally.name),
        "networks": rounds.until("networks", options.checks, lambda tally: tally.name.split(":")[0]),
    }
    networks.run_gaps(ledgers["networks"], options.seed, options.gap_steps)
    for part, (_, usual) in PARTS.items():
        if part not in ledgers:
            ledgers[part] = rounds.fixed(part, max(1, round(options.rounds * usual)))
    broken: list[tuple[Broken, Ledger]] = list(
        zip(EVERY_BROKEN, rounds.map(one_broken, range(len(EVERY_BROKEN))), strict=True)
    )
    caught = sum(ledger.violations > 0 for _, ledger in broken)
    shares, right = scatter_shares.report(options.rounds, log)
    violations = sum(ledger.violations for ledger in ledgers.values())
    text = TEXT.format(
        checks=sum(ledger.checks for ledger in ledgers.values()),
        violations=violations,
        broken=len(broken),
        caught=caught,
        broken_table=table(broken),
        scatter=shares,
        **{part: ledger.table() for part, ledger in ledgers.items()},
    )
    print(text)
    for part, ledger in ledgers.items():
        for tally in ledger.tallies:
            for note in tally.notes:
                log(f"{part}: {tally.name}: {note}")
    if options.write:
        options.write.write_text(text, encoding="utf-8")
    return 1 if violations or caught < len(broken) or not right else 0


if __name__ == "__main__":
    sys.exit(main())
