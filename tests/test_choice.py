"""Tests of choices: their declaration, values and codes, grids and candidates."""

from typing import Any

import numpy as np
import pytest

from cascada.errors import ArgumentError
from cascada.space import Choice, Control, Domain, Grid, Integer, Real, as_candidates, plain_candidates

WOODS = ("oak", "pine", "steel")
DOMAIN = Domain({"wood": Choice(WOODS), "x": Real(0, 1)})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Choice("oak"), "needs a list of values"),
        (lambda: Choice({"oak", "pine"}), "needs a list of values"),  # type: ignore[arg-type]
        (lambda: Choice([]), "must have 1 to 1024 values; got 0"),
        (lambda: Choice([1, 2]), "must be text; got 1. Numbers have an order: use Real or Integer"),  # type: ignore[list-item]
        (lambda: Choice(["oak", True]), "must be text; got True"),  # type: ignore[list-item]
        (lambda: Choice(["oak", "oak"]), "must differ; 'oak' is given twice"),
        (lambda: Choice(["oak", " pine"]), "without blanks at its ends; got ' pine'"),
        (lambda: Choice(["oak", ""]), "1 to 100 printable characters"),
        (lambda: Choice(["oak", "a\nb"]), "1 to 100 printable characters"),
        (lambda: Choice(WOODS, alike=1.0), "alike must be a number of at least 0 and below 1"),
        (lambda: Choice(WOODS, alike=-0.1), "alike must be a number of at least 0 and below 1"),
        (lambda: Choice(WOODS, alike=True), "alike must be a number of at least 0 and below 1"),
        (lambda: Choice(WOODS, context="yes"), "context must be True or False; got 'yes'"),  # type: ignore[arg-type]
    ],
)
def test_an_invalid_choice_is_refused(make: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        make()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Choice(WOODS, deviation=0.3),  # type: ignore[call-arg]
            r"Choice\(\) does not work with deviation=; got deviation=0.3. A value of a choice is set exactly",
        ),
        (
            lambda: Integer(0, 9, deviation=1),  # type: ignore[call-arg]
            r"Integer\(\) does not work with deviation=; got deviation=1. .* use Real\(\.\.\., deviation=\.\.\.\)",
        ),
        (
            lambda: Integer(0, 9, step=3),  # type: ignore[call-arg]
            r"Integer\(\) does not work with step=; got step=3. Use Real\(\.\.\., step=\.\.\.\)",
        ),
        (
            lambda: Real(0, 9, devation=1),  # type: ignore[call-arg]
            r"Real\(\) has no argument 'devation' \(did you mean deviation\?\)",
        ),
        (
            lambda: Choice(WOODS, like=0.5),  # type: ignore[call-arg]
            r"Choice\(\) has no argument 'like' \(did you mean alike\?\)",
        ),
    ],
)
def test_an_argument_of_another_control_is_refused_by_name(make: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        make()


def test_a_choice_with_one_value_is_fixed() -> None:
    assert Choice(["oak"]).fixed
    assert not Choice(WOODS).fixed
    assert Domain({"wood": Choice(["oak"]), "x": Real(2, 2)}).sides.tolist() == [1.0, 1.0]


def test_values_have_codes_and_codes_have_values() -> None:
    assert DOMAIN.row({"wood": "steel", "x": 0.5}).tolist() == [2.0, 0.5]
    assert DOMAIN.named(np.array([1.0, 0.25])) == {"wood": "pine", "x": 0.25}


@pytest.mark.parametrize("value", ["elm", 0, 1.0, None, ["oak"], True])
def test_a_value_that_the_choice_does_not_have_is_refused(value: Any) -> None:
    with pytest.raises(ArgumentError, match=r"control 'wood' must be one of 'oak', 'pine', 'steel'; got"):
        DOMAIN.row({"wood": value, "x": 0.5})


def test_a_choice_fixed_at_a_value_keeps_its_code() -> None:
    fixed = Domain({"wood": Choice(WOODS).at("pine")})
    assert (fixed.lower.item(), fixed.upper.item()) == (1.0, 1.0)
    assert fixed.named(np.array([1.0])) == {"wood": "pine"}
    with pytest.raises(ArgumentError, match="must be one of 'pine'; got 'oak'"):
        fixed.row({"wood": "oak"})


def test_random_points_have_every_code_equally_often() -> None:
    points = DOMAIN.uniform(np.random.default_rng(0), 9_000)
    counts = np.bincount(points[:, 0].astype(int), minlength=3)
    assert set(points[:, 0]) == {0.0, 1.0, 2.0}
    assert np.abs(counts - 3_000).max() < 200
    assert 0.45 < points[:, 1].mean() < 0.55


def test_without_choices_random_points_are_those_of_the_generator() -> None:
    domain = Domain({"x": Real(-1, 3), "n": Integer(1, 5)})
    same = np.random.default_rng(3).uniform(domain.lower, domain.upper, (5, 2))
    assert np.array_equal(domain.uniform(np.random.default_rng(3), 5), same)


def test_a_grid_has_all_values_of_a_choice_or_those_that_are_listed() -> None:
    points = Grid({"wood": 3, "x": [0.0, 1.0]}).points(DOMAIN)
    assert points.tolist() == [[0, 0], [0, 1], [1, 0], [1, 1], [2, 0], [2, 1]]
    assert Grid({"wood": ["steel", "oak"], "x": [1.0]}).points(DOMAIN).tolist() == [[2, 1], [0, 1]]
    with pytest.raises(ArgumentError, match="a grid takes all 3 values of a choice, or those that you list; got 2"):
        Grid({"wood": 2, "x": 3}).points(DOMAIN)
    with pytest.raises(ArgumentError, match="control 'wood' must be one of"):
        Grid({"wood": ["elm"], "x": 3}).points(DOMAIN)


def test_a_grid_has_steps_and_whole_numbers_once() -> None:
    domain = Domain({"s": Real(0, 1, step=0.25), "n": Integer(1, 100, log=True), "f": Real(2, 2)})
    points = Grid({"s": 9, "n": 3, "f": 4}).points(domain)
    assert sorted(set(points[:, 0])) == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert sorted(set(points[:, 1])) == [1.0, 10.0, 100.0]
    assert set(points[:, 2]) == {2.0}


@pytest.mark.parametrize(
    "given",
    [
        [{"wood": "pine", "x": 0.5}, {"x": 1, "wood": "oak"}],
        [["pine", 0.5], ("oak", 1)],
    ],
)
def test_candidates_are_dicts_or_rows_with_values(given: Any) -> None:
    points = as_candidates(given, DOMAIN)
    assert points.tolist() == [[1.0, 0.5], [0.0, 1.0]]
    assert np.array_equal(as_candidates(plain_candidates(points, DOMAIN), DOMAIN), points)


@pytest.mark.parametrize("given", [np.zeros((2, 2)), [[0.0, 0.5]], [["oak"]], ["oak"]])
def test_candidates_with_codes_instead_of_values_are_refused(given: Any) -> None:
    with pytest.raises(ArgumentError, match=r"must be one of 'oak'|give candidates as a Grid"):
        as_candidates(given, DOMAIN)


def test_the_combinations_of_idle_choices_have_one_value() -> None:
    controls: dict[str, Control] = {"a": Choice(["p", "q"]), "x": Real(0, 1), "b": Choice(WOODS)}
    assert len(Domain(controls).combinations) == 6
    assert Domain(controls, frozenset({"b"})).combinations.tolist() == [[0.0, 0.0], [1.0, 0.0]]
    assert Domain({"x": Real(0, 1)}).combinations.shape == (1, 0)
