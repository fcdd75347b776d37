"""What an optimisation found."""

from dataclasses import dataclass
from typing import Literal

from cascada.search import Certificate, GapKind
from cascada.study.trial import Trial

Status = Literal["tolerance", "budget", "exhausted", "refuted", "contradiction", "interrupted", "stopped"]

SENTENCES: dict[Status, str] = {
    "tolerance": "The gap is within the tolerance.",
    "budget": "The budget is used up.",
    "exhausted": "No point is left that is worth a run.",
    "refuted": "The data refute an assumption; see the certificate.",
    "contradiction": "A stage gave two outputs for the same input, so the process is not exact; see the certificate.",
    "interrupted": "Interrupted; what was found so far is kept.",
    "stopped": "A callback asked to stop.",
}


@dataclass(frozen=True, eq=False)
class Result:
    """The best trial, how far it can be from the best possible, and why the optimisation ended."""

    best: Trial | None
    recommended: dict[str, float | int] | None
    certificate: Certificate
    trials: tuple[Trial, ...]
    status: Status

    @property
    def gap(self) -> float | None:
        """How far the best run can be from the best possible; None when nothing is proven."""
        return self.certificate.gap

    @property
    def gap_kind(self) -> GapKind:
        """What the gap is worth: proven, estimated, or refuted."""
        return self.certificate.kind

    def __str__(self) -> str:
        if self.best is None:
            return f"{SENTENCES[self.status]} No run was completed."
        settings = ", ".join(f"{name} = {value:.6g}" for name, value in self.best.controls.items())
        return f"{SENTENCES[self.status]} Best value {self.best.value:.6g} at {settings}.\n{self.certificate}"
