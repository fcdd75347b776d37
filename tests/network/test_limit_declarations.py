"""Limits and ranges as they are declared: valid ones, the error of every invalid one, and what observed outputs say."""

from typing import Any

import numpy as np
import pytest

from cascada.errors import ArgumentError, RefutedError
from cascada.network import Stage, chain, prior_beliefs
from cascada.network.limits import in_words, margins, satisfied
from cascada.study import Study
from tests.network.cases import X, Y, stage

INF = np.inf


def two(**options: Any) -> Stage:
    return stage("f", controls=X, outputs=["u", "v"], **options)


# ---- declarations


@pytest.mark.parametrize("field", ["limits", "ranges"])
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, {}),
        ({}, {}),
        ({"u": (None, 3)}, {"u": (-INF, 3.0)}),
        ({"u": (-INF, 3.0)}, {"u": (-INF, 3.0)}),
        ({"v": [0, None]}, {"v": (0.0, INF)}),
        ({"v": np.array([0.5, 1.5]), "u": (np.float64(-1), np.int64(2))}, {"u": (-1.0, 2.0), "v": (0.5, 1.5)}),
    ],
)
def test_valid_intervals_are_kept_as_pairs_of_floats(field: str, given: Any, expected: Any) -> None:
    assert getattr(two(**{field: given}), field) == expected


@pytest.mark.parametrize("field", ["limits", "ranges"])
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([("u", (0, 1))], "must be a dict such as {'moisture': (None, 3.0)}; got [('u', (0, 1))]."),
        ("u", "must be a dict"),
        ({"w": (0, 1)}, "must name outputs of the stage, which are 'u', 'v'; got 'w'."),
        ({3: (0, 1)}, "must name outputs of the stage, which are 'u', 'v'; got 3."),
        ({"u": 3}, "of 'u' must be a pair (low, high) of numbers, with None where there is no limit; got 3."),
        ({"u": (1, 2, 3)}, "must be a pair"),
        ({"u": "12"}, "must be a pair"),
        ({"u": {"max": 3}}, "must be a pair"),
        ({"u": ("1", 2)}, "must be a pair"),
        ({"u": (True, 2)}, "must be a pair"),
        ({"u": (None, None)}, "of 'u' must have at least one finite end; got (None, None)."),
        ({"u": (-INF, INF)}, "must have at least one finite end"),
        ({"u": (float("nan"), 2)}, "must have at least one finite end"),
        ({"u": (INF, None)}, "must have at least one finite end"),
        ({"u": (None, -INF)}, "must have at least one finite end"),
        ({"u": (2, 1)}, "of 'u': the low end must be below the high end; got (2, 1). Give a narrow band."),
        ({"u": (2, 2)}, "the low end must be below the high end"),
    ],
)
def test_invalid_intervals_are_refused(field: str, given: Any, message: str) -> None:
    with pytest.raises(ArgumentError) as error:
        two(**{field: given})
    assert str(error.value).startswith(f"stage 'f': {field} ")
    assert message in str(error.value)


def test_a_range_of_a_copy_is_refused() -> None:
    with pytest.raises(ArgumentError, match="stage 'g': ranges: 'u' is passed on, so its range belongs to the stage"):
        stage("g", outputs=["g", "u"], passes=["u"], ranges={"u": (0, 1)})
    assert stage("g", outputs=["g", "u"], passes=["u"], limits={"u": (0, 1)}).limits == {"u": (0.0, 1.0)}


@pytest.mark.parametrize("limit", [(None, -0.5), (1.5, None), (2, 3)])
def test_a_limit_that_nothing_in_the_range_satisfies_is_refused(limit: Any) -> None:
    with pytest.raises(ArgumentError, match="stage 'f': limits: nothing in the range 0 ≤ u ≤ 1 satisfies"):
        two(ranges={"u": (0, 1)}, limits={"u": limit})
    two(ranges={"u": (0, 1)}, limits={"u": (1, 2)})  # at the edge


@pytest.mark.parametrize("failure", ["ignore", None, 1, ["fail"]])
def test_an_unknown_meaning_of_failures_is_refused(failure: Any) -> None:
    with pytest.raises(ArgumentError, match="stage 'f': failure must be 'fail' or 'infeasible'; got "):
        two(failure=failure)
    assert [two().failure, two(failure="infeasible").failure] == ["fail", "infeasible"]


@pytest.mark.parametrize("algorithm", ["gp_ucb", "ei", "non_adaptive", "cucb", "oi"])
def test_algorithms_that_ignore_limits_are_refused(algorithm: str) -> None:
    network = chain(two(limits={"u": (None, 1)}), objective="f.v")
    with pytest.raises(ArgumentError, match=r"limits do not work with the algorithm .* leave algorithm= out"):
        Study(network, algorithm=algorithm)


