"""Conformance suite for every algorithm, including a user's own."""

import functools
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pytest

from cascada.algorithms import (
    GPNUCB,
    NAMES,
    Algorithm,
    CascadedEI,
    GPNMixed,
    RandomSearch,
    Situation,
    Suggestion,
    bound_certifies,
    by_name,
    point_key,
)
from cascada.algorithms.non_adaptive import NonAdaptive
from cascada.arrays import Array
from cascada.errors import ArgumentError
from cascada.experiments.paper_grid import PaperGrid
from cascada.kernels import SquaredExponential
from cascada.network import Network, Stage, chain, composite_mean, prior_beliefs
from cascada.process import Process
from cascada.space import Grid, Real
from cascada.study import Study, maximise
from tests.network.cases import NETWORKS, points, truth, values
from tests.thorough import THOROUGH

CLASSES = sorted(set(NAMES.values()), key=lambda algorithm: str(algorithm.__name__))
FEW_SAMPLES = CascadedEI(samples=64)  # faster than 1000, and the properties are the same
ALGORITHMS: list[Algorithm] = [
    *(FEW_SAMPLES if algorithm is CascadedEI else algorithm() for algorithm in CLASSES),
    GPNUCB(search="ascent"),
]
STRUCTURES = ["chain", "graph", "passes and integers", "multi-output chain"]
HORIZON = 40
# Structures for which an algorithm is not defined over a box, and its error message.
UNDEFINED: dict[tuple[Algorithm, str], str] = {
    (GPNUCB(search="ascent"), "block kernel"): "general operator-valued kernel, which gradient ascent cannot follow",
}


@functools.cache
def observed(name: str, mirrored: bool, t: int, more: int) -> tuple[Network, Array, Array]:
    """A random process, controls (t + more, d) in user units, and the values of its first t runs there."""
    network = NETWORKS[name].mirrored() if mirrored else NETWORKS[name]
    controls = points(network, t + more, np.random.default_rng(0))
    data = values(network, truth(network, 5), controls[:t])
    for array in (controls, data):
        array.flags.writeable = False
    return network, controls, data


def situation(
    name: str, t: int = 6, candidates: bool = False, pending: int = 0, partial: bool = False, mirrored: bool = False
) -> Situation:
    """A situation after t runs of a random process."""
    network, controls, data = observed(name, mirrored, t, pending + 8)
    controls, others, data = controls[: t + pending], controls[t + pending :], data.copy()
    best = float((network.sign * data[:, network.objective_column]).max(initial=-np.inf))
    if partial:
        data[::2, network.objective_column] = np.nan
        data[-1, network.domain.dimension :] = np.nan
        seen = network.sign * data[:, network.objective_column]
        best = float(np.nanmax(seen)) if np.isfinite(seen).any() else -np.inf
    encoded = network.domain.encode(controls)
    return Situation(
        beliefs=prior_beliefs(network).append(data),
        data=data,
        pending=encoded[t:],
        candidates=network.domain.encode(np.concatenate([controls, others])) if candidates else None,
        best=best,
        trial=t + pending,
        taken=frozenset(point_key(network.domain, point) for point in encoded),
        horizon=HORIZON,
    )


CASES: dict[str, dict[str, Any]] = {
    "box": {},
    "candidates": {"candidates": True},
    "first run": {"t": 0},
    "first run of candidates": {"t": 0, "candidates": True},
    "pending": {"pending": 2},
    "pending candidates": {"pending": 2, "candidates": True},
    "only pending": {"t": 0, "pending": 2},
    "partial": {"partial": True},
    "partial candidates": {"partial": True, "candidates": True, "pending": 1},
    "minimised": {"mirrored": True},
}


@pytest.fixture(params=ALGORITHMS, ids=str)
def algorithm(request: pytest.FixtureRequest) -> Algorithm:
    return request.param


def arrays_of(now: Situation) -> list[Array]:
    """Copies of all arrays that could be changed in place."""
    found = [getattr(now, field.name) for field in fields(now)]
    posteriors = [believed.belief.posterior for believed in now.beliefs.stages if believed.belief is not None]
    found += [array for posterior in posteriors for array in (posterior.inputs, posterior.outputs)]
    return [np.array(value) for value in found if isinstance(value, np.ndarray)]


