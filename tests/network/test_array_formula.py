"""Formulas called with arrays: the values are always those of calls with numbers."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cascada.arrays import Array
from cascada.confidence import Boxes
from cascada.network import Stage, StageBelief, chain, enclose_network, prior_beliefs
from cascada.network.formula import known_values, likely_values
from cascada.network.outputs import StageError
from cascada.space import Real
from tests.network.cases import Y, stage


class Formula:
    """A formula that counts its calls with numbers and with arrays."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function, self.numbers, self.arrays = function, 0, 0

    def __call__(self, f: Any, y: Any) -> Any:
        if np.ndim(f):
            self.arrays += 1
        else:
            self.numbers += 1
        return self.function(f, y)


def known(formula: Callable[..., Any], outputs: int = 1, control: Real = Y["y"]) -> StageBelief:
    """The known stage of a chain f → k, with the inputs f and y."""
    names = ["k"] if outputs == 1 else [f"k{j}" for j in range(outputs)]
    declared = Stage("k", {"y": control}, outputs=names, known=True, lipschitz=1.0, function=formula)
    network = chain(stage("f", controls={"x": Real(0, 1)}), declared, objective=f"k.{names[0]}")
    return StageBelief(network.nodes[1], None)


def inputs(n: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).uniform(-2.0, 2.0, (n, 2))


def one_by_one(belief: StageBelief, rows: Array) -> Array:
    """The values by calls with numbers; NaN where the formula fails."""
    found = np.full((len(rows), len(belief.node.columns)), np.nan)
    for i in range(len(rows)):
        try:
            found[i] = known_values(belief, rows[[i]])[0]
        except StageError:
            continue
    return found


def clipped_in_place(f: Any, y: Any) -> Any:
    f += y
    return f * f


def aliased(f: Any, y: Any) -> Any:
    other = f
    other += y
    return [f, other]


def branched(f: Any, y: Any) -> Any:
    return f if f > y else 2 * y


def half_defined(f: Any, y: Any) -> Any:
    return np.sqrt(f) + y


def refused_below_zero(f: Any, y: Any) -> Any:
    if np.any(np.asarray(f) < 0):
        raise ValueError("negative")
    return f + y


ELEMENTWISE: dict[str, tuple[int, Callable[..., Any]]] = {
    "polynomial": (1, lambda f, y: 3.0 * f - y * f),
    "numpy functions": (1, lambda f, y: np.exp(f) * np.sin(y)),
    "numpy maximum": (1, np.maximum),
    "python sum of two inputs": (1, lambda f, y: sum((f, y))),
    "tuple": (2, lambda f, y: (f + y, f - y)),
    "list of one": (1, lambda f, y: [f + y]),
    "list with a constant": (2, lambda f, y: [f + y, 4.0]),
    "dict": (2, lambda f, y: {"k1": f * y, "k0": f}),
    "stacked array": (2, lambda f, y: np.array([f, y])),
    "as many rows as outputs": (40, lambda f, y: [f + j * y for j in range(40)]),
    "constant": (1, lambda _f, _y: 7.0),
    "constant without dimensions": (1, lambda _f, _y: np.array(7.0)),
    "whole number": (1, lambda _f, _y: 7),
}
OTHERS: dict[str, tuple[int, Callable[..., Any]]] = {
    "math functions": (1, lambda f, y: math.exp(f) + y),
    "branch": (1, branched),
    "builtin max": (1, max),
    "builtin round": (1, lambda f, y: round(f, 2) + y),
    "change of an input": (1, clipped_in_place),
    "change of an input that is returned twice": (2, aliased),
    "raises for some": (1, refused_below_zero),
    "sort": (1, lambda f, y: np.sort(f) + y),
    "cumulative sum": (1, lambda f, _y: np.cumsum(f) if np.ndim(f) else f),
    "share of the sum": (1, lambda f, _y: f / np.sum(f)),
    "reversed": (1, lambda f, _y: f[::-1] if np.ndim(f) else f),
    "sum over the points": (1, lambda f, y: np.sum(f) + y),
    "largest of all points": (1, lambda f, y: np.max([f, y])),
    "truth value": (1, lambda f, y: f > y),
    "complex number": (1, lambda f, _y: f + 0j),
    "text": (1, lambda _f, _y: "high"),
    "nothing": (1, lambda _f, _y: None),
    "too many outputs": (1, lambda f, y: (f, y)),
    "too few outputs": (2, lambda f, _y: [f]),
    "wrong names": (1, lambda f, _y: {"other": f}),
    "column": (1, lambda f, _y: np.reshape(f, (-1, 1)) if np.ndim(f) else f),
    "transposed": (2, lambda f, y: np.array([f, y]).T),
    "one point too few": (1, lambda f, _y: f[1:] if np.ndim(f) else f),
    "other numbers for arrays": (1, lambda f, _y: f + 1e-12 if np.ndim(f) else f),
    "list for arrays only": (2, lambda f, y: [[1.0, 2.0], f] if np.ndim(f) else [f, y]),
}


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_an_elementwise_formula_is_called_once_for_all_points(name: str) -> None:
    outputs, function = ELEMENTWISE[name]
    formula = Formula(function)
    belief, rows = known(formula, outputs), inputs(40)
    found = likely_values(belief, rows)
    assert (formula.arrays, formula.numbers) == (1, 8)
    np.testing.assert_array_equal(found, one_by_one(belief, rows))


