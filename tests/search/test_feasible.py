"""Bounds over feasible settings, margins and tightened limits: against dense enumeration and true processes."""

from collections.abc import Mapping

import numpy as np
import pytest

from cascada.confidence import Boxes
from cascada.kernels import SquaredExponential
from cascada.network import Beliefs, Network, Stage, prior_beliefs
from cascada.network.feasibility import enclose_feasible
from cascada.network.limits import Interval, Limit, margins, satisfied
from cascada.problems import Problem, certified
from cascada.problems.limited_problem import LimitedProblem, limited, with_limits
from cascada.search import Leaves, SearchBudget, search
from cascada.search.feasible import FeasibleBounds, MarginBounds, margin_scales, prior_range, tightened
from cascada.space import Real

# Stages and quantiles of their outputs between which the limits lie.
Quantiles = Mapping[str, tuple[float, float]]


def process(quantiles: Quantiles, seed: int = 1) -> LimitedProblem:
    """A certified chain of two controls with limits at quantiles of its outputs; 0 and 1 stand for no limit."""
    problem = certified("chain", seed)
    domain = problem.network.domain
    values = problem.values(np.random.default_rng(9).uniform(domain.lower, domain.upper, (4_000, domain.dimension)))
    limits: dict[str, dict[str, Interval]] = {}
    for stage, (low, high) in quantiles.items():
        output = values[:, problem.network.node(stage).columns[0]]
        ends = np.quantile(output, low) if low > 0 else -np.inf, np.quantile(output, high) if high < 1 else np.inf
        limits[stage] = {f"{stage}_1": (float(ends[0]), float(ends[1]))}
    return with_limits(problem, limits)


def grid(network: Network, parts: int) -> Boxes:
    """All cells of a regular grid over a box of two controls."""
    ends = [np.linspace(*side, parts + 1) for side in zip(network.domain.lower, network.domain.upper, strict=True)]
    low, high = (np.array(np.meshgrid(*(e[s] for e in ends))).reshape(2, -1).T for s in (slice(-1), slice(1, None)))
    return Boxes(low, high)


def learned(problem: LimitedProblem, runs: int, seed: int = 0) -> Beliefs:
    """Beliefs after random runs."""
    domain = problem.network.domain
    rows = problem.problem.values(
        np.random.default_rng(seed).uniform(domain.lower, domain.upper, (runs, len(domain.lower)))
    )
    return prior_beliefs(problem.network).append(rows)


LIMITS: list[Quantiles] = [
    {"s1": (0, 0.5)},
    {"s2": (0.3, 0.6)},
    {"s3": (0, 0.8)},  # the objective itself
    {"s1": (0.3, 1), "s2": (0, 0.6)},
]


@pytest.mark.parametrize("minimised", [False, True])
@pytest.mark.parametrize("limits", LIMITS)
def test_search_agrees_with_dense_enumeration_of_cells(limits: Quantiles, minimised: bool) -> None:
    """The bound of branch and bound is at least the truth, and at most that of a fine grid of cells."""
    problem = process(limits)
    if minimised:
        one = problem.problem
        problem = LimitedProblem(Problem(one.name, one.summary, one.network.mirrored(), one.values))
    beliefs = learned(problem, 12)
    network, bounds = problem.network, FeasibleBounds(beliefs)
    assert problem.best_feasible is not None
    best = problem.best_feasible[1]
    dense = bounds(grid(network, 64))[0].max()
    outcome = search(bounds, Leaves.root(network.domain), best - 1.0, 0, SearchBudget(cells=6_000), prove=True)
    assert best <= outcome.bound
    assert outcome.bound <= dense + 0.002 * (dense - best + 1.0)  # a search ends where cutting is of no use


@pytest.mark.parametrize("limits", LIMITS)
def test_every_feasible_point_lies_in_a_cell_that_may_be_feasible(limits: Quantiles) -> None:
    problem = process(limits)
    beliefs = learned(problem, 15)
    cells = grid(problem.network, 40)
    found = enclose_feasible(beliefs, cells, problem.network.limits)
    rng = np.random.default_rng(3)
    for _ in range(20):  # one random point in every cell, again and again
        points = rng.uniform(cells.lower, cells.upper)
        values = problem.problem.values(points)
        feasible = satisfied(problem.network.limits, values)
        assert found.possible[feasible].all()
        assert feasible[found.certain].all()
        upper = found.above(problem.network.objective_column, 1)
        assert (upper[feasible] >= values[feasible, problem.network.objective_column]).all()


@pytest.mark.parametrize("limits", LIMITS)
def test_the_margin_is_bounded_over_cells(limits: Quantiles) -> None:
    problem = process(limits)
    beliefs = learned(problem, 15)
    cells, scales = grid(problem.network, 30), margin_scales(beliefs)
    bound, rng = MarginBounds(beliefs, scales)(cells)[0], np.random.default_rng(4)
    for _ in range(20):
        values = problem.problem.values(rng.uniform(cells.lower, cells.upper))
        assert (bound >= (margins(problem.network.limits, values) / scales).min(axis=1)).all()


