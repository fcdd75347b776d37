"""Regret with several pending runs relative to one run at a time.

    python -m benchmarks.batch [--problems drop-wave,ackley,certified-chain] [--pending 4] [--seeds 10] [--budget 50]
        [--jobs 2] [--write FILE.md]

Both begin with the same 2(d + 1) uniform random runs. Then `--budget` runs of `auto` follow with `--pending` runs
pending at any time: the oldest one is completed, and a new point is chosen. Prints the median regret of both and their
ratio. With three other pending runs, a choice is based on three runs less. So it also prints the regret of single runs
without the last three, and the ratio to that: the loss apart from the missing information. The last column is the
median over seeds of the ratio of both regrets of a seed. For the certified chain every seed gives another random
process. On two free cores ten seeds take about ten minutes.
"""

import argparse
from itertools import product
from pathlib import Path
from statistics import median

from benchmarks.environment import description, require_one_thread
from benchmarks.markdown import table, write_section
from cascada.experiments.bench_run import initial_points
from cascada.experiments.pool import processes
from cascada.problems import Problem, by_name, certified
from cascada.process import Process
from cascada.study import Study

NAME = "benchmarks.batch"
PROBLEMS = ("drop-wave", "ackley", "certified-chain")
AIM = 2.0  # the largest acceptable ratio
FLOOR = 1e-12  # smaller regrets are equal: optima are known to a finite accuracy


def problem_of(name: str, seed: int) -> Problem:
    """A built-in problem; for a certified family, the one with this seed."""
    return certified("chain", seed=seed) if name == "certified-chain" else by_name(name)


def regrets(name: str, pending: int, seed: int, budget: int) -> list[float]:
    """The simple regret after each run with `pending` runs at once."""
    problem = problem_of(name, seed)
    network, process = problem.network, Process(problem.network)
    study = Study(network, seed=seed)
    for point in initial_points(problem, 2 * (network.domain.dimension + 1), seed):
        controls = network.domain.named(point)
        study.add_trial(controls, process(controls))
    under_way = study.ask(min(pending, budget))
    begun, found = len(under_way), []
    while under_way:
        oldest = under_way.pop(0)
        study.tell(oldest, process(oldest.controls))
        assert study.best_trial is not None
        assert study.best_trial.value is not None
        found.append(network.sign * (problem.optimum[1] - study.best_trial.value))
        if begun < budget:
            fresh = study.ask(1)
            under_way += fresh
            begun += len(fresh) or budget  # no point is worth a run any more
    return found + found[-1:] * (budget - len(found))


def report(problems: list[str], pending: int, seeds: int, budget: int, workers: int) -> str:
    """The table as Markdown."""
    jobs = list(product(problems, (1, pending), range(seeds)))
    with processes(workers) as pool:
        futures = {job: pool.submit(regrets, *job, budget) for job in jobs}
        found = {job: future.result() for job, future in futures.items()}
    rows = []
    for name in problems:
        one, several = (
            [median(found[name, at_once, seed][t] for seed in range(seeds)) for t in range(budget)]
            for at_once in (1, pending)
        )
        less = one[-pending] if budget >= pending else one[0]
        ratio, beyond = (max(several[-1], 0.0) / max(regret, 1e-300) for regret in (one[-1], less))
        numbers = [f"{x:.3g}" for x in (one[-1], several[-1], less)]
        ends = [[max(found[name, at_once, seed][-1], FLOOR) for seed in range(seeds)] for at_once in (1, pending)]
        pairs = median(b / a for a, b in zip(*ends, strict=True))
        rows.append([name, *numbers[:2], f"{ratio:.2g}", "yes" if ratio <= AIM else "no", numbers[2], f"{beyond:.2g}"])
        rows[-1].append(f"{pairs:.2g}")
    head = ["problem", "one at a time", f"{pending} at once", "ratio", f"at most {AIM:g}"]
    head += [f"one at a time, {pending - 1} runs less", "ratio to that", "median ratio of a seed"]
    command = f"python -m {NAME} --problems {','.join(problems)} --pending {pending} --seeds {seeds} --budget {budget}"
    said = f"Median regret of {seeds} seeds after {budget} runs beyond the initial design. {description(['numpy'])}"
    return f"    {command}\n\n{said}\n\n{table(head, rows)}"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog=f"python -m {NAME}", description=__doc__)
    parser.add_argument("--problems", default=",".join(PROBLEMS))
    parser.add_argument("--pending", type=int, default=4)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--budget", type=int, default=50)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    require_one_thread()
    text = report(given.problems.split(","), given.pending, given.seeds, given.budget, given.jobs)
    print(text)
    if given.write:
        write_section(given.write, NAME, text)


if __name__ == "__main__":
    main()
