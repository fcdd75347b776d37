"""The read-only part of a study: its trials, the model that they lead to, and the certificate."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from cascada.algorithms import Algorithm, Situation
from cascada.calibration import stage_predictions
from cascada.calibration.drawable import has_probable_gap
from cascada.errors import StoreError
from cascada.execution.blas import on_one_thread
from cascada.network import Beliefs, StagePrediction
from cascada.printable import one_line
from cascada.search import SearchBudget
from cascada.space import ControlValue
from cascada.store.event import Event
from cascada.store.journal import Journal
from cascada.store.trial import Trial
from cascada.study.advisor import situation
from cascada.study.caller_warning import warn_caller
from cascada.study.certificate import Certificate
from cascada.study.judge import certify
from cascada.study.measurement import Measurement
from cascada.study.model import Model
from cascada.study.probable_gap import LEVEL, ProbableGap
from cascada.study.recommendation import Recommendation, recommend, recommended
from cascada.study.settings import Settings
from cascada.study.slice import Slice
from cascada.study.state import State

if TYPE_CHECKING:
    from cascada.study.table import DecisionTable

_Found = TypeVar("_Found")

_CELLS = 200_000  # of a certificate that is refined without a limit of cells


class Reader:
    """What follows from the journal of a study, as far as `state` has followed it; nothing is written."""

    def __init__(self, journal: Journal, state: State, settings: Settings, *, name: str | None = None) -> None:
        self.network, self.name = state.network, name
        self._journal, self._state, self._settings = journal, state, settings
        self._assumed = state.described  # the event that says what is assumed here
        self._model = Model(state.network, settings)

    def __repr__(self) -> str:
        best, count = self.best_trial, len(self._state.trials)
        where = "" if self.name is None else f"{self.name!r}, "
        value = None if best is None else best.value
        return f"{type(self).__name__}({where}{self.network!r}; {count} trials, best {value})"

    def _repr_html_(self) -> str:
        from cascada.study.cards import study_card  # imported where notebooks show it

        return study_card(self)

    def close(self) -> None:
        """Close the connection to the store; what was written stays."""
        self._journal.close()

    def verify(self) -> None:
        """Raise `StoreError` unless others can read all that is known here from the store."""
        self._journal.verify()

    @property
    def place(self) -> Path:
        """The file of the store, or, without one, a name for files about it in the working folder."""
        return self._journal.place

    def refresh(self) -> None:
        """Read what other processes appended."""
        self._state = self._followed(self._journal.events)

    @property
    def state(self) -> State:
        """The trials and all else that follows from the events."""
        self.refresh()
        return self._state

    @property
    def trials(self) -> tuple[Trial, ...]:
        """All trials, in the order in which they were asked for."""
        return self.state.trials

    @property
    def events(self) -> list[Event]:
        """The whole log."""
        return self._journal.events()

    @property
    def best_trial(self) -> Trial | None:
        """The complete trial with the best objective; the earliest where several are equal.

        With noise that is the best reading. It says little: see `recommended`.
        """
        return self.state.best

    @property
    def noisy(self) -> bool:
        """Whether runs are not exact: a stage has an error or noise that is estimated, or two runs show that it has."""
        state = self.state
        return state.network.noisy or state.network.read_with_errors or state.scatter is not None

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        """What single stages gave at inputs of their own, told without a trial; outputs None do not count."""
        return self.state.measurements

    @property
    def spent(self) -> float:
        """What was spent on all trials: every try of every stage, at the cost that was declared then."""
        return self.state.spent

    def trials_dataframe(self) -> Any:
        """All trials as a pandas DataFrame."""
        from cascada.study.tabular import trials_dataframe  # imported where it is used

        return trials_dataframe(self.network, self.trials)

    @property
    def algorithm(self) -> Algorithm:
        """What chooses the points."""
        return self._settings.algorithm

    @property
    def settings(self) -> Settings:
        """The settings of the study."""
        return self._settings

    @property
    def adaptive(self) -> bool:
        """Whether the algorithm uses observations; if not, all its points are known in advance."""
        return self._settings.adaptive

    @property
    def horizon(self) -> int | None:
        """The planned number of runs."""
        return self._settings.horizon

    @property
    def tolerance(self) -> float | None:
        """The gap that is small enough."""
        return self._settings.tolerance

    @property
    def shared(self) -> bool:
        """Whether other processes can work on this study."""
        return self._journal.shared

    @property
    @on_one_thread
    def model(self) -> Model:
        """The beliefs that follow from the trials, and what speaks against the assumptions."""
        return self._learned(self.state)

    @property
    def beliefs(self) -> Beliefs:
        """The beliefs about every stage, by which the gap is judged."""
        return self.model.judging

    @property
    def refuted(self) -> bool:
        """Whether the data speak against the assumptions, as far as is known without computing a bound."""
        return self.model.kind == "refuted"

    @on_one_thread
    def predict(self, controls: Mapping[str, Any]) -> dict[str, StagePrediction]:
        """Mean, sd and bounds of every stage at some controls."""
        return stage_predictions(self.network, self.beliefs.predict(controls))

    def situation(self, pending: Sequence[Trial] = ()) -> Situation:
        """What the algorithm is given when a point is asked for, with these trials pending."""
        return situation(self.model, self.state, self._settings, pending)

    def certificate(
        self,
        *,
        tolerance: float | None = None,
        cells: int | None = None,
        seconds: float | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> Certificate:
        """How good the best run is. Without limits, from the bound at hand; with them, after refining it further.

        `context`: measured values of the controls with `context=True`, for which the certificate is. Without one it
        has no gap if the process has such controls.
        """
        part = None if context is None else Slice.of(self.network, self._settings, None, context)
        refined = tolerance is not None or cells is not None or seconds is not None
        budget = SearchBudget(tolerance or 0.0, cells or _CELLS, seconds) if refined else None
        return self._judged(lambda model, state: certify(model, state, self._settings, budget, part))

    def table(
        self,
        contexts: Mapping[str, Sequence[Any]] | None = None,
        *,
        tolerance: float | None = None,
        rows: int = 16,
    ) -> "DecisionTable":
        """A decision table: for every box of contexts one setting, with how far it can be from the best at most.

        `contexts` gives the ends of the boxes, as in {"humidity": [0.2, 0.5, 0.8]}, and values of choices, as in
        {"supplier": ["A", "B"]}: each of them has rows of its own. Without it all contexts are covered by at most
        `rows` boxes, cut until every gap is within the `tolerance` (that of the study by default).
        """
        from cascada.study.table import decision_table  # imported where it is used

        settings = self._settings
        return self._judged(lambda model, state: decision_table(model, state, settings, contexts, tolerance, rows))

    def probable_gap(self, level: float = LEVEL, seed: int = 0) -> ProbableGap:
        """How far the best run is from the best possible with the probability `level`, where norms are estimated.

        It is computed from processes that are drawn from the runs, and is no proof: see `cascada.study.probable`. The
        same study and seed give the same gap. `ArgumentError` if it is not defined for the process.
        """
        from cascada.study.probable import probable_gap  # imported where it is used

        return self._judged(lambda model, state: probable_gap(model, state, self._settings, level, seed))

    def probable_gap_if_defined(self) -> ProbableGap | None:
        """The probable gap; None for a process for which it is not defined."""
        return self.probable_gap() if has_probable_gap(self.state.network) else None

    @property
    def probably_within_tolerance(self) -> bool:
        """Whether the probable gap may stop the study, and is within the tolerance."""
        if self._settings.stop_on != "probable" or self._settings.tolerance is None:
            return False
        gap = self.probable_gap().gap
        return gap is not None and gap <= self._settings.tolerance

    @property
    def gap(self) -> float | None:
        """How far the best run can be from the best possible; None before that is known, or when refuted."""
        return self.certificate().gap

    @property
    def within_tolerance(self) -> bool:
        """Whether the gap is within the tolerance: a proven one, or an estimated one if that may stop the study."""
        return self._settings.tolerance is not None and self._settings.is_met_by(self.certificate())

    def recommended(self) -> dict[str, ControlValue] | None:
        """The controls that the algorithm recommends in the end, if they are not simply those of the best run."""
        return self._judged(lambda model, state: recommended(model, state, self._settings))

    def recommendation(self, certificate: Certificate | None = None) -> Recommendation | None:
        """The same with what they give at least, and how far they can be from the best possible.

        Over a box the best possible is bounded by a `certificate` of this study: one that was refined, or that at hand.
        """
        return self._judged(lambda model, state: recommend(model, state, self._settings, certificate))

    # ---- inside

    def _followed(self, read: Callable[[int], list[Event]]) -> State:
        """The state after the events that `read` returns from a number on, if they continue those known so far."""
        last = self._state.last
        events = read(self._state.count - (last is not None))
        if last is not None and (not events or not events[0].is_same(last)):
            raise StoreError(
                f"the study {self.name!r} was deleted, or its log was replaced, by a backup, say; open it again. "
                f"Nothing was written."
            )
        return self._state.replayed(events[last is not None :])

    def _advance(self, after: State) -> None:
        """Take over the state after a change, with a warning if it shows that less is known than was said."""
        before, self._state = self._state, after
        if before.scatter is None and after.scatter is not None:
            self._warn(one_line(after.scatter.reason))
        if before.selective is None and after.selective is not None:
            self._warn(
                f"{after.selective}, so the gap is estimated from now on: bounds from readings with scatter hold with "
                f"the given probability only if every reading is reported as it was read, in its order."
            )

    def _warn(self, text: str) -> None:
        """Issue a warning about the runs, at the line that calls the study."""
        warn_caller(text)

    def _learned(self, state: State) -> Model:
        if state.described > self._assumed:
            raise StoreError(f"the study {self.name!r} was amended by another process; open it again.")
        self._model.catch_up(state)
        return self._model

    @on_one_thread
    def _judged(self, look: Callable[[Model, State], _Found]) -> _Found:
        """What a function of model and state returns; contradictions that it finds are recorded."""
        state = self.state
        model = self._learned(state)
        found = look(model, state)
        known = {refutation.reason for refutation in state.refutations}
        new = [reason for reason in model.found if reason not in known]
        if new:
            self._record(new, state.revision)
        return found

    def _record(self, refutations: list[str], revision: int) -> None:
        """What to do with contradictions that a bound showed; a reader writes nothing."""
