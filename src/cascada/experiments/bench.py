"""A complete benchmark: runs, records.jsonl, cpu.jsonl, table.md and figures.

`records.jsonl` holds one JSON object per line, sorted by problem, algorithm and seed. Its bytes do not depend on the
number of processes. CPU seconds do, so they are in a separate file.
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
from cascada.experiments.pool import Report, UnfinishedError, complete, processes
from cascada.experiments.result_store import ResultStore
from cascada.whole_file import write_whole

Work = Callable[[BenchSettings, BenchJob], dict[str, Any]]


@dataclass(frozen=True)
class Benchmark:
    """The files written and the summary."""

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
    """Do the missing runs and write all files to the folder `out`; with `retry`, failed runs are repeated."""
    plan.check()
    if plots:
        require_matplotlib()
    results = compute(plan, out, jobs, report, retry=retry, work=work)
    records, cpu = [result["record"] for result in results], [result["cpu"] for result in results]
    summary = summarise(plan, records, cpu)
    text = table(plan, summary, records)
    write_whole(out / "records.jsonl", _lines(records))
    write_whole(out / "cpu.jsonl", _lines(cpu))
    write_whole(out / "table.md", text)
    figures = tuple(draw(plan, records, out)) if plots else ()
    return Benchmark(out / "records.jsonl", out / "cpu.jsonl", out / "table.md", figures, text, summary)


def compute(
    plan: Plan, out: Path, jobs: int, report: Report, *, retry: bool = False, work: Work = bench_plan.work
) -> list[dict[str, Any]]:
    """The results of all runs of the plan in the order of `Plan.jobs`; finished runs are read from `out`."""
    jobs = as_whole_number(jobs, "jobs")
    kept = ResultStore.open(out, plan.settings.as_json())
    if retry:
        _forget_failed(plan, kept)
    try:
        with processes(jobs) as executor:
            return complete(executor, plan.jobs, partial(work, plan.settings), kept, report)
    except KeyboardInterrupt:
        raise UnfinishedError(
            f"interrupted. Finished runs are kept in {out}; the same command continues from there."
        ) from None


def _forget_failed(plan: Plan, kept: ResultStore) -> None:
    for job in plan.jobs:
        found = kept.get(job.name)
        if found is not None and found["record"]["status"] == "failed":
            (kept.out / "runs" / f"{job.name}.json").unlink(missing_ok=True)


def _lines(records: Sequence[Record]) -> str:
    return "".join(json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n" for record in records)
