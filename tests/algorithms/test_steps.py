"""Tests of the rule that chooses the next step of a process whose stages are run one at a time."""

import math
from copy import copy
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import cascada as cd
from benchmarks.step_lab import StepLab, Terms, on_terms
from cascada.algorithms import Situation, Suggestion
from cascada.algorithms.step_plans import Plans
from cascada.algorithms.step_value import Potential
from cascada.algorithms.step_wiring import StepWiring
from cascada.algorithms.steps import Step, suggest_step
from cascada.algorithms.stock import Item, Stock
from cascada.errors import RefutedError
from cascada.network import Network, prior_beliefs
from cascada.network.mean import imagined_at
from cascada.problems import Problem, certified
from cascada.problems.certified_choices import certified_choices
from cascada.problems.certified_problem import StagePlan, Wiring
from cascada.search import ObjectiveBounds
from tests.reference_steps import excess, learned, plans

COSTS = (100.0, 10.0, 1.0)
RESHARED = Wiring("x → f, (f, x) → g", (StagePlan(("x",)), StagePlan(("x",), (0,))))
BRANCHES = Wiring("2-2-1", (StagePlan(("x", "y")), StagePlan(("x", "y")), StagePlan((), (0, 1))))
REUSED, USED_UP, DECOUPLED = Terms(COSTS, "stock", math.inf), Terms(COSTS), Terms(COSTS, "any")


def process(structure: str | Wiring, terms: Terms = REUSED, seed: int = 0) -> Problem:
    return on_terms(certified(structure, seed), terms)


def after(problem: Problem, steps: int, *, guaranteed: bool = False) -> StepLab:
    """The laboratory after some steps."""
    lab = StepLab(problem, guaranteed=guaranteed)
    for _ in range(steps):
        step = lab.think()
        assert step is not None
        lab.run(step)
    return lab


def situation(lab: StepLab) -> Situation:
    best = -np.inf if lab.best is None else lab.best.value
    return Situation(
        lab.beliefs, lab.data, np.empty((0, lab.network.width)), None, best, lab.steps, alone=len(lab.items)
    )


def stock(lab: StepLab) -> Stock:
    return Stock(tuple(lab.items), (), (), lab.spent, lab.spent_on_runs)


def same(one: Step | None, other: Step | None) -> bool:
    """Whether two steps are the same, bit for bit."""
    if one is None or other is None:
        return one is other
    numbers = ("nodes", "closed", "begins", "run", "cost", "price", "fall", "plan", "reason")
    rows = np.array_equal(one.row, other.row, equal_nan=True) and np.array_equal(one.point, other.point)
    taken = {s: item.source for s, item in one.takes.items()} == {s: item.source for s, item in other.takes.items()}
    return rows and taken and all(getattr(one, name) == getattr(other, name) for name in numbers)


# ---- plans against the slow way


@pytest.mark.parametrize(
    ("structure", "terms", "steps"),
    [("controls", REUSED, 7), ("controls", USED_UP, 6), ("join", REUSED, 7), (BRANCHES, REUSED, 6)],
)
def test_plans_have_the_price_and_the_bounds_of_plans_made_the_slow_way(structure, terms, steps):
    lab = after(process(structure, terms), steps)
    network, x = lab.network, np.random.default_rng(1).uniform(-2, 2, lab.network.domain.dimension)
    x = lab.items[-1].row[: len(x)] if lab.items[-1].closed and np.isfinite(lab.items[-1].row[: len(x)]).all() else x
    slow = plans(network, [(item.node, item.row) for item in lab.items], lab.items, x)
    fast = {}
    for plan in Plans(StepWiring.of(network), lab.beliefs, tuple(lab.items), x).all(np.random.default_rng(0)):
        sources = frozenset(item.source for step in plan.steps for item in step.takes.values())
        fast[plan.nodes, sources] = (plan.price, plan.after)
    assert fast.keys() == slow.keys()
    points = np.random.default_rng(2).uniform(-2, 2, (20, len(x)))
    for key, (price, beliefs) in slow.items():
        assert fast[key][0] == pytest.approx(price, rel=1e-12)
        assert excess(fast[key][1], points, 0.0) == pytest.approx(excess(beliefs, points, 0.0), abs=1e-6)


