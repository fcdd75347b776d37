"""Regret on mixed problems with unknown norms, against Optuna and BoTorch's mixed optimiser.

    python -m benchmarks.mixed [--seeds 20] [--runs 50] [--problems func2c,func3c,paint-line,fermenter]
        [--contestants cascada,optuna-tpe,optuna-gp,botorch-mixed] [--records FILE.jsonl] [--write docs/choices.md]

All contestants of one seed begin with the same 2(d + 1) uniform random points and have `--runs` runs in all. Those of
other libraries get the objective only, cascada the outputs of all stages; `func2c` and `func3c` have one stage. With
`--records` finished runs are read from the file and new ones are added to it, so that contestants may be run one after
the other. The packages optuna, torch and botorch are optional.
"""

import argparse
import json
import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from statistics import median

from benchmarks.environment import description, require_one_thread
from benchmarks.markdown import NONE, table, write_section
from benchmarks.mixed_peers import BoTorchMixedPeer
from benchmarks.paired import FLOOR, compare
from cascada.experiments.bench_run import initial_points
from cascada.experiments.contestants import Contestant, PeerContestant, StudyContestant, objective_of
from cascada.experiments.peers import PEERS
from cascada.problems import MIXED, by_name
from cascada.problems.problem import Problem
from cascada.process import Process

NAME = "benchmarks.mixed"
OURS = "cascada"
CONTESTANTS = (OURS, "optuna-tpe", "optuna-gp", "botorch-mixed")


@dataclass(frozen=True)
class Record:
    """The regret of the best run so far after every run."""

    problem: str
    contestant: str
    seed: int
    runs: int
    regrets: list[float]
    seconds: float  # CPU time of all asks and tells


def made(problem: Problem, contestant: str, seed: int, initial: int, runs: int) -> Contestant:
    """The contestant with a name."""
    network = problem.network
    if contestant == OURS:
        return StudyContestant(network, "auto", seed, runs)
    if contestant == "botorch-mixed":
        return PeerContestant(network, BoTorchMixedPeer(network.domain, seed))
    return PeerContestant(network, PEERS[contestant].make(network.domain, seed, initial))


def run(name: str, contestant: str, seed: int, runs: int) -> Record:
    """One run of a contestant."""
    problem = by_name(name)
    network, process = problem.network, Process(problem.network)
    first = initial_points(problem, 2 * (network.domain.dimension + 1), seed)
    taken, best = 0.0, float("-inf")
    regrets: list[float] = []
    started = time.process_time()
    of = made(problem, contestant, seed, len(first), runs)
    for i in range(runs):
        point = first[i] if i < len(first) else of.ask()
        taken += time.process_time() - started
        if point is None:  # no point is worth a run
            regrets.append(regrets[-1])
            started = time.process_time()
            continue
        outputs = process(network.domain.named(point))
        best = max(best, network.sign * objective_of(network, outputs))
        regrets.append(network.sign * problem.optimum[1] - best)
        started = time.process_time()
        of.tell(point, outputs)
    return Record(name, contestant, seed, runs, regrets, taken + time.process_time() - started)


HEADER = (
    "problem",
    "contestant",
    "seeds",
    "regret after half of the runs",
    "regret at the end",
    "cascada better : worse",
    "ratio of regrets, cascada / this",
    "CPU seconds",
)


def rows_of(records: Sequence[Record]) -> list[list[str]]:
    """The rows of one problem."""
    ours = {r.seed: r for r in records if r.contestant == OURS}
    rows = []
    for name in CONTESTANTS:
        own = [r for r in records if r.contestant == name]
        if not own:
            continue
        pairs = [(r, ours[r.seed]) for r in own if r.seed in ours]
        compared = [NONE, NONE]
        if name != OURS and pairs:
            found = compare([r.regrets[-1] for r, _ in pairs], [our.regrets[-1] for _, our in pairs])
            compared = [f"{found.better} : {found.worse}", f"{found.ratio:.2g} [{found.low:.2g}, {found.high:.2g}]"]
        rows.append(
            [
                own[0].problem,
                name,
                str(len(own)),
                f"{median(r.regrets[r.runs // 2 - 1] for r in own):.2g}",
                f"{median(r.regrets[-1] for r in own):.2g}",
                *compared,
                f"{median(r.seconds for r in own):.1f}",
            ]
        )
    return rows


def report(command: str, records: Sequence[Record]) -> str:
    """The section for docs/choices.md."""
    rows = [row for name in MIXED for row in rows_of([r for r in records if r.problem == name])]
    return "\n".join(
        [
            "## Mixed problems with unknown norms",
            "",
            "Medians of the regret of the best run; all contestants of a seed begin with the same 2(d + 1) random",
            f"runs, and have {records[0].runs} runs in all. Ratios are Hodges-Lehmann estimates with 95 % intervals",
            f"over paired seeds; regrets below {FLOOR:g} count as equal. cascada sees the outputs of all stages;",
            "`func2c` and `func3c` have only one. Written by",
            "",
            f"    {command}",
            "",
            description(["numpy", "scipy", *(name for name in ("optuna", "botorch") if find_spec(name))]),
            "",
            table(HEADER, rows),
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        prog=f"python -m {NAME}", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--problems", default=",".join(MIXED))
    parser.add_argument("--contestants", default=",".join(CONTESTANTS))
    parser.add_argument("--records", type=Path)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    require_one_thread()
    warnings.filterwarnings("ignore", module="optuna|botorch|linear_operator|gpytorch")
    known: dict[tuple[str, str, int, int], Record] = {}
    if options.records is not None and options.records.exists():
        for line in options.records.read_text(encoding="utf-8").splitlines():
            record = Record(**json.loads(line))
            known[record.problem, record.contestant, record.seed, record.runs] = record
    problems, contestants = options.problems.split(","), options.contestants.split(",")
    for seed, problem, contestant in product(range(options.seeds), problems, contestants):
        key = problem, contestant, seed, options.runs
        if key not in known:
            known[key] = run(*key)
            if options.records is not None:
                with options.records.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(asdict(known[key])) + "\n")
    shown = [r for r in known.values() if r.problem in problems and r.runs == options.runs]
    command = f"python -m {NAME} --seeds {options.seeds} --runs {options.runs}"
    if options.contestants != ",".join(CONTESTANTS):
        command += f" --contestants {options.contestants}"
    text = report(command, shown)
    print(text)
    if options.write:
        write_section(options.write, NAME, text)


if __name__ == "__main__":
    main()