def test_ranges_do_not_combine_with_enlargement() -> None:
    network = chain(two(ranges={"u": (None, 1)}), objective="f.v")
    with pytest.raises(ArgumentError, match="ranges do not work with on_violation='enlarge'"):
        Study(network, on_violation="enlarge")


def test_intervals_are_printed_as_inequalities() -> None:
    assert in_words("moisture", (-INF, 3.0)) == "moisture ≤ 3"
    assert in_words("moisture", (0.1, INF)) == "moisture ≥ 0.1"
    assert in_words("moisture", (0.1, 3.25)) == "0.1 ≤ moisture ≤ 3.25"


# ---- observed outputs


def test_limits_of_observed_outputs() -> None:
    network = chain(two(limits={"v": (0, 1)}), stage("g", controls=Y, limits={"g": (None, 2)}))
    assert list(map(str, network.limits)) == ["0 ≤ v ≤ 1", "g ≤ 2"]
    cases: list[tuple[dict[str, Any], bool | None, list[str], bool]] = [
        ({}, None, [], False),
        ({"f": (5.0, 1.0)}, None, [], False),
        ({"f": (5.0, 1.5)}, False, ["0 ≤ v ≤ 1"], False),
        ({"f": (5.0, 0.0), "g": (2.0,)}, True, [], True),
        ({"f": (5.0, -1e-9), "g": (2.5,)}, False, ["0 ≤ v ≤ 1", "g ≤ 2"], True),
        ({"g": (2.5,)}, False, ["g ≤ 2"], False),  # complete only with the limited output of f
    ]
    for outputs, feasible, broken, complete in cases:
        assert network.is_feasible(outputs) is feasible
        assert [str(limit) for limit, _ in network.broken_limits(outputs)] == broken
        assert network.completes(outputs) is complete
    assert chain(two(), objective="f.u").is_feasible({"f": (1.0, 1.0)}) is None


def test_margins_are_negative_where_a_limit_is_broken() -> None:
    network = chain(two(limits={"u": (0, 1), "v": (None, 2)}), objective="f.u")
    rows = np.array([[0.0, 0.25, 1.5], [0.0, 1.5, 1.0], [0.0, np.nan, 1.0]])
    assert margins(network.limits, rows)[:2].tolist() == [[0.25, 0.5], [-0.5, 1.0]]
    assert satisfied(network.limits, rows).tolist() == [True, False, False]


# ---- what ranges do to predictions


def test_predictions_stay_within_ranges() -> None:
    network = chain(
        stage("f", controls=X, norm_bound=50.0, offset=60.0, ranges={"f": (0, 100)}),
        stage("g", controls=Y, norm_bound=2.0, ranges={"g": (None, 0.5)}),
    )
    study = Study(network)
    study.add_trial({"x": 0.0, "y": 0.0}, {"f": 97.0, "g": 0.25})
    study.add_trial({"x": 1.0, "y": 0.0}, {"f": 86.0, "g": 0.2})
    found = [study.predict({"x": x, "y": y}) for x in np.linspace(-2, 2, 9) for y in (-1.0, 0.0)]
    for one in found:
        assert 0 <= one["f"].lower[0] <= one["f"].mean[0] + 1e-6  # an interpolating mean is off by the jitter
        assert one["f"].mean[0] - 1e-6 <= one["f"].upper[0] <= 100
        assert one["f"].mean[0] <= 100
        assert one["g"].upper[0] <= 0.5
        assert one["g"].mean[0] <= 0.5
    assert any(one["f"].upper[0] == 100 for one in found)
    assert study.beliefs.stages[0].belief is not None
    bare = study.beliefs.stages[0].belief.bounds(np.array([[-0.5]]))
    assert bare.upper[0, 0] + 60 > 100  # the range cuts something off


def test_data_that_leave_nothing_in_a_range_refute_the_range_or_the_norm() -> None:
    # With L = 0.1 the output is at least 1.8 everywhere, which the range excludes although no run left it.
    network = chain(stage("f", controls=X, lipschitz=0.1, norm_bound=3.0, ranges={"f": (None, 1.7)}))
    beliefs = prior_beliefs(network, 1e-10).append(np.array([[0.0, 2.0]]))
    with pytest.raises(RefutedError) as error:
        beliefs.predict({"x": 1.0})
    assert "its range (f ≤ 1.7) is wrong, or its norm_bound or lipschitz is too small" in str(error.value)
