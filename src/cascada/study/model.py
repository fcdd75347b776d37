"""The model of a study: beliefs about its stages, learned from the state, and what speaks against the assumptions."""

import copy
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, Literal

import numpy as np

from cascada.algorithms import Suggestion
from cascada.algorithms.algorithm import best_row
from cascada.algorithms.probe import is_probe
from cascada.arrays import Array
from cascada.calibration import Calibrated, calibrate
from cascada.calibration.beliefs import check_repeats
from cascada.calibration.probation import Probation, agrees
from cascada.errors import CascadaError, ContradictionError, RefutedError
from cascada.network import Beliefs, Network, StageBelief, enlarged, prior_beliefs, run_values
from cascada.network.consistency import formula_evidence, impossible, range_evidence, shows_only_own_evidence
from cascada.network.failures import counts_as_infeasible
from cascada.network.outputs import StageError
from cascada.search import Leaves
from cascada.search.incumbent import Incumbent
from cascada.store.trial import Trial
from cascada.study.certificate import Certificate, refutations
from cascada.study.selection import Progress, most_runs, selected, selection_size
from cascada.study.settings import Settings
from cascada.study.state import Refutation, State

# The number of runs of a selection to which kernels are fitted first: the fit to all of them then begins there.
_FIRST_FIT = 50


