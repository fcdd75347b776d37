"""Warnings that point at the line of the caller."""

import sys
import warnings


def warn_caller(text: str) -> None:
    """Issue a `RuntimeWarning` at the line outside of cascada from which it was called."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "cascada":
        level, frame = level + 1, frame.f_back
    warnings.warn(text, RuntimeWarning, stacklevel=level)
