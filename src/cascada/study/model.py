"""The model of a study: beliefs about its stages, learned from the state, and what speaks against the assumptions."""

import copy
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np

from cascada.algorithms import Suggestion
from cascada.algorithms.algorithm import best_row, best_run
from cascada.algorithms.probe import is_probe
from cascada.arrays import Array
from cascada.calibration import Calibrated, calibrate
from cascada.calibration.probation import Probation, agrees
from cascada.confidence import Boxes
from cascada.errors import CascadaError, ContradictionError, RefutedError
from cascada.network import Beliefs, Network, enlarged, prior_beliefs, run_values
from cascada.network.consistency import formula_evidence, impossible, range_evidence, shows_only_own_evidence
from cascada.network.failures import counts_as_infeasible
from cascada.network.noise import with_noise
from cascada.network.outputs import StageError
from cascada.network.read_beliefs import ReadBeliefs
from cascada.network.reading_evidence import boxes_of_readings
from cascada.search import Leaves
from cascada.search.incumbent import Incumbent
from cascada.search.refined_search import version_of
from cascada.store.trial import Trial
from cascada.study.certificate import Certificate, GapKind, refutations
from cascada.study.probable_gap import ProbableGap
from cascada.study.readings import Reports, beliefs_from
from cascada.study.refutation import Refutation
from cascada.study.selection import Progress, most_runs, selected, selection_size
from cascada.study.settings import Settings
from cascada.study.state import State

# The number of runs of a selection to which kernels are fitted first: the fit to all of them then begins there.
_FIRST_FIT = 100


