"""The non-adaptive method: its points, its recommendation against a transcription of Algorithm 2, and its errors."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cascada.algorithms.algorithm import Situation, point_key
from cascada.algorithms.non_adaptive import NonAdaptive
from cascada.arrays import Array
from cascada.designs import design, design_of_candidates
from cascada.errors import ArgumentError
from cascada.network import Network, chain, composite_mean, prior_beliefs
from cascada.problems import Problem, certified
from cascada.process import Process
from cascada.space import Grid
from cascada.study import Study, maximise, minimise
from tests.network.cases import NETWORKS, X, Y, stage, truth, values
from tests.reference_non_adaptive import Layer, Range, mu_g, nearest, returned

# With this jitter two ways to solve the equations agree to ten digits.
JITTER = 1e-6
RNG = np.random.default_rng(0)

CHAIN = chain(stage("f", controls=X | Y), stage("g"))
FUNCTIONS = truth(CHAIN, 1)
PROCESS = Process(CHAIN, FUNCTIONS)
GRID = Grid({"x": 7, "y": 7})


def situation(network: Network, data: Array, candidates: Array | None = None, **options: Any) -> Situation:
    """The situation after runs (t, V), none of them taken."""
    seen = network.sign * data[:, network.objective_column]
    return Situation(
        beliefs=prior_beliefs(network, JITTER).append(data),
        data=data,
        pending=np.empty((0, network.domain.dimension)),
        candidates=candidates,
        best=float(seen.max(initial=-np.inf)),
        trial=len(data),
        **options,
    )


def started(candidates: Array | None = None, **options: Any) -> Situation:
    """The situation before the first run of the chain."""
    return situation(CHAIN, np.empty((0, CHAIN.width)), candidates, **options)


def transcribed(problem: Problem, data: Array) -> tuple[list[Layer], list[list[int]]]:
    """The layers of a problem whose stages follow one another, and the controls of each layer."""
    network = problem.network
    layers, own = [], []
    for node in network.nodes:
        before = [column for column in node.inputs if column >= network.domain.dimension]
        rows_in = [tuple(row) for row in data[:, list(node.inputs)].tolist()]
        rows_out = [tuple(row) for row in data[:, list(node.columns)].tolist()]
        layers.append(Layer(rows_in, rows_out, len(before), node.stage.joint, JITTER))
        own.append([column for column in node.inputs if column < network.domain.dimension])
    return layers, own


# ---- the recommendation


@pytest.mark.parametrize("structure", ["chain", "controls", "controls-4d", "multi-output", "feed-forward-3"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_equals_the_literal_transcription(structure: str, seed: int) -> None:
    """The same composite mean at every candidate, and the same point in the end."""
    problem = certified(structure, seed)
    domain = problem.network.domain
    data = problem.values(domain.decode(design(domain, 16, grid=False)))
    candidates = np.random.default_rng(seed).uniform(-2, 2, (40, domain.dimension))
    now = situation(problem.network, data, candidates)
    layers, own = transcribed(problem, data)
    points = [tuple(row) for row in candidates.tolist()]
    slow = [mu_g(layers, x, own) for x in points]
    fast = composite_mean(now.beliefs, candidates)[:, problem.network.objective_column]
    np.testing.assert_allclose(fast, slow, atol=1e-8)
    chosen = NonAdaptive().recommend(now)
    np.testing.assert_array_equal(chosen, candidates[returned(layers, points, own)])


@pytest.mark.parametrize("structure", ["chain", "controls", "multi-output", "feed-forward"])
@pytest.mark.parametrize("seed", [0, 1])
def test_known_ranges_are_projected_onto_as_in_case_2(structure: str, seed: int) -> None:
    """`eq:mutil`, with ranges narrow enough to matter; the last projection is monotone and cannot change the result."""
    problem = certified(structure, seed)
    network, domain = problem.network, problem.network.domain
    data = problem.values(domain.decode(design(domain, 5, grid=False)))
    candidates = np.random.default_rng(seed).uniform(-2, 2, (60, domain.dimension))
    now = situation(network, data, candidates)
    outputs = [data[:, list(node.columns)] for node in network.nodes]
    narrow: list[Range] = [(float(np.quantile(o, 0.3)), float(np.quantile(o, 0.6))) for o in outputs[:-1]]
    names = [node.stage.name for node in network.nodes]
    layers, own = transcribed(problem, data)
    points = [tuple(row) for row in candidates.tolist()]
    wide: list[Range] = [None, (-10.0, 10.0)]
    for last in wide:
        ranges = [*narrow, last]
        known = {name: allowed for name, allowed in zip(names, ranges, strict=True) if allowed is not None}
        chosen = NonAdaptive(ranges=known).recommend(now)
        np.testing.assert_array_equal(chosen, candidates[returned(layers, points, own, ranges)])
    slow = [mu_g(layers, x, own, [*narrow, None]) for x in points]
    plain = [mu_g(layers, x, own) for x in points]
    assert not np.allclose(slow, plain)
    tight = (-10.0, sorted(slow)[30])  # half of the candidates are tied at its upper end
    clipped = [nearest(value, tight) for value in slow]
    known = {name: allowed for name, allowed in zip(names, [*narrow, tight], strict=True) if allowed is not None}
    chosen = NonAdaptive(ranges=known).recommend(now)
    assert chosen is not None
    assert nearest(mu_g(layers, tuple(chosen.tolist()), own, [*narrow, None]), tight) == max(clipped)


def test_a_range_of_one_output_overrides_that_of_its_stage() -> None:
    problem = certified("feed-forward", 0)
    network = problem.network
    data = problem.values(design(network.domain, 6))
    now = situation(network, data, np.random.default_rng(0).uniform(-2, 2, (200, 2)))
    both = NonAdaptive(ranges={"s1.s1_2": (0.2, 0.3), "s1": (-0.1, 0.1)})
    within = both._within(network)
    assert within is not None
    assert within.lower[0].tolist() == [-np.inf, -np.inf, -0.1, 0.2, -np.inf]
    assert within.upper[0].tolist() == [np.inf, np.inf, 0.1, 0.3, np.inf]
    reordered = NonAdaptive(ranges={"s1": (-0.1, 0.1), "s1.s1_2": (0.2, 0.3)})
    np.testing.assert_array_equal(both.recommend(now), reordered.recommend(now))


def test_the_first_of_equal_candidates_is_returned() -> None:
    data = values(CHAIN, FUNCTIONS, np.array([[0.5, 0.5], [-1.0, 1.0]]))
    far = np.array([[-2.0, -2.0], [0.3, 0.4], [0.3, 0.4], [0.3, 0.4]])
    now = situation(CHAIN, data, far)
    mean = composite_mean(now.beliefs, far)[:, CHAIN.objective_column]
    for order in ([0, 1, 2, 3], [1, 2, 3, 0], [3, 0, 1, 2]):
        chosen = NonAdaptive().recommend(replace(now, candidates=far[order]))
        np.testing.assert_array_equal(chosen, far[order][int(np.argmax(mean[order]))])


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("mirrored", [False, True])
def test_over_a_box_no_dense_sample_has_a_better_mean(name: str, mirrored: bool) -> None:
    network = NETWORKS[name].mirrored() if mirrored else NETWORKS[name]
    domain = network.domain
    data = values(network, truth(network, 2), domain.decode(design(domain, 9)))
    now = situation(network, data)
    point = NonAdaptive().recommend(now)
    assert point is not None
    np.testing.assert_array_equal(point, NonAdaptive().recommend(now))
    np.testing.assert_array_equal(domain.encode(domain.decode(point[None]))[0], point)
    dense = domain.encode(
        domain.decode(np.random.default_rng(5).uniform(domain.lower, domain.upper, (4000, len(point))))
    )
    mean = network.sign * composite_mean(now.beliefs, np.concatenate([point[None], dense, data[:, : len(point)]]))
    assert mean[0, network.objective_column] >= mean[1:, network.objective_column].max() - 1e-9


def test_minimising_returns_the_smallest_mean() -> None:
    rows = GRID.points(CHAIN.domain)
    result = minimise(CHAIN, FUNCTIONS, budget=9, candidates=GRID, algorithm=NonAdaptive())
    study = Study(CHAIN.mirrored(), candidates=GRID, algorithm=NonAdaptive(runs=9))
    for trial in result.trials:
        study.tell(study.enqueue_trial(trial.controls), trial.outputs)
    mean = composite_mean(study.beliefs, rows)[:, CHAIN.objective_column]
    assert result.recommended == CHAIN.domain.named(rows[int(mean.argmin())])


def test_nothing_is_recommended_before_the_first_complete_run() -> None:
    assert NonAdaptive(runs=4).recommend(started()) is None
    study = Study(CHAIN, algorithm=NonAdaptive(runs=4))
    assert (study.recommended(), study.recommendation()) == (None, None)
    study.tell_stage(study.enqueue_trial({"x": 0.0, "y": 0.0}), "f", 0.1)
    assert study.recommended() is None


# ---- the points


@pytest.mark.parametrize("runs", [9, 10])
@pytest.mark.parametrize("grid", [None, GRID], ids=["box", "candidates"])
def test_the_points_of_the_design_are_run_in_order(grid: Grid | None, runs: int) -> None:
    result = maximise(CHAIN, FUNCTIONS, budget=runs, candidates=grid, algorithm=NonAdaptive())
    domain = CHAIN.domain
    wanted = design(domain, runs) if grid is None else design_of_candidates(grid.points(domain), domain, runs)
    run = [list(trial.controls.values()) for trial in result.trials]
    np.testing.assert_array_equal(run, wanted)
    assert result.status == "budget"
    assert result.recommended is not None
    if grid is not None:
        assert list(result.recommended.values()) in grid.points(domain).tolist()


@pytest.mark.parametrize("candidates", [None, Grid({"x": 9, "y": 9, "z": 9})], ids=["box", "candidates"])
def test_a_stage_with_some_of_the_controls_has_no_repeated_inputs(candidates: Grid | None) -> None:
    """27 points of a grid would give only 3 inputs of the first stage, which has one of the three controls."""
    problem = certified("controls", 0)
    result = maximise(problem.network, budget=27, candidates=candidates, algorithm=NonAdaptive())
    assert len({trial.controls["x"] for trial in result.trials}) == (27 if candidates is None else 9)
    unsplit = chain(stage("f", controls=problem.network.domain.controls), stage("g"))
    gridded = maximise(unsplit, truth(unsplit, 0), budget=27, algorithm=NonAdaptive())
    assert len({trial.controls["x"] for trial in gridded.trials}) == 3


def test_runs_may_differ_from_the_budget() -> None:
    fewer = maximise(CHAIN, FUNCTIONS, budget=10, algorithm=NonAdaptive(runs=4))
    assert (fewer.status, len(fewer.trials)) == ("exhausted", 4)
    more = maximise(CHAIN, FUNCTIONS, budget=3, algorithm=NonAdaptive(runs=4))
    assert (more.status, [t.controls for t in more.trials]) == ("budget", [t.controls for t in fewer.trials[:3]])


def test_few_candidates_are_all_run() -> None:
    result = maximise(CHAIN, FUNCTIONS, budget=20, candidates=Grid({"x": 3, "y": 2}), algorithm=NonAdaptive())
    assert (result.status, len(result.trials)) == ("exhausted", 6)


def test_failed_pending_and_added_runs_do_not_change_the_design() -> None:
    """A failed point is not run again, a pending one is not suggested twice, and the rest of the design is run."""
    wanted = design(CHAIN.domain, 9).tolist()
    study = Study(CHAIN, algorithm=NonAdaptive(), horizon=9)
    study.tell(study.enqueue_trial({"x": 0.123, "y": 0.456}), PROCESS({"x": 0.123, "y": 0.456}))
    study.begin_trial(dict(zip("xy", wanted[3], strict=True)))  # a pending point of the design
    asked = []
    while (trial := study.ask()) is not None:
        asked.append(list(trial.controls.values()))
        if len(asked) % 3 == 0:
            study.fail(trial, "no reason")
        elif len(asked) % 3 == 1:
            study.tell(trial, PROCESS(trial.controls))
    assert asked == wanted[:3] + wanted[4:]
    assert study.recommended() is not None


def test_if_points_may_be_run_twice_the_trial_number_chooses_the_point() -> None:
    """In a reproduction no point is taken: every trial has its point, whatever was observed."""
    wanted = design(CHAIN.domain, 6)
    for trial in range(6):
        suggestion = NonAdaptive(runs=6).suggest(replace(started(), trial=trial), RNG)
        np.testing.assert_array_equal(suggestion.point, wanted[trial])
    assert NonAdaptive(runs=6).suggest(replace(started(), trial=6), RNG).point is None


def test_a_cached_design_is_used_only_for_its_own_arguments() -> None:
    rows = GRID.points(CHAIN.domain)
    cases = [
        (NonAdaptive(runs=9), started()),
        (NonAdaptive(runs=10), started()),
        (NonAdaptive(runs=9), started(rows)),
        (NonAdaptive(), started(rows[::2], horizon=9)),
    ]
    kept = [algorithm.suggest(now, RNG).cache for algorithm, now in cases]
    for algorithm, now in cases:
        plain = algorithm.suggest(now, RNG)
        for cache in (*kept, "of another kind"):
            again = algorithm.suggest(replace(now, cache=cache), RNG)
            np.testing.assert_array_equal(again.point, plain.point)
        own = algorithm.suggest(replace(now, cache=plain.cache), RNG)
        assert own.cache is plain.cache


def test_taken_points_are_compared_in_user_units() -> None:
    network = NETWORKS["graph"]  # with a logarithmic control
    now = situation(network, np.empty((0, network.width)), horizon=10)
    points = design(network.domain, 10)
    taken = frozenset(point_key(network.domain, point) for point in points[:7])
    np.testing.assert_array_equal(NonAdaptive().suggest(replace(now, taken=taken), RNG).point, points[7])


# ---- errors


def test_without_a_horizon_there_is_no_design() -> None:
    study = Study(CHAIN, algorithm=NonAdaptive())
    with pytest.raises(ArgumentError, match=r"how many runs there will be: give a budget .* or NonAdaptive\(runs="):
        study.ask()


@pytest.mark.parametrize("runs", [0, -3, 2.5, True, "many"])
def test_bad_numbers_of_runs_are_refused(runs: Any) -> None:
    with pytest.raises(ArgumentError, match="runs must be a whole number, at least 1, or None for the budget; got"):
        NonAdaptive(runs=runs)
    if not isinstance(runs, str):
        with pytest.raises(ArgumentError, match="horizon must be a whole number of runs, at least 1, or None; got"):
            Study(CHAIN, horizon=runs)


@pytest.mark.parametrize(
    ("ranges", "message"),
    [
        ({"h": (0, 1)}, "ranges must name stages or their outputs, f.f, g.g; got 'h'"),
        ({"f.u": (0, 1)}, "ranges must name stages or their outputs, f.f, g.g; got 'f.u'"),
        ({"x": (0, 1)}, "got 'x'"),
        ({"f": (1, 0)}, r"the range of 'f' must not be empty: low must not exceed high; got \(1, 0\)"),
        ({"f": (float("nan"), 1)}, "must not be empty"),
        ({"f": (float("inf"), float("inf"))}, "must not be empty"),
        ({"f": 3.0}, r"the range of 'f' must be two numbers \(low, high\); got 3.0"),
        ({"f": (0, 1, 2)}, "must be two numbers"),
        ({"f": ("a", "b")}, "must be two numbers"),
    ],
)
def test_bad_ranges_are_refused_before_the_first_run(ranges: Any, message: str) -> None:
    algorithm = NonAdaptive(runs=4, ranges=ranges)
    with pytest.raises(ArgumentError, match=message):
        algorithm.suggest(started(), RNG)
    with pytest.raises(ArgumentError, match=message):
        algorithm.recommend(started())
    with pytest.raises(ArgumentError, match=message):
        maximise(CHAIN, FUNCTIONS, budget=4, algorithm=algorithm)


@pytest.mark.parametrize(
    ("ranges", "message"),
    [
        ([1, 2], "ranges must be a dict such as"),
        ({1: (0, 1)}, "ranges must be a dict such as"),
        ({"s1.": (0.0, 1.0)}, "ranges must name stages or their outputs"),
    ],
)
def test_ranges_of_the_wrong_form_are_refused(ranges: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        Study(certified("chain", 0).network, algorithm=NonAdaptive(runs=4, ranges=ranges)).ask()
