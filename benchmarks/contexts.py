"""Regret over a stream of random contexts, against ordinary controls that are fixed and against a study per context.

    python -m benchmarks.contexts [--seeds 5] [--contexts 60] [--records FILE.jsonl] [--write docs/contexts.md]

Two processes of which one control is measured instead of chosen: a certified one with norms and a tolerance, and the
tablets without norms. Contexts are drawn at random, one for each run. Contestants of one seed meet the same contexts:

- `context`: one study, with `context=True`. Where it asks for no run, the gap is within the tolerance and the setting
  of its certificate is used.
- `fixed`: one study of the same process with an ordinary control, which is fixed for each run. It aims at the best
  setting of all. Where it asks for no run, the other controls are those of its best run.
- `fresh`: a new study for each context, with so many runs there, of which the best counts.

The regret is that of what is used at each context, as a part of the range of the objective.
With `--records` finished runs are read from the file and new ones are added to it.
"""

import argparse
import json
import time
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import asdict, dataclass
from functools import cache
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.environment import description, require_one_thread
from benchmarks.markdown import NONE, table, write_section
from benchmarks.paired import FLOOR, compare
from cascada.network import Network, Stage
from cascada.problems import Problem, certified, tablet
from cascada.process import Process
from cascada.space import Real
from cascada.study import Study

NAME = "benchmarks.contexts"
SAMPLE, ROUNDS = 4_000, 12  # of a search for the best value at a context
FRESH_RUNS = (1, 5)


@dataclass(frozen=True)
class Case:
    """A process, the control that is measured, and the tolerance of its studies."""

    problem: Callable[[int], Problem]
    measured: str
    tolerance: float | None


CASES: Mapping[str, Case] = {
    "certified-controls": Case(lambda seed: certified("controls", seed), "y", 0.05),
    "tablet": Case(lambda _seed: tablet(), "x1", None),
}
CONTESTANTS = ("context", "fixed", *(f"fresh-{runs}" for runs in FRESH_RUNS))


@dataclass(frozen=True)
class Record:
    """The regrets at all contexts, in their order, and the runs that were made."""

    case: str
    contestant: str
    seed: int
    contexts: int
    regrets: list[float]
    runs: int
    seconds: float


def with_control(problem: Problem, name: str, control: Real) -> Network:
    """The process with another declaration of a control."""
    stages: list[Stage] = []
    for stage in problem.network.stages:
        changed = copy(stage)
        controls = {each: control if each == name else old for each, old in stage.controls.items()}
        object.__setattr__(changed, "controls", controls)
        stages.append(changed)
    return Network(stages, ".".join(problem.network.objective))


class Truth:
    """The process as it is: its best values at contexts, and the range of its objective."""

    def __init__(self, problem: Problem, measured: str) -> None:
        self.problem, self.domain = problem, problem.network.domain
        self.column = self.domain.names.index(measured)
        values = problem.objective(self.domain.uniform(np.random.default_rng(0), SAMPLE))
        self.range = float(np.ptp(values))

    def best_at(self, value: float) -> float:
        """The best value at a context, by a sample that shrinks around its best points."""
        rng, found = np.random.default_rng(1), -np.inf
        lower, upper = self.domain.lower, self.domain.upper
        centres = self.domain.uniform(rng, SAMPLE)
        for round_ in range(ROUNDS):
            centres[:, self.column] = value
            values = self.problem.objective(centres)
            found = max(found, float(values.max()))
            top = centres[np.argsort(-values)[:20]]
            spread = (upper - lower) * 0.1 * 0.4**round_
            moved = np.repeat(top, 50, axis=0) + spread * rng.standard_normal((1000, self.domain.dimension))
            centres = np.clip(np.concatenate([top, moved]), lower, upper)
        return found

    def value_at(self, controls: Mapping[str, Any]) -> float:
        """The objective of a setting."""
        return float(self.problem.objective(self.domain.row(controls)[None])[0])


@cache
def truth_of(case: str, seed: int) -> tuple[Truth, tuple[float, ...], tuple[float, ...]]:
    """The truth, the first hundred contexts of a seed, and the best value at each."""
    truth = Truth(CASES[case].problem(seed), CASES[case].measured)
    control = truth.domain.controls[CASES[case].measured]
    rng = np.random.default_rng([seed, *case.encode()])
    contexts = tuple(rng.uniform(float(control.low), float(control.high), 100).tolist())
    return truth, contexts, tuple(truth.best_at(value) for value in contexts)


def with_context(case: Case, truth: Truth, contexts: Sequence[float], seed: int) -> tuple[list[float], int]:
    """The values of one study with `context=True`, and the number of its runs."""
    old = truth.domain.controls[case.measured]
    network = with_control(truth.problem, case.measured, Real(float(old.low), float(old.high), context=True))
    study, process, values = Study(network, tolerance=case.tolerance, seed=seed), Process(network), []
    for value in contexts:
        trial = study.ask(context={case.measured: value})
        if trial is None:
            setting = study.certificate(context={case.measured: value}).recommended
            assert setting is not None, "a gap within the tolerance is that of a setting"
            values.append(truth.value_at(setting.controls))
        else:
            study.tell(trial, process(trial.controls))
            values.append(truth.value_at(trial.controls))
    return values, len(study.trials)


