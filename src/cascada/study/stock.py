"""The stock of a study: outputs that were kept, steps under way, and money, as they follow from its trials."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from cascada.algorithms.stock import Begun, Item, Stock
from cascada.arrays import Array
from cascada.network import Network, run_values
from cascada.store.trial import Trial
from cascada.study.step_trial import inputs_of, own_stages, position, row_of, upstream

_UNDER_WAY = ("waiting", "running")


def stock_of(network: Network, trials: Sequence[Trial], prices: Mapping[str, float]) -> Stock:
    """The stock after these trials; `prices` are the present costs of the stages."""
    return Stock(
        items=tuple(_items(network, trials)),
        begun=tuple(_begun(network, trials)),
        pending=tuple(pair for trial in trials if _is_pending(trial) for pair in _pending(network, trial)),
        spent=math.fsum(trial.cost + reserved(network, trial, prices) for trial in trials),
        spent_on_runs=_spent_on_runs(network, trials, prices),
    )


def portions_left(network: Network, trials: Sequence[Trial]) -> dict[tuple[int, str], dict[str, float]]:
    """The outputs that were kept, by trial and stage → how many runs of each later stage they can still feed.

    What a trial gave that was abandoned is not kept.
    """
    used, names = _used(network, trials), [node.stage.name for node in network.nodes]
    # A stage that takes any input is set to the value, and uses nothing up.
    free = {node.stage.name for node in network.nodes if node.stage.reachable == "any"}
    children = {
        names[i]: [names[j] for j, fed in enumerate(network.feeders) if i in fed and not network.nodes[j].stage.known]
        for i in range(len(names))
    }
    found = {}
    for trial in trials:
        for name in own_stages(network, trial) if trial.state != "abandoned" else ():
            if name in trial.outputs and children[name]:
                portions = network.node(name).stage.portions
                left = {c: portions - (0 if c in free else used[trial.number, name, c]) for c in children[name]}
                found[trial.number, name] = {c: math.inf if c in free else max(n, 0.0) for c, n in left.items()}
    return found


def reserved(network: Network, trial: Trial, prices: Mapping[str, float]) -> float:
    """What a trial will still cost: the stages that it was asked for and that gave nothing yet, while it is under way.

    A trial that waits and was never asked for is not under way.
    """
    if trial.state != "running" and not (trial.state == "waiting" and trial.steps):
        return 0.0
    return math.fsum(prices[name] for name in own_stages(network, trial) if name not in trial.outputs)


def _is_pending(trial: Trial) -> bool:
    return bool(trial.steps) and trial.state in _UNDER_WAY


def _pending(network: Network, trial: Trial) -> list[tuple[int, Array]]:
    """The steps of a trial that gave nothing yet, with their inputs as far as they are known."""
    missing = [name for name in trial.steps if name not in trial.outputs]
    return [(position(network, name), row_of(network, name, inputs_of(network, trial, name), None)) for name in missing]


def _used(network: Network, trials: Sequence[Trial]) -> Counter[tuple[int, str, str]]:
    """How many runs of a later stage each output has fed, or will feed: by trial, stage and later stage."""
    used: Counter[tuple[int, str, str]] = Counter()
    names = [node.stage.name for node in network.nodes]
    for trial in trials:
        own = own_stages(network, trial)
        for name in _run_or_reserved(trial, own):
            for parent in (names[i] for i in network.feeders[position(network, name)]):
                if parent in trial.taken:
                    used[trial.taken[parent], parent, name] += 1
                elif parent in own:
                    used[trial.number, parent, name] += 1
    return used


def _run_or_reserved(trial: Trial, own: Sequence[str]) -> list[str]:
    """The stages that used up portions in a trial, or will: of a failed one also the stage at which it failed."""
    if trial.state not in ("failed", "abandoned"):
        return list(own)
    done, missing = ([name for name in own if (name in trial.outputs) == told] for told in (True, False))
    return done + (missing[:1] if trial.state == "failed" else [])


def _items(network: Network, trials: Sequence[Trial]) -> list[Item]:
    found = []
    for (number, name), left in portions_left(network, trials).items():
        if any(left.values()):
            trial = trials[number]
            kept = {position(network, child): portions for child, portions in left.items()}
            row = _closed_row(network, trial, name) if trial.closed else _own_row(network, trial, name)
            found.append(Item(position(network, name), number, row, trial.closed, kept))
    return found + _ends(network, trials)


def _ends(network: Network, trials: Sequence[Trial]) -> list[Item]:
    """The outputs of stages on which no other is run, where branches meet in a formula or a limit.

    A run that goes on from one of them is complete with the outputs of the other branches.
    """
    fed = {
        i for node, feeders in zip(network.nodes, network.feeders, strict=True) if not node.stage.known for i in feeders
    }
    ends = {node.stage.name for i, node in enumerate(network.nodes) if i not in fed and not node.stage.known}
    if len(ends) == 1:
        return []
    return [
        Item(position(network, name), trial.number, _closed_row(network, trial, name), True, {})
        for trial in trials
        if trial.closed and trial.state != "abandoned"
        for name in own_stages(network, trial)
        if name in trial.outputs and name in ends
    ]


def _own_row(network: Network, trial: Trial, name: str) -> Array:
    return row_of(network, name, inputs_of(network, trial, name), trial.outputs[name])


def _closed_row(network: Network, trial: Trial, name: str) -> Array:
    """The row (V,) of a stage and all that it came from."""
    before = upstream(network, [name])
    controls = np.array([network.domain.coded(trial.controls)])
    row = run_values(network, controls, [{stage: v for stage, v in trial.outputs.items() if stage in before}])[0]
    fixed = {control for stage in before for control in network.node(stage).stage.controls}
    row[[j for j, control in enumerate(network.controls) if control not in fixed]] = np.nan
    return row


def _begun(network: Network, trials: Sequence[Trial]) -> list[Begun]:
    """The complete runs that were begun, and can be continued."""
    runs: dict[int, list[Trial]] = {}
    for trial in trials:
        if trial.run is not None:
            runs.setdefault(trial.run, []).append(trial)
    found = []
    for label, steps in runs.items():
        if all(trial.state == "partial" for trial in steps):
            controls = np.array([network.domain.coded(steps[0].controls)])
            outputs = {name: values for trial in steps for name, values in trial.outputs.items()}
            row = run_values(network, controls, [outputs])[0]
            found.append(Begun(label, row[: network.domain.dimension], row))
    return found


def _spent_on_runs(network: Network, trials: Sequence[Trial], prices: Mapping[str, float]) -> float:
    """What was spent on runs that are complete, and on steps of complete runs that were begun."""
    parts: dict[tuple[int, str], float] = {}  # each output counts once, however many runs it is in
    for trial in trials:
        if trial.state == "complete":
            stages = [name for name in trial.outputs if not network.node(name).stage.known]
            origins = [(trial.taken.get(name, trial.number), name) for name in stages]
            parts |= {place: trials[place[0]].costs.get(place[1], 0.0) for place in origins}
        if trial.run is not None:
            parts |= {(trial.number, name): trial.costs.get(name, 0.0) for name in trial.steps}
            parts[trial.number, ""] = reserved(network, trial, prices)
    return math.fsum(parts.values())
