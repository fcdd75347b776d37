"""Number of runs that studies need for a *proven* gap when every stage is read with a bounded error.

    python -m benchmarks.errors [--seeds 10] [--tables targets,others,floors] [--records errors.jsonl]
        [--write docs/performance.md]

Processes of stages of exact norm B = 2, squared exponential kernel of lengthscale 1, controls in [−2, 2]: chains with
two controls at the first stage, a feed-forward network, and one control at each of three stages. Every reading is too
large by the whole error δ: a constant offset is the hardest case. The gap is that of the recommended setting.
"""

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks import read_search
from benchmarks.environment import description
from benchmarks.markdown import NONE, table
from benchmarks.proof_records import Records, print_or_write_proofs
from benchmarks.read_search import BUDGET, GAPS, Proof
from cascada.network import Network, Stage
from cascada.problems import Problem, certified
from cascada.study import Study

NAME = "benchmarks.errors"
LONG, FEWER_SEEDS = 80, 4
ASKED_AT, MOST_SECONDS = 50, 1.0  # the ask of which the time is shown, and its limit


@dataclass(frozen=True)
class Case:
    """A process, the error of each stage, and limits of the medians (None: no limit)."""

    process: str
    error: float
    most_runs: float | None = None  # to a gap of 0.1
    largest_gap: float | None = None  # after all runs
    budget: int = BUDGET
    tolerance: float = min(GAPS)

    def __str__(self) -> str:
        return f"{self.process}, error {self.error:g}, {self.budget} runs, tolerance {self.tolerance:g}"


CASES = (
    Case("chain 2", 0.001, most_runs=12),
    Case("chain 2", 0.01, most_runs=12),
    Case("chain 2", 0.05, largest_gap=0.30),
    Case("chain 3", 0.001, most_runs=12),
    Case("chain 3", 0.01, most_runs=12),
    Case("chain 3", 0.05, largest_gap=0.59),
)
# Without a target: fewer seeds are enough.
OTHERS = (Case("feed-forward", 0.01), Case("controls", 0.01))
# What remains after many runs, in units of the error: no tolerance ends these.
FLOORS = tuple(
    Case(process, error, budget=LONG, tolerance=0.0)
    for process, error in (("chain 2", 0.01), ("chain 2", 0.05), ("chain 3", 0.05))
)


def problem_of(case: Case, seed: int) -> Problem:
    """A process of random stages; readings have the error of the case."""
    if not case.process.startswith("chain"):
        return certified(case.process, seed)
    return read_search.problem_of(int(case.process.split()[1]), seed)


def read_network(problem: Problem, error: float) -> Network:
    """The network of a problem, whose stages are read with an error."""
    return Network(
        [
            Stage(one.name, one.controls, one.outputs, one.parents, one.kernel, one.norm_bound, error=error)
            for one in problem.network.stages
        ]
    )


def prove(case: Case, seed: int) -> Proof:
    """Optimise one process until the tolerance is reached, or the budget is used up."""
    warnings.simplefilter("ignore", RuntimeWarning)  # of a tolerance that the errors hardly allow
    problem, started = problem_of(case, seed), time.process_time()
    network = read_network(problem, case.error)
    study, names = Study(network, tolerance=case.tolerance), network.domain.names
    gaps: list[float] = []
    regret, ask, began = np.inf, None, started
    while len(gaps) < case.budget and (trial := study.ask()) is not None:
        values = problem.values(np.array([[trial.controls[name] for name in names]]))[0] + case.error
        study.tell(trial, {node.stage.name: [float(values[c]) for c in node.columns] for node in network.nodes})
        found = study.certificate()
        assert found.gap is not None, "norms are given"
        assert found.bound is not None, "norms are given"
        assert found.recommended is not None, "a run is complete"
        value = float(problem.objective(np.array([[found.recommended.controls[name] for name in names]]))[0])
        regret = problem.optimum[1] - value
        assert found.recommended.at_least <= value + 1e-9, "the recommended setting gives less than was proven"
        assert found.bound >= problem.optimum[1] - 1e-6, "a setting gives more than was proven to be possible"
        gaps.append(found.gap)
        began, before = time.process_time(), began
        ask = began - before if len(gaps) == ASKED_AT else ask
    return Proof(tuple(gaps), regret, time.process_time() - started, ask)


def row(case: Case, proofs: Sequence[Proof]) -> list[str]:
    needed = [[proof.runs_to(gap) for proof in proofs] for gap in GAPS]
    median = float(np.median([np.inf if runs is None else runs for runs in needed[-1]]))
    last = float(np.median([proof.gaps[-1] for proof in proofs]))
    target = NONE
    if case.most_runs is not None:
        target = f"{'reached' if median <= case.most_runs else 'missed'}: {median:g} ≤ {case.most_runs:g} runs"
    if case.largest_gap is not None:
        target = f"{'reached' if last <= case.largest_gap else 'missed'}: gap {last:.3f} ≤ {case.largest_gap:g}"
    return [
        case.process,
        f"{case.error:g}",
        *(", ".join(NONE if runs is None else str(runs) for runs in counts) for counts in needed),
        ", ".join(f"{proof.gaps[-1]:.3f}" for proof in proofs),
        f"{max(proof.regret for proof in proofs):.4f}",
        target,
        f"{np.median([proof.seconds / len(proof.gaps) for proof in proofs]):.2f}",
    ]


HEADER = (
    "process",
    "error",
    *(f"runs to {gap:g}" for gap in GAPS),
    f"gap at the end, or after {BUDGET} runs",
    "largest true regret",
    "target (median)",
    "seconds per run",
)


FLOOR_HEADER = (
    "process",
    "error",
    f"gap after {LONG} runs / error",
    "median",
    f"seconds of ask {ASKED_AT}, the slowest",
    "target",
)


def floor_row(case: Case, proofs: Sequence[Proof]) -> list[str]:
    last = [proof.gaps[-1] / case.error for proof in proofs]
    asks = [np.nan if proof.ask is None else proof.ask for proof in proofs]
    gaps = ", ".join(f"{gap:.1f}" for gap in last)
    target = f"{'reached' if max(asks) < MOST_SECONDS else 'missed'}: < {MOST_SECONDS:g} s"
    return [case.process, f"{case.error:g}", gaps, f"{np.median(last):.1f}", f"{max(asks):.2f}", target]


def report(command: str, seeds: int, records: Records, tables: Sequence[str]) -> str:
    """The section for docs/performance.md."""
    fewer = min(seeds, FEWER_SEEDS)
    wanted = [(case, seeds) for case in CASES if "targets" in tables]
    wanted += [(case, fewer) for case in OTHERS if "others" in tables]
    rows = [row(case, records.proofs([case], count, prove)[0]) for case, count in wanted]
    lines = [
        "## Runs to a proven gap from readings with errors",
        "",
        f"{seeds} random processes each (at most {FEWER_SEEDS} where there is no target), all stages of exact norm 2;",
        "every reading is too large by its error. Seconds are of computation, on one core. Written by",
        "",
        f"    {command}",
        "",
        description(["numpy", "scipy"]),
        "",
        table(HEADER, rows),
    ]
    if "floors" in tables:
        floors = [floor_row(case, records.proofs([case], fewer, prove)[0]) for case in FLOORS]
        text = f"The gap that remains after {LONG} runs without a tolerance, in units of the error, of the first seeds:"
        lines += ["", text, "", table(FLOOR_HEADER, floors)]
    return "\n".join(lines)


if __name__ == "__main__":
    print_or_write_proofs(NAME, __doc__, report, 10, ("targets", "others", "floors"))