class Model:
    """Beliefs about a network, which grow with the lessons of a state; of many runs, they learn a selection.

    It is a value but for `learn`: what it holds is replaced, never changed in place, so that a shallow copy is
    independent.
    """

    def __init__(self, network: Network, settings: Settings) -> None:
        self._declared, self._settings = network, settings
        self.scatter: tuple[str, ...] = ()  # what shows that runs are not exact although no stage says so
        self._begin()
        self.cells, self.seconds = 0, 0.0  # spent on all searches so far

    def _begin(self) -> None:
        self._network = network = with_noise(self._declared, everywhere=bool(self.scatter))
        settings = self._settings
        self._revision = 0  # of the state that was learned from
        self._learned = 0  # its lessons so far
        self._progress = Progress()  # of its observations
        self._ended = 0  # its trials that ended without their objective
        self.data = nothing = np.empty((0, network.width))  # a row for every observation that was learned
        self._trials: tuple[int, ...] = ()  # the trial of every row
        self.calibrated: Calibrated | None = None  # of a network whose kernels or norms are estimated
        if network.estimated:
            self.calibrated = calibrate(network, nothing, settings.calibration, settings.jitter)
        self._prior = self._fixed = None
        if self.calibrated is None:
            self._prior = self._fixed = prior_beliefs(network, settings.jitter, confidence=settings.confidence)
        self.reports = Reports()  # what was learned from readings with scatter
        self.enlarged: tuple[str, ...] = ()  # bounds that were raised because data refuted them
        self.contradictions: tuple[str, ...] = ()  # what speaks against the assumptions besides the beliefs' evidence
        self.found: tuple[str, ...] = ()  # those of them that a bound showed
        self.probation = Probation(network.domain.dimension + 1)  # of estimated bounds
        # Caches for the present data: the suggestion with nothing pending, and the certificate.
        self.suggestion: Suggestion | None = None
        self.certificate: Certificate | None = None
        self.gap_beliefs: Beliefs | None = None  # computed when a gap is judged by them
        self.probable: dict[tuple[float, int], ProbableGap] = {}  # by level and seed
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
    def acting(self) -> Beliefs:
        """The beliefs by which points are chosen."""
        return self.judging if self.calibrated is None else self.calibrated.acting

    @property
    def judging(self) -> Beliefs:
        """The beliefs by which the gap is judged."""
        if self.calibrated is not None:
            return self.calibrated.judging
        if self._fixed is None:  # after new readings
            assert isinstance(self._prior, ReadBeliefs), "a network is estimated or it is not"
            self._fixed = beliefs_from(self._prior, self.data, self.reports)
        return self._fixed

    @property
    def kind(self) -> GapKind:
        """The kind of gap that these beliefs support."""
        if self.evidence():
            return "refuted"
        return "estimated" if self.estimated else "confident" if self._network.scattered else "proven"

    @property
    def estimated(self) -> bool:
        """Whether the beliefs rest on estimates: nothing is proven then."""
        # Runs that a selection leaves out may have refuted a bound, which was enlarged then: the selection shows no
        # trace of it.
        unseen = self.runs is not None and self._settings.on_violation == "enlarge"
        # With scatter, bounds rest on all readings as they were read.
        unseen |= self._network.scattered and (self.reports.selective is not None or self.runs is not None)
        return self.calibrated is not None or bool(self.enlarged) or unseen

    @property
    def runs(self) -> int | None:
        """The number of runs that were selected to be learned; None if all were."""
        return len(set(self._trials)) if self._progress.start else None

    @property
    def best_run(self) -> Array | None:
        """The row with the best value (V,) among those that satisfy the limits; None if there is none.

        With noise or errors None: no value is known exactly.
        """
        return None if self.noisy or self.read_with_errors else best_row(self._network, self.data)

    @property
    def read_with_errors(self) -> bool:
        """Whether readings may differ from the values by bounded errors."""
        return self._network.read_with_errors

    @property
    def version(self) -> int:
        """A number that grows with the data: bounds of cells from fewer data are computed again."""
        return version_of(int(np.isfinite(self.data).sum())) if self.read_with_errors else len(self.data)

    def known_of(self, trial: Trial) -> Boxes | None:
        """One box (1, V) that contains the true values of a trial that is read with errors; None for exact trials."""
        beliefs = self.judging
        if not isinstance(beliefs, ReadBeliefs):
            return None
        if trial.number not in self._trials:  # nothing was read of it, or it was not selected
            return boxes_of_readings(beliefs, self._rows([trial]))
        i, known = self._trials.index(trial.number), beliefs.latent.values
        return Boxes(known.lower[[i]], known.upper[[i]])

    @property
    def noisy(self) -> bool:
        """Whether runs are not exact: the noise of some stage is estimated."""
        return self._network.noisy

    @property
    def noisy_best(self) -> tuple[Array, float] | None:
        """With noise: the point (d,) of the run with the best composite mean, and that mean of what is maximised."""
        run, network = best_run(self.acting, self.data), self._network
        if run is None:
            return None
        return run[: network.domain.dimension], network.sign * float(run[network.objective_column])

    def evidence(self) -> tuple[str, ...]:
        """Everything that speaks against the assumptions, in words."""
        beliefs, rows = self.judging, (self.data, self._trials)
        formulas = [text for stage in beliefs.stages for text in formula_evidence(stage, *rows)]
        ranged = self.read_with_errors and any(stage.ranges for stage in self._network.stages)
        boxes = boxes_of_readings(beliefs, self.data) if ranged else None
        formulas += range_evidence(self._network, *rows, boxes)
        # Evidence that was recorded before a selection may be found again.
        return tuple(dict.fromkeys((*self.contradictions, *formulas, *refutations(beliefs, *rows))))

    def refute(self, reason: str) -> None:
        """Record that an assumption is wrong."""
        if reason not in self.contradictions:
            self.contradictions = (*self.contradictions, reason)
            self.certificate = None

    def refuted_by(self, error: RefutedError) -> None:
        """Record that a bound contradicts the data; where bounds are estimated, only the estimate is wrong."""
        if self.calibrated is None:
            self.refute(str(error))
            self.found = (*self.found, str(error))

    # ---- learning

    def catch_up(self, state: State) -> None:
        """Learn the lessons of a state that are new; all of them again after a correction."""
        scatter = () if state.scatter is None else (state.scatter.reason,)
        if state.revision != self._revision or scatter != self.scatter:
            self.scatter = scatter
            self._begin()
            self._revision = state.revision
        self.reports = replace(self.reports, nominal=state.nominal, selective=state.selective)
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
        if self.runs is not None and self.calibrated is None:  # it is recorded: a later selection may not show it
            self.found = tuple(dict.fromkeys((*self.found, *self.evidence())))

    def _new_lessons(self, state: State) -> Sequence[Trial | Refutation]:
        """The lessons that are still to be learned one after the other, once a due selection is made and learned."""
        lessons: Sequence[Trial | Refutation] = state.lessons[self._learned :]
        before = self._progress
        after = before.after((trial.number for trial in _trials(lessons)), most_runs(self._network))
        if after.start != before.start:
            observed = _trials(state.lessons)
            kept, reports = (self._revision, self._ended, self.found), self.reports
            refuted = () if self.calibrated is not None else self.evidence()  # which the selection may not show
            self._begin()
            (self._revision, self._ended, self.found), self.reports = kept, replace(reports, entries=())
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
        if self.read_with_errors:
            self._read([trials[i] for i in chosen])
            return
        if self.calibrated is not None:
            few = calibrate(network, data[:: max(1, len(data) // _FIRST_FIT)], settings.calibration, settings.jitter)
            fitted = calibrate(network, data, settings.calibration, settings.jitter, few)
            self.calibrated = calibrate(
                network, data, settings.calibration, settings.jitter, replace(fitted, changes=()), enlarge=enlarging
            )
            self.enlarged = self.calibrated.changes
        else:
            try:
                self._fixed = self.judging.append(data)
            except ContradictionError:  # of some of them, and the others are learned
                self._learn_all([trials[i] for i in chosen])
                return
            if enlarging and self._fixed.evidence:
                self._fixed, self.enlarged = enlarged(self._fixed, data, settings.jitter)
        self.data, self._trials = data, tuple(trials[i].number for i in chosen)

    def _learn_all(self, trials: Sequence[Trial]) -> None:
        """Learn observations in this order; bit for bit what learning them one by one gives."""
        if not trials:
            return
        self.suggestion, self.certificate, self.gap_beliefs, self.probable = None, None, None, {}
        self.incumbent_known = False
        if self.read_with_errors:
            self._read(trials)
            return
        values = self._rows(trials)
        # What is judged after every observation is what only `_learn` finds: other bounds, or impossible outputs.
        judged = self.calibrated is not None or self._settings.on_violation == "enlarge"
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

    def _read(self, trials: Sequence[Trial]) -> None:
        """Learn readings: one row for every trial, which grows with the stages that are reported."""
        rows = dict(zip(self._trials, self.data, strict=True))
        rows |= dict(zip((trial.number for trial in trials), self._rows(trials), strict=True))
        self.data, self._trials = np.array(list(rows.values())).reshape(-1, self._network.width), tuple(rows)
        self.reports = self.reports.after([trial.number for trial in trials], self._rows(trials))
        self._fixed = None  # the beliefs are computed when they are needed

    def _rows(self, trials: Sequence[Trial]) -> Array:
        """What was observed of trials, (n, V)."""
        domain = self._network.domain
        controls = np.array([domain.coded(trial.controls) for trial in trials], dtype=float)
        return run_values(self._network, controls.reshape(-1, domain.dimension), [trial.outputs for trial in trials])

    def _learn(self, trial: Trial) -> bool:
        """Learn an observation; whether bounds now rest on other assumptions than before.

        `ContradictionError`, and nothing learned, where no function agrees with this and the earlier observations.
        """
        network, settings = self._network, self._settings
        values = self._rows([trial])
        data = np.concatenate([self.data, values])
        enlarging = settings.on_violation == "enlarge"
        if self.calibrated is not None:
            trials = (*self._trials, trial.number)
            given = settings.calibration, settings.jitter, self.calibrated
            after = calibrate(network, data, *given, enlarge=enlarging, trials=trials)
            self.probation = self._tested(trial, values, bool(after.changes))
            self.calibrated, self.data, self._trials = after, data, trials
            self.enlarged = (*self.enlarged, *after.changes)
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
            self.enlarged = (*self.enlarged, *changes)
            return True
        return False

    def _tested(self, trial: Trial, values: Array, refuted: bool) -> Probation:
        """The test of the estimated bounds after a run (1, V) that they have not learned yet.

        `refuted`: whether the run refutes a norm bound, estimated or not.
        """
        seen = np.isfinite(self.data[:, self._network.objective_column])
        d = self._network.domain.dimension
        if len(np.unique(self.data[seen, :d], axis=0)) < self._settings.calibration.first(self._network):
            return self.probation  # the design, to which the bounds are fitted
        if refuted or not agrees(self.judging, values):
            return self.probation.contradicted()
        point, after = values[:, :d], self.probation
        # A second run of a point tests nothing.
        if not np.any(np.all(self.data[:, :d] == point, axis=1)):
            run = self.best_run  # with limits, the best feasible one
            best = -np.inf if run is None else float(self._network.sign * run[self._network.objective_column])
            if self.noisy:
                best = -np.inf if self.noisy_best is None else self.noisy_best[1]
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
        if self.calibrated is None or self._network.unbounded or not self.probation.probe_is_due:
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