class Model:
    """Beliefs about a network, which grow with the lessons of a state; of many runs, they learn a selection.

    It is a value but for `learn`: what it holds is replaced, never changed in place, so that a shallow copy is
    independent.
    """

    def __init__(self, network: Network, settings: Settings) -> None:
        self._network, self._settings = network, settings
        self._begin()
        self.cells, self.seconds = 0, 0.0  # spent on all searches so far

    def _begin(self) -> None:
        network, settings = self._network, self._settings
        self._revision = 0  # of the state that was learned from
        self._learned = 0  # its lessons so far
        self._progress = Progress()  # of its observations
        self._ended = 0  # its trials that ended without their objective
        self.data = np.empty((0, network.width))  # a row for every observation that was learned
        self._trials: tuple[int, ...] = ()  # the trial of every row
        # Of a network whose kernels or norms are estimated: None while all runs are of the design, whose points do not
        # depend on estimates. `_first` is the calibration by these runs, once it was asked for.
        self._calibrated: Calibrated | None = None
        self._first: Calibrated | None = None
        self._fixed = None if network.estimated else prior_beliefs(network, settings.jitter)
        self._enlarged: tuple[str, ...] = ()  # bounds that were raised because data refuted them, after the design
        self.contradictions: tuple[str, ...] = ()  # what speaks against the assumptions besides the beliefs' evidence
        self.found: tuple[str, ...] = ()  # those of them that a bound showed
        self.probation = Probation(network.domain.dimension + 1)  # of estimated bounds
        # Caches for the present data: the suggestion with nothing pending, and the certificate.
        self.suggestion: Suggestion | None = None
        self.certificate: Certificate | None = None
        # With limits: the best setting that is proven to satisfy them, and whether it is that of the present data.
        self.incumbent: Incumbent | None = None
        self.incumbent_known = False
        # Search trees, kept where the next point need not follow from the log alone: of the algorithm's last
        # suggestion, and of the certificate.
        self.tree: Any = None
        self.leaves: Leaves | None = None

    def copy(self) -> "Model":
        """An independent model with the same knowledge."""
        return copy.copy(self)

    @property
    def calibrated(self) -> Calibrated | None:
        """The calibration of a network whose kernels or norms are estimated; None for any other network.

        Fits to runs of the design are made when they are asked for. They depend on these runs alone, whether there were
        earlier ones or not, so that later fits follow from the log.
        """
        if not self._network.estimated or self._calibrated is not None:
            return self._calibrated
        if self._first is None:
            settings, enlarging = self._settings, self._settings.on_violation == "enlarge"
            self._first = calibrate(self._network, self.data, settings.calibration, settings.jitter, enlarge=enlarging)
        return self._first

    @property
    def enlarged(self) -> tuple[str, ...]:
        """The bounds that were raised because data refuted them, in words."""
        calibrated = self.calibrated if self._network.estimated and self._declares else None
        return self._enlarged if self._calibrated is not None or calibrated is None else calibrated.changes

    @property
    def acting(self) -> Beliefs:
        """The beliefs by which points are chosen."""
        calibrated = self.calibrated
        return self.judging if calibrated is None else calibrated.acting

    @property
    def judging(self) -> Beliefs:
        """The beliefs by which the gap is judged."""
        calibrated = self.calibrated
        if calibrated is not None:
            return calibrated.judging
        assert self._fixed is not None, "a network is estimated or it is not"
        return self._fixed

    @property
    def kind(self) -> Literal["proven", "estimated", "refuted"]:
        """The kind of gap that these beliefs support."""
        return "refuted" if self.evidence() else "estimated" if self.estimated else "proven"

    @property
    def estimated(self) -> bool:
        """Whether the beliefs rest on estimates: nothing is proven then."""
        # Runs that a selection leaves out may have refuted a bound, which was enlarged then: the selection shows no
        # trace of it.
        unseen = self.runs is not None and self._settings.on_violation == "enlarge"
        return self._network.estimated or bool(self.enlarged) or unseen

    @property
    def runs(self) -> int | None:
        """The number of runs that were selected to be learned; None if all were."""
        return len(set(self._trials)) if self._progress.start else None

    @property
    def best_run(self) -> Array | None:
        """The row with the best value (V,) among those that satisfy the limits; None if there is none."""
        return best_row(self._network, self.data)

    def evidence(self) -> tuple[str, ...]:
        """Everything that speaks against the assumptions, in words."""
        rows = self.data, self._trials
        known = [StageBelief(node, None) for node in self._network.nodes if node.stage.known]
        formulas = [text for stage in known for text in formula_evidence(stage, *rows)]
        formulas += range_evidence(self._network, *rows)
        against = refutations(self.judging, *rows) if self._declares else ()
        # Evidence that was recorded before a selection may be found again.
        return tuple(dict.fromkeys((*self.contradictions, *formulas, *against)))

    @property
    def _declares(self) -> bool:
        """Whether data can refute a bound of a modelled stage: one that was declared, not estimated."""
        modelled = [stage for stage in self._network.stages if stage.modelled]
        return any(not stage.estimated or stage.lipschitz is not None for stage in modelled)

    def refute(self, reason: str) -> None:
        """Record that an assumption is wrong."""
        if reason not in self.contradictions:
            self.contradictions = (*self.contradictions, reason)
            self.certificate = None

    def refuted_by(self, error: RefutedError) -> None:
        """Record that a bound contradicts the data; where bounds are estimated, only the estimate is wrong."""
        if not self._network.estimated:
            self.refute(str(error))
            self.found = (*self.found, str(error))

    # ---- learning

    def catch_up(self, state: State) -> None:
        """Learn the lessons of a state that are new; all of them again after a correction."""
        if state.revision != self._revision:
            self._begin()
            self._revision = state.revision
        try:
            for _, group in groupby(self._new_lessons(state), key=lambda lesson: isinstance(lesson, Refutation)):
                lessons = list(group)
                for lesson in lessons:
                    if isinstance(lesson, Refutation):
                        self.refute(lesson.reason)
                self._learn_all(_trials(lessons))
            self._learned = len(state.lessons)
        except BaseException:  # an interrupt in the middle of a lesson: the next call learns all of them again
            self._begin()
            raise
        if state.ended != self._ended:
            self._ended, self.suggestion = state.ended, None  # it may be the point that failed
        if self.runs is not None and not self._network.estimated:  # it is recorded: a later selection may not show it
            self.found = tuple(dict.fromkeys((*self.found, *self.evidence())))

    def _new_lessons(self, state: State) -> Sequence[Trial | Refutation]:
        """The lessons that are still to be learned one after the other, once a due selection is made and learned."""
        lessons: Sequence[Trial | Refutation] = state.lessons[self._learned :]
        before = self._progress
        after = before.after((trial.number for trial in _trials(lessons)), most_runs(self._network))
        if after.start != before.start:
            observed = _trials(state.lessons)
            kept = self._revision, self._ended, self.found
            refuted = () if self._network.estimated else self.evidence()  # which the selection may not show
            self._begin()
            self._revision, self._ended, self.found = kept
            self.contradictions = refuted
            self._learn_selection(observed[: after.start])
            lessons = (*state.refutations, *observed[after.start :])
        self._progress = after
        return lessons

    def _learn_selection(self, observed: Sequence[Trial]) -> None:
        """Learn a selection of these observations at once, in place of all that was learned."""
        network, settings = self._network, self._settings
        latest: dict[int, Trial] = {}
        for trial in observed:  # in the order of their last observations, which contain the earlier ones
            latest.pop(trial.number, None)
            latest[trial.number] = trial
        trials = list(latest.values())
        rows = self._rows(trials)
        chosen = selected(network, rows, selection_size(most_runs(network)))
        data, enlarging = rows[chosen], settings.on_violation == "enlarge"
        if network.estimated:
            few = calibrate(network, data[:: max(1, len(data) // _FIRST_FIT)], settings.calibration, settings.jitter)
            fitted = calibrate(network, data, settings.calibration, settings.jitter, few)
            self._calibrated = calibrate(
                network, data, settings.calibration, settings.jitter, replace(fitted, changes=()), enlarge=enlarging
            )
            self._enlarged = self._calibrated.changes
        else:
            try:
                self._fixed = self.judging.append(data)
            except ContradictionError:  # of some of them, and the others are learned
                self._learn_all([trials[i] for i in chosen])
                return
            if enlarging and self._fixed.evidence:
                self._fixed, self._enlarged = enlarged(self._fixed, data, settings.jitter)
        self.data, self._trials = data, tuple(trials[i].number for i in chosen)

    def _learn_all(self, trials: Sequence[Trial]) -> None:
        """Learn observations in this order; bit for bit what learning them one by one gives."""
        if not trials:
            return
        self.suggestion = self.certificate = None
        self.incumbent_known = False
        values = self._rows(trials)
        # What is judged after every observation is what only `_learn` finds: other bounds, or impossible outputs.
        judged = self._network.estimated or self._settings.on_violation == "enlarge"
        if len(trials) > 1 and not judged and shows_only_own_evidence(self.judging, values):
            try:
                self._fixed = self.judging.append(values, each=True)
            except ContradictionError:  # of one of them, and the others are learned
                pass
            else:
                self.data = np.concatenate([self.data, values])
                self._trials = (*self._trials, *(trial.number for trial in trials))
                return
        for trial in trials:
            try:
                if self._learn(trial):
                    self.tree = self.leaves = self.incumbent = None  # they rest on other assumptions
            except ContradictionError as error:  # the observation is kept, and the contradiction is reported
                self.refute(str(error))

    def _rows(self, trials: Sequence[Trial]) -> Array:
        """What was observed of trials, (n, V)."""
        domain = self._network.domain
        controls = np.array([[trial.controls[name] for name in domain.names] for trial in trials], dtype=float)
        return run_values(self._network, controls.reshape(-1, domain.dimension), [trial.outputs for trial in trials])

    def _learn(self, trial: Trial) -> bool:
        """Learn an observation; whether bounds now rest on other assumptions than before.

        `ContradictionError`, and nothing learned, where no function agrees with this and the earlier observations.
        """
        settings, values = self._settings, self._rows([trial])
        data = np.concatenate([self.data, values])
        enlarging = settings.on_violation == "enlarge"
        if self._network.estimated:
            self._learn_estimated(trial, values, data, enlarging)
            return True
        silent = shows_only_own_evidence(self.judging, values) or self.evidence()
        outside = () if silent else self._outside(values)
        self._fixed = beliefs = self.judging.append(values)
        self.data = data
        self._trials = (*self._trials, trial.number)
        if outside and not beliefs.evidence:  # else the evidence is more precise
            self.contradictions = (*self.contradictions, *(f"Trial {trial.number}: {text}" for text in outside))
        if enlarging and beliefs.evidence:
            self._fixed, changes = enlarged(beliefs, data, settings.jitter)
            self._enlarged = (*self._enlarged, *changes)
            return True
        return False

    def _learn_estimated(self, trial: Trial, values: Array, data: Array, enlarging: bool) -> None:
        """Learn an observation (1, V), the last row of `data`, where kernels or norms are estimated."""
        network, settings = self._network, self._settings
        if self._calibrated is None and self._of_design():
            check_repeats(network, data)
            self._first = None
        else:
            before = self.calibrated
            after = calibrate(network, data, settings.calibration, settings.jitter, before, enlarge=enlarging)
            self.probation = self._tested(trial, values, bool(after.changes))
            self._enlarged = (*self.enlarged, *after.changes)
            self._calibrated, self._first = after, None
        self.data = data
        self._trials = (*self._trials, trial.number)

    def _of_design(self) -> bool:
        """Whether the next run is of the design, to which the first estimates are fitted."""
        d, seen = self._network.domain.dimension, np.isfinite(self.data[:, self._network.objective_column])
        return len(np.unique(self.data[seen, :d], axis=0)) < self._settings.calibration.first(self._network)

    def _tested(self, trial: Trial, values: Array, refuted: bool) -> Probation:
        """The test of the estimated bounds after a run (1, V) that they have not learned yet.

        `refuted`: whether the run refutes a norm bound, estimated or not.
        """
        if self._of_design():  # after a selection: a correction may have left too few complete runs
            return self.probation
        d = self._network.domain.dimension
        if refuted or not agrees(self.judging, values):
            return self.probation.contradicted()
        point, after = values[:, :d], self.probation
        # A second run of a point tests nothing.
        if not np.any(np.all(self.data[:, :d] == point, axis=1)):
            run = self.best_run  # with limits, the best feasible one
            best = -np.inf if run is None else float(self._network.sign * run[self._network.objective_column])
            after = after.begun(trial.number, bool(is_probe(self.judging, point, best, self.data[:, :d])[0]))
        return after if trial.value is None else after.completed(trial.number)

    def _outside(self, values: Array) -> tuple[str, ...]:
        """What the assumptions rule out of a run (1, V), in words, before it is learned."""
        try:
            return impossible(self.judging, values)
        except RefutedError as error:  # no value is possible any more
            return (str(error),)
        except StageError:  # a formula is not defined at some of the possible inputs, which the run need not have
            return ()

    # ---- pending and failed trials

    def pending(self, trials: Sequence[Trial]) -> Array:
        """Rows (n, V) of trials under way, as far as they were observed."""
        return self._rows(trials)

    def failed(self, trials: Sequence[Trial]) -> Array | None:
        """Rows (n, V) of failed trials that count as infeasible; None if no stage says that its failures do."""
        network = self._network
        if all(stage.failure == "fail" for stage in network.stages):
            return None
        counted = [t for t in trials if t.state == "failed" and counts_as_infeasible(network, t.outputs)]
        return self._rows(counted)

    def to_probe(self, pending: Sequence[Trial], best: float) -> Beliefs | None:
        """The estimated bounds, if the next run should probe them and no pending run does; else None."""
        if not self._network.estimated or not self.probation.probe_is_due:
            return None
        d, unfinished = self._network.domain.dimension, self.probation.unfinished
        if any(unfinished.get(trial.number, False) for trial in pending):
            return None
        points = self.pending([trial for trial in pending if not trial.outputs])[:, :d]
        try:
            probing = len(points) > 0 and is_probe(self.judging, points, best, self.data[:, :d]).any()
        except CascadaError:  # the bounds are empty at one of these points: its run will show that they are wrong
            return None
        return None if probing else self.judging


def _trials(lessons: Sequence[Trial | Refutation]) -> list[Trial]:
    """The observations among lessons."""
    return [lesson for lesson in lessons if isinstance(lesson, Trial)]
