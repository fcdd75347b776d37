"""Cost of a proven gap if stages are run one at a time, relative to complete runs.

    python -m benchmarks.step_costs [--seeds 10] [--modes reused,"used up",decoupled] [--records FILE.jsonl]
        [--write docs/performance.md]

Certified processes of three stages (norm 2 exactly, squared exponential kernel of lengthscale 1, controls in [−2, 2]);
the gap to prove is 0.02. Complete runs are those of the default algorithm. Steps are chosen by `suggest_step`, with and
without the rule that at least half of the money goes into complete runs; an output is used up by one run of the next
stage, is reused by any number of them, or inputs can be set to any value (decoupled). After every step the gap is
compared with the true regret of the setting that is proven to be best. With `--records` finished proofs are read from
the file and new ones are added to it.
"""

import argparse
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from benchmarks.environment import description, require_one_thread
from benchmarks.markdown import NONE, Target, table, write_section
from benchmarks.step_lab import StepLab, Terms, on_terms
from cascada.experiments.statistics import mean_interval
from cascada.problems import certified
from cascada.problems.limited_problem import LIMITED as STRUCTURES
from cascada.study import maximise

NAME = "benchmarks.step_costs"
TOLERANCE, MOST_RUNS, MOST_STEPS = 0.02, 80, 400
ROUNDING = 1e-9  # of the process itself

COSTS = {"1, 1, 1": (1.0, 1.0, 1.0), "1, 10, 100": (1.0, 10.0, 100.0), "100, 10, 1": (100.0, 10.0, 1.0)}
MODES = {"reused": ("stock", math.inf), "used up": ("stock", 1.0), "decoupled": ("any", 1.0)}
COMPLETE = "complete runs"

#: The largest part of the cost of complete runs, for outputs that are reused.
TARGETS = {
    ("chain", "1, 1, 1"): 0.70,
    ("chain", "1, 10, 100"): 0.82,
    ("chain", "100, 10, 1"): 0.37,
    ("feed-forward", "1, 1, 1"): 0.86,
    ("feed-forward", "1, 10, 100"): 0.57,
    ("feed-forward", "100, 10, 1"): 0.74,
    ("join", "1, 1, 1"): 0.81,
    ("join", "1, 10, 100"): 0.56,
    ("join", "100, 10, 1"): 0.75,
}


@dataclass(frozen=True)
class Proof:
    """One search until the gap is proven; `runs` are those of every stage."""

    structure: str
    mode: str
    costs: str
    guaranteed: bool
    seed: int
    cost: float
    runs: tuple[int, ...]
    proven: bool
    steps: int
    repeated: int  # steps at an input that was run before, and whose output was there
    violations: int  # of the gap
    seconds: float  # of all decisions
    slowest: float


def prove_complete(structure: str, seed: int) -> Proof:
    """The proof by complete runs, each of cost 1."""
    problem = certified(STRUCTURES[structure], seed)
    result = maximise(problem.network, budget=MOST_RUNS, tolerance=TOLERANCE, progress=False)
    runs, proven = len(result.trials), result.status == "tolerance"
    return Proof(structure, COMPLETE, "", False, seed, runs, (runs,) * 3, proven, runs, 0, 0, 0.0, 0.0)


def prove(structure: str, mode: str, costs: str, guaranteed: bool, seed: int) -> Proof:
    """The proof by steps."""
    problem = on_terms(certified(STRUCTURES[structure], seed), Terms(COSTS[costs], *MODES[mode]))
    domain, violations = problem.network.domain, 0
    lab = StepLab(problem, seed, tolerance=TOLERANCE, guaranteed=guaranteed)
    while lab.steps < MOST_STEPS:
        step = lab.think()
        if lab.best is not None:
            value = float(problem.objective(domain.decode(lab.best.point[None]))[0])
            violations += lab.gap < problem.optimum[1] - value - ROUNDING
        if lab.gap <= TOLERANCE or step is None:
            break
        lab.run(step)
    return Proof(
        structure,
        mode,
        costs,
        guaranteed,
        seed,
        lab.spent,
        tuple(lab.runs),
        lab.gap <= TOLERANCE,
        lab.steps,
        int(lab.repeated),
        violations,
        round(lab.seconds, 2),
        round(lab.slowest, 2),
    )


