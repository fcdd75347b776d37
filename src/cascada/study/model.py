"""The model of a study: beliefs about its stages, learned from the state, and what speaks against the assumptions."""

import copy
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from cascada.algorithms import Suggestion
from cascada.algorithms.algorithm import best_row, best_run
from cascada.arrays import Array
from cascada.calibration import Calibrated, calibrate
from cascada.calibration.probation import Probation
from cascada.confidence import Boxes
from cascada.errors import ContradictionError, RefutedError
from cascada.network import Beliefs, Network, enlarged, prior_beliefs, run_values
from cascada.network.consistency import formula_evidence, range_evidence, shows_only_own_evidence
from cascada.network.noise import with_noise
from cascada.network.read_beliefs import ReadBeliefs
from cascada.network.reading_evidence import boxes_of_readings
from cascada.search import Leaves
from cascada.search.incumbent import Incumbent
from cascada.search.refined_search import version_of
from cascada.store.trial import Trial
from cascada.study.certificate import Certificate, GapKind, refutations
from cascada.study.correction import Lesson
from cascada.study.measurement import Measurement
from cascada.study.probable_gap import ProbableGap
from cascada.study.probing import ruled_out, tested
from cascada.study.readings import Reports, beliefs_from
from cascada.study.refutation import Refutation
from cascada.study.selection import Progress, most_runs, selected, selection_size
from cascada.study.settings import Settings
from cascada.study.single import Single, Singles
from cascada.study.state import State
from cascada.study.step_trial import single_rows

if TYPE_CHECKING:
    from cascada.algorithms.steps import NextStep

# The number of runs of a selection to which kernels are fitted first: the fit to all of them then begins there.
_FIRST_FIT = 100


