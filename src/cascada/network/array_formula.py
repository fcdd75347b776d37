"""Values of a formula at many points from one call with arrays, if the formula takes them.

Whether it does is decided at every call, from that call alone: the shapes and types of what it returns must be right,
and the values at some rows must be, bit for bit, those of calls with numbers. Nothing is remembered. If it were, the
values could depend on what was computed before, and the next point of a study would not follow from its log.

The other rows are not compared, so these values serve for choosing points and never for a proof or a stored output.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from cascada.arrays import LARGEST_SCALE, Array
from cascada.network.node import Node

# Rows that are compared. A formula that mixes rows (a sort, a cumulative sum, a mean) agrees at all of them only if it
# happens to be right there.
_COMPARED = 8
# For fewer rows the comparison costs as much as it saves.
_FEWEST = 3 * _COMPARED


def array_values(node: Node, points: Array, at_one: Callable[[Array], Array]) -> Array | None:
    """The outputs (n, p) of a known stage at rows of inputs (n, d) in user units; None if the formula takes no arrays.

    `at_one` gives the outputs (p,) at one row by a call with numbers, NaN where the formula is not defined. It is used
    for every row where the call with arrays has no finite value.
    """
    if len(points) < _FEWEST:
        return None
    values = _called(node, points)
    if values is None:
        return None
    for i in np.linspace(0, len(points) - 1, _COMPARED).astype(np.int64):
        if not np.array_equal(_usable(values[i]), at_one(points[i]), equal_nan=True):
            return None
    for i in np.flatnonzero(np.isnan(_usable(values)).any(axis=1)):
        values[i] = at_one(points[i])
    return values


def _usable(values: Array) -> Array:
    """The values, with NaN for all outputs (..., p) of a row where some are not valid outputs of a stage."""
    valid = (np.abs(values) <= LARGEST_SCALE).all(axis=-1, keepdims=True)  # False for NaN
    return np.where(valid, values, np.nan)


def _called(node: Node, points: Array) -> Array | None:
    """What the formula returns for arrays, (n, p); None if it raises or the result has another form."""
    assert node.stage.function is not None, "a known stage has its formula"
    inputs: dict[str, Any] = {}
    for j, (name, column) in enumerate(zip(node.input_names, points.T.copy(), strict=True)):
        column.flags.writeable = False  # x += 1 changes a number only for the formula, but an array for all
        choice = node.choices.get(j)
        inputs[name] = column if choice is None else np.array([choice.shown(code) for code in column])
    try:
        with np.errstate(all="ignore"):  # rows without a finite value are computed again
            result = node.stage.function(**inputs)
        columns = _columns(node, result)
        if columns is None or any(not _is_column(column, len(points)) for column in columns):
            return None
        values = np.empty((len(points), len(columns)))
        for j, column in enumerate(columns):
            values[:, j] = column
    except Exception:  # the user's formula and its result may raise anything
        return None
    return values


def _columns(node: Node, result: Any) -> list[Any] | None:
    """The outputs in order, of a result in one of the forms that a stage may return; None if it has another form."""
    names = node.stage.outputs
    if isinstance(result, Mapping):
        return [result[name] for name in names] if set(result) == set(names) else None
    if len(names) == 1 and not isinstance(result, list | tuple):
        return [result]
    return list(result) if len(result) == len(names) else None


def _is_column(column: Any, count: int) -> bool:
    """Whether an output is an array of numbers (count,), or one number for all rows."""
    array = np.asarray(column)
    return array.dtype.kind in "fiu" and array.shape in ((), (count,))
