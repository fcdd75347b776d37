"""The content of a report as JSON: text, figures and tables."""

import json
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

from cascada import __version__
from cascada.report.acquisition import caption_of_acquisition, plot_acquisition
from cascada.report.bound_after import BoundAfter
from cascada.report.contributions import caption_of_contributions, gap_contributions, plot_gap_contributions
from cascada.report.cost import CAPTION_OF_COST, plot_cost
from cascada.report.graph import plot_network
from cascada.report.history import bound_history, plot_optimization_history
from cascada.report.parallel import plot_parallel_coordinate
from cascada.report.runs import facts_of_runs, objective_at, table
from cascada.report.stages import caption_of_stage, figures_of_stages
from cascada.report.theme import number
from cascada.report.words import summary
from cascada.study.reader import Reader

_VERSIONS = ("numpy", "scipy", "plotly")


def payload(study: Reader, name: str, command: str | None = None) -> dict[str, Any]:
    """Return all data that `page.js` shows."""
    contributions = gap_contributions(study)
    judged = judgement(study, contributions)
    judged["words"] += probable_words(study)  # a live page, which is computed again and again, has none
    return judged | {
        "name": name,
        "facts": facts_of_runs(study.network, study.trials) + judged["facts"],
        "figures": figures(study, bound_history(study), contributions),
        "trials": table(study.network, study.trials, study.state.notes),
        "objective": objective_at(study.network),
        "versions": versions(),
        "command": command,
    }


def probable_words(study: Reader) -> list[str]:
    """Return the statement of the probable gap as a paragraph; nothing where there is none."""
    probable = study.probable_gap_if_defined()
    return [] if probable is None or probable.gap is None else [str(probable)]


def versions() -> dict[str, str]:
    """Return the versions of the software that made the page."""
    return {"cascada": __version__, "Python": platform.python_version()} | {name: version(name) for name in _VERSIONS}


def judgement(study: Reader, contributions: dict[str, float]) -> dict[str, Any]:
    """Return the gap of the best run, in numbers and in words, with its assumptions and evidence."""
    certificate = study.certificate()
    shown, known = certificate.shown, certificate.gap is not None or certificate.kind == "refuted"
    gap = "none" if shown is None else shown.gap
    kind: str = certificate.kind if known else "not known yet"
    if certificate.depends_on:
        kind = f"for a given {' and '.join(certificate.depends_on)} only"
    if certificate.answer == "infeasible":
        gap, kind = "none: no setting satisfies the limits", certificate.kind
    return {
        "facts": [["gap", gap], ["this is", kind], *([["spent", number(study.spent)]] if study.network.priced else [])],
        "words": summary(study, certificate, contributions),
        "assumptions": list(certificate.assumptions),
        "evidence": list(certificate.evidence),
    }


def figures(study: Reader, bounds: Sequence[BoundAfter], contributions: Mapping[str, float]) -> list[dict[str, Any]]:
    """Return all figures, each with an id and a caption that also serves as its alternative text."""
    complete = any(trial.value is not None for trial in study.trials)
    history = "Every run and the best value so far."
    if bounds:
        which = "feasible setting" if study.network.limits else "setting"
        history = f"Every run, the best value so far, and the bound that no {which} can beat."
    if study.network.limits:
        history += " Crosses are runs that broke a limit; only the others count for the best value."
    values = ", with the values of the best run" if study.best_trial is not None else ""
    found = [
        ("history", history, plot_optimization_history(study, bounds)),
        ("network", f"The stages, their controls (green) and outputs{values}.", plot_network(study)),
    ]
    if study.network.priced and bounds:
        found.append(("cost", CAPTION_OF_COST, plot_cost(study, bounds)))
    if complete and any(contributions.values()):
        bars = plot_gap_contributions(study, contributions)
        found.append(("contributions", caption_of_contributions(contributions), bars))
    if complete:
        where = plot_acquisition(study)
        if where.data:  # it is empty if nothing bounds the objective, or no setting that is drawn satisfies the limits
            found.append(("acquisition", caption_of_acquisition(study), where))
        text = (
            "All complete runs as lines through controls and outputs, each from its smallest to its largest value; "
            f"colours are fifths by the objective{'' if study.best_trial is None else ', and the best run stands out'}."
            f"{' Runs that broke a limit are drawn like the others.' if study.network.limits else ''}"
        )
        found.append(("parallel", text, plot_parallel_coordinate(study)))
    for i, (stage, output, figure) in enumerate(figures_of_stages(study) if complete else ()):
        found.append((f"stage-{i}", caption_of_stage(study, stage, output, figure), figure))
    return [{"id": id_, "alt": alt, "figure": json.loads(figure.to_json())} for id_, alt, figure in found]