class Model:
    """Beliefs about a network, which grow with the lessons of a state; of many runs, they learn a selection.

    It is a value but for `learn`: what it holds is replaced, never changed in place, so that a shallow copy is
    independent.
    """

    def __init__(self, network: Network, settings: Settings) -> None:
        self._declared, self.settings = network, settings
        self.scatter: tuple[str, ...] = ()  # what shows that runs are not exact although no stage says so
        self._begin()
        self.cells, self.seconds = 0, 0.0  # spent on all searches so far

    def _begin(self) -> None:
        self.network = network = with_noise(self._declared, everywhere=bool(self.scatter))
        settings = self.settings
        self._revision = 0  # of the state that was learned from
        self._learned = 0  # its lessons so far
        self._progress = Progress()  # of its observations
        self._ended = 0  # its trials that ended without their objective
        self.data = nothing = np.empty((0, network.width))  # a row for every observation that was learned
        self._trials: tuple[int, ...] = ()  # the trial of every row
        self.singles = Singles(network)  # observations of single stages, which belong to no run
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
        # Caches for the present data: the suggestion with nothing pending, the next step likewise, and the certificate.
        self.suggestion: Suggestion | None = None
        self.step: NextStep | None = None
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
            self._fixed = beliefs_from(self._prior, self.data, self.reports, self.singles.rows)
        return self._fixed

    @property
    def kind(self) -> GapKind:
        """The kind of gap that these beliefs support."""
        if self.evidence():
            return "refuted"
        return "estimated" if self.estimated else "confident" if self.network.scattered else "proven"

    @property
    def estimated(self) -> bool:
        """Whether the beliefs rest on estimates: nothing is proven then."""
        # Runs that a selection leaves out may have refuted a bound, which was enlarged then: the selection shows no
        # trace of it.
        unseen = self.runs is not None and self.settings.on_violation == "enlarge"
        # With scatter, bounds rest on all readings as they were read.
        unseen |= self.network.scattered and (self.reports.selective is not None or self.runs is not None)
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
        return None if self.noisy or self.read_with_errors else best_row(self.network, self.data)

    @property
    def read_with_errors(self) -> bool:
        """Whether readings may differ from the values by bounded errors."""
        return self.network.read_with_errors

    @property
    def version(self) -> int:
        """A number that grows with the data: bounds of cells from fewer data are computed again."""
        if self.read_with_errors:
            return version_of(int(np.isfinite(self.data).sum()) + self.singles.numbers)
        return len(self.data) + len(self.singles)

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
        return self.network.noisy

    @property
    def noisy_best(self) -> tuple[Array, float] | None:
        """With noise: the point (d,) of the run with the best composite mean, and that mean of what is maximised."""
        run, network = best_run(self.acting, self.data), self.network
        if run is None:
            return None
        return run[: network.domain.dimension], network.sign * float(run[network.objective_column])

    def evidence(self) -> tuple[str, ...]:
        """Everything that speaks against the assumptions, in words."""
        beliefs, rows = self.judging, (self.data, self._trials)
        formulas = [text for stage in beliefs.stages for text in formula_evidence(stage, *rows)]
        ranged = self.read_with_errors and any(stage.ranges for stage in self.network.stages)
        boxes = boxes_of_readings(beliefs, self.data) if ranged else None
        formulas += range_evidence(self.network, *rows, boxes)
        formulas += range_evidence(self.network, *self.singles.table(), self.singles.boxes(beliefs))
        last = self.calibrated is not None  # where single observations are among those that were learned
        found = refutations(beliefs, lambda stage: self.singles.merged(stage, *rows, last=last), self._trials)
        # Evidence that was recorded before a selection may be found again.
        return tuple(dict.fromkeys((*self.contradictions, *formulas, *found)))

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
            for _, group in groupby(self._new_lessons(state), key=_is_run):
                lessons = list(group)
                for lesson in lessons:
                    if isinstance(lesson, Refutation):
                        self.refute(lesson.reason)
                    elif not _is_run(lesson):
                        self._learn_single(lesson)
                self._learn_all(_trials(lessons))
            self._learned = len(state.lessons)
        except BaseException:  # an interrupt in the middle of a lesson: the next call learns all of them again
            self._begin()
            raise
        if state.ended != self._ended:
            self._ended, self.suggestion = state.ended, None  # it may be the point that failed
        if self.runs is not None and self.calibrated is None:  # it is recorded: a later selection may not show it
            self.found = tuple(dict.fromkeys((*self.found, *self.evidence())))

    def _new_lessons(self, state: State) -> Sequence[Lesson]:
        """The lessons that are still to be learned one after the other, once a due selection is made and learned."""
        lessons: Sequence[Lesson] = state.lessons[self._learned :]
        before = self._progress
        after = before.after((trial.number for trial in _trials(lessons)), most_runs(self.network))
        if after.start != before.start:
            observed = _trials(state.lessons)
            kept, reports = (self._revision, self._ended, self.found), self.reports
            refuted = () if self.calibrated is not None else self.evidence()  # which the selection may not show
            self._begin()
            (self._revision, self._ended, self.found), self.reports = kept, replace(reports, entries=())
            self.contradictions = refuted
            self._learn_selection(observed[: after.start])
            others = [lesson for lesson in state.lessons if not _is_run(lesson)]
            lessons = (*others, *observed[after.start :])
        self._progress = after
        return lessons

    def _learn_selection(self, observed: Sequence[Trial]) -> None:
        """Learn a selection of these observations at once, in place of all that was learned."""
        network, settings = self.network, self.settings
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
        self._forget()
        if self.read_with_errors:
            self._read(trials)
            return
        values = self._rows(trials)
        # What is judged after every observation is what only `_learn` finds: other bounds, or impossible outputs.
        judged = self.calibrated is not None or self.settings.on_violation == "enlarge"
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

    def _forget(self) -> None:
        """Drop what was computed from fewer data."""
        self.suggestion = self.step = self.certificate = self.gap_beliefs = None
        self.probable = {}
        self.incumbent_known = False

    def _learn_single(self, lesson: Trial | Measurement) -> None:
        """Learn observations of single stages, which belong to no run."""
        self._forget()
        label = lesson.number if isinstance(lesson, Trial) else ~lesson.number
        for position, row in single_rows(self.network, lesson):
            try:
                self._add_single(Single(position, row, label, len(self.data)))
            except ContradictionError as error:  # the observation is kept, and the contradiction is reported
                self.refute(str(error))

    def _add_single(self, single: Single) -> None:
        after, enlarging = self.singles.with_one(single), self.settings.on_violation == "enlarge"
        if self.read_with_errors:
            self._fixed = None  # the beliefs are computed when they are needed
        elif self.calibrated is not None:
            given = self.settings.calibration, self.settings.jitter, self.calibrated
            trials, alone = self._trials, after.rows
            self.calibrated = calibrate(self.network, self.data, *given, enlarge=enlarging, trials=trials, alone=alone)
            self.enlarged = (*self.enlarged, *self.calibrated.changes)
        else:
            self._fixed = beliefs = self.judging.append_to(single.position, single.row[None])
            if enlarging and beliefs.evidence:
                self._fixed, changes = enlarged(beliefs, self.data, self.settings.jitter, after.rows)
                self.enlarged = (*self.enlarged, *changes)
        self.singles = after

    def _read(self, trials: Sequence[Trial]) -> None:
        """Learn readings: one row for every trial, which grows with the stages that are reported."""
        rows = dict(zip(self._trials, self.data, strict=True))
        rows |= dict(zip((trial.number for trial in trials), self._rows(trials), strict=True))
        self.data, self._trials = np.array(list(rows.values())).reshape(-1, self.network.width), tuple(rows)
        self.reports = self.reports.after([trial.number for trial in trials], self._rows(trials))
        self._fixed = None  # the beliefs are computed when they are needed

    def _rows(self, trials: Sequence[Trial]) -> Array:
        """What was observed of trials, (n, V)."""
        domain = self.network.domain
        controls = np.array([domain.coded(trial.controls) for trial in trials], dtype=float)
        return run_values(self.network, controls.reshape(-1, domain.dimension), [trial.outputs for trial in trials])

    def _learn(self, trial: Trial) -> bool:
        """Learn an observation; whether bounds now rest on other assumptions than before.

        `ContradictionError`, and nothing learned, where no function agrees with this and the earlier observations.
        """
        network, settings = self.network, self.settings
        values = self._rows([trial])
        data = np.concatenate([self.data, values])
        enlarging = settings.on_violation == "enlarge"
        if self.calibrated is not None:
            trials = (*self._trials, trial.number)
            given = settings.calibration, settings.jitter, self.calibrated
            after = calibrate(network, data, *given, enlarge=enlarging, trials=trials, alone=self.singles.rows)
            self.probation = tested(self, trial, values, bool(after.changes))
            self.calibrated, self.data, self._trials = after, data, trials
            self.enlarged = (*self.enlarged, *after.changes)
            return True
        silent = shows_only_own_evidence(self.judging, values) or self.evidence()
        outside = () if silent else ruled_out(self.judging, values)
        self._fixed = beliefs = self.judging.append(values)
        self.data = data
        self._trials = (*self._trials, trial.number)
        if outside and not beliefs.evidence:  # else the evidence is more precise
            self.contradictions = (*self.contradictions, *(f"Trial {trial.number}: {text}" for text in outside))
        if enlarging and beliefs.evidence:
            self._fixed, changes = enlarged(beliefs, data, settings.jitter, self.singles.rows)
            self.enlarged = (*self.enlarged, *changes)
            return True
        return False

    def pending(self, trials: Sequence[Trial]) -> Array:
        """Rows (n, V) of trials under way, as far as they were observed."""
        return self._rows(trials)


def _trials(lessons: Sequence[Lesson]) -> list[Trial]:
    """The observations of runs among lessons."""
    return [lesson for lesson in lessons if isinstance(lesson, Trial) and lesson.closed]


def _is_run(lesson: Lesson) -> bool:
    return isinstance(lesson, Trial) and lesson.closed