def test_beliefs_of_single_observations_are_those_of_the_slow_way():
    lab = after(process("join"), 6)
    slow = learned(lab.network, [(item.node, item.row) for item in lab.items])
    points = np.random.default_rng(2).uniform(-2, 2, (20, 3))
    assert excess(lab.beliefs, points, 0.0).tolist() == excess(slow, points, 0.0).tolist()


def test_an_observation_of_one_stage_teaches_no_other():
    """A row with x, any value for f and g(f, x) looks like a run in which f gave that value."""
    problem = process(RESHARED, replace(DECOUPLED, costs=(1.0, 1.0)))
    beliefs, row = prior_beliefs(problem.network), np.array([[0.5, 1.9, 0.1]])
    found = beliefs.append_to(1, row)
    counts = [stage.belief.posterior.count for stage in found.stages if stage.belief is not None]
    assert counts == [0, 1]
    wrong = beliefs.append(row)  # as a run it would
    assert [stage.belief.posterior.count for stage in wrong.stages if stage.belief is not None] == [1, 1]


# ---- what the rule may do


@cache
def searched(structure: str | Wiring, terms: Terms, guaranteed: bool = False) -> tuple[StepLab, tuple[Step, ...]]:
    """Some steps."""
    lab, steps = StepLab(process(structure, terms), guaranteed=guaranteed), []
    for _ in range(14):
        step = lab.think()
        assert step is not None
        lab.run(step)  # which also asserts that no item feeds more runs than its portions
        steps.append(step)
    return lab, tuple(steps)


@pytest.mark.parametrize("structure", ["controls", "join"])
@pytest.mark.parametrize("terms", [REUSED, USED_UP, DECOUPLED], ids=["reused", "used up", "decoupled"])
def test_no_step_repeats_one_whose_output_is_there(structure, terms):
    lab, _ = searched(structure, terms)
    assert lab.repeated == 0


def test_the_expensive_first_stage_is_run_less_often_than_the_others_if_its_output_is_kept():
    lab, _ = searched("controls", REUSED)
    assert lab.runs[0] < lab.runs[1] <= lab.runs[2]


def test_outputs_that_are_used_up_feed_one_run_each():
    lab, steps = searched("controls", USED_UP)
    taken = [(s, item.source) for step in steps for s, item in step.takes.items()]
    assert len(taken) == len(set(taken))
    assert lab.runs[0] >= lab.runs[1] >= lab.runs[2]


def test_inputs_that_are_set_freely_take_nothing_and_are_no_run():
    _, steps = searched("controls", DECOUPLED)
    free = [step for step in steps if step.nodes != (0,) and not step.takes]
    assert free
    assert not any(step.closed for step in free)
    assert all(np.isfinite(step.row[[3 + step.nodes[0] - 1]]).all() for step in free)


def test_outputs_of_different_runs_are_put_together_and_are_no_run():
    """The branches of a join share the control y."""
    lab, steps = searched("join", Terms((1.0, 10.0, 100.0), "stock", math.inf))
    joined = [step for step in steps if step.nodes == (2,)]
    assert joined
    for step in joined:
        shared = {item.row[1] for item in step.takes.values()}
        assert step.closed == (len(shared) == 1)
    assert len(lab.data) == sum(step.closed for step in joined)


def test_the_same_arguments_give_the_same_step():
    lab, _ = searched("controls", REUSED)
    one, other = (suggest_step(situation(lab), stock(lab), np.random.default_rng(5)) for _ in range(2))
    assert same(one.step, other.step)


def test_a_minimised_process_is_searched_like_its_mirror():
    problem = process("controls")
    lab = after(problem, 5)
    flipped = StepLab(replace(problem, network=_negated(problem.network)))
    for _ in range(5):
        step = flipped.think()
        assert step is not None
        flipped.run(step)
    assert flipped.spent == lab.spent
    assert flipped.bound == pytest.approx(lab.bound, abs=1e-9)