def check_point(now: Situation, point: Array | None) -> None:
    """Check that a point can be run, is one of the candidates if there are any, and is not taken."""
    domain = now.domain
    assert point is not None
    assert point.shape == (domain.dimension,)
    assert np.all((domain.lower <= point) & (point <= domain.upper))
    domain.check(domain.decode(point[None]))
    assert not now.is_taken(point)
    if now.candidates is not None:
        assert np.any(np.all(now.candidates == point, axis=1))


def check_suggestion(algorithm: Algorithm, now: Situation, structure: str) -> None:
    """Check that the point can be run, or that an error says why the algorithm is not defined for this structure."""
    reason = UNDEFINED.get((algorithm, structure)) if now.candidates is None else None
    if reason is None:
        check_point(now, algorithm.suggest(now, np.random.default_rng(0)).point)
        return
    with pytest.raises(ArgumentError, match=reason):
        algorithm.suggest(now, np.random.default_rng(0))


# Each case with two of the structures, and each structure with half of the cases; all pairs only if thorough.
PAIRS = [(case, s) for i, case in enumerate(CASES) for j, s in enumerate(STRUCTURES) if THOROUGH or (i + j) % 2 == 0]


@pytest.mark.parametrize(("case", "structure"), PAIRS)
def test_a_suggestion_is_a_new_point_and_reproducible(algorithm: Algorithm, case: str, structure: str) -> None:
    """It is a point of the domain, the same for the same situation, which is not changed."""
    now = situation(structure, **CASES[case])
    before = arrays_of(now)
    first = algorithm.suggest(now, np.random.default_rng(1))
    others = [algorithm.suggest(now, np.random.default_rng(1))]
    if THOROUGH:  # `suggest` does not store anything in the situation either
        others.append(algorithm.suggest(situation(structure, **CASES[case]), np.random.default_rng(1)))
    assert first.point is not None
    for other in others:
        assert other.point is not None
        np.testing.assert_array_equal(first.point, other.point)
        assert first.bound == other.bound
    check_point(now, first.point)
    for one, other_array in zip(before, arrays_of(now), strict=True):
        np.testing.assert_array_equal(one, other_array)


@functools.cache
def best_of_many(name: str, mirrored: bool) -> float:
    """The best of 300 runs of the process."""
    network = NETWORKS[name].mirrored() if mirrored else NETWORKS[name]
    seen = values(network, truth(network, 5), points(network, 300, np.random.default_rng(9)))
    return float((network.sign * seen[:, network.objective_column]).max())


@pytest.mark.parametrize("structure", STRUCTURES)
def test_stated_bounds_hold(algorithm: Algorithm, structure: str) -> None:
    """The process does not exceed a bound; with imagined outputs there is no bound."""
    for mirrored in (False, True):
        now = situation(structure, mirrored=mirrored)
        suggestion = algorithm.suggest(now, np.random.default_rng(0))
        if suggestion.bound is not None:
            assert suggestion.bound >= best_of_many(structure, mirrored)
            assert suggestion.bound >= now.best
    assert algorithm.suggest(situation(structure, pending=1), np.random.default_rng(0)).bound is None


def test_a_foreign_cache_changes_nothing(algorithm: Algorithm) -> None:
    """A cache of another algorithm or an unknown object is ignored."""
    now = situation("chain")
    kept = algorithm.suggest(now, np.random.default_rng(0)).cache
    for cache in (kept, "of another kind"):
        suggestion = algorithm.suggest(replace(now, cache=cache), np.random.default_rng(0))
        assert suggestion.point is not None
        assert not now.is_taken(suggestion.point)


def test_nothing_is_suggested_if_no_candidate_is_left(algorithm: Algorithm) -> None:
    now = situation("chain", candidates=True)
    assert now.candidates is not None
    taken = frozenset(point_key(now.domain, point) for point in now.candidates)
    assert algorithm.suggest(replace(now, taken=taken), np.random.default_rng(0)).point is None


