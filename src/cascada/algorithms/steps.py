"""The next step of a process whose stages are run one at a time, for the cheapest proof.

What is scored is a plan, not a stage: known by itself, no single stage need lower any bound, while all of them together
do. The worth of a plan is how far the bounds of the most promising settings fall if every measurement comes out at its
mean, per cost. The first step of the best plan is run, and then all plans are made anew with what it gave. To suspend,
to discard, to go on from the stock are no modes of their own: each is what the best plan happens to begin with.

At least half of the money goes into complete runs at the search's own point. So the cost of a proof is at most twice
that of complete runs, plus one run (`guaranteed`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from cascada.algorithms.algorithm import Situation, Suggestion, point_key
from cascada.algorithms.gpn_ei import GPNEI
from cascada.algorithms.gpn_ucb import GPNUCB
from cascada.algorithms.step_plans import Plan, PlannedStep, Plans
from cascada.algorithms.step_promise import Promise
from cascada.algorithms.step_value import Potential
from cascada.algorithms.step_wiring import StepWiring
from cascada.algorithms.stock import Item, Stock
from cascada.arrays import Array
from cascada.errors import RefutedError
from cascada.network import Beliefs, hallucinated
from cascada.network.mean import imagined_at
from cascada.outwards import as_given
from cascada.search import Leaves, ObjectiveBounds, SearchBudget, search

# Cells of a search: with so many steps to a proof, fewer per step suffice than for a run.
_CELLS = 1_000
# Points of the search that may turn out to be known already.
_POINTS = 8
# Below this multiple of the tolerance a gap is refined before a step is paid for.
_NEARLY = 4.0


@dataclass(frozen=True, eq=False)
class Step:
    """Stages to run in one go, as a rule one; stages are given by their position in `Network.nodes`."""

    nodes: tuple[int, ...]
    row: Array  #: (V,), coordinates: their inputs, NaN elsewhere
    takes: Mapping[int, Item]  #: what they are run on, by the stage that gave it
    point: Array  #: (d,): the controls of the whole run as it is planned
    closed: bool  #: whether the result is part of the run at `point`; else it is one of these stages only
    begins: bool  #: whether it begins a complete run, which is then continued to its end
    run: int | None  #: the label of the complete run that it continues
    cost: float
    price: float  #: of the plan that it is the first step of
    fall: float  #: the expected fall of the bounds by this plan
    plan: tuple[int, ...]  #: all stages of the plan, in order
    reason: str


@dataclass(frozen=True, eq=False)
class NextStep:
    """The step to run next, None if nothing is left to learn; and the search behind it, as for a run."""

    step: Step | None
    suggestion: Suggestion


def suggest_step(situation: Situation, stock: Stock, rng: np.random.Generator, *, guaranteed: bool = True) -> NextStep:
    """The next step, a pure function of its arguments.

    `situation.data` and `.pending` are rows of whole runs, `situation.best` may be the value of a setting that was not
    run. Without `guaranteed` no complete run is made for the sake of the guarantee.
    """
    try:
        return _next(situation, stock, _imagined(situation, stock), rng, guaranteed=guaranteed)
    except RefutedError:
        if not stock.pending and not len(situation.pending):
            raise
        return _next(situation, stock, situation.beliefs, rng, guaranteed=guaranteed)  # imagined outputs may contradict


def _next(
    situation: Situation, stock: Stock, beliefs: Beliefs, rng: np.random.Generator, *, guaranteed: bool
) -> NextStep:
    """The next step by beliefs that contain the imagined outputs of what is pending."""
    network = situation.beliefs.network
    wiring = StepWiring.of(network)
    for begun in stock.begun:
        plan = Plans(wiring, beliefs, stock.items, begun.point).complete()
        if plan is not None:
            chosen = _Chosen(plan, 0.0, f"The complete run at {_named(situation, begun.point)} is continued.")
            done = Suggestion(begun.point, None, 0, "begun", situation.cache)
            return NextStep(_step(wiring, chosen, begun.point, run=begun.label), done)
    situation = replace(situation, taken=_run_points(situation))
    if stock.pending and not len(situation.pending):  # imagined outputs prove nothing: no tree of theirs is kept
        situation = replace(situation, pending=np.full((len(stock.pending), network.width), np.nan))
    suggestion = _refined(situation, beliefs, _suggested(situation, beliefs, rng))
    for _ in range(_POINTS):
        x = suggestion.point
        if x is None:
            return NextStep(None, suggestion)
        value: Potential | Promise
        if network.estimated:
            value = Promise.at(situation, beliefs, x, rng)
        else:
            value = Potential.at(situation, beliefs, suggestion, x)
        found = _choose(wiring, beliefs, stock, x, value, rng, guaranteed)
        if found is not None:
            return NextStep(found, suggestion)
        # All that leads to this point is known: its cell has to be cut instead.
        situation = replace(situation, cache=suggestion.cache, taken=situation.taken | {_key(situation, x)})
        cells = suggestion.cells
        suggestion = _suggested(situation, beliefs, rng)
        suggestion = replace(suggestion, cells=suggestion.cells + cells)
    return NextStep(None, suggestion)


def _suggested(situation: Situation, beliefs: Beliefs, rng: np.random.Generator) -> Suggestion:
    """The point to learn about, by beliefs that contain the imagined outputs of what is pending."""
    if beliefs.network.estimated:
        nothing = np.empty((0, beliefs.network.width))
        return GPNEI().suggest(replace(situation, beliefs=beliefs, pending=nothing, cache=None), rng)
    return GPNUCB(cells=_CELLS).suggest_from(situation, beliefs, rng)


def _refined(situation: Situation, beliefs: Beliefs, found: Suggestion) -> Suggestion:
    """The suggestion, after more cells if the gap is nearly small enough: they cost less than the last step."""
    if (
        found.bound is None
        or beliefs.network.estimated
        or not isinstance(found.cache, Leaves)
        or beliefs.network.read_with_errors
    ):
        return found
    if not situation.tolerance < found.bound - situation.best <= _NEARLY * situation.tolerance:
        return found
    bounds, budget = ObjectiveBounds(beliefs, situation.exact_run), SearchBudget(situation.tolerance, _CELLS)
    outcome = search(bounds, found.cache, situation.best, situation.version, budget, prove=True)
    return replace(found, bound=outcome.bound, cache=outcome.leaves, cells=found.cells + outcome.cells)


def _imagined(situation: Situation, stock: Stock) -> Beliefs:
    """The beliefs as if all that is pending had given its mean."""
    beliefs = hallucinated(situation.beliefs, situation.pending)
    for node, row in stock.pending:
        if np.isfinite(row[list(beliefs.network.nodes[node].inputs)]).all():
            beliefs = imagined_at(beliefs, node, row)
    return beliefs


@dataclass(frozen=True, eq=False)
class _Chosen:
    """A plan, the fall of the bounds that is expected of it, and why it was chosen."""

    plan: Plan
    fall: float
    reason: str
    begins: bool = False


def _choose(
    wiring: StepWiring,
    beliefs: Beliefs,
    stock: Stock,
    x: Array,
    value: Potential | Promise,
    rng: np.random.Generator,
    guaranteed: bool,
) -> Step | None:
    """The first step of the best plan at a point; None if all that leads to it is known."""
    plans = Plans(wiring, beliefs, stock.items, x)
    scored = [(value.fall(plan), plan) for plan in plans.all(rng)]
    if not scored:
        return None
    fall, plan = max(scored, key=lambda pair: pair[0] / pair[1].price)
    complete = plans.complete()
    if complete is not None and not fall > 0:  # only everything together lowers a bound
        fall, plan = value.fall(complete), complete
    begins = False
    if guaranteed and complete is not None and _is_due(wiring, stock, plan.steps[0]):
        fall, plan, begins = value.fall(complete), complete, True
    why = "At least half of the money goes into complete runs." if begins else _why(wiring, plan, fall, len(scored))
    return _step(wiring, _Chosen(plan, fall, why, begins), x)


def _is_due(wiring: StepWiring, stock: Stock, step: PlannedStep) -> bool:
    """Whether a complete run is due before this step, so that at least half of the money is spent on such runs.

    What is spent otherwise may exceed it by the cost of one run: the guarantee is 2·C·T + C.
    """
    whole = sum(wiring.cost(wiring.groups[g]) for g in wiring.needed)
    otherwise = stock.spent - stock.spent_on_runs
    return otherwise + wiring.cost(step.nodes) > stock.spent_on_runs + whole


def _step(wiring: StepWiring, chosen: _Chosen, x: Array, run: int | None = None) -> Step:
    first, plan = chosen.plan.steps[0], chosen.plan
    point = x if first.run is None else np.where(np.isfinite(first.run[: len(x)]), first.run[: len(x)], x)
    return Step(
        nodes=first.nodes,
        row=first.row,
        takes=first.takes,
        point=point,
        closed=first.run is not None,
        begins=chosen.begins,
        run=run,
        cost=wiring.cost(first.nodes),
        price=plan.price,
        fall=chosen.fall,
        plan=plan.nodes,
        reason=chosen.reason,
    )


def _why(wiring: StepWiring, plan: Plan, fall: float, count: int) -> str:
    names = ", then ".join(wiring.network.nodes[i].stage.name for i in plan.nodes)
    lowest = f"is expected to lower the highest bounds by {fall:.2g} for a cost of {as_given(plan.price)}"
    return f"{names}: this {lowest}, the most per cost of {count} plans."


def _named(situation: Situation, point: Array) -> str:
    domain = situation.domain
    values = domain.named(domain.decode(point[None])[0])
    return ", ".join(f"{name} = {as_given(value)}" for name, value in values.items())


def _run_points(situation: Situation) -> frozenset[bytes]:
    """The points at which a whole run was made or is pending."""
    network = situation.beliefs.network
    columns = [network.objective_column, *(limit.column for limit in network.limits)]
    rows = situation.data[np.isfinite(situation.data[:, columns]).all(axis=1)] if len(situation.data) else ()
    return frozenset(_key(situation, row) for row in (*rows, *situation.pending))


def _key(situation: Situation, row: Array) -> bytes:
    return point_key(situation.domain, row[: situation.domain.dimension])
