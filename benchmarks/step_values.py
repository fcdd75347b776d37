"""Regret against cost if stages are run one at a time and no norm is given.

    python -m benchmarks.step_values [--seeds 20] [--runs 20] [--problems ackmat-1-49,tablet]
        [--contestants steps,runs,optuna-gp] [--records FILE.jsonl] [--write docs/performance.md]

The problems with costs of Buathong et al. (ICML 2024) with theirs, and the six built-in ones with a cost of 49 for the
last stage that is run and 1 for each stage before it. Outputs are reused by any number of later runs. All contestants
of one seed begin with the same 2(d + 1) complete runs at uniform random points. Then each spends what `--runs` complete
runs cost: `steps` by single stages, `runs` and `optuna-gp` by complete runs. The regret is that of the best complete
run. With `--records` finished runs are read from the file and new ones are added to it.
"""

import argparse
import json
import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.environment import description, require_one_thread
from benchmarks.markdown import NONE, table, write_section
from benchmarks.paired import FLOOR, compare
from cascada.experiments.bench_run import initial_points
from cascada.experiments.contestants import objective_of
from cascada.experiments.peers import PEERS
from cascada.network import Network
from cascada.network.outputs import Outputs
from cascada.problems import PRACTICE, Problem, by_name
from cascada.process import Process
from cascada.study import Cost, Study

NAME = "benchmarks.step_values"
PRICED = ("ackmat", "ackmat-1-49", "tablet", "manufacturing")
LAST = 49.0  # the cost of the last stage of problems without costs of their own
STEPS, RUNS, PEER = "steps", "runs", "optuna-gp"


@dataclass(frozen=True)
class Record:
    """The best regret after the design and after every later step or run, and what was spent until then."""

    problem: str
    contestant: str
    seed: int
    runs: int
    spent: list[float]  # in complete runs
    regrets: list[float]
    steps: int
    seconds: float  # CPU time of all decisions
    slowest: float

    def regret_at(self, spent: float) -> float:
        """The best regret when so many complete runs were paid."""
        return self.regrets[max(i for i, cost in enumerate(self.spent) if cost <= spent + FLOOR)]

    def spent_for(self, regret: float) -> float:
        """What was spent until the regret was at most this; infinity if it never was."""
        return next((cost for cost, got in zip(self.spent, self.regrets, strict=True) if got <= regret), math.inf)


def priced(problem: Problem) -> Network:
    """The network of a problem, with costs, and with outputs that are kept."""
    stages = problem.network.stages
    last = [stage.name for stage in stages if not stage.known][-1]
    found = {}
    for stage in stages:
        if not stage.known:
            cost = stage.cost if problem.name in PRICED else LAST if stage.name == last else 1.0
            found[stage.name] = replace(stage, cost=cost, reachable="stock", portions=math.inf)
    return problem.network.assuming(found)


def value_of(network: Network, outputs: Outputs) -> float:
    """The objective of a run as it is maximised."""
    return network.sign * objective_of(network, outputs)


def run(name: str, contestant: str, seed: int, runs: int) -> Record:
    """Run a contestant until the money is spent."""
    problem = by_name(name)
    network = priced(problem)
    process, domain = Process(network), network.domain
    whole = math.fsum(stage.cost for stage in network.stages if not stage.known)
    first = initial_points(problem, 2 * (domain.dimension + 1), seed)
    outputs = [process(domain.named(point)) for point in first]
    values = [value_of(network, row) for row in outputs]
    best = max(values)
    course, spent, taken = [best], [0.0], []

    def noted(value: float | None, cost: float) -> None:
        course.append(course[-1] if value is None else max(course[-1], value))
        spent.append(cost / whole)

    if contestant == PEER:
        peer = PEERS[PEER].make(domain, seed, len(first))
        for point, value in zip(first, values, strict=True):
            peer.tell(point, value)
        for i in range(runs):
            started = time.process_time()
            point = peer.ask()
            taken.append(time.process_time() - started)
            value = value_of(network, process(domain.named(point)))
            peer.tell(point, value)
            noted(value, (i + 1) * whole)
    else:
        study = Study(network, seed=seed)
        for point, row in zip(first, outputs, strict=True):
            study.add_trial(domain.named(point), row)
        while True:
            started = time.process_time()
            if contestant == STEPS:
                step = study.ask_step(limit=Cost(runs * whole))
                taken.append(time.process_time() - started)
                if step is None:
                    break
                function = network.node(step.stage).stage.function
                assert function is not None, "stages of problems have functions"
                trial = study.tell_stage(step, function(**step.inputs))
            else:
                asked = study.ask() if study.spent + whole <= runs * whole * (1 + FLOOR) else None
                taken.append(time.process_time() - started)
                if asked is None:
                    break
                trial = study.tell(asked, process(asked.controls))
            noted(None if trial.value is None else network.sign * trial.value, study.spent)
    regrets = [network.sign * problem.optimum[1] - value for value in course]
    return Record(name, contestant, seed, runs, spent, regrets, len(taken), math.fsum(taken), max(taken))