def with_fixed(case: Case, truth: Truth, contexts: Sequence[float], seed: int) -> tuple[list[float], int]:
    """The values of one study in which the control is fixed for each run, and the number of its runs."""
    network = truth.problem.network
    study, process, values = Study(network, tolerance=case.tolerance, seed=seed), Process(network), []
    for value in contexts:
        trial = study.ask(fixed={case.measured: value})
        if trial is None:
            assert study.best_trial is not None, "there were runs"
            values.append(truth.value_at({**study.best_trial.controls, case.measured: value}))
        else:
            study.tell(trial, process(trial.controls))
            values.append(truth.value_at(trial.controls))
    return values, len(study.trials)


def fresh(runs: int, case: Case, truth: Truth, contexts: Sequence[float], seed: int) -> tuple[list[float], int]:
    """The best values of studies for one context each, and the number of their runs."""
    values, total = [], 0
    for value in contexts:
        network = with_control(truth.problem, case.measured, Real(value, value))
        study, process = Study(network, tolerance=case.tolerance, seed=seed), Process(network)
        while len(study.trials) < runs and (trial := study.ask()) is not None:
            study.tell(trial, process(trial.controls))
        assert study.best_trial is not None, "there were runs"
        values.append(truth.value_at(study.best_trial.controls))
        total += len(study.trials)
    return values, total


def run(case: str, contestant: str, seed: int, count: int) -> Record:
    """Run a contestant over the contexts of a seed."""
    truth, contexts, best = truth_of(case, seed)
    started = time.process_time()
    of = CASES[case], truth, contexts[:count], seed
    if contestant == "context":
        values, runs = with_context(*of)
    elif contestant == "fixed":
        values, runs = with_fixed(*of)
    else:
        values, runs = fresh(int(contestant.partition("-")[2]), *of)
    seconds = time.process_time() - started
    regrets = [(top - value) / truth.range for top, value in zip(best, values, strict=False)]
    return Record(case, contestant, seed, count, regrets, runs, seconds)


HEADER = (
    "process",
    "contestant",
    "seeds",
    "runs",
    "mean regret, all contexts",
    "second half",
    "last ten",
    "largest of the last ten",
    "second half, ratio of this to context",
    "CPU seconds",
)


def rows_of(records: Sequence[Record]) -> list[list[str]]:
    """The rows of one process."""
    reference = {r.seed: r for r in records if r.contestant == "context"}
    rows = []
    for name in CONTESTANTS:
        own = [r for r in records if r.contestant == name]
        if not own:
            continue
        half = own[0].contexts // 2
        pairs = [(r, reference[r.seed]) for r in own if r.seed in reference]
        ratio = NONE
        if name != "context" and pairs:
            found = compare(
                [float(np.mean(other.regrets[half:])) for _, other in pairs],
                [float(np.mean(r.regrets[half:])) for r, _ in pairs],
            )
            ratio = f"{found.ratio:.2g} [{found.low:.2g}, {found.high:.2g}]"
        rows.append(
            [
                own[0].case,
                name,
                str(len(own)),
                f"{median(r.runs for r in own):g}",
                *(f"{median(float(np.mean(r.regrets[part:])) for r in own):.2g}" for part in (0, half, -10)),
                f"{max(max(r.regrets[-10:]) for r in own):.2g}",
                ratio,
                f"{median(r.seconds for r in own):.0f}",
            ]
        )
    return rows


def report(command: str, records: Sequence[Record]) -> str:
    """The section for docs/contexts.md."""
    count = max(r.contexts for r in records)
    rows = [row for case in CASES for row in rows_of([r for r in records if r.case == case])]
    tolerance = CASES["certified-controls"].tolerance
    return "\n".join(
        [
            f"## Regret over {count} contexts",
            "",
            "Random contexts, one run at each; medians over seeds of mean regrets, as parts of the objective's range.",
            f"`certified-controls` has norms, and a tolerance of {tolerance:g}; `tablet` has none. `fixed` treats the",
            "context as an ordinary control and fixes it for each run. `fresh-1` and `fresh-5` begin a new study for",
            "each context, with one run and five runs, of which the best counts. The ratio is a Hodges-Lehmann",
            f"estimate with a 95 % interval over paired seeds; regrets below {FLOOR:g} count as equal. Written by",
            "",
            f"    {command}",
            "",
            description(["numpy", "scipy"]),
            "",
            table(HEADER, rows),
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        prog=f"python -m {NAME}", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--contexts", type=int, default=60)
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--contestants", default=",".join(CONTESTANTS))
    parser.add_argument("--records", type=Path)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    require_one_thread()
    known: dict[tuple[str, str, int, int], Record] = {}
    if options.records is not None and options.records.exists():
        for line in options.records.read_text(encoding="utf-8").splitlines():
            record = Record(**json.loads(line))
            known[record.case, record.contestant, record.seed, record.contexts] = record
    records = []
    for seed, case, contestant in product(
        range(options.seeds), options.cases.split(","), options.contestants.split(",")
    ):
        key = case, contestant, seed, options.contexts
        if key not in known:
            known[key] = run(*key)
            if options.records is not None:
                with options.records.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(asdict(known[key])) + "\n")
        records.append(known[key])
    text = report(f"python -m {NAME} --seeds {options.seeds} --contexts {options.contexts}", records)
    print(text)
    if options.write:
        write_section(options.write, NAME, text)


if __name__ == "__main__":
    main()
