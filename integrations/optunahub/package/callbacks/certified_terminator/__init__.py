"""A callback that stops a study when its best trial is proven to be close to the best possible."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cascada import Integer, Matern, Network, Real, SquaredExponential, Stage, chain
from cascada.integrations.optuna import CascadaSampler

if TYPE_CHECKING:
    import optuna

    from cascada import Certificate

__all__ = [
    "CertifiedTerminatorCallback",
    "Integer",
    "Matern",
    "Network",
    "Real",
    "SquaredExponential",
    "Stage",
    "chain",
]


class CertifiedTerminatorCallback:
    """Stops `study.optimize` when the gap of the best trial is at most `tolerance`, whichever sampler chooses trials.

    `network` describes the process with a kernel and a norm bound for every stage; the objective must suggest exactly
    its controls. A study with one function has one stage, and its trials need no attributes. With several stages, store
    the output of each as the attribute `cascada:<stage>`.
    """

    def __init__(self, network: Network, tolerance: float) -> None:
        # A sampler that is only asked for certificates: it chooses no point.
        self._judge = CascadaSampler(network, tolerance=tolerance)
        self._tolerance = tolerance
        #: The last certificate; None before the first complete trial.
        self.certificate: Certificate | None = None

    def __call__(self, study: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
        """Compute the certificate after a complete trial, and stop the study if its gap is small enough."""
        if trial.state.name != "COMPLETE":
            return
        self.certificate = self._judge.certificate(study)
        gap, kind = self.certificate.gap, self.certificate.kind
        if kind in ("proven", "confident") and gap is not None and gap <= self._tolerance:
            study.stop()
