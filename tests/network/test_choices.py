"""Tests of networks with choices: categories are processes of their own, and nothing lies between two of them."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cascada.confidence import Boxes
from cascada.confidence.split_belief import SplitBelief
from cascada.errors import ArgumentError
from cascada.kernels import Matern, Separable, SquaredExponential
from cascada.network import (
    Beliefs,
    Network,
    Stage,
    chain,
    composite_mean,
    enclose_network,
    enlarged,
    hallucinated,
    prior_beliefs,
)
from cascada.network.sampling import sample_network, standard_draws
from cascada.problems.certified_choices import certified_choices
from cascada.search import Candidates, Joint, Leaves
from cascada.space import Choice, Real

WOODS = ("oak", "pine", "steel")
KERNEL = SquaredExponential(1.0)


def with_runs(structure: str, count: int = 12, **options: Any) -> tuple[Any, Beliefs]:
    """A certified process and the beliefs after random runs."""
    problem = certified_choices(structure, 3, **options)
    points = problem.network.domain.uniform(np.random.default_rng(1), count)
    return problem, prior_beliefs(problem.network).append(problem.values(points))


def alone(problem: Any, code: int) -> Beliefs:
    """The beliefs about the process of one value, as a network without the choice.

    Stages with the choice learn from the runs with this value, the others from all runs.
    """
    network, points = problem.network, np.random.default_rng(1)
    values = problem.values(network.domain.uniform(points, 12))
    own = values[:, network.domain.names.index("wood")] == code
    stages = []
    for node in network.nodes:
        controls = {name: one for name, one in node.stage.controls.items() if name != "wood"}
        bound = node.stage.norm_bound if node.stage.norm_bounds is None else node.stage.norm_bounds[WOODS[code]]
        stages.append(
            Stage(
                node.stage.name, controls, node.stage.outputs, node.parents, kernel=node.stage.kernel, norm_bound=bound
            )
        )
    plain = Network(stages, ".".join(network.objective))
    order = [network.domain.names.index(name) for name in plain.domain.names]
    d = network.domain.dimension
    rows, prior = values[:, [*order, *range(d, network.width)]], prior_beliefs(plain)
    pairs = zip(network.nodes, prior.append(rows[own]).stages, prior.append(rows).stages, strict=True)
    return Beliefs(plain, tuple(one if "wood" in node.stage.controls else both for node, one, both in pairs))


@pytest.mark.parametrize("structure", ["first", "later", "shared", "outputs"])
@pytest.mark.parametrize("code", [0, 1, 2])
def test_bounds_of_a_category_are_those_of_its_process_alone(structure: str, code: int) -> None:
    problem, beliefs = with_runs(structure)
    single, domain = alone(problem, code), problem.network.domain
    rng, d = np.random.default_rng(5), domain.dimension
    centre = domain.uniform(rng, 30)
    centre[:, domain.names.index("wood")] = code
    half = rng.uniform(0, 0.3, centre.shape)
    half[:, domain.choices] = 0.0
    order = [domain.names.index(name) for name in single.network.domain.names]
    found = enclose_network(beliefs, Boxes(centre - half, centre + half)).boxes
    cells = Boxes((centre - half)[:, order], (centre + half)[:, order])
    expected = enclose_network(single, cells).boxes
    # The range of a later stage's inputs, over which its tables reach, is that of all values together.
    assert np.allclose(found.lower[:, d:], expected.lower[:, d - 1 :], rtol=0, atol=5e-3)
    assert np.allclose(found.upper[:, d:], expected.upper[:, d - 1 :], rtol=0, atol=5e-3)
    first = list(problem.network.nodes[0].columns)
    assert np.allclose(found.upper[:, first], expected.upper[:, [c - 1 for c in first]], rtol=0, atol=1e-12)
    means, mean = composite_mean(beliefs, centre), composite_mean(single, centre[:, order])
    assert np.allclose(means[:, d:], mean[:, d - 1 :], rtol=0, atol=1e-9)


@pytest.mark.parametrize("alike", [None, 0.5])
def test_a_cell_with_several_values_is_bounded_by_the_hull_of_each(alike: float | None) -> None:
    problem, beliefs = with_runs("first", alike=alike)
    domain, d = problem.network.domain, problem.network.domain.dimension
    lower, upper = np.tile(domain.lower, (4, 1)), np.tile(domain.upper, (4, 1))
    lower[:, 1], upper[:, 1] = np.linspace(-2, 1, 4), np.linspace(-1, 2, 4)
    whole = enclose_network(beliefs, Boxes(lower, upper), "hull").boxes
    every = []
    for code in range(3):
        low, high = lower.copy(), upper.copy()
        low[:, 0] = high[:, 0] = code
        every.append(enclose_network(beliefs, Boxes(low, high), "hull").boxes)
    first = slice(d, d + 1)
    assert np.array_equal(whole.lower[:, first], np.min([one.lower[:, first] for one in every], axis=0))
    assert np.array_equal(whole.upper[:, first], np.max([one.upper[:, first] for one in every], axis=0))
    assert np.all(whole.lower <= np.min([one.lower for one in every], axis=0))
    assert np.all(whole.upper >= np.max([one.upper for one in every], axis=0))


def test_the_search_has_a_root_for_every_combination_that_matters() -> None:
    a = Stage("a", {"wood": Choice(WOODS), "x": Real(0, 1)}, kernel=KERNEL, norm_bound=1.0)
    b = Stage("b", {"glue": Choice(["hot", "cold"])}, parents=["a"], kernel=KERNEL, norm_bound=1.0)
    c = Stage("c", {"paint": Choice(["red", "blue"])}, parents=["b"], kernel=KERNEL, norm_bound=1.0)
    roots = Leaves.root(Network([a, b, c], "b").domain)
    assert len(roots) == 6
    assert np.array_equal(roots.lower[:, [0, 2]], roots.upper[:, [0, 2]])
    assert set(roots.lower[:, 3]) == {0.0}
    limited = Stage(
        "c", {"paint": Choice(["red", "blue"])}, parents=["b"], kernel=KERNEL, norm_bound=1.0, limits={"c": (0, None)}
    )
    assert len(Leaves.root(Network([a, b, limited], "b").domain)) == 12
    fixed = Network([a, b, c], "b").within({"wood": Choice(WOODS).at("steel")})
    assert sorted(map(tuple, Leaves.root(fixed.domain).lower[:, [0, 2]])) == [(2.0, 0.0), (2.0, 1.0)]


def test_too_many_combinations_are_refused() -> None:
    values = [f"v{i}" for i in range(40)]
    with pytest.raises(ArgumentError, match=r"at most 1,024 combinations of values.*got 1,600"):
        chain(Stage("a", {"p": Choice(values), "q": Choice(values)}, kernel=KERNEL, norm_bound=1.0))


def test_evidence_names_the_category() -> None:
    stage = Stage("press", {"wood": Choice(WOODS), "x": Real(-1, 1)}, kernel=KERNEL, norm_bound=2.0)
    beliefs = prior_beliefs(chain(stage))
    beliefs = beliefs.append(np.array([[0.0, 0.0, 1.5], [1.0, 0.5, 9.0], [2.0, 0.0, -1.5], [0.0, 0.9, 1.0]]))
    (found,) = beliefs.evidence["press"]
    assert found.category == " for wood = 'pine'"
    assert found.rows == (1,)
    assert "The norm_bound of output 0 for wood = 'pine' is given as 2, but" in str(found)


def test_one_category_does_not_use_up_the_norm_of_another() -> None:
    stage = Stage("press", {"wood": Choice(WOODS), "x": Real(-1, 1)}, kernel=KERNEL, norm_bound=2.0)
    rows = np.array([[code, 0.0, 1.9] for code in (0.0, 1.0, 2.0)])
    assert not prior_beliefs(chain(stage)).append(rows).evidence
    shared = Stage("press", {"wood": Choice(WOODS, alike=0.1), "x": Real(-1, 1)}, kernel=KERNEL, norm_bound=2.0)
    contrary = rows * [1, 1, 1]
    contrary[1, 2] = -1.9
    assert prior_beliefs(chain(shared)).append(contrary).evidence  # one budget for all


def test_a_lipschitz_constant_says_nothing_between_two_values() -> None:
    for alike in (None, 0.9):
        stage = Stage(
            "a", {"wood": Choice(WOODS, alike=alike), "x": Real(-1, 1)}, kernel=KERNEL, norm_bound=6.0, lipschitz=0.01
        )
        beliefs = prior_beliefs(chain(stage)).append(np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 2.0]]))
        assert not beliefs.evidence
        steep = beliefs.append(np.array([[1.0, 1.0, 2.5]]))
        assert [one.assumption for one in steep.evidence["a"]] == ["lipschitz"]


def test_a_norm_bound_of_every_value() -> None:
    bounds = {"steel": 3.0, "oak": 1.0, "pine": 2.0}
    stage = Stage("a", {"wood": Choice(WOODS), "x": Real(-1, 1)}, kernel=KERNEL, norm_bound=bounds)
    belief = prior_beliefs(chain(stage)).stages[0].belief
    assert isinstance(belief, SplitBelief)
    assert [float(np.squeeze(part.norm_bound)) for part in belief.parts] == [1.0, 2.0, 3.0]
    assert float(np.squeeze(stage.norm_bound)) == 3.0  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"norm_bound": {"oak": 1.0}}, "must name every value once, 'oak', 'pine', 'steel'; got 'oak'"),
        ({"norm_bound": {"oak": 1.0, "pine": 0.0, "steel": 1.0}}, "norm_bound of 'pine' must be finite and above 0"),
        ({"passes": ["wood"], "outputs": ["wood", "a"]}, "passes: 'wood' is a choice"),
        ({"kernel": Separable(KERNEL), "norm_bound": None}, "a joint norm that is estimated"),
        ({"kernel": Matern(2.5, (1.0, 1.0))}, "the kernel has 2 lengthscales but its inputs have 1"),
    ],
)
def test_what_does_not_work_with_a_choice_is_refused_by_name(options: dict[str, Any], message: str) -> None:
    given = {"kernel": KERNEL, "norm_bound": 1.0, **options}
    with pytest.raises(ArgumentError, match=message):
        chain(Stage("a", {"wood": Choice(WOODS), "x": Real(0, 1)}, **given))


def test_norm_bounds_by_value_need_one_choice_of_their_own() -> None:
    bounds = dict.fromkeys(WOODS, 1.0)
    with pytest.raises(ArgumentError, match="needs exactly one choice without alike=; the stage has 0"):
        Stage("a", {"wood": Choice(WOODS, alike=0.5)}, kernel=KERNEL, norm_bound=bounds)


def test_alike_values_with_a_joint_norm_are_refused() -> None:
    with pytest.raises(ArgumentError, match="alike= of control 'wood' is not supported with the joint norm"):
        Stage("a", {"wood": Choice(WOODS, alike=0.5)}, kernel=Separable(KERNEL), norm_bound=1.0)


def test_a_refuted_norm_is_enlarged_for_its_value_alone() -> None:
    stage = Stage("a", {"wood": Choice(WOODS), "x": Real(-1, 1)}, kernel=KERNEL, norm_bound=2.0)
    data = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 5.0]])
    beliefs, changes = enlarged(prior_beliefs(chain(stage)).append(data), data, 1e-10)
    bounds = beliefs.network.stages[0].norm_bounds
    assert bounds is not None
    assert [float(bounds[wood].item()) for wood in ("oak", "steel")] == [2.0, 2.0]
    assert bounds["pine"].item() > 5.0
    assert not beliefs.evidence
    assert changes[0].startswith("norm_bound of stage 'a' for wood = 'pine' raised from 2 to 7.")


def test_a_formula_and_its_interval_get_the_value() -> None:
    prices = {"oak": 3.0, "pine": 1.0, "steel": 2.0}

    def interval(a: tuple[float, float], wood: str) -> tuple[float, float]:
        return prices[wood] * a[0], prices[wood] * a[1]

    first = Stage("a", {"x": Real(0.5, 1)}, kernel=KERNEL, norm_bound=1.0, ranges={"a": (0, 1)})
    cost = Stage(
        "cost", {"wood": Choice(WOODS)}, known=True, function=lambda a, wood: prices[wood] * a, interval=interval
    )
    beliefs = prior_beliefs(chain(first, cost))
    points = np.array([[0.7, 0.0], [0.7, 1.0], [0.7, 2.0]])
    assert np.allclose(enclose_network(beliefs, Boxes(points, points)).boxes.upper[:, 3], [3.0, 1.0, 2.0], atol=1e-6)
    many = np.column_stack([np.linspace(0.5, 1, 60), np.arange(60) % 3])
    means = composite_mean(beliefs.append(np.array([[0.7, 0.0, 0.5, np.nan]])), many)
    assert np.allclose(means[:, 3], [list(prices.values())[i % 3] for i in range(60)] * means[:, 2])


@pytest.mark.parametrize("alike", [None, 0.5])
@pytest.mark.parametrize("structure", ["first", "two", "alone", "formula"])
def test_the_joint_form_keeps_values_and_has_the_slopes_of_differences(structure: str, alike: float | None) -> None:
    problem, beliefs = with_runs(structure, alike=alike)
    joint, domain = Joint(beliefs), problem.network.domain
    rng, h = np.random.default_rng(2), 1e-6
    points = np.hstack([domain.uniform(rng, 20), rng.uniform(-1, 1, (20, joint.size - domain.dimension))])
    values, slopes = joint(points)
    assert np.allclose(values, joint.values(points), rtol=0, atol=1e-10)
    assert not slopes[:, domain.choices].any()
    for j in set(range(joint.size)) - set(domain.choices):
        step = h * np.eye(joint.size)[j]
        change = (joint.values(points + step) - joint.values(points - step)) / (2 * h)
        assert np.allclose(slopes[:, j], change, atol=2e-5)


@pytest.mark.parametrize("alike", [None, 0.5])
def test_candidates_have_the_bounds_of_points(alike: float | None) -> None:
    problem, beliefs = with_runs("shared", alike=alike)
    points = problem.network.domain.uniform(np.random.default_rng(7), 40)
    upper = Candidates.of(points).follow(beliefs).upper(beliefs)
    exact = enclose_network(beliefs, Boxes(points, points)).boxes.upper[:, problem.network.objective_column]
    assert np.all(problem.values(points)[:, problem.network.objective_column] <= upper)
    assert np.allclose(upper, exact, atol=5e-2)


@pytest.mark.parametrize("structure", ["first", "joint"])
def test_samples_scatter_around_the_means(structure: str) -> None:
    problem, beliefs = with_runs(structure)
    points = problem.network.domain.uniform(np.random.default_rng(9), 10)
    draws = standard_draws(beliefs, 4_000, np.random.default_rng(0))
    column = problem.network.nodes[0].columns[0]
    samples = sample_network(beliefs, points, draws).columns[column]
    assert np.allclose(samples.mean(axis=1), composite_mean(beliefs, points)[:, column], atol=0.05)


def test_an_imagined_run_narrows_its_own_category_only() -> None:
    problem, beliefs = with_runs("first")
    point = np.array([[1.0, 0.3, 0.1]])
    after = hallucinated(beliefs, point)
    here = np.array([[1.0, 0.31, 0.1], [0.0, 0.31, 0.1]])
    column = problem.network.nodes[0].columns[0]
    widths = [
        np.ptp([box.lower[:, column], box.upper[:, column]], axis=0)
        for box in (enclose_network(b, Boxes(here, here)).boxes for b in (beliefs, after))
    ]
    assert widths[1][0] < 0.5 * widths[0][0]
    assert widths[1][1] == widths[0][1]


def test_a_replaced_stage_keeps_its_norm_bounds_by_value() -> None:
    stage = Stage(
        "press",
        {"wood": Choice(WOODS), "x": Real(-1, 1)},
        ["a", "b"],
        kernel=KERNEL,
        norm_bound={"oak": [1.0, 2.0], "pine": 3.0, "steel": 1.5},
    )
    same = replace(stage, cost=5.0)
    assert same.norm_bounds is not None
    assert {value: bound.tolist() for value, bound in same.norm_bounds.items()} == {
        "oak": [1.0, 2.0],
        "pine": [3.0, 3.0],
        "steel": [1.5, 1.5],
    }
    oak = Network([same], "press.a").nodes[0].by_category[0].stage
    assert oak.norm_bound is not None
    assert oak.norm_bound.tolist() == [1.0, 2.0]
    assert replace(stage, norm_bound=np.array([4.0, 5.0])).norm_bounds is None
    assert replace(stage, kernel=None, norm_bound=None).norm_bound is None
    with pytest.raises(ArgumentError, match=r"norm_bounds= is for dataclasses.replace; got .*Give them as norm_bound="):
        Stage("press", {"wood": Choice(WOODS)}, kernel=KERNEL, norm_bounds={"oak": np.ones(1)})
