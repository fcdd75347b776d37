"""A study in a store: everything that happens to it is in the log before anybody hears of it.

Its points follow from the log alone: another process, or the same one after a crash, gets the same next point.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar, overload

from cascada.algorithms import Algorithm
from cascada.errors import ArgumentError, ContradictionError, RefutedError, StoreError
from cascada.network import Beliefs, Process, StagePrediction
from cascada.search import Certificate
from cascada.study.events import Event, Kind
from cascada.study.following import Following
from cascada.study.frame import trials_dataframe
from cascada.study.identity import described_fits
from cascada.study.leases import checked_lease, signs_of_life
from cascada.study.observing import stage_name
from cascada.study.recommendation import Recommendation
from cascada.study.store import Log
from cascada.study.study import Study
from cascada.study.trial import Trial, best_of, how_many, trial_number

if TYPE_CHECKING:
    from cascada.network.evaluation import Functions
    from cascada.study.result import Result

_Found = TypeVar("_Found")


class StoredStudy(Following):
    """Ask and tell as in `Study`, in a store, with others; made by `Study.open`."""

    def __repr__(self) -> str:
        best = self.best_trial
        found = "no complete run" if best is None else f"best {best.value:.6g}"
        return f"StoredStudy({self.name!r}, {self.network!r}; {len(self._fold.trials)} trials, {found})"

    # ---- asking and telling

    @overload
    def ask(self, *, lease: float | None = None, limit: int | None = None) -> Trial | None: ...

    @overload
    def ask(self, n: int, *, lease: float | None = None, limit: int | None = None) -> list[Trial]: ...

    def ask(
        self, n: int | None = None, *, lease: float | None = None, limit: int | None = None
    ) -> Trial | list[Trial] | None:
        """A trial to run, written down before it is returned; None when no point is worth a run.

        First those that wait: enqueued ones, and ones whose `lease` ran out. A lease in seconds says that whoever runs
        the trial gives a sign of life (`beat`) in time; without one a run may take as long as it likes. With `n`, a
        list of up to so many trials, all of them written or none. `limit`: no new trial if the study has so many.
        """
        lease = self._lease if lease is None else lease
        if lease is not None:
            checked_lease(lease)
        wanted = 1 if n is None else how_many(n)
        if self._options["tolerance"] is not None:
            self._judged(lambda engine: engine.within_tolerance)  # a contradiction that this shows is written down
        try:
            with self._held() as log:
                self._expire(log)
                trials = self._asked(log, wanted, lease, limit)
        except RefutedError:
            self.certificate()  # writes down what a bound showed
            raise
        return trials if n is not None else trials[0] if trials else None

    def enqueue_trial(self, controls: Mapping[str, Any]) -> Trial:
        """A trial at controls of your own choice; the next to be asked for."""
        with self._held() as log:
            number = len(self._fold.trials)
            self._happen(log, "enqueued", number, {"controls": self._fold.controls(controls)})
            return self._fold.trials[number]

    def begin_trial(self, controls: Mapping[str, Any]) -> Trial:
        """A trial at controls of your own choice that you run now."""
        with self._held() as log:
            number = len(self._fold.trials)
            data = {"controls": self._fold.controls(controls), "worker": self.worker, "lease": None}
            self._happen(log, "asked", number, data)
            return self._fold.trials[number]

    def add_trial(self, controls: Mapping[str, Any], outputs: Mapping[str, Any]) -> Trial:
        """A run of the past, with all or some of its outputs."""
        return self.add_trials([(controls, outputs, "the run")])[0]

    def add_trials(self, runs: Sequence[tuple[Mapping[str, Any], Mapping[str, Any], str]]) -> list[Trial]:
        """Runs of the past, all or none of them: controls, outputs, and what to call the run in an error."""
        with self._held() as log:
            first = len(self._fold.trials)
            for number, (controls, outputs, name) in enumerate(runs, first):
                try:
                    self._happen(log, "enqueued", number, {"controls": self._fold.controls(controls)})
                    self._observe(log, number, outputs)
                except (ArgumentError, ContradictionError) as error:
                    raise type(error)(f"{name}: {error} Nothing was added.") from None
                if self._fold.trials[number].state != "complete":
                    self._happen(log, "abandoned", number, {"reason": "added without its objective"})
            return self._fold.trials[first:]

    def tell(self, trial: Trial | int, outputs: Mapping[str, Any]) -> Trial:
        """Tell the outputs of every stage, or of those that were observed; telling the same again changes nothing."""
        with self._held() as log:
            return self._observe(log, trial_number(trial), outputs)

    def tell_stage(self, trial: Trial | int, stage: str, outputs: Any) -> Trial:
        """Tell the outputs of one stage as they come in."""
        return self.tell(trial, {stage_name(stage): outputs})

    def fail(self, trial: Trial | int, reason: str) -> Trial:
        """Say that a run failed; the stages that were observed are kept and used."""
        return self._end(trial, "failed", reason)

    def abandon(self, trial: Trial | int, reason: str = "abandoned") -> Trial:
        """Say that a trial will not be run; the stages that were observed are kept and used."""
        return self._end(trial, "abandoned", reason)

    def beat(self, trial: Trial | int) -> bool:
        """A sign of life for a trial under a lease; False when the lease ran out and somebody else has the trial."""
        number = trial_number(trial)
        if number >= len(self._fold.trials):
            self.refresh()
        return self._store.beat(self._id, self._trial(number).number, self.worker)

    @contextmanager
    def beating(self, lease: float) -> Iterator[None]:
        """While this lasts, trials are asked for under a lease, and signs of life are given for them."""
        before, self._lease = self._lease, checked_lease(lease)
        try:
            with signs_of_life(lambda: self._store.beat_all(self._id, self.worker), lease):
                yield
        finally:
            self._lease = before

    def close(self) -> None:
        """Let go of the database; what was written stays."""
        self._store.close()

    def take_up(self) -> int:
        """Let trials wait again that a worker of this name ran under a lease when it was stopped, and say how many.

        `StoreError` if a process of this name is alive, as far as can be told.
        """
        with self._held() as log:
            alive = log.alive(self.worker)
            if alive:
                raise StoreError(
                    f"a worker named {self.worker!r} is running trial {alive[0]} of this study; wait for it, or give "
                    f"this one another name."
                )
            mine = self._running()
            for number in mine:
                log.release(number)
                self._happen(log, "expired", number, {})
            return len(mine)

    def put_back(self, numbers: Iterable[int]) -> None:
        """Let trials wait again that were asked for here under a lease and are not run any more."""
        with self._held() as log:
            for number in set(numbers) & set(self._running()):
                log.release(number)
                self._happen(log, "expired", number, {})

    def others_at_work(self) -> bool:
        """Whether somebody else runs a trial under a lease: one whose signs of life may end."""
        self.refresh()
        return any(worker != self.worker for worker in self._fold.workers.values())

    def optimise(self, functions: "Functions | Process" = None, *, budget: int, **options: Any) -> "Result":
        """Run the process until the study has `budget` trials: see `cascada.study.resuming.optimise_stored`."""
        from cascada.study.resuming import optimise_stored  # which is made of ask and tell

        return optimise_stored(self, functions, budget=budget, **options)

    def note(self, text: str) -> None:
        """Write a remark into the log."""
        with self._held() as log:
            self._happen(log, "note", None, {"text": str(text)})

    # ---- what is known

    @property
    def trials(self) -> tuple[Trial, ...]:
        """All trials, in the order in which they were asked for."""
        self.refresh()
        return tuple(self._fold.trials)

    @property
    def events(self) -> list[Event]:
        """The whole log."""
        return self._store.events(self._id)

    @property
    def best_trial(self) -> Trial | None:
        """The complete trial with the best objective; the earliest where several are equal."""
        return best_of(self.trials, self.network.sign)

    @property
    def gap(self) -> float | None:
        """How far the best run can be from the best possible; None before that is known, or when refuted."""
        return self.certificate().gap

    def certificate(self, **limits: Any) -> Certificate:
        """How good the best run is: see `Study.certificate`."""
        return self._judged(lambda engine: engine.certificate(**limits))

    def predict(self, controls: Mapping[str, Any]) -> dict[str, StagePrediction]:
        """Mean, sd and bounds of every stage at some controls."""
        self.refresh()
        return self._engine.predict(controls)

    def recommendation(self, certificate: Certificate | None = None) -> Recommendation | None:
        """What the algorithm recommends in the end: see `Study.recommendation`."""
        return self._judged(lambda engine: engine.recommendation(certificate))

    @property
    def within_tolerance(self) -> bool:
        """Whether the gap is within the tolerance."""
        return self._judged(lambda engine: engine.within_tolerance)

    @property
    def tolerance(self) -> float | None:
        """The gap that is small enough."""
        return self._engine.tolerance

    @property
    def beliefs(self) -> Beliefs:
        """What is believed of every stage."""
        self.refresh()
        return self._engine.beliefs

    @property
    def algorithm(self) -> Algorithm:
        """What chooses the points."""
        return self._engine.algorithm

    @property
    def adaptive(self) -> bool:
        """Whether the algorithm looks at what was told."""
        return self._engine.adaptive

    @property
    def refuted(self) -> bool:
        """Whether the data speak against the assumptions, as far as is known without computing a bound."""
        self.refresh()
        return self._engine.refuted

    def refute(self, reason: str) -> None:
        """Say that an assumption is wrong: nothing is proven from now on, whatever else may be assumed."""
        self._refute({"refuted": str(reason)})

    def trials_dataframe(self) -> Any:
        """All trials as a pandas DataFrame."""
        return trials_dataframe(self.network, self.trials)

    # ---- inside

    def _expire(self, log: Log) -> None:
        """Let trials wait again whose lease ran out, or was left behind in another store."""
        held = log.leased() if self._fold.workers else set()
        for number in [n for n in self._fold.workers if n not in held]:
            log.release(number)
            self._happen(log, "expired", number, {})

    def _asked(self, log: Log, wanted: int, lease: float | None, limit: int | None) -> list[Trial]:
        trials: list[Trial] = []
        try:
            while len(trials) < wanted and (trial := self._ask(log, lease, limit)) is not None:
                trials.append(trial)
        except RefutedError:
            if not trials:
                raise  # else those that waited are handed out: whoever asks again hears of it
        return trials

    def _ask(self, log: Log, lease: float | None, limit: int | None) -> Trial | None:
        trial = next((trial for trial in self._fold.trials if trial.state == "waiting"), None)
        if trial is None:
            if limit is not None and len(self._fold.trials) >= limit:
                return None
            engine = self._engine
            self._asking = True
            self._note_calibration(log, engine)
            trial = engine.ask()
            if trial is None:
                return None
        controls = {name: trial.controls[name] for name in self.network.domain.names}
        self._happen(log, "asked", trial.number, {"controls": controls, "worker": self.worker, "lease": lease})
        if lease is not None:
            log.lease(trial.number, self.worker, lease)
        return self._fold.trials[trial.number]

    def _note_calibration(self, log: Log, engine: Study) -> None:
        """Write down the fits that the next point rests on, if they are new."""
        calibrated = engine.knowledge.calibrated
        fits = {} if calibrated is None else described_fits(calibrated.fits)
        if fits != self._fold.fits:
            self._happen(log, "calibrated", None, fits)

    def _judged(self, look: Callable[[Study], _Found]) -> _Found:
        """What a look at the bounds finds; a contradiction that it shows is written down, for all to know."""
        self.refresh()
        engine = self._engine
        known = set(engine.knowledge.said_against)
        found = look(engine)
        for reason in engine.knowledge.said_against:
            if reason not in known:
                self._refute({"refuted": reason, "assumed": self._described})
        return found

    def _refute(self, data: dict[str, Any]) -> None:
        with self._held() as log:
            self._happen(log, "note", None, data)

    def _running(self) -> list[int]:
        """The trials that a worker of this name runs under a lease; one without may be a week's work in a lab."""
        return [number for number, worker in self._fold.workers.items() if worker == self.worker]

    def _observe(self, log: Log, number: int, outputs: Mapping[str, Any]) -> Trial:
        before = self._trial(number)
        after = self._fold.told(before, outputs)
        fresh = {name: list(after.outputs[name]) for name in outputs if name not in before.outputs}
        if fresh:
            leased = number in self._fold.workers
            self._happen(log, "told" if after.state == "complete" else "observed", number, {"outputs": fresh})
            if leased and after.state == "complete":
                log.release(number)
        return self._fold.trials[number]

    def _end(self, trial: Trial | int, kind: Kind, reason: str) -> Trial:
        reason = str(reason)
        with self._held() as log:
            before = self._trial(trial_number(trial))
            if before.state == "complete":
                raise ContradictionError(f"trial {before.number} is complete: it cannot be {kind} any more.")
            if before.state != kind or before.reason != reason:
                self._happen(log, kind, before.number, {"reason": reason})
                log.release(before.number)
            return self._fold.trials[before.number]
