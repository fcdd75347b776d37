"""Known stages: values and bounds of their formulas, and inputs in user units."""

from contextlib import suppress

import numpy as np

from cascada.arrays import UNIT_ROUNDOFF, Array
from cascada.confidence import Boxes
from cascada.errors import ArgumentError
from cascada.gp.rounding import NORM_ROUNDING
from cascada.network.array_formula import array_values
from cascada.network.beliefs import StageBelief, logarithmic_inputs
from cascada.network.outputs import StageError, as_outputs_of, failure_text


def known_bounds(stage: StageBelief, cells: Boxes) -> Boxes:
    """Bounds of a formula over cells in user units, from its value at the centre and L, or its interval function."""
    declared = stage.node.stage
    if stage.constant is not None:
        values = _repeated(stage.constant, len(cells.lower))
        return Boxes(values, values.copy())
    if declared.interval is not None:
        pairs = [_interval(stage, low, high) for low, high in zip(cells.lower, cells.upper, strict=True)]
        return Boxes(*np.array(pairs).reshape(len(pairs), 2, len(stage.node.columns)).transpose(1, 0, 2))
    if declared.unbounded:
        return _at_points(stage, cells)
    values = np.array([_formula(stage, row) for row in cells.centre]).reshape(len(cells.lower), len(stage.node.columns))
    reach = np.linalg.norm(cells.half, axis=1)[:, None] * declared.lipschitz * (1 + NORM_ROUNDING)
    return Boxes(values - reach, values + reach).widened()


def _at_points(stage: StageBelief, cells: Boxes) -> Boxes:
    """The values of a formula without bounds over cells that are points; infinite bounds over all others."""
    unknown = np.full((len(cells.lower), len(stage.node.columns)), np.inf)
    found = Boxes(-unknown, unknown)
    for i in np.flatnonzero((cells.lower == cells.upper).all(axis=1)):
        found.lower[i] = found.upper[i] = _formula(stage, cells.lower[i])
    return found


def known_values(stage: StageBelief, inputs: Array) -> Array:
    """A known stage's outputs (n, p) at rows of inputs (coordinates)."""
    if stage.constant is not None:
        return _repeated(stage.constant, len(inputs))
    points = in_user_units(stage, Boxes(inputs, inputs)).centre
    return np.array([_formula(stage, row) for row in points]).reshape(len(points), -1)


def likely_values(stage: StageBelief, inputs: Array) -> Array:
    """The outputs (n, p) at inputs that the process need not reach: NaN where the formula is not defined.

    The formula is called with arrays if it takes them (`array_formula`), so these values serve for choosing points. A
    bound may use them only where it holds for any value in their place, as `composite_bounds` does.
    """
    if stage.constant is not None:
        return _repeated(stage.constant, len(inputs))
    points = in_user_units(stage, Boxes(inputs, inputs)).centre

    def at_one(row: Array) -> Array:
        with suppress(StageError):
            return np.array(_formula(stage, row))
        return np.full(len(stage.node.columns), np.nan)

    values = array_values(stage.node, points, at_one)
    if values is not None:
        return values
    return np.array([at_one(row) for row in points]).reshape(len(points), len(stage.node.columns))


def _repeated(outputs: tuple[float, ...], rows: int) -> Array:
    return np.tile(np.array(outputs), (rows, 1))


def _formula(stage: StageBelief, row: Array) -> tuple[float, ...]:
    """A known stage's outputs at one row of inputs in user units; raises `StageError` if the formula fails."""
    assert stage.node.stage.function is not None, "a known stage has its formula"
    inputs = stage.node.keywords(row.tolist())
    try:
        return as_outputs_of(stage.node, stage.node.stage.function(**inputs))
    except Exception as error:  # the user's formula may raise anything
        raise StageError(stage.node.stage.name, inputs, failure_text(error), {}) from error


def _interval(stage: StageBelief, low: Array, high: Array) -> tuple[list[float], list[float]]:
    """The low and the high ends of a known stage's outputs over one box, from its interval function.

    Raises `ArgumentError` if the function fails or does not return intervals.
    """
    assert stage.node.stage.interval is not None, "called only with an interval function"
    pairs = stage.node.keywords(zip(low.tolist(), high.tolist(), strict=True))
    try:
        returned = stage.node.stage.interval(**pairs)
    except Exception as error:  # the user's function may raise anything
        raise ArgumentError(
            f"the interval function of stage {stage.node.stage.name!r} failed for {pairs}: {failure_text(error)}. "
            f"It must bound the formula over any such intervals, also where the process itself never goes."
        ) from error
    try:
        result = np.array(returned, dtype=np.float64).reshape(-1, 2)
        sound = len(result) == len(stage.node.columns) and np.isfinite(result).all() and np.all(np.diff(result) >= 0)
    except (TypeError, ValueError):
        sound = False
    if not sound:
        raise ArgumentError(
            f"the interval function of stage {stage.node.stage.name!r} must return a (low, high) pair for each of its "
            f"{len(stage.node.columns)} output(s), finite and low ≤ high; got {returned!r}."
        )
    return result[:, 0].tolist(), result[:, 1].tolist()


def in_user_units(stage: StageBelief, cells: Boxes) -> Boxes:
    """Boxes of inputs with the exponential of logarithmic controls, rounded outwards."""
    columns = logarithmic_inputs(stage.node)
    if not columns:
        return cells
    lower, upper = cells.lower.copy(), cells.upper.copy()
    # ln x is rounded by u·|ln x|, which becomes a relative error of the exponential.
    low, high = lower[:, columns], upper[:, columns]
    lower[:, columns] = np.exp(low) * (1 - UNIT_ROUNDOFF * (8 + 4 * np.abs(low)))
    upper[:, columns] = np.exp(high) * (1 + UNIT_ROUNDOFF * (8 + 4 * np.abs(high)))
    return Boxes(lower, upper)