def _negated(network: Network) -> Network:
    """The network whose objective is negated and minimised."""
    last = network.nodes[-1].stage
    assert last.function is not None
    function = last.function
    stage = cd.Stage(
        last.name,
        controls=last.controls,
        outputs=last.outputs,
        parents=last.parents,
        kernel=last.kernel,
        norm_bound=last.norm_bound,
        function=lambda **values: [-value for value in function(**values)],
        cost=last.cost,
        reachable=last.reachable,
        portions=last.portions,
    )
    return Network([*network.stages[:-1], stage], ".".join(network.objective)).mirrored()


# ---- pending steps, complete runs, groups, formulas


def test_a_pending_step_is_not_suggested_again():
    lab = after(process("controls"), 6)
    first = suggest_step(situation(lab), stock(lab), np.random.default_rng(0), guaranteed=False).step
    assert first is not None
    pending = replace(stock(lab), pending=((first.nodes[0], first.row),), spent=lab.spent + first.cost)
    found = suggest_step(situation(lab), pending, np.random.default_rng(0), guaranteed=False)
    assert found.suggestion.bound is None  # imagined outputs prove nothing
    second = found.step
    assert second is not None
    inputs = list(lab.network.nodes[first.nodes[0]].inputs)
    assert second.nodes != first.nodes or not np.array_equal(second.row[inputs], first.row[inputs])


def wasteful(waste: float) -> tuple[StepLab, list[Step]]:
    """Eight steps after so much money was spent on steps that failed."""
    lab, steps = StepLab(process(BRANCHES, Terms((1.0, 1.0, 1.0), "any"))), list[Step]()
    lab.spent = waste
    for _ in range(8):
        step = lab.think()
        assert step is not None
        lab.run(step)
        steps.append(step)
    return lab, steps


def test_complete_runs_are_made_until_at_least_half_of_the_money_but_for_one_run_went_into_them():
    _, steps = wasteful(8.0)
    begun = [i for i, step in enumerate(steps) if step.begins]
    assert begun[:2] == [0, 3]  # at first 8 were spent otherwise and nothing on runs, then 3
    _, steps = wasteful(2.0)  # as much as one run may be spent otherwise
    assert not steps[0].begins


def test_a_complete_run_is_continued_to_its_end_at_its_point():
    _, steps = wasteful(8.0)
    assert [step.run for step in steps[:3]] == [None, 0, 0]
    assert [step.nodes for step in steps[:3]] == [(0,), (1,), (2,)]
    for step in steps[:3]:
        assert step.closed
        assert np.array_equal(step.point, steps[0].point)


def test_stages_that_follow_their_parents_are_run_with_them():
    problem = process("controls")
    stages = list(problem.network.stages)
    object.__setattr__(stages[2], "reachable", "run")
    lab, steps = StepLab(replace(problem, network=Network(stages, ".".join(problem.network.objective)))), list[Step]()
    for _ in range(8):
        step = lab.think()
        assert step is not None
        lab.run(step)
        steps.append(step)
    assert {step.nodes for step in steps} <= {(0,), (1, 2)}
    assert {step.cost for step in steps} <= {100.0, 11.0}
    assert (1, 2) in {step.nodes for step in steps}


def test_a_process_without_steps_of_its_own_is_run_as_a_whole():
    problem = certified("controls", 0)
    step = StepLab(problem).think()
    assert step is not None
    assert step.nodes == (0, 1, 2)
    assert step.closed


def test_formulas_cost_nothing_and_are_no_steps():
    lab = after(process("known", Terms((10.0, 1.0), "stock", math.inf)), 6)
    assert lab.runs[2] == 0
    assert lab.spent == 10 * lab.runs[0] + lab.runs[1]
    assert len(lab.data) > 0


@pytest.mark.parametrize("structure", ["multi-output", "feed-forward"])
def test_stages_with_several_outputs_are_run_one_at_a_time(structure):
    lab = after(process(structure, Terms((10.0, 1.0), "stock", math.inf)), 8)
    assert min(lab.runs) > 0
    assert lab.best is not None
    assert lab.repeated == 0


def test_a_limit_is_kept_and_counted():
    problem = process("controls")
    stages = list(problem.network.stages)
    object.__setattr__(stages[0], "limits", {stages[0].outputs[0]: (-np.inf, 1.2)})
    lab = after(replace(problem, network=Network(stages, ".".join(problem.network.objective))), 8)
    assert lab.best is not None
    values = problem.values(lab.network.domain.decode(lab.best.point[None]))[0]
    assert values[3] <= 1.2
    assert values[-1] >= lab.best.value - 1e-9