HEADER = (
    "problem",
    "contestant",
    "seeds",
    "regret at half of the money",
    "regret at the end",
    "steps, better : worse",
    "ratio of regrets, steps / this",
    "cost of steps to this regret",
    "decisions",
    "seconds a decision",
    "slowest",
)


def row(records: Sequence[Record], steps: dict[int, Record]) -> list[str]:
    """One line: a contestant on one problem, and how the steps of the same seeds compare with it."""
    first = records[0]
    line = [
        first.problem,
        first.contestant,
        str(len(records)),
        f"{median(record.regret_at(record.runs / 2) for record in records):.2g}",
        f"{median(record.regrets[-1] for record in records):.2g}",
    ]
    paired = [(record, steps[record.seed]) for record in records if record.seed in steps]
    if first.contestant == STEPS or not paired:
        line += [NONE] * 3
    else:
        result = compare([whole.regrets[-1] for whole, _ in paired], [step.regrets[-1] for _, step in paired])
        parts = [
            step.spent_for(max(w.regrets[-1], FLOOR)) / w.spent_for(w.regrets[-1])
            for w, step in paired
            if w.spent_for(w.regrets[-1]) > 0
        ]
        never = sum(math.isinf(part) for part in parts)
        line += [
            f"{result.better} : {result.worse}",
            f"{result.ratio:.2g} [{result.low:.2g}, {result.high:.2g}]",
            f"{median(parts):.2f}" + (f", never in {never}" if never else ""),
        ]
    return [
        *line,
        f"{np.mean([record.steps for record in records]):.0f}",
        f"{median(record.seconds / record.steps for record in records):.2f}",
        f"{max(record.slowest for record in records):.2f}",
    ]


def report(command: str, records: Sequence[Record]) -> str:
    """The section for docs/performance.md."""
    rows = []
    for name in dict.fromkeys(record.problem for record in records):
        own = [record for record in records if record.problem == name]
        steps = {record.seed: record for record in own if record.contestant == STEPS}
        rows += [row(some, steps) for each in (STEPS, RUNS, PEER) if (some := [r for r in own if r.contestant == each])]
    return "\n".join(
        [
            "## Regret against cost if stages are run one at a time, without norms",
            "",
            f"Problems with their costs ({', '.join(PRICED)}); on the others the last stage costs {LAST:g} and",
            "each one before it 1. Outputs are kept. All contestants begin with the same 2(d + 1) complete runs at",
            f"random points, and then spend what {records[0].runs} complete runs cost. Medians; ratios of regrets are",
            "Hodges-Lehmann estimates with 95 % intervals over paired seeds. The cost of steps is what they spend",
            "until their regret is that of the complete runs at the end, relative to what the complete runs spent",
            "until then.",
            "Seconds are CPU time. Written by",
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
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--problems", default=",".join((*PRICED, *PRACTICE)))
    parser.add_argument("--contestants", default=",".join((STEPS, RUNS, PEER)))
    parser.add_argument("--records", type=Path)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    require_one_thread()
    records: list[Record] = []
    if options.records is not None and options.records.exists():
        records = [Record(**json.loads(line)) for line in options.records.read_text().splitlines()]
    done = {(r.problem, r.contestant, r.seed, r.runs) for r in records}
    problems, contestants = options.problems.split(","), options.contestants.split(",")
    for seed, problem, contestant in product(range(options.seeds), problems, contestants):
        if (problem, contestant, seed, options.runs) not in done:
            records.append(run(problem, contestant, seed, options.runs))
            if options.records is not None:
                with options.records.open("a") as file:
                    file.write(json.dumps(asdict(records[-1])) + "\n")
    shown = [
        r
        for name in problems
        for r in records
        if (r.problem, r.runs) == (name, options.runs) and r.contestant in contestants and r.seed < options.seeds
    ]
    text = report(f"python -m {NAME} --seeds {options.seeds} --runs {options.runs}", shown)
    print(text)
    if options.write:
        write_section(options.write, NAME, text)


if __name__ == "__main__":
    main()