def test_the_margin_is_that_of_the_limit_that_holds_least() -> None:
    limits = [Limit("a", "u", 0, -1.0, 2.0), Limit("b", "v", 1, -np.inf, 0.5)]
    found = margins(limits, np.array([[0.0, 0.0], [3.0, 1.0], [np.nan, 0.0]]))
    np.testing.assert_array_equal(found, [[1.0, 0.5], [-1.0, -0.5], [np.nan, 0.5]])
    assert satisfied(limits, np.array([[2.0, 0.5], [2.0 + 1e-12, 0.5], [np.nan, 0.0]])).tolist() == [True, False, False]


def test_one_limit_has_a_margin_in_units_of_its_output() -> None:
    assert margin_scales(prior_beliefs(process(LIMITS[0]).network)).tolist() == [1.0]


def test_several_limits_have_margins_in_units_of_their_bands_or_ranges() -> None:
    problem = with_limits(certified("chain"), {"s1": {"s1_1": (-0.5, 1.0)}, "s2": {"s2_1": (-np.inf, 0.5)}})
    assert margin_scales(prior_beliefs(problem.network)).tolist() == [1.5, 2.0]


def test_margin_scales_do_not_depend_on_data() -> None:
    problem = process(LIMITS[3])
    before, after = prior_beliefs(problem.network), learned(problem, 10)
    np.testing.assert_array_equal(margin_scales(before), margin_scales(after))


def test_prior_range_of_a_formula_and_of_a_passed_output() -> None:
    dry = Stage(
        "dry",
        controls={"heat": Real(2.0, 5.0)},
        outputs=["moisture", "heat"],
        passes=["heat"],
        kernel=SquaredExponential(1.0),
        norm_bound=3.0,
    )
    cost = Stage(
        "cost",
        parents=["dry.heat"],
        known=True,
        function=lambda heat: 2 * heat,
        interval=lambda heat: (2 * heat[0], 2 * heat[1]),
    )
    beliefs = prior_beliefs(Network([dry, cost], objective="dry.moisture"))
    columns = {"moisture": 1, "heat": 2, "cost": 3}
    assert prior_range(beliefs, columns["moisture"]) == 3.0
    assert prior_range(beliefs, columns["heat"]) == pytest.approx(3.0)
    assert prior_range(beliefs, columns["cost"]) == pytest.approx(6.0)


def test_tightened_limits_lie_inside_and_keep_half_of_a_band() -> None:
    limits = [Limit("a", "u", 0, 0.0, 1.0), Limit("b", "v", 1, -np.inf, 2.0)]
    first, second = tightened(limits, np.array([0.1, 0.5]))
    assert (first.low, first.high) == (0.1, 0.9)
    assert (second.low, second.high) == (-np.inf, 1.5)
    narrow, _ = tightened(limits, np.array([10.0, 0.0]))
    assert (narrow.low, narrow.high) == (0.25, 0.75)


def test_sides_that_move_an_undecided_limit_are_cut() -> None:
    """A control that moves a limited output and not the objective has a slope where the cell is undecided."""
    kernel = SquaredExponential(1.0)
    load = Stage("load", controls={"x": Real(-1, 1)}, kernel=kernel, norm_bound=2.0, limits={"load": (None, 0.0)})
    value = Stage("value", controls={"y": Real(-1, 1)}, kernel=kernel, norm_bound=2.0)
    network = Network([load, value], objective="value")
    x = np.linspace(-1, 1, 5)
    rows = np.stack([x, x, x * np.exp(-(x**2) / 2), x], axis=1)
    beliefs = prior_beliefs(network).append(rows)
    _, slope = FeasibleBounds(beliefs)(Boxes(np.array([[-0.5, 0.0], [-1.0, 0.0]]), np.array([[0.5, 0.1], [-0.6, 0.1]])))
    assert slope[0, 0] > 0.1  # undecided
    assert slope[1, 0] == 0.0  # certain


def test_a_search_proves_that_no_setting_is_feasible() -> None:
    problem = limited("join", 0, "none")
    rng, domain = np.random.default_rng(0), problem.network.domain
    rows = problem.problem.values(rng.uniform(domain.lower, domain.upper, (40, domain.dimension)))
    beliefs = prior_beliefs(problem.network).append(rows)
    bounds = MarginBounds(beliefs, margin_scales(beliefs))
    closest = float(margins(problem.network.limits, rows).max())
    outcome = search(bounds, Leaves.root(domain), closest, 0, SearchBudget(cells=5_000), prove=True)
    assert outcome.bound < 0
    objective = search(FeasibleBounds(beliefs), Leaves.root(domain), -10.0, 0, SearchBudget(cells=5_000), prove=True)
    assert objective.bound == -10.0
    assert not len(objective.leaves)