@pytest.mark.parametrize("name", OTHERS)
def test_any_other_formula_has_the_values_of_calls_with_numbers(name: str) -> None:
    outputs, function = OTHERS[name]
    formula = Formula(function)
    belief, rows = known(formula, outputs), inputs(60)
    found = likely_values(belief, rows)
    assert formula.arrays == 1
    assert formula.numbers >= 60
    np.testing.assert_array_equal(found, one_by_one(belief, rows))


def test_points_without_a_finite_value_are_called_one_by_one() -> None:
    formula = Formula(half_defined)
    belief, rows = known(formula), inputs(200)
    rows[7] = [4.0, 0.5]
    found = likely_values(belief, rows)
    undefined = rows[:, 0] < 0
    assert 0 < undefined.sum() < 200
    assert formula.arrays == 1
    assert formula.numbers == 8 + undefined.sum()
    np.testing.assert_array_equal(np.isnan(found[:, 0]), undefined)
    np.testing.assert_array_equal(found, one_by_one(belief, rows))


def test_a_division_by_zero_is_not_defined_in_both_ways() -> None:
    belief, rows = known(lambda f, y: y / f), inputs(50)
    rows[[0, 20, 33], 0] = 0.0
    found = likely_values(belief, rows)
    np.testing.assert_array_equal(np.flatnonzero(np.isnan(found[:, 0])), [0, 20, 33])


def test_a_formula_that_later_takes_no_arrays_is_called_with_numbers() -> None:
    """The decision is made at every call: a call that went well says nothing about the next one."""
    broken = False

    def function(f: Any, y: Any) -> Any:
        return np.sort(f * y) if broken and np.ndim(f) else f * y

    formula = Formula(function)
    belief = known(formula)
    for broken, seed in ((False, 0), (True, 1), (False, 2)):  # noqa: B007 - read by the function
        rows = inputs(64, seed)
        np.testing.assert_array_equal(likely_values(belief, rows), one_by_one(belief, rows))


def test_the_inputs_are_not_changed() -> None:
    belief, rows = known(clipped_in_place), inputs(50)
    before = rows.copy()
    likely_values(belief, rows)
    np.testing.assert_array_equal(rows, before)


def test_a_few_points_are_called_one_by_one() -> None:
    formula = Formula(lambda f, y: f + y)
    assert likely_values(known(formula), inputs(5)).shape == (5, 1)
    assert (formula.arrays, formula.numbers) == (0, 5)
    assert likely_values(known(formula), inputs(0)).shape == (0, 1)


def test_a_logarithmic_control_is_in_user_units() -> None:
    belief, rows = known(lambda f, y: f * y, control=Real(1, 100, log=True)), inputs(50)
    rows[:, 1] = np.abs(rows[:, 1])
    np.testing.assert_array_equal(likely_values(belief, rows), one_by_one(belief, rows))
    np.testing.assert_allclose(likely_values(belief, rows)[:, 0], rows[:, 0] * np.exp(rows[:, 1]), rtol=1e-12)


def test_bounds_and_stored_outputs_never_come_from_arrays() -> None:
    formula = Formula(lambda f, y: f + y)
    declared = Stage("k", Y, known=True, lipschitz=2.0, function=formula)
    beliefs = prior_beliefs(chain(stage("f", controls={"x": Real(0, 1)}), declared))
    low = np.random.default_rng(0).uniform(beliefs.network.domain.lower, beliefs.network.domain.upper, (100, 2))
    enclose_network(beliefs, Boxes(low, low))
    known_values(beliefs.stages[1], inputs(100))
    assert formula.arrays == 0
    assert formula.numbers >= 200
