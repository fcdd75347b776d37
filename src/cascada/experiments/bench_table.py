"""The summary of a benchmark as a Markdown table."""

from collections import Counter
from collections.abc import Sequence

from cascada.experiments.bench_plan import Plan
from cascada.experiments.bench_profile import profile_table
from cascada.experiments.bench_summary import (
    CONFIDENCE,
    FLOOR,
    OnProblem,
    PairedComparison,
    Quartiles,
    Record,
    Standing,
)
from cascada.outwards import rounded_up
from cascada.tables import markdown_table

_NOTES = f"""\
- Regret: the median over seeds of optimum − best value so far, and in brackets its quartiles; columns count evaluations
  after the initial design, which is the same for all algorithms with the same seed, and give what these evaluations
  cost, all stages together: a row is regret by cost as well. Failed runs are left out.
- CPU: seconds of one ask and its tell, one thread; the median over the last ten of every run.
- Ratio: final regret over that of the first algorithm with the same seed, below 1 is better; the median and, from six
  pairs on, the sign test's exact interval ({CONFIDENCE:.0%}, each comparison by itself). Regrets below {FLOOR:g} of the
  problem's scale (optimum − median value of the initial designs) count as that much: two such are equal.
"""


def table(plan: Plan, summary: Sequence[OnProblem], records: Sequence[Record]) -> str:
    """The whole report, problem by problem."""
    settings = plan.settings
    design = "2(d + 1)" if settings.initial is None else str(settings.initial)
    seeds = "one seed" if plan.seeds == 1 else f"{plan.seeds} seeds"
    parts = [
        "# Benchmark",
        f"{settings.budget} evaluations after {design} uniform random ones, {seeds}. {_versions(records)}.",
        *(_problem(plan, found) for found in summary),
    ]
    if len(summary) > 1 and len(plan.algorithms) > 1:
        parts.append(_over_all(plan, summary, records))
    return "\n\n".join([*parts, f"## How to read this\n\n{_NOTES}"])


def _problem(plan: Plan, found: OnProblem) -> str:
    heading = f"## {found.problem}\n\noptimum {found.optimum:.6g}, initial design {found.initial}"
    heading += f", cost of a run {found.cost:g}: {plan.settings.budget * found.cost:g} in all"
    parts = [heading, _standings(plan, found.standings, found.cost)]
    if found.comparisons:
        parts.append(f"Against {plan.algorithms[0]}, seed by seed:")
        parts.append(
            markdown_table(
                ["algorithm", "better", "equal", "worse", "ratio", ""], [_row(one) for one in found.comparisons]
            )
        )
    if found.beyond:
        parts.append(f"Note: a run beats the optimum by {found.beyond:.2g}; the problem's optimum is not its maximum.")
    parts += [_failures(each) for each in found.standings if each.failed]
    parts += [_replaced(each) for each in found.standings if each.replaced]
    return "\n\n".join(parts)


def _failures(standing: Standing) -> str:
    message = (standing.message or "").partition("\n")[0]
    return f"{standing.failed} of {standing.runs} runs of {standing.algorithm} failed, the first with: {message}"


def _replaced(standing: Standing) -> str:
    return (
        f"{standing.algorithm} asked {standing.replaced} times for a point that was run before; a random one was run."
    )


def _standings(plan: Plan, standings: Sequence[Standing], cost: float) -> str:
    gaps = ["gap at the end"] if plan.settings.gaps else []
    spent = [f"{count} (cost {count * cost:g})" for count in plan.settings.checkpoints]
    heading = ["algorithm", "runs", "failed", *spent, *gaps, "CPU s"]
    rows = []
    for each in standings:
        cells = [_regret(q) for q in each.quartiles] or ["–"] * len(plan.settings.checkpoints)
        cpu = "–" if each.cpu is None else f"{each.cpu:.2g}"
        gap = [_gap(each)] if plan.settings.gaps else []
        rows.append([each.algorithm, str(each.runs), str(each.failed), *cells, *gap, cpu])
    return markdown_table(heading, rows)


def _regret(quartiles: Quartiles) -> str:
    return f"{quartiles.median:.2g} [{quartiles.low:.2g}, {quartiles.high:.2g}]"


def _gap(standing: Standing) -> str:
    kinds = ", ".join(f"{count} {kind}" for kind, count in standing.gap_kinds.items())
    return f"{'none' if standing.gap is None else rounded_up(standing.gap, 2)} ({kinds})" if kinds else "–"


def _row(found: PairedComparison) -> list[str]:
    ratio = "–" if found.ratio is None else f"{found.ratio:.2g}"
    if found.low is not None and found.high is not None:
        ratio += f" [{found.low:.2g}, {found.high:.2g}]"
    return [found.algorithm, str(found.better), str(found.equal), str(found.worse), ratio, found.verdict]


def _over_all(plan: Plan, summary: Sequence[OnProblem], records: Sequence[Record]) -> str:
    """The number of problems on which each algorithm is better or worse than the first one."""
    rows = []
    for position, algorithm in enumerate(plan.algorithms[1:]):
        verdicts = Counter(found.comparisons[position].verdict for found in summary)
        rows.append([algorithm, *(str(verdicts[verdict]) for verdict in ("better", "worse", "undecided"))])
    heading = f"## Over all problems\n\nHow many of the {len(summary)} problems, against {plan.algorithms[0]}:"
    verdicts_ = markdown_table(["algorithm", "better", "worse", "undecided"], rows)
    profiles = "How often the final regret is within a factor of the best of all algorithms with the same seed:"
    return f"{heading}\n\n{verdicts_}\n\n{profiles}\n\n{profile_table(plan, records)}"


def _versions(records: Sequence[Record]) -> str:
    """The package versions of all records, which may differ."""
    found: dict[str, set[str]] = {}
    for record in records:
        for package, version in record["versions"].items():
            found.setdefault(package, set()).add(version)
    return ", ".join(f"{package} {' and '.join(sorted(versions))}" for package, versions in found.items())
