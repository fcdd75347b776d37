"""The result of an optimisation."""

from dataclasses import dataclass
from typing import Literal

from cascada.outwards import six_digits
from cascada.space import ControlValue
from cascada.store.trial import Trial
from cascada.study.certificate import Certificate, GapKind
from cascada.study.probable_gap import ProbableGap
from cascada.study.recommendation import Recommendation

Status = Literal[
    "tolerance",
    "budget",
    "exhausted",
    "infeasible",
    "no safe setting",
    "floor",
    "refuted",
    "contradiction",
    "failing",
    "interrupted",
    "broken",
    "stopped",
]

SENTENCES: dict[Status, str] = {
    "tolerance": "The gap is within the tolerance.",
    "budget": "The budget is used up.",
    "exhausted": "No point is left that is worth a run.",
    "infeasible": "No setting satisfies the limits.",
    "no safe setting": "No setting is left that is proven to be safe and of which something is still unknown.",
    "floor": "Where the bound is attained, all values are known to within their errors: another run there is not sure "
    "to teach anything. Without a tolerance the runs go on, as errors are seldom the largest possible.",
    "refuted": "The data refute an assumption; see the certificate.",
    "contradiction": "A stage gave two outputs for the same input, so the process is not exact; see the certificate.",
    "failing": "The first runs all failed; what their stages gave before is kept.",
    "interrupted": "Interrupted; what was found so far is kept.",
    "broken": "The executor broke; what was found so far is kept.",
    "stopped": "A callback asked to stop.",
}


@dataclass(frozen=True, eq=False)
class Result:
    """The best trial, how far it can be from the best possible, and why the optimisation ended.

    `recommended` are the controls of a point that the algorithm recommends, if that is not simply the best run, and
    `recommendation` is what can be said of it. With noise or errors `best` is the trial with the best reading. The
    run with the best mean is recommended then, or with errors the setting with the largest proven value.
    """

    best: Trial | None
    recommended: dict[str, ControlValue] | None
    certificate: Certificate
    trials: tuple[Trial, ...]
    #: Why it ended.
    status: Status
    recommendation: Recommendation | None = None
    #: A second statement beside the certificate where norms are estimated; None where it is not defined.
    probable: ProbableGap | None = None
    cost: float = 0.0  #: what was spent on all trials: see `Study.spent`

    @property
    def gap(self) -> float | None:
        """How far the best run can be from the best possible; None when nothing is proven."""
        return self.certificate.gap

    @property
    def gap_kind(self) -> GapKind | None:
        """What the gap is worth: proven, estimated, or refuted; None while there is no gap."""
        return None if self.gap is None and self.certificate.kind != "refuted" else self.certificate.kind

    def __repr__(self) -> str:
        best = "no best run" if self.best is None else f"best {self.best!r}"
        return f"Result({self.status}: {best}; {self.certificate!r}; {len(self.trials)} trials)"

    def _repr_html_(self) -> str:
        from cascada.study.cards import result_card  # imported where notebooks show it

        return result_card(self)

    def __str__(self) -> str:
        failed = [trial for trial in self.trials if trial.state == "failed"]
        lines = [SENTENCES[self.status]]
        if failed:
            lines.append(f"{len(failed)} of {len(self.trials)} runs failed, the last because {failed[-1].reason}")
        if self.best is None:
            none = "No run satisfied the limits." if self.certificate.evaluations else "No run was completed."
            known = self.certificate.evaluations or self.certificate.recommended is not None
            return "\n".join([*lines, none, *([str(self.certificate)] if known else [])])
        settings = ", ".join(f"{name} = {six_digits(value)}" for name, value in self.best.controls.items())
        shown = self.certificate.shown
        # With a recommended setting, the value in the certificate is not that of the best run.
        other = shown is None or self.certificate.recommended is not None
        value = f"{self.best.value:.6g}" if shown is None or other else shown.best
        noisy = self.certificate.best_reading is not None
        lines += [f"Best {'reading' if noisy else 'value'} {value} at {settings}.", str(self.certificate)]
        if self.probable is not None and self.probable.gap is not None:
            lines.append(str(self.probable))
        # With noise or errors the certificate says the same of the recommended setting, unless there is no gap yet.
        if self.recommendation is not None and (shown is None or not noisy):
            lines.append(self.recommendation.summary)
        return "\n".join(lines)
