"""Maxima over many ranges of an array, with two look-ups each."""

import numpy as np

from cascada.arrays import Array, IntArray


def sparse_maxima(values: Array) -> Array:
    """Row k holds the maxima of 2^k neighbours, so that two look-ups give the maximum of any range."""
    rows, width = [values], 1
    while 2 * width <= len(values):
        row = rows[-1].copy()
        row[: len(values) - width] = np.maximum(row[:-width], row[width:])
        rows.append(row)
        width *= 2
    return np.array(rows)


def range_maximum(sparse: Array, low: IntArray, high: IntArray) -> Array:
    """The maximum of values[low..high], both ends included, for many ranges.

    `sparse` (levels, …, N) may hold the rows of several arrays; the maxima have shape (n, …).
    """
    level = np.frexp(high - low + 1.0)[1] - 1  # the largest k with 2^k ≤ length
    return np.maximum(sparse[level, ..., low], sparse[level, ..., high - (1 << level) + 1])
