"""Everything that a page shows of a study, as plain JSON: words, figures, tables."""

import json
import platform
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from cascada import __version__
from cascada.report.acquisition import plot_acquisition
from cascada.report.contributions import gap_contributions, plot_gap_contributions
from cascada.report.graph import plot_network
from cascada.report.history import Look, looks_along, plot_optimization_history
from cascada.report.parallel import plot_parallel_coordinate
from cascada.report.stages import figures_of_stages
from cascada.report.words import summary
from cascada.study.runner import AnyStudy

_VERSIONS = ("numpy", "scipy", "plotly")


def payload(study: AnyStudy, name: str, command: str | None = None) -> dict[str, Any]:
    """What `page.js` shows."""
    certificate, contributions = study.certificate(), gap_contributions(study)
    return {
        "name": name,
        "words": summary(study, certificate, contributions),
        "facts": _facts(study),
        "figures": _figures(study, looks_along(study), contributions),
        "trials": _trials(study),
        "assumptions": list(certificate.assumptions),
        "evidence": list(certificate.evidence),
        "kind": certificate.kind,
        "versions": {"cascada": __version__, "Python": platform.python_version()} | {p: version(p) for p in _VERSIONS},
        "command": command,
    }


def _facts(study: AnyStudy) -> list[list[str]]:
    """What a reader looks for first: a label and a value each."""
    certificate, best = study.certificate(), study.best_trial
    complete = sum(trial.value is not None for trial in study.trials)
    return [
        ["best value", "none yet" if best is None or best.value is None else f"{best.value:.8g}"],
        ["gap", "none" if certificate.gap is None else f"{certificate.gap:.4g}"],
        [
            "the gap is",
            certificate.kind if certificate.gap is not None or certificate.kind == "refuted" else "not known",
        ],
        ["runs", f"{complete} complete of {len(study.trials)}"],
    ]


def _figures(study: AnyStudy, looks: list[Look], contributions: Mapping[str, float]) -> list[dict[str, Any]]:
    """Figures with an id, and a text that says what is to be seen for those who cannot see it."""
    some = any(trial.value is not None for trial in study.trials)
    found = [
        (
            "history",
            "Every run, the best value so far, and the bound that no setting can beat.",
            plot_optimization_history(study, looks),
        ),
        ("network", "The stages, their controls and outputs, with the values of the best run.", plot_network(study)),
    ]
    if some and any(contributions.values()):
        shares = "; ".join(f"{name}: {value:.3g}" for name, value in contributions.items())
        text = f"What each stage's uncertainty adds to the best that the objective can be. {shares}"
        found.append(("contributions", text, plot_gap_contributions(study)))
    if some:
        text = "The best that the objective can be over the first controls, the others as in the best run."
        found.append(("acquisition", text, plot_acquisition(study)))
        text = "All complete runs as lines through controls and outputs; drag along an axis to choose some."
        found.append(("parallel", text, plot_parallel_coordinate(study)))
    for stage, output, figure in figures_of_stages(study) if some else ():
        text = f"What is believed of {output} of {stage}: mean, bounds and measured values."
        found.append((f"stage-{stage}-{output}", text, figure))
    return [{"id": id_, "alt": alt, "figure": json.loads(figure.to_json())} for id_, alt, figure in found]


def _trials(study: AnyStudy) -> dict[str, Any]:
    network = study.network
    outputs = [(node.stage.name, j, output) for node in network.nodes for j, output in enumerate(node.stage.outputs)]
    columns = ["run", "state", *network.controls, *(o if o == s else f"{s}.{o}" for s, _, o in outputs)]
    best = study.best_trial
    rows = [
        [
            trial.number + 1,
            trial.state,
            *(trial.controls[control] for control in network.controls),
            *(trial.outputs[s][j] if s in trial.outputs else None for s, j, _ in outputs),
        ]
        for trial in study.trials
    ]
    return {"columns": columns, "rows": rows, "best": None if best is None else best.number}
