"""Number of runs to the answer of processes with limits, and of safe mode.

    python -m benchmarks.limits [--seeds 10] [--write docs/performance.md]

Stages of exact norm B = 2, squared exponential kernel of lengthscale 1, controls in [−2, 2], and a limit on the output
of the first stage (`cascada.problems.limited_problem`).
"""

import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np

from benchmarks.command import print_or_write_seeds
from benchmarks.environment import description
from benchmarks.markdown import NONE, Target, table
from cascada.network.limits import margins
from cascada.problems.limited_problem import LIMITED, LimitedProblem, LimitKind, limited
from cascada.study import maximise

NAME = "benchmarks.limits"
TOLERANCE, BUDGET = 0.02, 80
SAFE_RUNS = 5  # the most that safe mode may add to the median

#: The limit of the median number of runs to the answer.
TARGETS: dict[tuple[str, LimitKind], int] = {
    ("chain", "cut"): 14,
    ("feed-forward", "cut"): 17,
    ("join", "cut"): 19,
    ("chain", "band"): 12,
    ("feed-forward", "band"): 15,
    ("join", "band"): 18,
    ("chain", "none"): 7,
    ("feed-forward", "none"): 12,
    ("join", "none"): 12,
}


@dataclass(frozen=True)
class Answer:
    """One search: runs, runs that broke a limit, seconds of computation, true regret, and whether it was answered."""

    runs: int
    broken: int
    seconds: float
    regret: float
    answered: bool


def answer(structure: str, kind: LimitKind, safe: bool, seed: int) -> Answer:
    """Search until the gap is proven, or that no setting satisfies the limit."""
    problem = limited(structure, seed, kind)
    started = time.process_time()
    result = maximise(
        problem.network,
        budget=BUDGET,
        tolerance=TOLERANCE,
        safe=safe,
        start=inside(problem) if safe else None,
        progress=False,
    )
    seconds, certificate = time.process_time() - started, result.certificate
    regret = np.nan
    if certificate.reached is not None and problem.best_feasible is not None:
        controls = result.best.controls if certificate.recommended is None and result.best else None
        setting = certificate.recommended.controls if certificate.recommended is not None else controls
        assert setting is not None, "a value is reached by a run or by a recommended setting"
        true = float(problem.problem.objective(problem.network.domain.row(setting)[None])[0])
        regret = problem.best_feasible[1] - true
    return Answer(
        len(result.trials),
        sum(not problem.network.is_feasible(trial.outputs) for trial in result.trials),
        seconds,
        regret,
        result.status == ("infeasible" if kind == "none" else "tolerance"),
    )


def inside(problem: LimitedProblem) -> dict[str, float | int]:
    """The start of safe mode: of many settings, the one that satisfies the limits by most."""
    domain = problem.network.domain
    points = np.random.default_rng(3).uniform(domain.lower, domain.upper, (20_000, domain.dimension))
    margin = margins(problem.network.limits, problem.problem.values(points)).min(axis=1)
    return domain.named(domain.decode(points[[margin.argmax()]])[0])


def row(structure: str, kind: LimitKind, answers: list[Answer]) -> list[str]:
    runs = [one.runs for one in answers]
    verdict = Target(TARGETS[structure, kind], at_least=False).verdict(float(np.median(runs)))
    regrets = [one.regret for one in answers if np.isfinite(one.regret)]
    return [
        structure,
        kind,
        f"{sum(one.answered for one in answers)} of {len(answers)}",
        f"{np.median(runs):g}",
        f"{min(runs)}–{max(runs)}",
        verdict.replace("×", ""),
        f"{np.median([one.broken for one in answers]):g}",
        f"{np.median(regrets):.2g}" if regrets else NONE,
        f"{np.median([one.seconds for one in answers]):.1f}",
    ]


def safe_row(structure: str, free: list[Answer], safe: list[Answer]) -> list[str]:
    more = float(np.median([one.runs for one in safe]) - np.median([one.runs for one in free]))
    return [
        structure,
        f"{sum(one.answered for one in safe)} of {len(safe)}",
        f"{np.median([one.runs for one in free]):g}",
        f"{np.median([one.runs for one in safe]):g}",
        Target(SAFE_RUNS, at_least=False).verdict(more).replace("×", ""),
        f"{sum(one.broken for one in free)} of {sum(one.runs for one in free)}",
        f"{sum(one.broken for one in safe)} of {sum(one.runs for one in safe)}",
    ]


def report(command: str, seeds: int) -> str:
    """The section for docs/performance.md."""
    with ProcessPoolExecutor(2) as pool:
        answers = {key: list(pool.map(partial(answer, *key, False), range(seeds))) for key in TARGETS}
        safe = {name: list(pool.map(partial(answer, name, "cut", True), range(seeds))) for name in LIMITED}
    return "\n".join(
        [
            "## Runs to a proven answer with limits",
            "",
            f"{seeds} random processes each, all stages of exact norm 2, with a limit on the first stage: one that",
            "keeps its output a fifth of its range away from the optimum's (cut), a band of a tenth of its range",
            f"(band), or a limit that no setting satisfies (none). Runs to a proven gap of {TOLERANCE:g} among",
            "feasible settings, or to the proof that there is none, with the default algorithm; medians. The regret is",
            "the true one of the run or recommended setting. Written by",
            "",
            f"    {command}",
            "",
            description(["numpy", "scipy"]),
            "",
            table(
                ("structure", "limit", "answered", "runs", "range", "target", "broke the limit", "regret", "seconds"),
                [row(*key, found) for key, found in answers.items()],
            ),
            "",
            "Safe mode, from a start that satisfies the limit (cut) by most: runs to the same proof, and the runs that",
            "broke the limit in all searches together.",
            "",
            table(
                ("structure", "proven", "runs", "runs, safe", "target (more runs)", "broken", "broken, safe"),
                [safe_row(name, answers[name, "cut"], safe[name]) for name in LIMITED],
            ),
        ]
    )


if __name__ == "__main__":
    print_or_write_seeds(NAME, __doc__, report, 10)
