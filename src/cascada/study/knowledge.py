"""What the runs of a study taught: beliefs, and what speaks against the assumptions."""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from cascada.algorithms.probe import is_probe
from cascada.arrays import Array
from cascada.calibration import Calibrated, Calibration, calibrate
from cascada.errors import CascadaError, RefutedError
from cascada.network import Beliefs, Network, enlarged, prior_beliefs, run_values
from cascada.network.consistency import formula_evidence, impossible
from cascada.search import refutations
from cascada.study.probation import Probation, agrees
from cascada.study.trial import Trial


class Knowledge:
    """Beliefs about a network, which grow with what is told."""

    def __init__(
        self, network: Network, calibration: Calibration, jitter: float, on_violation: Literal["stop", "enlarge"]
    ) -> None:
        self._network, self._calibration, self._jitter = network, calibration, jitter
        self._enlarge = on_violation == "enlarge"
        self.told = nothing = np.empty((0, network.width))  # a row for every time that something was told
        self._trials: list[int] = []  # the trial of every row
        self.calibrated: Calibrated | None = None  # of a network whose kernels or norms are estimated
        if network.estimated:
            self.calibrated = calibrate(network, nothing, calibration, jitter)
        self._given = prior_beliefs(network, jitter) if self.calibrated is None else None
        self.enlarged: list[str] = []  # bounds that were raised because data refuted them
        self.said_against: list[str] = []  # the assumptions, besides the beliefs' own evidence
        self.probation = Probation(network.domain.dimension + 1)  # of estimated bounds

    @property
    def acting(self) -> Beliefs:
        """What points are chosen by."""
        return self.judging if self.calibrated is None else self.calibrated.acting

    @property
    def judging(self) -> Beliefs:
        """What the gap is judged by."""
        if self.calibrated is not None:
            return self.calibrated.judging
        assert self._given is not None, "a network is estimated or it is not"
        return self._given

    @property
    def kind(self) -> Literal["proven", "estimated", "refuted"]:
        """What a gap is that is judged by this."""
        return "refuted" if self.evidence() else "estimated" if self.calibrated or self.enlarged else "proven"

    def refute(self, reason: str) -> None:
        """Take note that an assumption is wrong."""
        if reason not in self.said_against:
            self.said_against.append(reason)

    def refuted_by(self, error: RefutedError) -> None:
        """A bound contradicts the data: an assumption of the user's is wrong, or only an estimate of ours."""
        if self.calibrated is None:
            self.refute(str(error))

    def evidence(self) -> tuple[str, ...]:
        """All that speaks against the assumptions, in words."""
        beliefs = self.judging
        rows = self.told, self._trials
        formulas = [text for stage in beliefs.stages for text in formula_evidence(stage, *rows)]
        return (*self.said_against, *formulas, *refutations(beliefs, *rows))

    def learn(self, trial: Trial) -> bool:
        """Learn what was observed of a trial; whether bounds now rest on other assumptions than before.

        `ContradictionError`, and nothing learned, where no function gives this and what was told before.
        """
        values = run_values(self._network, self._network.domain.row(trial.controls)[None], [trial.outputs])
        told = np.concatenate([self.told, values])
        if self.calibrated is not None:
            options = self._calibration, self._jitter, self.calibrated
            after = calibrate(self._network, told, *options, enlarge=self._enlarge)
            self.probation = self._tested(trial, values, bool(after.changes))
            self.calibrated, self.told = after, told
            self._trials.append(trial.number)
            self.enlarged += after.changes
            return True
        outside = () if self.evidence() else self._outside(values)
        self._given = beliefs = self.judging.append(values)
        self.told = told
        self._trials.append(trial.number)
        if outside and not beliefs.evidence:  # else the evidence says it better
            self.said_against += [f"Trial {trial.number}: {text}" for text in outside]
        if self._enlarge and beliefs.evidence:
            self._given, changes = enlarged(beliefs, told, self._jitter)
            self.enlarged += changes
            return True
        return False

    def _tested(self, trial: Trial, values: Array, refuted: bool) -> Probation:
        """The test of the estimated bounds after a run (1, V), which they have not learned yet.

        `refuted`: whether it refutes a norm that was estimated or given.
        """
        seen = np.isfinite(self.told[:, self._network.objective_column])
        d = self._network.domain.dimension
        if len(np.unique(self.told[seen, :d], axis=0)) < self._calibration.first(self._network):
            return self.probation  # the design, which bounds are fitted to
        if refuted or not agrees(self.judging, values):
            return self.probation.contradicted()
        point, after = values[:, :d], self.probation
        # A run of a point that was run before teaches nothing, and tests nothing.
        if not np.any(np.all(self.told[:, :d] == point, axis=1)):
            best = float(np.max(self._network.sign * self.told[seen, self._network.objective_column]))
            after = after.begun(trial.number, bool(is_probe(self.judging, point, best, self.told[:, :d])[0]))
        return after if trial.value is None else after.completed(trial.number)

    def pending(self, trials: Sequence[Trial]) -> Array:
        """Runs under way (n, V), as far as they were observed."""
        domain = self._network.domain
        rows = np.array([[trial.controls[name] for name in domain.names] for trial in trials], dtype=float)
        return run_values(self._network, rows.reshape(-1, domain.dimension), [trial.outputs for trial in trials])

    def to_probe(self, pending: Sequence[Trial], best: float) -> Beliefs | None:
        """The estimated bounds, if the next run should probe them and no run under way does; else None."""
        if self.calibrated is None or not self.probation.probe_is_due:
            return None
        d, unfinished = self._network.domain.dimension, self.probation.unfinished
        if any(unfinished.get(trial.number, False) for trial in pending):
            return None
        points = self.pending([trial for trial in pending if not trial.outputs])[:, :d]
        try:
            under_way = len(points) > 0 and is_probe(self.judging, points, best, self.told[:, :d]).any()
        except CascadaError:  # there are no bounds at one of these points: its run will show that they are wrong
            return None
        return None if under_way else self.judging

    def _outside(self, values: Array) -> tuple[str, ...]:
        """What is wrong with a run (1, V), in words, before it is learned from."""
        try:
            return impossible(self.judging, values)
        except RefutedError as error:  # nothing at all is possible any more: the run is kept, and that is said
            return (str(error),)
