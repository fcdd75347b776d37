"""Tests of controls, the boxes they span, and candidates."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cascada.errors import ArgumentError
from cascada.space import Control, Domain, Grid, Integer, Real, as_candidates

DOMAIN = Domain({"x": Real(-1, 3), "t": Real(0.1, 10.0, log=True), "n": Integer(2, 5)})


@st.composite
def controls(draw: st.DrawFn) -> Control:
    """Controls with ranges of all sizes."""
    if draw(st.booleans()):
        first = draw(st.integers(-1000, 1000))
        return Integer(first, first + draw(st.integers(1, 1000)))
    log = draw(st.booleans())
    low = draw(st.floats(1e-6, 1e6)) if log else draw(st.floats(-1e6, 1e6))
    return Real(low, low + draw(st.floats(1e-3, 1e6)), log=log)


@given(st.lists(controls(), min_size=1, max_size=4), st.data())
def test_decoding_inverts_encoding(some: list[Control], data: st.DataObject) -> None:
    domain = Domain({f"c{j}": control for j, control in enumerate(some)})
    point = [
        data.draw(st.integers(int(c.low), int(c.high)) if c.integer else st.floats(c.low, c.high), label=str(c))
        for c in some
    ]
    values = domain.check([point])
    back = domain.check(domain.decode(domain.encode(values)))
    np.testing.assert_allclose(back, values, rtol=1e-13)
    exact = [j for j, c in enumerate(some) if not c.log]
    np.testing.assert_array_equal(back[:, exact], values[:, exact])
    assert np.all((domain.lower <= domain.encode(values)) & (domain.encode(values) <= domain.upper))


@given(st.lists(controls(), min_size=1, max_size=4), st.data())
def test_any_coordinates_decode_to_a_point_of_the_domain(some: list[Control], data: st.DataObject) -> None:
    domain = Domain({f"c{j}": control for j, control in enumerate(some)})
    row = data.draw(st.lists(st.floats(-1e9, 1e9), min_size=len(some), max_size=len(some)))
    given_row = np.array([row])
    before = given_row.copy()
    decoded = domain.decode(given_row)
    domain.check(decoded)
    np.testing.assert_array_equal(given_row, before)  # decoding does not change its argument
    ends = domain.decode(np.array([domain.lower, domain.upper]))
    np.testing.assert_allclose(ends, [[c.low for c in some], [c.high for c in some]], rtol=1e-13)


def test_kernels_act_on_the_logarithm_of_logarithmic_controls() -> None:
    np.testing.assert_allclose(DOMAIN.lower, [-1.0, np.log(0.1), 2.0])
    np.testing.assert_allclose(DOMAIN.upper, [3.0, np.log(10.0), 5.0])
    np.testing.assert_allclose(DOMAIN.encode(np.array([[0.5, 1.0, 3.0]])), [[0.5, 0.0, 3.0]], atol=1e-15)
    assert (DOMAIN.names, DOMAIN.dimension, DOMAIN.discrete) == (("x", "t", "n"), 3, [2])


def test_integers_round_to_the_nearest_and_come_back_as_int() -> None:
    decoded = DOMAIN.decode(np.array([[0.0, 0.0, 2.6], [0.0, 0.0, -7.0]]))
    np.testing.assert_array_equal(decoded[:, 2], [3.0, 2.0])
    named = DOMAIN.named(decoded[0])
    assert named == {"x": 0.0, "t": 1.0, "n": 3}
    assert type(named["n"]) is int
    assert type(named["x"]) is float


def test_a_row_accepts_names_in_any_order_and_any_type_of_number() -> None:
    row = DOMAIN.row({"n": np.int64(4), "t": np.float32(2.0), "x": 1})
    np.testing.assert_array_equal(row, [1.0, 2.0, 4.0])


def test_the_ends_belong_to_the_domain() -> None:
    DOMAIN.check([[-1.0, 0.1, 2], [3.0, 10.0, 5]])


def test_a_grid_holds_all_combinations_with_the_last_control_varying_fastest() -> None:
    grid = Grid({"n": [3, 5], "x": 2, "t": 3})
    expected = [[x, t, n] for x in (-1.0, 3.0) for t in (0.1, 1.0, 10.0) for n in (3.0, 5.0)]
    np.testing.assert_allclose(grid.points(DOMAIN), expected)  # evenly spaced in the logarithm of t
    np.testing.assert_array_equal(as_candidates(grid, DOMAIN), grid.points(DOMAIN))


@pytest.mark.parametrize(("count", "expected"), [(1, [2]), (2, [2, 5]), (4, [2, 3, 4, 5]), (50, [2, 3, 4, 5])])
def test_a_grid_of_integers_holds_each_value_at_most_once(count: int, expected: list[int]) -> None:
    points = Grid({"n": count}).points(Domain({"n": Integer(2, 5)}))
    assert points[:, 0].tolist() == expected


def test_candidates_keep_their_order_and_values() -> None:
    rows = [[0.5, 0.3, 2], [-1.0, 10.0, 5], [0.5, 0.3, 2]]
    np.testing.assert_array_equal(as_candidates(rows, DOMAIN), rows)


X1 = Domain({"x": Real(0, 1)})
INVALID: dict[str, tuple[Callable[[], Any], str]] = {
    "reversed range": (lambda: Real(2, 1), r"must not be empty: low must be below high; got Real\(low=2, high=1"),
    "reversed integers": (lambda: Integer(3, 2), r"must not be empty.*Integer\(low=3, high=2\)"),
    "log at zero": (lambda: Real(0, 1, log=True), r"needs a range above 0; got .*Use log=False"),
    "log below zero": (lambda: Real(-1, 1, log=True), "needs a range above 0"),
    "NaN end": (lambda: Real(float("nan"), 1), "two finite numbers"),
    "infinite end": (lambda: Real(0, float("inf")), "two finite numbers"),
    "bool end": (lambda: Real(False, True), "two finite numbers"),
    "text end": (lambda: Real("0", 1), "two finite numbers"),  # type: ignore[arg-type]
    "integer with bool": (lambda: Integer(False, 2), "two finite numbers"),
    "integer range not whole": (lambda: Integer(0.5, 2), "the range of an integer control must be whole numbers"),  # type: ignore[arg-type]
    "below": (lambda: X1.row({"x": -0.5}), r"control 'x' must lie in \[0, 1\]; got -0.5"),
    "just above": (lambda: X1.row({"x": 1 + 1e-15}), "got 1.0000000000000011"),
    "NaN value": (lambda: X1.row({"x": float("nan")}), "must be finite"),
    "unknown control": (lambda: X1.row({"x": 0.5, "z": 1}), "the controls are x; missing: none, unknown: 'z'"),
    "mistyped control": (
        lambda: Domain({"heat": Real(0, 1), "y": Real(0, 1)}).row({"heat": 0, "hat": 1, "y": 0}),
        r"missing: none, unknown: 'hat' \(did you mean heat\?\)",
    ),
    "missing control": (lambda: X1.row({}), "missing: x, unknown: none"),
    "text value": (lambda: X1.row({"x": "high"}), "control 'x' must be a number; got 'high'"),
    "no value": (lambda: X1.row({"x": None}), "control 'x' must be a number; got None"),
    "not whole": (lambda: DOMAIN.row({"x": 0, "t": 1, "n": 2.5}), "control 'n' must be a whole number; got 2.5"),
    "flat candidates": (lambda: as_candidates([0.1, 0.2], X1), "must have two axes"),
    "wrong columns": (lambda: as_candidates([[0.1, 0.2]], X1), "must have 1 columns"),
    "candidate outside": (lambda: as_candidates([[0.1], [2.0]], X1), "must lie in .*; got 2"),
    "candidate NaN": (lambda: as_candidates([[0.1], [np.nan]], X1), "must be finite; row 1"),
    "no candidates": (lambda: as_candidates(np.empty((0, 1)), X1), "at least one point; got none"),
    "empty grid axis": (lambda: as_candidates(Grid({"x": []}), X1), "at least one point; got none"),
    "grid of zero": (
        lambda: as_candidates(Grid({"x": 0}), X1),
        "the number of values of 'x' must be a whole number ≥ 1; got 0",
    ),
    "grid of another control": (lambda: as_candidates(Grid({"y": 3}), X1), "a grid needs the controls x; got y"),
    "grid outside": (lambda: as_candidates(Grid({"x": [2.0]}), X1), "must lie in"),
}


@pytest.mark.parametrize("case", INVALID)
def test_invalid_values_raise_an_argument_error(case: str) -> None:
    make, message = INVALID[case]
    with pytest.raises(ArgumentError, match=message):
        make()


def test_candidates_may_be_given_by_name() -> None:
    """The error names an unknown or missing control."""
    domain = Domain({"x": Real(0, 1), "n": Integer(1, 4)})
    by_name = as_candidates([{"n": 2, "x": 0.5}, {"x": 1.0, "n": 4}], domain)
    np.testing.assert_array_equal(by_name, as_candidates([[0.5, 2], [1.0, 4]], domain))
    with pytest.raises(ArgumentError, match="missing: n, unknown: 'm'"):
        as_candidates([{"x": 0.5, "m": 2}], domain)