@pytest.mark.parametrize("candidates", [False, True], ids=["box", "candidates"])
@pytest.mark.parametrize("structure", NETWORKS)
def test_every_algorithm_handles_every_structure(algorithm: Algorithm, structure: str, candidates: bool) -> None:
    """It is defined for every network, also a minimised one, or raises an error with the reason."""
    for mirrored in (False, True):
        if structure in STRUCTURES and not (candidates and mirrored):
            continue  # covered by the tests of bounds and of caches
        check_suggestion(algorithm, situation(structure, candidates=candidates, mirrored=mirrored), structure)


@pytest.mark.parametrize("structure", NETWORKS)
def test_an_undefined_structure_is_refused_with_its_reason(structure: str) -> None:
    """Only the paper's grid is restricted to some networks: its error names them, or what else it needs."""
    for candidates, mirrored in ((True, False), (False, False), (True, True)):
        now = situation(structure, candidates=candidates, mirrored=mirrored)
        with pytest.raises(ArgumentError, match=r"chains of scalar stages|lipschitz=|candidates=|maximises"):
            PaperGrid().suggest(now, np.random.default_rng(0))


def test_cascaded_ei_with_a_thousand_samples_suggests_a_point() -> None:
    """This is the default of the slowest algorithm, in a box."""
    now = situation("chain")
    first, second = (CascadedEI().suggest(now, np.random.default_rng(1)).point for _ in range(2))
    check_point(now, first)
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("candidates", [False, True], ids=["box", "candidates"])
@pytest.mark.parametrize("structure", NETWORKS)
def test_a_point_is_suggested_before_the_objective_was_observed(
    algorithm: Algorithm, structure: str, candidates: bool
) -> None:
    """Only the first stage of every run was observed: there is no best value yet, but there is a next point."""
    plain = situation(structure, candidates=candidates)
    network = plain.beliefs.network
    data = plain.data.copy()
    data[:, max(network.nodes[0].columns) + 1 :] = np.nan
    assert np.isnan(data[:, network.objective_column]).all()
    now = replace(plain, data=data, beliefs=prior_beliefs(network).append(data), best=-np.inf)
    check_suggestion(algorithm, now, structure)
    assert algorithm.recommend(now) is None


@pytest.mark.parametrize("candidates", [False, True], ids=["box", "candidates"])
@pytest.mark.parametrize("structure", STRUCTURES)
def test_points_may_be_run_twice(algorithm: Algorithm, structure: str, candidates: bool) -> None:
    """If no point is taken (as in the paper's experiments), runs may be repeated, also while they are pending."""
    plain = situation(structure, candidates=candidates)
    d = plain.domain.dimension
    again = plain.data[[0, 1, 0], :d]  # two of the runs, and one of them twice
    for pending in (again[:0], again, np.repeat(plain.domain.lower[None], 2, axis=0)):
        now = replace(plain, taken=frozenset(), pending=pending)
        check_point(now, algorithm.suggest(now, np.random.default_rng(0)).point)
    if candidates:
        observed = replace(plain, taken=frozenset(), candidates=plain.data[:, :d], trial=2)
        check_point(observed, algorithm.suggest(observed, np.random.default_rng(0)).point)


@pytest.mark.parametrize("algorithm", [a for a in ALGORITHMS if not isinstance(a, NonAdaptive)], ids=str)
def test_ties_are_broken_by_the_generator(algorithm: Algorithm) -> None:
    """Before the first run all candidates are equal, and their order does not matter; a design has no ties."""
    now = situation("chain", t=0, candidates=True)
    corners = np.array([[a * x, b * y] for x, y in ((1.0, 1.5), (0.5, 0.25)) for a in (-1, 1) for b in (-1, 1)])
    now = replace(now, candidates=corners, taken=frozenset(), pending=np.empty((0, 2)))
    found = [algorithm.suggest(now, np.random.default_rng(seed)).point for seed in range(40)]
    again = [algorithm.suggest(now, np.random.default_rng(seed)).point for seed in range(10)]
    np.testing.assert_array_equal(found[:10], again)
    assert len(np.unique(np.array(found), axis=0)) >= 6  # of 8; fewer have a probability of 1e-6


