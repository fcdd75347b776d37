"""What notebooks show of a study, a result and a certificate: small cards."""

from typing import TYPE_CHECKING

from cascada.card import card, in_short
from cascada.errors import CascadaError
from cascada.network.drawing import network_svg
from cascada.outwards import as_given
from cascada.store.trial import Trial
from cascada.study.certificate import Certificate
from cascada.study.result import SENTENCES

if TYPE_CHECKING:
    from cascada.study.reader import Reader
    from cascada.study.result import Result

_MOST_STAGES = 12  # of a network that is drawn in the card of its study


def result_card(result: "Result") -> str:
    """The card of a result."""
    certificate = result.certificate
    return card(
        SENTENCES[result.status],
        [*_best(result.best, certificate), *gap_rows(certificate), ("runs", _runs(result.trials))],
        note=_rests(certificate),
    )


def certificate_card(certificate: Certificate) -> str:
    """The card of a certificate."""
    rows = [] if certificate.best is None else [("best value", as_given(certificate.best))]
    rows += [*gap_rows(certificate), ("complete runs", str(certificate.evaluations))]
    return card("Certificate", rows, note=_rests(certificate))


def study_card(study: "Reader") -> str:
    """The card of a study: its best run, its gap and its network."""
    try:
        certificate: Certificate | None = study.certificate()
    except CascadaError:  # of an algorithm or a formula; the runs are shown all the same
        certificate = None
    title = "Study in memory" if study.name is None else f"Study {study.name!r}"
    gap = [] if certificate is None else gap_rows(certificate)
    picture = network_svg(study.network) if len(study.network.stages) <= _MOST_STAGES else ""
    rows = [*_best(study.best_trial, certificate), *gap, ("runs", _runs(study.trials))]
    return card(title, [*rows, ("algorithm", type(study.algorithm).__name__)], picture=picture)


def gap_rows(certificate: Certificate) -> list[tuple[str, str]]:
    """The gap, the bound and the recommended setting, as rows of a card."""
    shown = certificate.shown
    if certificate.kind == "refuted":
        return [("gap", "refuted"), *(("because", text) for text in certificate.evidence)]
    if certificate.answer == "infeasible":
        return [("limits", certificate.infeasibility)]
    if shown is None and certificate.unbounded:
        return [("gap", f"none: nothing bounds the formula of {', '.join(certificate.unbounded)}")]
    if shown is None:
        return [("gap", f"none yet ({certificate.missing})" if certificate.missing else "none yet")]
    rows = [("gap", f"{shown.gap} ({certificate.kind})"), ("bound", shown.bound)]
    if certificate.recommended is not None:
        least = "at least" if certificate.maximised else "at most"
        rows.append(("recommended", f"{in_short(certificate.recommended.controls)} (gives {least} {shown.best})"))
    return rows


def _best(best: Trial | None, certificate: Certificate | None) -> list[tuple[str, str]]:
    if best is None or best.value is None:
        return [("best value", "none yet")]
    noisy = certificate is not None and certificate.best_reading is not None
    return [
        ("best reading" if noisy else "best value", f"{best.value:.6g} (trial {best.number})"),
        ("settings", in_short(best.controls)),
    ]


def _runs(trials: tuple[Trial, ...]) -> str:
    """How many trials there are, by state."""
    states = [trial.state for trial in trials]
    counts = [f"{states.count(state)} {state}" for state in dict.fromkeys(states)]
    return f"{len(trials)} ({', '.join(counts)})" if counts else "none"


def _rests(certificate: Certificate) -> str:
    return "The gap rests on:\n" + "\n".join(certificate.assumptions) if certificate.shown is not None else ""
