"""Plans: sequences of steps along one trajectory of a process, at inputs that are known or imagined.

A plan runs some groups of stages, one of which is the last. What these groups are run on comes from the plan itself or
from the stock; or their inputs are set freely, where the stages allow that. Outputs that do not exist yet are imagined
to be their means. Only the first step of a plan is ever run: then all plans are made anew.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from cascada.algorithms.step_trail import Trail
from cascada.algorithms.step_wiring import StepWiring
from cascada.algorithms.stock import Item
from cascada.arrays import Array
from cascada.confidence import Boxes
from cascada.errors import ArgumentError, RefutedError
from cascada.network import Beliefs, StageBelief, composite_mean, enclose_network, enclose_stage
from cascada.network.mean import imagined_at
from cascada.network.outputs import StageError

# How many outputs in stock are considered for a place in a plan: those nearest to the mean of the trajectory.
_NEAREST = 2
# The most plans that are compared, and the most sets of groups whose inputs are set freely.
_MOST_PLANS, _MOST_SETS = 200, 64
# An input was observed if an observed one is nearer than this part of a lengthscale.
_SAME = 1e-9
_TRIES = 64  # values of the outputs of which one nearly attains the bound


@dataclass(frozen=True, eq=False)
class PlannedStep:
    """A group of stages, the values (V,) that it is run with, and what it takes from the stock.

    `run` (V,) are the controls and outputs of the run that the step goes on with, as far as they are known; None if it
    goes on with no single run. `taught`: whether the step teaches anything.
    """

    nodes: tuple[int, ...]
    row: Array
    takes: Mapping[int, Item]
    run: Array | None
    taught: bool


@dataclass(frozen=True, eq=False)
class Plan:
    """Steps with their price, and the beliefs as if each had given its mean.

    `end` (V,) is the whole run that it completes, up to the objective, with imagined outputs; None if it is none.
    """

    steps: tuple[PlannedStep, ...]
    price: float
    after: Beliefs
    end: Array | None = None

    @property
    def nodes(self) -> tuple[int, ...]:
        """All stages that it runs."""
        return tuple(i for step in self.steps for i in step.nodes)


@dataclass(frozen=True, eq=False)
class Plans:
    """The plans at a point `x` (d,), with the beliefs and the items that there are."""

    wiring: StepWiring
    beliefs: Beliefs
    items: tuple[Item, ...]
    x: Array

    def complete(self) -> Plan | None:
        """The plan that runs everything at the point; what is in stock at exactly its inputs is used."""
        return self._plan(self.wiring.needed, {})

    def all(self, rng: np.random.Generator) -> list[Plan]:
        """All plans, the complete one first."""
        found = [self.complete()]
        for chosen in self._sets():
            found += [self._plan(chosen, taken) for taken in self._from_stock(chosen) if taken or self._is_part(chosen)]
        settable = [g for g in self.wiring.needed if self.wiring.can_be_set(g)]
        if any(self.wiring.feeders(g) for g in settable):
            for values in (self._mean, self._attained(rng)):
                found += [self._set_freely(chosen, values) for chosen in _subsets(settable)]
        return [plan for plan in found if plan is not None][:_MOST_PLANS]

    def _is_part(self, chosen: Sequence[int]) -> bool:
        """Whether these groups are not everything, which is the complete plan."""
        return tuple(chosen) != self.wiring.needed

    # ---- plans on the stock

    def _sets(self) -> Iterator[tuple[int, ...]]:
        """Sets of groups with one last group, in which each of the others feeds another."""
        for last in self.wiring.needed:
            yield from self._ending((last,), last - 1)

    def _ending(self, chosen: tuple[int, ...], before: int) -> Iterator[tuple[int, ...]]:
        """The sets with these groups, and with some or none of the groups up to `before`."""
        if before < 0:
            yield chosen
            return
        yield from self._ending(chosen, before - 1)
        if {s for g in chosen for s in self.wiring.feeders(g)} & set(self.wiring.groups[before]):
            yield from self._ending((before, *chosen), before - 1)

    def _from_stock(self, chosen: Sequence[int]) -> Iterator[dict[int, Item]]:
        """The ways to take from the stock what these groups do not run themselves."""
        run = [i for g in chosen for i in self.wiring.groups[g]]
        taken = sorted({s for g in chosen for s in self.wiring.feeders(g)} - set(run))
        feeders = self.wiring.network.feeders
        options = [self._nearest(s, [i for i in run if s in feeders[i]]) for s in taken]
        for picked in itertools.product(*options):
            yield dict(zip(taken, picked, strict=True))

    def _nearest(self, node: int, children: Sequence[int]) -> list[Item]:
        """The items of a stage that can feed these later stages, those nearest to the mean of the trajectory."""
        columns = list(self.wiring.network.nodes[node].columns)

        def distance(item: Item) -> float:
            return float(np.linalg.norm((item.row[columns] - self._mean[columns]) / self._scales[columns]))

        usable = [item for item in self.items if item.node == node and _feeds(item, children)]
        return sorted(usable, key=distance)[:_NEAREST]

    def _plan(self, chosen: Sequence[int], taken: Mapping[int, Item]) -> Plan | None:
        """The plan that runs these groups on these items; None if its last step teaches nothing or is impossible."""
        wiring, feeders = self.wiring, self.wiring.network.feeders
        trail, source = Trail(self.beliefs, self.x), dict(taken)
        for item in taken.values():
            trail.take(item)
        steps: list[PlannedStep] = []
        after, price = self.beliefs, 0.0
        for g in chosen:
            nodes, ahead = wiring.groups[g], [i for h in chosen if h > g for i in wiring.groups[h]]
            done = self._run(trail, after, g)
            if done is None:
                return None
            row, run, taught, after = done
            # The reading of an output is not exactly what the next stage gets: only a run says that both are of one.
            if run is None and self.wiring.network.read_with_errors:
                return None
            if not taught:
                children = {i: [c for c in ahead if i in feeders[c]] for i in nodes}
                used = [i for i, later in children.items() if later]
                if not used and len(wiring.ends) == 1:
                    return None  # the last step was made before
                used = used or list(nodes)
                found = (self._same(i, trail.now, children[i]) for i in used)
                there = [item for item in found if item is not None]
                if len(there) == len(used):
                    for item in there:
                        trail.take(item)
                        source[item.node] = item
                    continue
            takes = {s: source[s] for s in wiring.feeders(g) if s in source}
            steps.append(PlannedStep(nodes, row, takes, run, taught))
            price += wiring.cost(nodes)
        if not steps or not steps[-1].taught:
            return None
        if set(chosen) >= wiring.ends:  # the run that is completed has the outputs of all branches
            steps[-1] = replace(steps[-1], takes={**self._other_ends(source, chosen), **steps[-1].takes})
        end = trail.run_to(steps[-1].nodes[-1]) if chosen[-1] == wiring.needed[-1] else None
        return Plan(tuple(steps), price, after, end)

    def _other_ends(self, source: Mapping[int, Item], chosen: Sequence[int]) -> dict[int, Item]:
        """What is taken from the stock although no group of the plan is run on it, where branches meet in a formula."""
        fed = {i for g in chosen for i in self.wiring.feeders(g)}
        return {i: item for i, item in source.items() if i not in fed}

    def _run(self, trail: Trail, after: Beliefs, group: int) -> tuple[Array, Array | None, bool, Beliefs] | None:
        """What a group is run with, the run that it goes on with, whether it teaches anything, and the beliefs then.

        None if a formula is not defined there.
        """
        network, nodes, taught = self.wiring.network, self.wiring.groups[group], False
        row, run = np.full(network.width, np.nan), None
        for i in nodes:
            if not trail.reach(i):
                return None
            inputs = [c for c in network.nodes[i].inputs if not any(c in network.nodes[j].columns for j in nodes)]
            row[inputs] = trail.now[inputs]
            run = trail.run_of(nodes) if i == nodes[0] else run
            known = self._same(i, trail.now, ())
            if known is None and not was_observed(after, i, trail.now):
                after, taught = imagined_at(after, i, trail.now), True
            outputs = None if known is None else known.row[list(network.nodes[i].columns)]
            trail.imagine(i, run, outputs)
        return row, run, taught, after

    def _same(self, node: int, row: Array, children: Sequence[int]) -> Item | None:
        """An item of a stage at exactly these inputs that can feed these later stages."""
        inputs = list(self.wiring.network.nodes[node].inputs)
        for item in self.items:
            if item.node == node and _feeds(item, children) and np.array_equal(item.row[inputs], row[inputs]):
                return item
        return None

    # ---- plans with inputs that are set

    def _set_freely(self, chosen: Sequence[int], values: Array) -> Plan | None:
        """The plan that runs these groups at the inputs in `values` (V,), without what was observed there."""
        steps: list[PlannedStep] = []
        after, price = self.beliefs, 0.0
        for g in chosen:
            done = self._run(Trail(self.beliefs, self.x, values), after, g)
            if done is None:
                return None
            row, run, taught, after = done
            if taught:
                nodes = self.wiring.groups[g]
                steps.append(PlannedStep(nodes, row, {}, None if self.wiring.feeders(g) else run, True))
                price += self.wiring.cost(nodes)
        return Plan(tuple(steps), price, after) if steps else None

    def _attained(self, rng: np.random.Generator) -> Array:
        """Values (V,) along which the bound at the point is attained, or nearly: the best of some within its boxes."""
        network = self.wiring.network
        box = enclose_network(self.beliefs, Boxes(self.x[None], self.x[None])).boxes
        if not np.isfinite([box.lower, box.upper]).all():
            return self._mean
        rows = rng.uniform(box.lower[0], box.upper[0], (_TRIES, network.width))
        rows[:, : len(self.x)] = self.x
        last = next(stage for stage in self.beliefs.stages if network.objective_column in stage.node.columns)
        inputs = rows[:, list(last.node.inputs)]
        position = last.node.columns.index(network.objective_column)
        try:
            bounds = enclose_stage(last, Boxes(inputs, inputs), None)[0]
        except (RefutedError, StageError, ArgumentError):  # a formula is not defined at some of them
            return self._mean
        worth = bounds.upper[:, position] if network.sign > 0 else -bounds.lower[:, position]
        return rows[int(worth.argmax())]

    @cached_property
    def _mean(self) -> Array:
        """The composite mean at the point, (V,)."""
        return composite_mean(self.beliefs, self.x[None])[0]

    @cached_property
    def _scales(self) -> Array:
        """The smallest lengthscale with which every value enters a stage, (V,); 1 where none is known."""
        scales = np.full(self.wiring.network.width, np.inf)
        for stage in self.beliefs.stages:
            belief = stage.per_output
            if belief is not None:
                inputs = list(stage.node.inputs)
                scales[inputs] = np.minimum(scales[inputs], belief.kernel.lengthscales(len(inputs)))
        return np.where(np.isfinite(scales), scales, 1.0)


def was_observed(beliefs: Beliefs, node: int, row: Array) -> bool:
    """Whether a stage was observed at the inputs in a row (V,); True for a stage of which nothing is to be learned."""
    parts = (beliefs.stages[i] for i in beliefs.parts(node))
    return all(_was_observed(stage, row[list(stage.node.inputs)]) for stage in parts)


def _was_observed(stage: StageBelief, inputs: Array) -> bool:
    if stage.belief is None:
        return True
    seen = stage.belief.posterior.inputs
    if not len(seen):
        return False
    scales = 1.0 if stage.per_output is None else stage.per_output.kernel.lengthscales(len(inputs))
    return bool((np.abs(seen - inputs) / scales).max(axis=1).min() < _SAME)


def _feeds(item: Item, children: Sequence[int]) -> bool:
    """Whether an item can feed one run of each of these later stages."""
    return all(item.left.get(child, 0) >= 1 for child in children)


def _subsets(groups: Sequence[int]) -> list[tuple[int, ...]]:
    """Sets of groups: of more than six, only those of neighbours."""
    n = len(groups)
    if 2**n <= _MOST_SETS:
        return [chosen for size in range(1, n + 1) for chosen in itertools.combinations(groups, size)]
    return [tuple(groups[i : i + size]) for size in range(1, n + 1) for i in range(n - size + 1)][:_MOST_SETS]