@pytest.mark.parametrize("candidates", [None, Grid({"x": 4, "y": 4})], ids=["box", "candidates"])
def test_points_that_are_pending_at_the_same_time_differ(algorithm: Algorithm, candidates: Grid | None) -> None:
    """Five pending points, in addition to observed ones."""
    network = NETWORKS["chain"]
    process = Process(network, truth(network, 2))
    study = Study(network, algorithm=algorithm, candidates=candidates, horizon=12)
    for _ in range(3):
        trial = study.ask()
        assert trial is not None
        study.tell(trial, process(trial.controls))
    trials = [study.ask() for _ in range(5)]
    assert len({tuple(trial.controls.values()) for trial in (*study.trials, *trials) if trial is not None}) == 8


@pytest.mark.parametrize("structure", STRUCTURES)
def test_the_cache_changes_no_choice(algorithm: Algorithm, structure: str) -> None:
    """The cache is from fewer runs, from pending runs (with imagined outputs), from both, or from other candidates."""
    now = situation(structure, candidates=True)
    assert now.candidates is not None
    fewer = situation(structure, t=3)
    before = replace(now, data=fewer.data, beliefs=fewer.beliefs, best=fewer.best, trial=3)
    without = algorithm.suggest(now, np.random.default_rng(0))
    for earlier in (
        before,
        replace(now, pending=now.candidates[-3:]),
        replace(before, pending=now.candidates[-3:]),
        replace(now, candidates=now.candidates[::-1].copy()),
        replace(now, candidates=None),
    ):
        try:
            cache = algorithm.suggest(earlier, np.random.default_rng(1)).cache
        except ArgumentError:  # not defined for this structure
            continue
        with_it = algorithm.suggest(replace(now, cache=cache), np.random.default_rng(0))
        np.testing.assert_array_equal(with_it.point, without.point)


def test_recommendations_lie_in_the_domain(algorithm: Algorithm) -> None:
    for t in (0, 6):
        now = situation("chain", t=t)
        point = algorithm.recommend(now)
        assert point is None or np.all((now.domain.lower <= point) & (point <= now.domain.upper))


def test_a_whole_run_never_repeats_a_point(algorithm: Algorithm) -> None:
    network = NETWORKS["passes and integers"]
    result = maximise(network, truth(network, 1), budget=8, algorithm=algorithm)
    points_run = [tuple(trial.controls.values()) for trial in result.trials]
    assert len(set(points_run)) == len(points_run) == 8


# ---- a user's complete algorithm


@dataclass(frozen=True)
class BestMean:
    """Run the best of some random points under the composite mean; recommend the best mean of all."""

    draws: int = 50

    def suggest(self, situation: Situation, rng: np.random.Generator) -> Suggestion:
        domain = situation.domain
        if situation.candidates is not None:
            drawn = situation.candidates[situation.free_candidates()]
        else:
            drawn = domain.encode(
                domain.decode(rng.uniform(domain.lower, domain.upper, (self.draws, domain.dimension)))
            )
        return Suggestion(self._best(situation, drawn))

    def recommend(self, situation: Situation) -> Array | None:
        return self._best(situation, situation.data[:, : situation.domain.dimension])

    def _best(self, situation: Situation, drawn: Array) -> Array | None:
        network = situation.beliefs.network
        mean = network.sign * composite_mean(situation.beliefs, drawn)[:, network.objective_column]
        return drawn[mean.argmax()] if len(drawn) else None


@pytest.mark.parametrize("algorithm", [BestMean(), f"{__name__}:BestMean"], ids=["object", "by name"])
def test_an_algorithm_of_a_user_runs(algorithm: Any) -> None:
    network = NETWORKS["chain with controls"]
    result = maximise(network, truth(network, 0), budget=6, algorithm=algorithm)
    assert (result.status, len(result.trials)) == ("budget", 6)
    assert result.best is not None
    assert result.recommended == pytest.approx(result.best.controls)
    assert result.gap_kind == "proven"  # the certificate does not depend on how points were chosen
    assert result.gap is not None


