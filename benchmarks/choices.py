"""Runs to a proven gap with a choice of three values, relative to the same processes with one value.

    python -m benchmarks.choices [--seeds 20] [--write docs/performance.md]

Certified processes of two stages (wood, x → f; f, y → g) with norm 2; the gap to prove is 0.05. With independent norms,
the three values have nothing in common in f: one proof of the choice is compared with the mean of the three proofs of
its values alone, each of which knows the same g. With `alike=0.9` the process is the same for all values, and is told
its true norm: one proof of the choice is compared with that of the process without it. After every run the bound is
compared with the best of many settings.
"""

import json
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.command import print_or_write_seeds
from benchmarks.environment import description
from benchmarks.markdown import Target, table
from cascada.network import Network, Stage
from cascada.problems import Problem
from cascada.problems.certified_choices import certified_choices
from cascada.study import Study

NAME = "benchmarks.choices"
TOLERANCE = 0.05
ALIKE = 0.9
VALUES = 3
MOST_RUNS = 200
DENSE = 4_000  # settings for each value, among which bounds are checked
ROUNDING = 1e-9
TARGETS = {"independent norms": 3.3, "alike, truly the same": 2.0}
RECORDS = Path("build/benchmarks.choices.jsonl")


@dataclass(frozen=True)
class Proof:
    """What a proof took, and how many bounds were below a true value."""

    runs: int
    proven: bool
    violations: int


def process(kind: str, seed: int) -> Problem:
    """A process with a choice of three values."""
    if kind == "independent norms":
        return certified_choices("first", seed, woods=VALUES)
    return certified_choices("first", seed, woods=VALUES, alike=ALIKE, same=True)


def of_one_value(problem: Problem, kind: str, code: int) -> Problem:
    """The same process with one of the values, which is not a control."""
    network = problem.network
    first = network.nodes[0].stage
    wood = network.domain.controls["wood"].shown(code)
    assert first.function is not None, "a certified process has functions"
    alone = Stage(
        first.name,
        {"x": first.controls["x"]},
        first.outputs,
        kernel=first.kernel,
        norm_bound=2.0 if kind != "independent norms" else first.norm_bound,
        function=partial(first.function, wood=wood),
    )
    plain = Network([alone, network.nodes[1].stage], ".".join(network.objective))

    def values_at(points: np.ndarray) -> np.ndarray:
        whole = np.column_stack([np.full(len(points), code), points])
        return problem.values(whole)[:, 1:]

    return Problem(problem.name, problem.summary, plain, values_at, None)


def prove(problem: Problem, seed: int) -> Proof:
    """Optimise a process until the gap is proven."""
    network, sign = problem.network, problem.network.sign
    points = network.domain.uniform(np.random.default_rng(seed), VALUES * DENSE)
    best = float((sign * problem.values(points)[:, network.objective_column]).max())
    study = Study(network, tolerance=TOLERANCE, horizon=MOST_RUNS)
    violations = 0
    while len(study.trials) < MOST_RUNS and (trial := study.ask()) is not None:
        values = problem.values(network.domain.row(trial.controls)[None])[0]
        study.tell(trial, {node.stage.name: values[list(node.columns)].tolist() for node in network.nodes})
        certificate = study.certificate()
        if certificate.bound is not None:
            violations += sign * certificate.bound < best - ROUNDING
    return Proof(len(study.trials), study.within_tolerance, int(violations))


def compared(kind: str, seed: int) -> list[Proof]:
    """The proof with the choice, and then those of the process without it: one, or one for each value."""
    problem = process(kind, seed)
    codes = range(VALUES) if kind == "independent norms" else range(1)
    alone = [prove(of_one_value(problem, kind, code), seed) for code in codes]
    return [prove(problem, seed), *alone]


def recorded(kind: str, seed: int) -> list[Proof]:
    """The same, kept in a file, so that an interrupted benchmark goes on where it was."""
    key = [kind, seed, TOLERANCE]
    lines = RECORDS.read_text().splitlines() if RECORDS.exists() else []
    for line in lines:
        found = json.loads(line)
        if found["key"] == key:
            return [Proof(**proof) for proof in found["proofs"]]
    proofs = compared(kind, seed)
    RECORDS.parent.mkdir(exist_ok=True)
    with RECORDS.open("a") as file:
        file.write(json.dumps({"key": key, "proofs": [asdict(proof) for proof in proofs]}) + "\n")
    return proofs


def row(kind: str, found: list[list[Proof]]) -> list[str]:
    with_choice = [proofs[0].runs for proofs in found]
    alone = [float(np.mean([proof.runs for proof in proofs[1:]])) for proofs in found]
    ratios = np.array(with_choice) / np.array(alone)
    rng = np.random.default_rng(0)
    resampled = [float(np.exp(np.log(rng.choice(ratios, len(ratios))).mean())) for _ in range(2_000)]
    mean, (low, high) = float(np.exp(np.log(ratios).mean())), np.quantile(resampled, [0.025, 0.975])
    every = [proof for proofs in found for proof in proofs]
    return [
        kind,
        f"{sum(proof.proven for proof in every)} of {len(every)}",
        " ".join(map(str, with_choice)),
        " ".join(f"{runs:.3g}" for runs in alone),
        f"{mean:.2f} ({low:.2f} to {high:.2f})",
        Target(TARGETS[kind], at_least=False).verdict(mean),
        str(sum(proof.violations for proof in every)),
    ]


HEADER = (
    "three values",
    "proven",
    "runs by seed",
    "runs with one value",
    "ratio: geometric mean (95 %)",
    "target",
    "bounds violated",
)


def report(command: str, seeds: int) -> str:
    """The section for docs/performance.md."""
    jobs = [(kind, seed) for kind in TARGETS for seed in range(seeds)]
    with ProcessPoolExecutor(1) as pool:
        found = list(pool.map(recorded, *zip(*jobs, strict=True)))
    rows = [row(kind, [f for (k, _), f in zip(jobs, found, strict=True) if k == kind]) for kind in TARGETS]
    return "\n".join(
        [
            "## Choices: runs to a proof",
            "",
            f"{seeds} random processes each, two stages, two real controls and a choice of three values at the first",
            f"stage; runs until a gap of {TOLERANCE:g} was proven. With independent norms, the runs with one value are",
            "the mean over the three values. The interval is a bootstrap over the seeds. Written by",
            "",
            f"    {command}",
            "",
            description(["numpy", "scipy"]),
            "",
            table(HEADER, rows),
        ]
    )


if __name__ == "__main__":
    print_or_write_seeds(NAME, __doc__, report, 20)