def row(proofs: Sequence[Proof], complete: dict[int, float]) -> list[str]:
    """One line of the table: proofs of one kind, against the cost of complete runs by seed."""
    first = proofs[0]
    whole = sum(COSTS[first.costs])
    ratios = np.array([proof.cost / (whole * complete[proof.seed]) for proof in proofs])
    target = None if first.mode != "reused" else Target(TARGETS[first.structure, first.costs], at_least=False)
    mean = mean_interval(ratios.tolist())
    return [
        first.structure,
        first.costs,
        first.mode,
        "yes" if first.guaranteed else "no",
        f"{sum(proof.proven for proof in proofs)} of {len(proofs)}",
        NONE if mean.low is None else f"{mean.mean:.2f} ± {mean.mean - mean.low:.2f}",
        f"{ratios.min():.2f}–{ratios.max():.2f}",
        NONE if target is None else target.verdict(round(mean.mean, 2)).replace("×", ""),
        " ".join(f"{np.mean([proof.runs[i] for proof in proofs]):.1f}" for i in range(3)),
        f"{sum(proof.violations for proof in proofs)} of {sum(proof.steps for proof in proofs):,}",
        f"{sum(proof.repeated for proof in proofs)}",
        f"{np.median([proof.seconds / proof.steps for proof in proofs]):.2f}",
        f"{max(proof.slowest for proof in proofs):.2f}",
    ]


HEADER = (
    "structure",
    "costs",
    "outputs",
    "half on complete runs",
    "proven",
    "part of the cost of complete runs",
    "range",
    "target",
    "runs by stage",
    "gaps violated, of all steps",
    "repeated steps",
    "seconds per step",
    "slowest",
)


def report(command: str, proofs: Sequence[Proof]) -> str:
    """The section for docs/performance.md."""
    kinds = list(dict.fromkeys((p.mode, p.guaranteed, p.structure, p.costs) for p in proofs if p.mode != COMPLETE))
    rows = []
    for mode, guaranteed, structure, costs in sorted(kinds, key=lambda kind: (list(MODES).index(kind[0]), not kind[1])):
        complete = {p.seed: p.cost for p in proofs if p.structure == structure and p.mode == COMPLETE}
        own = [
            p
            for p in proofs
            if (p.mode, p.guaranteed, p.structure, p.costs) == (mode, guaranteed, structure, costs)
            and p.seed in complete
        ]
        rows.append(row(sorted(own, key=lambda p: p.seed), complete))
    return "\n".join(
        [
            "## Cost of a proven gap if stages are run one at a time",
            "",
            "Random processes of three stages (chain: one control at each; feed-forward: two stages of the same two",
            "controls feed a third; join: two branches that share a control). The cost of all steps until a gap of",
            f"{TOLERANCE:g} was proven, as a part of the cost of complete runs by the default algorithm on the same",
            "process, mean and 95 % interval over seeds. Outputs are reused by any number of later runs, used up by",
            "one, or inputs can be set to any value. Seconds are CPU time of a decision and of the search for the best",
            "proven setting. Written by",
            "",
            f"    {command}",
            "",
            description(["numpy", "scipy"]),
            "",
            table(HEADER, rows),
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog=f"python -m {NAME}", description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--modes", type=lambda text: text.split(","), default=list(MODES))
    parser.add_argument(
        "--guaranteed", type=lambda text: [word == "yes" for word in text.split(",")], default=[True, False]
    )
    parser.add_argument("--records", type=Path)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    require_one_thread()
    proofs: list[Proof] = []
    if options.records is not None and options.records.exists():
        proofs = [Proof(**json.loads(line)) for line in options.records.read_text().splitlines()]
    done = {(p.structure, p.mode, p.costs, p.guaranteed, p.seed) for p in proofs}

    def add(proof: Proof) -> None:
        proofs.append(proof)
        if options.records is not None:
            with options.records.open("a") as file:
                file.write(json.dumps(asdict(proof)) + "\n")

    for seed in range(options.seeds):
        for structure in STRUCTURES:
            if (structure, COMPLETE, "", False, seed) not in done:
                add(prove_complete(structure, seed))
    for mode in options.modes:
        for guaranteed in options.guaranteed:
            for seed in range(options.seeds):
                for structure in STRUCTURES:
                    for costs in COSTS:
                        if (structure, mode, costs, guaranteed, seed) not in done:
                            add(prove(structure, mode, costs, guaranteed, seed))
    command = f"python -m {NAME} --seeds {options.seeds}"
    if options.modes != list(MODES):
        command += f' --modes "{",".join(options.modes)}"'
    if options.guaranteed != [True, False]:
        command += f" --guaranteed {','.join('yes' if one else 'no' for one in options.guaranteed)}"
    wanted = [
        p for p in proofs if p.mode == COMPLETE or (p.mode in options.modes and p.guaranteed in options.guaranteed)
    ]
    text = report(command, [p for p in wanted if p.seed < options.seeds])
    print(text)
    if options.write:
        write_section(options.write, NAME, text)


if __name__ == "__main__":
    main()