# ---- by name


@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_an_algorithm(name: str) -> None:
    assert isinstance(by_name(name), Algorithm)
    assert isinstance(by_name(name), NAMES[name])


def test_an_algorithm_object_or_a_class_of_a_module_is_accepted() -> None:
    mine = RandomSearch()
    assert by_name(mine) is mine
    assert by_name("cascada.algorithms.random_search:RandomSearch") == mine


class _NoRecommendation:
    def suggest(self, situation: Situation, rng: np.random.Generator) -> Suggestion:  # noqa: ARG002
        return Suggestion(None)


class _Suggests(_NoRecommendation):
    def __init__(self, suggestion: Any) -> None:
        self.suggestion = suggestion

    def suggest(self, situation: Situation, rng: np.random.Generator) -> Any:  # noqa: ARG002
        return self.suggestion

    def recommend(self, situation: Situation) -> Array | None:  # noqa: ARG002
        return None


@pytest.mark.parametrize(
    ("suggestion", "message"),
    [
        ([0.0, 0.0], r"suggest\(\) of _Suggests must return a Suggestion, .*; got \[0.0, 0.0\]"),
        (None, r"must return a Suggestion, .* or Suggestion\(None\)"),
        (Suggestion([0.0, 0.0]), r"must be an array of 2 finite coordinates, or None; got \[0.0, 0.0\]"),  # type: ignore[arg-type]
        (Suggestion(np.zeros(1)), "must be an array of 2 finite coordinates"),
        (Suggestion(np.array([0.0, np.nan])), "must be an array of 2 finite coordinates"),
        (Suggestion(np.array(["a", "b"])), "must be an array of 2 finite coordinates"),
        (Suggestion(np.array([0.0, 9.0])), r"must lie in the box of controls: coordinate 1 \(y\) is between -2 and 2"),
    ],
)
def test_an_invalid_suggestion_is_refused(suggestion: Any, message: str) -> None:
    network = chain(
        Stage("f", controls={"x": Real(-2, 2), "y": Real(-2, 2)}, kernel=SquaredExponential(1), norm_bound=2)
    )
    study = Study(network, algorithm=_Suggests(suggestion))
    with pytest.raises(ArgumentError, match=message):
        study.ask()
    assert not study.trials


@pytest.mark.parametrize(
    ("algorithm", "message"),
    [
        ("magic", "one of auto, gpn_mixed, gpn_ucb, .*random_search.*, or 'module:Class'; got 'magic'"),
        ("no_such_module:Class", "algorithm 'no_such_module:Class' could not be imported: No module named"),
        ("cascada.algorithms:Nothing", "could not be imported: .*has no attribute 'Nothing'"),
        (":RandomSearch", "could not be imported"),
        ("cascada.space:Domain", "cascada.space:Domain"),
        ("collections:OrderedDict", "must have the methods suggest and recommend"),
        ("cascada.algorithms:RandmSearch", r"has no attribute 'RandmSearch' \(did you mean RandomSearch\?\)"),
        (3, "must have the methods suggest and recommend; got 3"),
        (GPNUCB, r"got the class GPNUCB; write GPNUCB\(\)"),
        (_NoRecommendation(), "got _NoRecommendation, which has no recommend"),
    ],
)
def test_an_invalid_algorithm_is_refused(algorithm: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        by_name(algorithm)


class _Subclass(GPNUCB):
    """A subclass could override what makes the bound hold."""


class _Claims(RandomSearch):
    """An algorithm outside the library that declares `certifies`."""

    certifies = True


class _ClaimingSubclass(GPNUCB):
    """A subclass that declares `certifies` itself."""

    certifies = True


def test_only_bounds_of_gpn_ucb_serve_as_certificates() -> None:
    assert [type(a) for a in ALGORITHMS if bound_certifies(a)] == [GPNMixed, GPNUCB, GPNUCB]
    assert not any(bound_certifies(a) for a in (_Subclass(), _Claims(), _ClaimingSubclass()))
