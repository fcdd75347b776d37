"""The next step of a study whose stages are run one at a time: one that waits, or the one that the rule suggests."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cascada.algorithms.steps import Step as Suggested
from cascada.errors import RefutedError
from cascada.network import Network
from cascada.space import ControlValue
from cascada.store.description import described_fits
from cascada.store.trial import Step, Trial
from cascada.study import advisor
from cascada.study.change import Change
from cascada.study.cost import Cost
from cascada.study.judge import certify
from cascada.study.model import Model
from cascada.study.settings import Settings
from cascada.study.state import State
from cascada.study.step_choice import suggested_step
from cascada.study.step_trial import inputs_of, named_inputs, own_stages, upstream
from cascada.study.stock import reserved


@dataclass(frozen=True, eq=False)
class NextStep:
    """Asks for a step within one change of a study; `learned` returns the model of a state."""

    change: Change
    learned: Callable[[State], Model]
    settings: Settings
    shared: bool  #: whether others can continue the study, so that the log says what steps rest on

    def step(self, limit: Cost | None, worker: str, lease: float | None, *, lasting: bool) -> Step | str:
        """A step for a worker; or why there is none: "budget" or "exhausted"."""
        change = self.change
        change.expire()
        trial = self._waiting()
        if trial is None:
            data = self._suggested()
            if data is None:
                return "exhausted"
        else:
            data = {"controls": trial.controls}
        if limit is not None and not limit.covers(self._spent_with(trial, data)):
            return "budget"
        number = len(change.trials) if trial is None else trial.number
        if data.pop("begins", False):
            data["run"] = number
        domain = change.state.network.domain
        ordered = {name: data["controls"][name] for name in domain.names}
        change.append("asked", number, {**data, "controls": ordered, "worker": worker, "lease": lease})
        if lease is not None:
            change.log.lease(number, worker, lease, lasting=lasting)
        return step_of(change.state, change.trials[number])

    def _waiting(self) -> Trial | None:
        """The first step or run that waits; steps that were to be run on what was withdrawn since are abandoned."""
        network = self.change.state.network
        while (trial := self.change.waiting_step) is not None and trial.steps:
            inputs = inputs_of(network, trial, trial.steps[0])
            if not any(math.isnan(value) for value in inputs.values()):
                break
            self.change.end(trial.number, "abandoned", "what it was to be run on was withdrawn")
        return trial

    def _spent_with(self, trial: Trial | None, data: Mapping[str, Any]) -> float:
        """What is spent once all that is under way, and this, has been run."""
        state = self.change.state
        network, prices = state.network, state.prices
        under_way = [reserved(network, t, prices) for t in state.trials if trial is None or t.number != trial.number]
        names = data.get("steps") or [s.name for s in network.stages if not s.known]
        if trial is not None:
            names = [name for name in own_stages(network, trial) if name not in trial.outputs]
        return math.fsum([state.spent, *under_way, *(prices[name] for name in names)])

    def _suggested(self) -> dict[str, Any] | None:
        """The data of a new step; None when none is worth its cost."""
        state, settings = self.change.state, self.settings
        model = self.learned(state)
        if self.shared:
            fits = {} if model.calibrated is None else described_fits(model.calibrated.fits)
            if fits != state.fits:
                self.change.append("calibrated", None, fits)  # what the next step rests on
                state = self.change.state
        if settings.tolerance is not None and settings.is_met_by(certify(model, state, settings)):
            return None
        found = model.evidence()
        if found:
            raise RefutedError(" ".join(found))
        if state.network.estimated and len(state.trials) < settings.calibration.first(state.network):
            return self._whole_run(model, state)  # of the design, to which the estimates are fitted
        try:
            step = suggested_step(model, state, settings).step
        except RefutedError:
            if not state.network.estimated:
                raise
            return self._whole_run(model, state)  # an estimate contradicts the data
        return None if step is None else logged(state, settings, step)

    def _whole_run(self, model: Model, state: State) -> dict[str, Any] | None:
        controls = advisor.controls_of(advisor.suggest(model, state, self.settings), state, self.settings)
        return None if controls is None else {"controls": controls}


def logged(state: State, settings: Settings, step: Suggested) -> dict[str, Any]:
    """A suggested step as the data of its event."""
    network = state.network
    names = [network.nodes[i].stage.name for i in step.nodes]
    taken = {network.nodes[i].stage.name: item.source for i, item in step.takes.items()}
    data: dict[str, Any] = {"controls": advisor.named(step.point, network, settings), "steps": names}
    data |= {"reason": step.reason} if step.reason else {}
    if step.closed:
        data["controls"] = _controls(state, data["controls"], taken, step.run)
    else:
        data["set"] = _set_outputs(network, step)
    data |= {"from": taken} if taken else {}
    if step.begins:
        data["begins"] = True
    elif step.run is not None:
        data["run"] = step.run
    return data


def _controls(
    state: State, planned: Mapping[str, ControlValue], taken: Mapping[str, int], run: int | None
) -> dict[str, ControlValue]:
    """The planned controls, with those of a run that was begun and of what is taken exactly as they were set.

    The logarithm of a control is rounded, so that a planned value may be the float next to it.
    """
    controls = dict(planned if run is None else state.trials[run].controls)
    for stage, number in taken.items():
        for name in upstream(state.network, [stage]):
            controls |= {c: state.trials[number].controls[c] for c in state.network.node(name).stage.controls}
    return controls


def _set_outputs(network: Network, step: Suggested) -> dict[str, list[float | None]]:
    """The outputs that the stages of a step are run on, by stage; None where an output is of no consequence."""
    own, d = set(step.nodes), network.domain.dimension
    used = {column for i in own for column in network.nodes[i].inputs if column >= d}
    found = {}
    for i, node in enumerate(network.nodes):
        if i not in own and used & set(node.columns):
            found[node.stage.name] = [float(step.row[c]) if c in used else None for c in node.columns]
    return found


def step_of(state: State, trial: Trial) -> Step:
    """A trial that was asked for as a step; of a whole run its first stage that gave nothing yet."""
    network = state.network
    missing = [name for name in own_stages(network, trial) if name not in trial.outputs]
    first = missing[0]
    names = [n.stage.name for n in network.nodes]
    feeding = [names[i] for i in network.feeders[names.index(first)]]
    return Step(
        stage=first,
        inputs=named_inputs(network, trial, first),
        trial=trial.number,
        takes={name: trial.taken[name] for name in feeding if name in trial.taken},
        cost=math.fsum(state.prices[name] for name in missing),
        reason=trial.why or ("" if trial.steps else "A whole run, from its first stage to its last."),
        then=tuple(missing[1:]),
    )
