"""What a trial has cost: every try of every stage, at the cost that was declared at the time."""

from collections.abc import Mapping
from typing import Any

from cascada.errors import ArgumentError
from cascada.network import Network
from cascada.store.event import Event
from cascada.store.trial import Trial
from cascada.study.step_trial import own_stages

Prices = Mapping[str, float]  # stage → cost of one run


def prices_of(network: Network, description: Mapping[str, Any]) -> dict[str, float]:
    """The cost of every stage by a stored description; without one, that of the network. Formulas cost nothing."""
    prices = {stage.name: stage.cost for stage in network.stages}
    for stage in description.get("stages", ()):
        if stage["name"] in prices and not stage.get("known", False):
            prices[stage["name"]] = float(stage.get("cost", 1.0))
    return prices


def charged(network: Network, before: Trial, after: Trial, event: Event, prices: Prices) -> Mapping[str, float]:
    """The costs of a trial after an event with outputs. A run of the past costs nothing: it was not asked for."""
    if event.data.get("past") is True:
        return before.costs
    own = own_stages(network, after)
    fresh = [name for name in after.outputs if name in own and name not in before.outputs]
    tries = checked_tries(event.data.get("tries"))
    return _with({name: prices[name] * tries.get(name, 1) for name in fresh}, before.costs)


def failure_charged(network: Network, trial: Trial, event: Event, prices: Prices) -> Mapping[str, float]:
    """The costs of a trial after it ended: the stage at which a run failed was paid for, too."""
    missing = [name for name in own_stages(network, trial) if name not in trial.outputs]
    if event.kind != "failed" or trial.state == "waiting" or not missing:
        return trial.costs
    tries = checked_tries(event.data.get("tries"))
    stage = next((name for name in tries if name in missing), missing[0])
    return _with({stage: prices[stage] * tries.get(stage, 1)}, trial.costs)


def checked_tries(tries: Any) -> Mapping[str, int]:
    """How often stages were run, by stage; `ArgumentError` unless these are whole numbers, 1 or more."""
    if tries is None:
        return {}
    if not isinstance(tries, Mapping):
        raise ArgumentError(f"tries must be a dict such as {{'press': 2}}; got {tries!r:.100}.")
    for name, count in tries.items():
        if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count < 2**31:
            raise ArgumentError(f"tries of stage {name!r:.100} must be a whole number, 1 or more; got {count!r:.100}.")
    return tries


def _with(new: Mapping[str, float], before: Mapping[str, float]) -> Mapping[str, float]:
    return {**before, **{name: before.get(name, 0.0) + cost for name, cost in new.items()}} if new else before
