"""The complete reproduction of the paper's experiments (`sec:exp`): runs, results.json, claims.md and figures."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from cascada.arrays import as_whole_number
from cascada.experiments import plan
from cascada.experiments.family import Profile, pick
from cascada.experiments.plan import Job, Settings
from cascada.experiments.pool import Report, UnfinishedError, complete, processes
from cascada.experiments.result_store import ResultStore, as_text
from cascada.whole_file import write_whole

Work = Callable[[Settings, Job], Any]


@dataclass(frozen=True)
class Reproduction:
    """The files written and the printed table of claims."""

    results: Path
    claims: Path
    figures: tuple[Path, ...]
    table: str
    content: dict[str, Any]  # of results.json


def reproduce(settings: Settings, out: Path, jobs: int, report: Report, work: Work = plan.work) -> Reproduction:
    """Do the missing runs and write all files to the folder `out`."""
    # Imported here because drawing needs an optional dependency.
    from cascada.experiments.claims import claims, table
    from cascada.experiments.figures import draw

    results = compute(settings, out, jobs, report, work)
    found = claims(results)
    results["claims"] = [asdict(claim) for claim in found]
    text = table(found)
    write_whole(out / "results.json", as_text(results))
    write_whole(out / "claims.md", f"# The paper's claims\n\n{text.rstrip()}\n")
    return Reproduction(out / "results.json", out / "claims.md", tuple(draw(results, out)), text, results)


def compute(settings: Settings, out: Path, jobs: int, report: Report, work: Work = plan.work) -> dict[str, Any]:
    """All results: settings, chains, runs. They do not depend on the number of jobs."""
    jobs = as_whole_number(jobs, "jobs")
    finished = ResultStore.open(out, settings.as_json())
    do = partial(work, settings)
    try:
        with processes(jobs) as executor:
            family = complete(executor, plan.profiles(settings), do, finished, lambda _done, _total: None)
            g1, g2 = pick([Profile(**found) for found in family])
            chains = plan.chosen(settings, g1, g2)
            sequential, whole = plan.runs(settings, chains, g1, g2), plan.non_adaptive(chains)
            regrets = complete(executor, [*sequential, *whole], do, finished, report)
    except KeyboardInterrupt:
        raise UnfinishedError(
            f"interrupted. Finished runs are kept in {out}; the same command continues from there."
        ) from None
    count = len(sequential)
    return {
        "settings": settings.as_json(),
        "family": family,
        "chains": [family[chain] for chain in chains],
        "g1": g1,
        "g2": g2,
        "runs": [
            {"chain": job.chain, "algorithm": job.label, "trial": job.trial, "regret": regret}
            for job, regret in zip(sequential, regrets[:count], strict=True)
        ],
        "non_adaptive": [
            {"chain": job.chain, "runs": runs, "regret": regret}
            for job, each in zip(whole, regrets[count:], strict=True)
            for runs, regret in zip(settings.non_adaptive_runs, each, strict=True)
        ],
    }
