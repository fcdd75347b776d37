"""Trials to run next: those that wait, and new ones at points that the algorithm suggests."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from cascada.errors import RefutedError
from cascada.space import ControlValue
from cascada.store.description import described_fits
from cascada.store.trial import Trial
from cascada.study import advisor
from cascada.study.change import Change
from cascada.study.cost import Cost
from cascada.study.judge import certify
from cascada.study.model import Model
from cascada.study.safety import first_waiting, safe_suggestion
from cascada.study.settings import Settings
from cascada.study.slice import Slice
from cascada.study.state import State
from cascada.study.stock import reserved


@dataclass(frozen=True, eq=False)
class NextTrials:
    """Asks for trials within one change of a study; `learned` returns the model of a state."""

    change: Change
    learned: Callable[[State], Model]
    settings: Settings
    shared: bool  #: whether others can continue the study, so that the log says what points rest on
    part: Slice | None = None  #: where the trials must be; None for the whole box

    def trials(
        self, wanted: int, limit: int | Cost | None, worker: str, lease: float | None, *, lasting: bool
    ) -> list[Trial]:
        """Up to `wanted` trials for a worker; no new one if the study has `limit` trials."""
        self.change.expire()
        found: list[Trial] = []
        try:
            while len(found) < wanted and (trial := self._next(limit, worker, lease, lasting)) is not None:
                found.append(trial)
        except RefutedError:
            if not found:
                raise  # else the trials that waited are handed out, and the next ask raises
        return found

    def exceeds(self, limit: Cost) -> bool:
        """Whether one more run, after all that is under way, would cost more than this."""
        state = self.change.state
        under_way = [reserved(state.network, trial, state.prices) for trial in state.trials]
        return not limit.covers(math.fsum([state.spent, *under_way, *state.prices.values()]))

    def _next(self, limit: int | Cost | None, worker: str, lease: float | None, lasting: bool) -> Trial | None:
        """A trial that waited, or a new one."""
        change = self.change
        trial = first_waiting(change, self.learned) if self.settings.safe else change.waiting
        if self.part is not None and (trial is None or not self.part.contains(trial)):
            # A trial with other values is not what was asked for. In safe mode only the first one was proven again.
            others = () if self.settings.safe else change.trials
            trial = next((t for t in others if t.state == "waiting" and not t.steps and self.part.contains(t)), None)
        controls = self._suggested(limit) if trial is None else trial.controls
        if controls is None:
            return None
        number = len(change.trials) if trial is None else trial.number
        ordered = {name: controls[name] for name in change.state.network.domain.names}
        given = {} if self.part is None else self.part.logged
        change.append("asked", number, {"controls": ordered, "worker": worker, "lease": lease, **given})
        if lease is not None:
            change.log.lease(number, worker, lease, lasting=lasting)
        return change.trials[number]

    def _suggested(self, limit: int | Cost | None) -> Mapping[str, ControlValue] | None:
        """The controls of a new trial; None when no point is worth a run."""
        if isinstance(limit, Cost):
            if self.exceeds(limit):
                return None
        elif limit is not None and len(self.change.trials) >= limit:
            return None
        state, settings, part = self.change.state, self.settings, self.part
        if not settings.uses_beliefs and settings.tolerance is None and not state.network.context:
            return advisor.controls_of(advisor.suggest_without_beliefs(state, settings, part), state, settings, part)
        model = self.learned(state)
        if self.shared:
            fits = {} if model.calibrated is None else described_fits(model.calibrated.fits)
            if fits != state.fits:
                self.change.append("calibrated", None, fits)  # what the next point rests on
        context = None if part is None or not part.context else part.of_context()
        if settings.tolerance is not None and settings.is_met_by(certify(model, state, settings, part=context)):
            return None
        found = model.evidence()
        if found:
            raise RefutedError(" ".join(found))
        choose = safe_suggestion if settings.safe else advisor.suggest
        return advisor.controls_of(choose(model, state, settings, part), state, settings, part)
