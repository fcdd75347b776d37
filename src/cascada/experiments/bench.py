"""A benchmark from beginning to end: runs, records.jsonl, cpu.jsonl, table.md and figures.

`records.jsonl` holds one JSON object a line, sorted by problem, algorithm and seed, and is the same to the byte however
many processes there were; CPU seconds, which never are, have a file of their own.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from cascada.arrays import as_whole_number
from cascada.experiments import bench_plan
from cascada.experiments.bench_figures import draw, require_matplotlib
from cascada.experiments.bench_plan import BenchJob, BenchSettings, Plan
from cascada.experiments.bench_summary import OnProblem, Record, summarise
from cascada.experiments.bench_table import table
from cascada.experiments.finished import Finished, write
from cascada.experiments.pool import Report, UnfinishedError, complete, processes

Work = Callable[[BenchSettings, BenchJob], dict[str, Any]]


@dataclass(frozen=True)
class Benchmark:
    """What was written, and what it says."""

    records: Path
    cpu: Path
    table: Path
    figures: tuple[Path, ...]
    text: str  # of the table
    summary: tuple[OnProblem, ...]


def bench(
    plan: Plan,
    out: Path,
    jobs: int,
    report: Report,
    *,
    retry: bool = False,
    plots: bool = True,
    work: Work = bench_plan.work,
) -> Benchmark:
    """Do what is not done yet, and write everything into the folder `out`; with `retry`, what failed is done again."""
    plan.check()
    if plots:
        require_matplotlib()
    results = compute(plan, out, jobs, report, retry=retry, work=work)
    records, cpu = [result["record"] for result in results], [result["cpu"] for result in results]
    summary = summarise(plan, records, cpu)
    text = table(plan, summary, records)
    write(out / "records.jsonl", _lines(records))
    write(out / "cpu.jsonl", _lines(cpu))
    write(out / "table.md", text)
    figures = tuple(draw(plan, records, out)) if plots else ()
    return Benchmark(out / "records.jsonl", out / "cpu.jsonl", out / "table.md", figures, text, summary)


def compute(
    plan: Plan, out: Path, jobs: int, report: Report, *, retry: bool = False, work: Work = bench_plan.work
) -> list[dict[str, Any]]:
    """The results of all runs of the plan, in the order of `Plan.jobs`."""
    jobs = as_whole_number(jobs, "jobs")
    kept = Finished.open(out, plan.settings.as_json())
    if retry:
        _forget_failed(plan, kept)
    try:
        with processes(jobs) as executor:
            return complete(executor, plan.jobs, partial(work, plan.settings), kept, report)
    except KeyboardInterrupt:
        raise UnfinishedError(
            f"interrupted. Every finished run is kept in {out}: the same command continues from there."
        ) from None


def _forget_failed(plan: Plan, kept: Finished) -> None:
    for job in plan.jobs:
        found = kept.get(job.name)
        if found is not None and found["record"]["status"] == "failed":
            (kept.out / "runs" / f"{job.name}.json").unlink(missing_ok=True)


def _lines(records: Sequence[Record]) -> str:
    return "".join(json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n" for record in records)