# ---- the value of a plan


def test_a_bound_that_rises_with_more_data_does_not_count():
    """The old bound stays valid: the fall of a plan is never negative."""
    lab, _ = searched("join", REUSED)
    assert lab.next is not None
    x = lab.next.suggestion.point
    assert x is not None
    value = Potential.at(situation(lab), lab.beliefs, lab.next.suggestion, x)
    assert value.fall_with(prior_beliefs(lab.network)) == 0.0


def test_nothing_is_left_to_learn_once_every_stage_is_known_at_the_point():
    lab = after(process("controls"), 3)
    assert len(lab.data) == 1
    x = lab.data[0, :3]
    assert Plans(StepWiring.of(lab.network), lab.beliefs, tuple(lab.items), x).complete() is None


def test_an_item_of_several_runs_is_used_like_any_other():
    lab = after(process("controls"), 2)
    loose = [replace(item, closed=False, row=_own(lab.network, item)) for item in lab.items]
    found = suggest_step(situation(lab), Stock(tuple(loose), spent=110.0), np.random.default_rng(0), guaranteed=False)
    assert found.step is not None
    assert found.step.takes
    assert not found.step.closed


def _own(network: Network, item: Item) -> np.ndarray:
    node = network.nodes[item.node]
    row = np.full(network.width, np.nan)
    columns = [*node.inputs, *node.columns]
    row[columns] = item.row[columns]
    return row


def test_the_search_behind_a_step_is_that_of_a_run():
    lab = after(process("controls"), 4)
    found = suggest_step(situation(lab), stock(lab), np.random.default_rng(0))
    assert isinstance(found.suggestion, Suggestion)
    assert found.suggestion.bound is not None
    assert found.step is not None
    assert "is expected to lower the highest bounds" in found.step.reason


def test_a_process_with_choices_is_run_one_stage_at_a_time():
    problem = on_terms(certified_choices("later", 0), Terms((10.0, 1.0), "stock", math.inf))
    lab = after(problem, 8)
    assert lab.best is not None
    own = float(problem.objective(lab.network.domain.decode(lab.best.point[None]))[0])
    assert own >= lab.best.value - 1e-9


def test_outputs_that_were_read_with_errors_are_used_within_one_run_only():
    """What is read of two branches that differ in a control is not exactly what a later stage gets."""
    lab = after(process("join"), 4)
    stages = [copy(stage) for stage in lab.network.stages]
    for stage in stages:
        object.__setattr__(stage, "error", cd.Bounded(0.01))
    network = Network(stages, ".".join(lab.network.objective))
    beliefs, rng = prior_beliefs(network), np.random.default_rng(0)
    wiring, x = StepWiring.of(network), np.array([0.1, 0.2, 0.3])
    found = Plans(wiring, beliefs, tuple(lab.items), x).all(rng)
    assert {plan.nodes for plan in found} >= {(0,), (1,), (0, 1, 2)}
    assert all(step.run is not None for plan in found for step in plan.steps)
    exact = Plans(StepWiring.of(lab.network), lab.beliefs, tuple(lab.items), x).all(rng)
    assert any(step.run is None for plan in exact for step in plan.steps)


def test_imagined_outputs_that_contradict_the_data_are_dropped(monkeypatch):
    lab = after(process("controls"), 3)
    pending = replace(stock(lab), pending=((0, np.array([1.0, np.nan, np.nan, np.nan, np.nan, np.nan])),))
    imagined = imagined_at(lab.beliefs, 0, pending.pending[0][1])

    def count(beliefs):
        return beliefs.stages[0].belief.posterior.count

    def refuted_if_imagined(self, cells):
        if count(self._beliefs) >= count(imagined):
            raise RefutedError("imagined")
        return bounds(self, cells)

    bounds = ObjectiveBounds.__call__
    monkeypatch.setattr(ObjectiveBounds, "__call__", refuted_if_imagined)
    assert suggest_step(situation(lab), pending, np.random.default_rng(0)).step is not None
    with pytest.raises(RefutedError):
        suggest_step(replace(situation(lab), beliefs=imagined), stock(lab), np.random.default_rng(0))
