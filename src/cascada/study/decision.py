"""The decision about a batch: go on with it, or discard it by a theorem or by a rule.

The theorem: nothing from the batch beats the best by more than a quarter of the tolerance. With the whole tolerance a
study could stall: a cell that has to be ruled out may contain no point that is better by the tolerance, and then every
batch from it is discarded, and none rules it out. A quarter leaves room, as would any part below 0.7, the part of the
gap that a point worth a run promises.

The rule: what the batch can still gain, per cost of the stages that are left, is less than κ = ½ of what the next run
can gain, per cost of all stages. κ must be below 0.7 for the same reason. What the next run can gain is the bound at
its point, not the gap: no run promises all of the gap, and the algorithm may choose a point for its composite mean,
which promises less, and would choose it again and again if its batch were discarded for that. Compared with the gap,
κ = 1 and a cheap first stage discard nearly every batch, and nothing is proven. Compared with the bound at the next
point, κ = 1 discards more batches than ½, and proofs take a sixth to a half more runs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from cascada.arrays import as_positive
from cascada.errors import ArgumentError, RefutedError
from cascada.network import Network
from cascada.network.latent import forwards_error
from cascada.network.limits import Limit
from cascada.outwards import as_given, difference_up, rounded_up
from cascada.store.trial import trial_at
from cascada.study.batch import Batch, Outlook
from cascada.study.certificate import Certificate
from cascada.study.incumbent import best_known
from cascada.study.judge import certify
from cascada.study.model import Model
from cascada.study.revision import Revision
from cascada.study.settings import Settings
from cascada.study.state import State

# The part of the tolerance by which a batch has to be able to beat the best.
_QUARTER = 0.25
# κ: the part of what a new run promises per cost that a batch has to promise.
_ENOUGH = 0.5
_DIGITS = 4

_Decision = tuple[Literal["continue", "discard"], str]


def revision_of(
    model: Model, state: State, settings: Settings, number: int, costs: Mapping[str, float] | None = None
) -> Revision:
    """The revision of a running trial. `costs` replace the costs of stages, by name.

    Raises `ArgumentError` if the trial is not running, and `RefutedError` if the data refute an assumption.
    """
    trial = trial_at(state.trials, number)
    if trial.state != "running":
        waits = "; ask for it first" if trial.state == "waiting" else ""
        raise ArgumentError(
            f"trial {number} is {trial.state}: only a running trial, of which stages are still to be run, can be "
            f"revised{waits}."
        )
    if trial.steps:
        raise ArgumentError(
            f"trial {number} is a step of {', '.join(map(repr, trial.steps))}, and revise is for whole runs. Ask for "
            f"the next step instead (study.ask_step, `cascada next`)."
        )
    forwarding = next((stage.name for stage in state.network.stages if forwards_error(stage)), None)
    if forwarding is not None:
        raise ArgumentError(
            f"revise does not work with forwards='reading' and an error at stage {forwarding!r}: what the stages after "
            f"it will be run at is not known before it is read. Go on as planned."
        )
    for word, names in (("context=True", state.network.context), ("deviation=", state.network.uncertain)):
        if names:
            raise ArgumentError(
                f"revise does not work with {word}, which {', '.join(names)} has; go on as planned, or abandon the "
                f"trial."
            )
    batch, maximised = Batch(trial, model, state, settings), state.network.sign > 0
    prices = _prices(batch, costs)
    if not batch.left:
        lacking = [name for name in batch.begun if name not in trial.outputs]
        raise ArgumentError(
            f"every stage of trial {number} was run, so nothing is left to revise; tell the outputs of "
            f"{', '.join(map(repr, lacking))}."
        )
    certificate = certify(model, state, settings)
    if certificate.kind == "refuted":
        raise RefutedError(" ".join(certificate.evidence))
    if batch.broken:
        worst = None if model.noisy else -np.inf if maximised else np.inf
        # A reading that breaks a limit is an estimate of the value, like all bounds where there is noise.
        ends = not model.noisy or settings.stop_on_estimated
        found: _Decision = "discard" if ends else "continue", _broken(batch, batch.broken)
        planned = dict(trial.controls)
        return Revision(planned, worst, None, None, *found, certificate.kind, maximised, planned)
    return _judged(batch, certificate, prices)


def _judged(batch: Batch, certificate: Certificate, costs: Mapping[str, float]) -> Revision:
    model, state, settings, sign = batch.model, batch.state, batch.settings, batch.state.network.sign
    best, worth = best_known(model, state, settings), _QUARTER * (settings.tolerance or 0.0)
    over_all = None if certificate.bound is None else sign * certificate.bound
    try:
        outlook = _outlook(batch, best, worth / 2)
    except RefutedError as error:
        model.refuted_by(error)
        raise
    bound = None if certificate.missing else outlook.bound
    if bound is None:
        why = f": {certificate.missing}" if certificate.missing else ""
        decision: _Decision = "continue", f"Too few runs yet to trust an estimated bound{why}."
    else:
        bound = min(bound, over_all) if over_all is not None and batch.is_listed else bound
        new = None if over_all is None else batch.next_gain(best, over_all)
        judge = _Judge(state.network, certificate, best, worth, may_discard=_may_discard(certificate, settings))
        decision = judge.decision(bound, new, _cost(batch, costs, rest=True), _cost(batch, costs, rest=False))
    surest = None if bound is None else outlook.surest
    return Revision(
        controls=dict(batch.trial.controls) if outlook.point is None else batch.controls(outlook.point),
        bound=None if bound is None else sign * bound,
        surest=None if surest is None else batch.controls(surest.point),
        least=None if surest is None else sign * surest.value,
        decision=decision[0],
        reason=decision[1],
        kind=certificate.kind,
        maximised=sign > 0,
        planned=dict(batch.trial.controls),
    )


def _outlook(batch: Batch, best: float, tolerance: float) -> Outlook:
    found = (batch.estimated_outlook if batch.state.network.estimated else batch.outlook)(best, tolerance)
    # A run that has not begun goes on as planned: the search would find nearly the same point again.
    return found if batch.begun else replace(found, point=None)


def _may_discard(certificate: Certificate, settings: Settings) -> bool:
    """Whether bounds of this kind may end a run: estimated ones only where they may end the study, too."""
    return certificate.kind in ("proven", "confident") or settings.stop_on_estimated


def _prices(batch: Batch, costs: Mapping[str, float] | None) -> dict[str, float]:
    """The costs of stages by name, empty if all are 1; `ArgumentError` if given ones are invalid."""
    declared = {stage.name: stage.cost for stage in batch.state.network.stages if not stage.known}
    declared = {} if set(declared.values()) == {1.0} else declared
    if costs is None:
        return declared
    if not isinstance(costs, Mapping):
        raise ArgumentError(f"costs must be a dict such as {{'dryer': 10}}; got {costs!r:.100}.")
    strange = [name for name in costs if name not in batch.stages]
    if strange:
        raise ArgumentError(
            f"costs must name stages that have to be run, which are {', '.join(map(repr, batch.stages))}; got "
            f"{strange[0]!r:.100}."
        )
    return declared | {name: as_positive(cost, f"the cost of stage {name!r}") for name, cost in costs.items()}


@dataclass(frozen=True)
class _Cost:
    """A cost of some stages, and in words."""

    amount: float
    text: str


def _cost(batch: Batch, costs: Mapping[str, float], *, rest: bool) -> _Cost:
    """The cost of all stages that have to be run, or of the rest of them; formulas cost nothing."""
    names = batch.left if rest else batch.stages
    amount = sum(costs.get(name, 1.0) for name in names)
    if costs:
        return _Cost(amount, f"for a cost of {as_given(amount)}")
    return _Cost(amount, f"for {len(names)} {'stage' if len(names) == 1 else 'stages'}")


@dataclass(frozen=True)
class _Judge:
    """The best value known, −∞ if there is none, and `worth`, by how much a batch has to be able to beat it."""

    network: Network
    certificate: Certificate
    best: float
    worth: float
    may_discard: bool

    def decision(self, bound: float, new: float | None, rest: _Cost, whole: _Cost) -> _Decision:
        """By an upper bound of a batch, and what a new run can gain, None if that is not known."""
        if np.isneginf(bound):
            return self._discard("nothing that can still be done with this batch satisfies the limits.")
        if not np.isfinite(self.best):
            return "continue", "No value is known yet that this batch could be compared with."
        gain = difference_up(bound, self.best)
        if gain <= self.worth:
            return self._discard(f"nothing from this batch beats the best, {self._best}{self._margin}.")
        promise = f"It can gain at most {rounded_up(gain, _DIGITS)} {rest.text}"
        if new is None:
            return "continue", f"{promise}."
        promise += f", a new run up to {rounded_up(new, _DIGITS)} {whole.text}"
        if self.may_discard and gain / rest.amount < _ENOUGH * new / whole.amount:
            return "discard", f"By a rule, not a proof: {promise}. Per cost, that is less than half as much."
        return "continue", f"{promise}."

    def _discard(self, statement: str) -> _Decision:
        if self.may_discard:
            return "discard", f"{self.certificate.certainty}: {statement}"
        return "continue", f"Estimated: {statement} An estimate ends no run, unless stop_on_estimated is set."

    @property
    def _best(self) -> str:
        return as_given(self.network.sign * self.best)  # rounded to its worse side, the batch might beat it

    @property
    def _margin(self) -> str:
        if not self.worth:
            return ""
        return f", by more than {as_given(self.worth)}, a quarter of the tolerance"


def _broken(batch: Batch, limits: Sequence[Limit]) -> str:
    row = batch.model.pending([batch.trial])[0]
    found = [f"{limit.output} = {as_given(float(row[limit.column]))} breaks the limit {limit}" for limit in limits]
    if batch.model.noisy:
        return f"{' and '.join(found)} as it was read. Readings scatter, so the value itself may satisfy it."
    return f"{' and '.join(found)}, so nothing that can still be done with this batch satisfies the limits."
