"""A study: ask for points, tell what was observed, see how good the best can still be."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

from cascada.algorithms import Algorithm
from cascada.arrays import as_whole_number
from cascada.calibration import Calibration
from cascada.errors import ArgumentError, ContradictionError, RefutedError
from cascada.execution.blas import on_one_thread
from cascada.gp.rounding import SMALLEST_JITTER
from cascada.near_names import with_near_names
from cascada.network import Network
from cascada.space import CandidatesLike
from cascada.store.journal import Journal, MemoryJournal, Transaction
from cascada.store.lease import LONGEST_LEASE, checked_lease
from cascada.store.trial import Trial, trial_number
from cascada.study.change import Change
from cascada.study.cost import Cost
from cascada.study.next_trials import NextTrials
from cascada.study.reader import Reader
from cascada.study.readings import warn_of_errors
from cascada.study.revision import Revision
from cascada.study.safety import check_proven, nothing_safe_left
from cascada.study.settings import OnViolation, Settings, StopOn
from cascada.study.slice import Slice
from cascada.study.state import State
from cascada.study.stepper import Stepper

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from cascada.process import Functions, Process
    from cascada.study.result import Result


class Study(Stepper):
    """Trials of a network, in memory or in a store (`Study.open`), and the points that an algorithm suggests.

    Every event is in the journal before a method returns. Reported results are always kept; the certificate says what
    they refute. `safe`: only settings that are proven to satisfy the limits are asked for; a run that satisfies them
    has to be added first. `confidence`: the probability with which bounds hold if readings scatter (`SubGaussian`);
    0.95 without it. `replayable`: points follow from the journal alone, as they do in a store.
    """

    @with_near_names
    def __init__(
        self,
        network: Network,
        *,
        algorithm: str | Algorithm = "auto",
        candidates: CandidatesLike | None = None,
        tolerance: float | None = None,
        seed: int = 0,
        stop_on: StopOn | None = None,
        stop_on_estimated: bool = False,
        on_violation: OnViolation = "stop",
        jitter: float = SMALLEST_JITTER,
        horizon: int | None = None,
        calibration: Calibration | None = None,
        safe: bool = False,
        confidence: float | None = None,
        replayable: bool = False,
    ) -> None:
        settings = Settings.of(
            network,
            algorithm=algorithm,
            candidates=candidates,
            tolerance=tolerance,
            seed=seed,
            stop_on=stop_on,
            stop_on_estimated=stop_on_estimated,
            on_violation=on_violation,
            jitter=jitter,
            horizon=horizon,
            calibration=calibration,
            safe=safe,
            confidence=confidence,
            shared=replayable,
        )
        warn_of_errors(network, tolerance)
        super().__init__(MemoryJournal(shared=replayable), State.empty(network), settings)
        self._lasting = False
        self._changed(lambda change: change.append("created", None, {}))

    @classmethod
    def over(
        cls,
        journal: Journal,
        state: State,
        settings: Settings,
        *,
        name: str | None = None,
        worker: str = "main",
        lasting: bool = False,
    ) -> "Study":
        """A study over a journal, as far as `state` follows from it. `lasting`: its leases outlive this process."""
        study = cls.__new__(cls)
        Reader.__init__(study, journal, state, settings, name=name)
        study.worker, study._lasting = worker, lasting
        return study

    @staticmethod
    @with_near_names
    def open(
        url: str,
        name: str,
        network: Network | None = None,
        *,
        algorithm: str | Algorithm | None = None,
        seed: int | None = None,
        candidates: CandidatesLike | None = None,
        on_violation: OnViolation | None = None,
        calibration: Calibration | None = None,
        horizon: int | None = None,
        tolerance: float | None = None,
        stop_on: StopOn | None = None,
        stop_on_estimated: bool = False,
        safe: bool | None = None,
        confidence: float | None = None,
        worker: str = "main",
        amend: bool = False,
    ) -> "Study":
        """The study of this name in a store, created if it is not there: see `cascada.study.catalogue.open_study`."""
        from cascada.study.catalogue import open_study  # databases are imported where they are used

        return open_study(
            url,
            name,
            network,
            algorithm=algorithm,
            seed=seed,
            candidates=candidates,
            on_violation=on_violation,
            calibration=calibration,
            horizon=horizon,
            tolerance=tolerance,
            stop_on=stop_on,
            stop_on_estimated=stop_on_estimated,
            safe=safe,
            confidence=confidence,
            worker=worker,
            amend=amend,
        )

    def branch(self) -> "Study":
        """An independent study in memory with the same trials and the same model."""
        journal = MemoryJournal(shared=self._settings.shared)

        def fill(log: Transaction) -> None:
            for event in self._journal.known[: self._state.count]:
                log.append(event)
            for number, worker in self._state.holders.items():  # its trials are under way here, too
                log.lease(number, worker, LONGEST_LEASE)

        journal.change(fill)
        other = type(self).over(journal, self._state, self._settings, name=self.name, worker=self.worker)
        other._model, other._assumed = self._model.copy(), self._assumed
        return other

    # ---- asking and telling

    @overload
    def ask(
        self,
        *,
        lease: float | None = None,
        limit: int | Cost | None = None,
        fixed: Mapping[str, Any] | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> Trial | None: ...

    @overload
    def ask(
        self,
        n: int,
        *,
        lease: float | None = None,
        limit: int | Cost | None = None,
        fixed: Mapping[str, Any] | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> list[Trial]: ...

    def ask(
        self,
        n: int | None = None,
        *,
        lease: float | None = None,
        limit: int | Cost | None = None,
        fixed: Mapping[str, Any] | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> Trial | list[Trial] | None:
        """A trial to run; None when no point is worth a run (the tolerance is reached, or all were run).

        Trials that wait come first: enqueued ones, and ones whose `lease` ran out. With a lease in seconds the worker
        has to give a sign of life (`beat`) in time; without one a run may take any time. With `n`, a list of up to so
        many trials, all of them written or none. `limit`: no new trial if the study has so many, or if it would cost
        more than this.

        `fixed`: values of some controls, for this ask only; None is returned if no such setting can be better than the
        best. `context`: what was measured of the controls with `context=True`; the trial is one that may be best there.
        Of the trials that wait, only those with these values are returned.
        """
        part = Slice.of(self.network, self._settings, fixed, context)
        lease = self._lease if lease is None else checked_lease(lease)
        wanted = 1 if n is None else as_whole_number(n, "n")
        if self._settings.tolerance is not None and not self.network.context:
            self.certificate()  # a contradiction that it shows is written down, whatever comes next
        try:
            trials = self._changed(lambda change: self._asked(change, wanted, lease, limit, part))
        except RefutedError:
            self.certificate()  # the same
            raise
        return trials if n is not None else trials[0] if trials else None

    def enqueue_trial(self, controls: Mapping[str, Any], *, known_safe: bool = False) -> Trial:
        """A trial at controls of your own choice; the next to be asked for.

        In safe mode they must be proven to satisfy the limits. `known_safe`: you know that they do, without a proof.
        """
        return self._changed(lambda change: self._begun(change, "enqueued", controls, known_safe))

    def begin_trial(self, controls: Mapping[str, Any]) -> Trial:
        """A trial at controls of your own choice that you run now. In safe mode they must be proven safe."""
        return self._changed(
            lambda change: self._begun(change, "asked", controls, False, worker=self.worker, lease=None)
        )

    def add_trial(self, controls: Mapping[str, Any], outputs: Mapping[str, Any]) -> Trial:
        """A run of the past, with all or some of its outputs."""
        return self._changed(lambda change: change.add(controls, outputs))

    def add_trials(self, runs: Sequence[tuple[Mapping[str, Any], Mapping[str, Any], str]]) -> list[Trial]:
        """Runs of the past, all or none of them: controls, outputs, and what to call the run in an error."""

        def add(change: Change) -> list[Trial]:
            added = []
            for controls, outputs, name in runs:
                try:
                    added.append(change.add(controls, outputs))
                except (ArgumentError, ContradictionError) as error:
                    raise type(error)(f"{name}: {error} Nothing was added.") from None
            return added

        return self._changed(add)

    def correct(
        self,
        trial: Trial | int,
        stage: str | None = None,
        outputs: Any = None,
        *,
        controls: Mapping[str, Any] | None = None,
        reason: str = "",
    ) -> Trial:
        """Replace outputs of a stage that were reported wrongly, or `controls` that were set to other values.

        Everything that followed from the old values is computed again; the log and reports show the correction.
        """
        if (controls is None) == (stage is None) or (stage is None) != (outputs is None):
            raise ArgumentError(
                "correct takes a stage and its outputs, or controls: study.correct(3, 'mix', 2.812) or "
                "study.correct(3, controls={'dose': 0.5})."
            )
        number, said = trial_number(trial), str(reason)
        return self._changed(lambda change: change.correct(number, self.worker, said, stage, outputs, controls))

    def retract(self, trial: Trial | int, stage: str, reason: str = "") -> Trial:
        """Withdraw the outputs of a stage; a trial that was complete by them is running again, without a lease."""
        return self._changed(lambda change: change.retract(trial_number(trial), self.worker, str(reason), stage))

    def revise(self, trial: Trial | int, *, apply: bool = False, costs: Mapping[str, float] | None = None) -> Revision:
        """How to go on with a running trial of which some stages were reported, and whether to discard it.

        With `apply` it is written down: the new controls of stages that were not run yet, or, if the decision is to
        discard the batch, that the trial is abandoned and why. `costs` replace those that the stages declare, by name.
        """
        from cascada.study.decision import revision_of  # imported where it is used

        number = trial_number(trial)
        try:
            found = self._judged(lambda model, state: revision_of(model, state, self._settings, number, costs))
        except RefutedError:
            self.certificate()  # a contradiction that it shows is written down
            raise
        if apply and found.decision == "discard":
            self._changed(lambda change: change.discard(number, self.worker, found.reason))
        elif apply:
            self._changed(lambda change: change.revise(number, self.worker, found.controls))
        return found

    def note(self, text: str) -> None:
        """Write a remark into the log."""
        self._changed(lambda change: change.append("note", None, {"text": str(text)}))

    def stop_at(self, tolerance: float, reason: str | None = None) -> None:
        """Stop when the gap is at most this from now on. With a `reason`, the log says so and why."""
        self._settings = self._settings.with_tolerance(tolerance)
        if reason is not None:
            self._changed(lambda change: change.append("note", None, {"text": reason, "tolerance": float(tolerance)}))

    def refute(self, reason: str, *, trials: Sequence[int] = ()) -> None:
        """State that an assumption is wrong (the process is not deterministic, say): nothing is proven from now on.

        `trials`: those whose observations contradict each other, if that is the reason; correcting one of them ends it.
        """
        data = {"refuted": str(reason)} | ({"trials": list(trials)} if trials else {})
        self._changed(lambda change: change.append("note", None, data))

    @with_near_names
    def optimise(
        self,
        functions: "Functions | Process" = None,
        *,
        budget: int | Cost,
        jobs: int | None = None,
        executor: "Executor | None" = None,
        callbacks: "Iterable[Callback]" = (),
        progress: bool = True,
        lease: float | None = None,
        revise: bool = False,
    ) -> "Result":
        """Run the process until the study has `budget` trials, or cost so much: see `cascada.study.loop.optimise`."""
        from cascada.study.loop import optimise  # which is made of ask and tell

        return optimise(
            self,
            functions,
            budget=budget,
            jobs=jobs,
            executor=executor,
            callbacks=callbacks,
            progress=progress,
            lease=lease,
            revise=revise,
        )

    @property
    def lacks_safe_setting(self) -> bool:
        """Whether the study is safe and no setting is left that is proven safe and worth a run."""
        settings = self._settings
        return settings.safe and self._judged(lambda model, state: nothing_safe_left(model, state, settings))

    # ---- inside

    @on_one_thread
    def _asked(
        self, change: Change, wanted: int, lease: float | None, limit: int | Cost | None, part: Slice | None
    ) -> list[Trial]:
        next_trials = NextTrials(change, self._learned, self._settings, self._journal.shared, part)
        self.budget_reached = isinstance(limit, Cost) and next_trials.exceeds(limit)
        return next_trials.trials(wanted, limit, self.worker, lease, lasting=self._lasting)

    @on_one_thread
    def _begun(
        self, change: Change, kind: Literal["enqueued", "asked"], controls: Any, known_safe: bool, **data: Any
    ) -> Trial:
        if self._settings.safe and known_safe:
            data["known_safe"] = True
        elif self._settings.safe:
            check_proven(self._learned(change.state), change.state, controls)
        return change.begin(kind, controls, **data)


#: Called with the study after every run; one that returns True stops it.
Callback = Callable[[Study], bool | None]
