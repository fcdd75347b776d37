"""One suite for every algorithm, and one of a researcher's own."""

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pytest

from cascada.algorithms import GPNUCB, NAMES, Algorithm, Context, RandomSearch, Suggestion, by_name, point_key
from cascada.arrays import Array
from cascada.errors import ArgumentError
from cascada.network import Network, composite_mean, prior_beliefs
from cascada.study import maximise
from tests.network.cases import NETWORKS, points, truth, values

CLASSES = sorted(set(NAMES.values()), key=lambda algorithm: str(algorithm.__name__))
ALGORITHMS: list[Algorithm] = [*(algorithm() for algorithm in CLASSES), GPNUCB(search="ascent")]
STRUCTURES = ["chain", "graph", "passes and integers", "multi-output chain"]


def context(
    name: str, t: int = 6, candidates: bool = False, pending: int = 0, partial: bool = False, mirrored: bool = False
) -> Context:
    """What an algorithm may be given after t runs of a random process."""
    plain = NETWORKS[name]
    network = plain.mirrored() if mirrored else plain
    rng = np.random.default_rng(0)
    controls = points(network, t + pending, rng)
    told = values(network, truth(network, 5), controls[:t])
    best = float((network.sign * told[:, network.objective_column]).max(initial=-np.inf))
    if partial:
        told[::2, network.objective_column] = np.nan
        told[-1, network.domain.dimension :] = np.nan
        seen = network.sign * told[:, network.objective_column]
        best = float(np.nanmax(seen)) if np.isfinite(seen).any() else -np.inf
    encoded = network.domain.encode(controls)
    return Context(
        beliefs=prior_beliefs(network).append(told),
        told=told,
        pending=encoded[t:],
        candidates=network.domain.encode(np.concatenate([controls, points(network, 8, rng)])) if candidates else None,
        best=best,
        trial=t + pending,
        taken=frozenset(point_key(network.domain, point) for point in encoded),
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


def arrays_of(given: Context) -> list[Array]:
    """Copies of all that could be changed in place."""
    found = [getattr(given, field.name) for field in fields(given)]
    posteriors = [believed.belief.posterior for believed in given.beliefs.stages if believed.belief is not None]
    found += [array for posterior in posteriors for array in (posterior.inputs, posterior.outputs)]
    return [np.array(value) for value in found if isinstance(value, np.ndarray)]


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("case", CASES)
def test_suggestions(algorithm: Algorithm, case: str, structure: str) -> None:
    """A new point of the domain, the same for the same question; nothing that was given is changed."""
    given = context(structure, **CASES[case])
    before = arrays_of(given)
    first, second = (algorithm.suggest(given, np.random.default_rng(1)) for _ in range(2))
    fresh = algorithm.suggest(context(structure, **CASES[case]), np.random.default_rng(1))
    assert first.point is not None
    for other in (second, fresh):
        assert other.point is not None
        np.testing.assert_array_equal(first.point, other.point)
        assert first.bound == other.bound
    domain = given.domain
    assert first.point.shape == (domain.dimension,)
    assert np.all((domain.lower <= first.point) & (first.point <= domain.upper))
    domain.check(domain.decode(first.point[None]))
    assert not given.is_taken(first.point)
    if given.candidates is not None:
        assert np.any(np.all(given.candidates == first.point, axis=1))
    for one, other_array in zip(before, arrays_of(given), strict=True):
        np.testing.assert_array_equal(one, other_array)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_bounds_are_bounds(algorithm: Algorithm, structure: str) -> None:
    """A bound, where one is given, is not beaten by the process; with made-up data there is none."""
    for mirrored in (False, True):
        given = context(structure, mirrored=mirrored)
        network: Network = given.beliefs.network
        suggestion = algorithm.suggest(given, np.random.default_rng(0))
        seen = values(network, truth(network, 5), points(network, 300, np.random.default_rng(9)))
        if suggestion.bound is not None:
            assert suggestion.bound >= (network.sign * seen[:, network.objective_column]).max()
            assert suggestion.bound >= given.best
    assert algorithm.suggest(context(structure, pending=1), np.random.default_rng(0)).bound is None


def test_the_cache_is_a_matter_of_speed_alone(algorithm: Algorithm) -> None:
    """A cache of another algorithm, or of nothing that is known, does no harm."""
    given = context("chain")
    kept = algorithm.suggest(given, np.random.default_rng(0)).cache
    for cache in (kept, "of another kind"):
        suggestion = algorithm.suggest(replace(given, cache=cache), np.random.default_rng(0))
        assert suggestion.point is not None
        assert not given.is_taken(suggestion.point)


def test_no_candidate_is_left(algorithm: Algorithm) -> None:
    given = context("chain", candidates=True)
    assert given.candidates is not None
    taken = frozenset(point_key(given.domain, point) for point in given.candidates)
    assert algorithm.suggest(replace(given, taken=taken), np.random.default_rng(0)).point is None


def test_recommendations_lie_in_the_domain(algorithm: Algorithm) -> None:
    for t in (0, 6):
        given = context("chain", t=t)
        point = algorithm.recommend(given)
        assert point is None or np.all((given.domain.lower <= point) & (point <= given.domain.upper))


def test_a_whole_run_never_repeats_a_point(algorithm: Algorithm) -> None:
    network = NETWORKS["passes and integers"]
    result = maximise(network, truth(network, 1), budget=8, algorithm=algorithm)
    points_run = [tuple(trial.controls.values()) for trial in result.trials]
    assert len(set(points_run)) == len(points_run) == 8


# ---- a researcher's algorithm, all of it


@dataclass(frozen=True)
class BestMean:
    """Run the best of some random points under the composite mean; recommend the best mean of all."""

    draws: int = 50

    def suggest(self, context: Context, rng: np.random.Generator) -> Suggestion:
        domain = context.domain
        if context.candidates is not None:
            drawn = context.candidates[context.free_candidates()]
        else:
            drawn = domain.encode(
                domain.decode(rng.uniform(domain.lower, domain.upper, (self.draws, domain.dimension)))
            )
        return Suggestion(self._best(context, drawn))

    def recommend(self, context: Context) -> Array | None:
        return self._best(context, context.told[:, : context.domain.dimension])

    def _best(self, context: Context, drawn: Array) -> Array | None:
        network = context.beliefs.network
        mean = network.sign * composite_mean(context.beliefs, drawn)[:, network.objective_column]
        return drawn[mean.argmax()] if len(drawn) else None


@pytest.mark.parametrize("given", [BestMean(), f"{__name__}:BestMean"], ids=["object", "by name"])
def test_a_researchers_algorithm_runs(given: Any) -> None:
    network = NETWORKS["chain with controls"]
    result = maximise(network, truth(network, 0), budget=6, algorithm=given)
    assert (result.status, len(result.trials)) == ("budget", 6)
    assert result.best is not None
    assert result.recommended == pytest.approx(result.best.controls)
    assert result.gap_kind == "proven"  # the certificate does not depend on who chose the points
    assert result.gap is not None


# ---- by name


@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_an_algorithm(name: str) -> None:
    assert isinstance(by_name(name), Algorithm)
    assert isinstance(by_name(name), NAMES[name])


def test_an_algorithm_is_itself_and_a_module_has_others() -> None:
    mine = RandomSearch()
    assert by_name(mine) is mine
    assert by_name("cascada.algorithms.random_search:RandomSearch") == mine


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("magic", "one of auto, gpn_ucb, random_search.*, or 'module:Class'; got 'magic'"),
        ("no_such_module:Class", "algorithm 'no_such_module:Class' could not be imported: No module named"),
        ("cascada.algorithms:Nothing", "could not be imported: .*has no attribute 'Nothing'"),
        (":RandomSearch", "could not be imported"),
        ("cascada.space:Domain", "cascada.space:Domain"),
        ("collections:OrderedDict", "must have the methods suggest and recommend"),
        (3, "must have the methods suggest and recommend; got 3"),
    ],
)
def test_what_is_no_algorithm_is_refused(given: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        by_name(given)
