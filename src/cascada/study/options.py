"""The options of a study, refused where they make no sense."""

import sys
from typing import Any

import numpy as np

from cascada.errors import ArgumentError


def check_options(on_violation: Any, tolerance: Any, seed: Any, horizon: Any) -> None:
    """An error that says what was wrong and what was got."""
    if on_violation not in ("stop", "enlarge"):
        raise ArgumentError(f"on_violation must be 'stop' or 'enlarge'; got {on_violation!r}.")
    number = isinstance(tolerance, int | float | np.number) and not isinstance(tolerance, bool)
    if tolerance is not None and not (number and 0 <= tolerance <= sys.float_info.max):
        raise ArgumentError(f"tolerance must be a number of at least 0, or None; got {tolerance!r}.")
    if not _whole(seed) or seed < 0:
        raise ArgumentError(f"seed must be a whole number of at least 0; got {seed!r}.")
    if horizon is not None and (not _whole(horizon) or horizon < 1):
        raise ArgumentError(f"horizon must be a whole number of runs, at least 1, or None; got {horizon!r}.")


def _whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)
