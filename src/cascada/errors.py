"""The exceptions that cascada raises.

All of them derive from :class:`CascadaError`: ``except CascadaError`` catches every error about input, data or
arithmetic, and no bug. A message says what is wrong, what was got and what to do.
"""

__all__ = [
    "ArgumentError",
    "CascadaError",
    "ContradictionError",
    "NumericalError",
    "RefutedError",
    "StoreError",
]


class CascadaError(Exception):
    """Base class of all errors of cascada; never raised itself."""


class ArgumentError(CascadaError, ValueError):
    """Raised when an argument has the wrong shape, sign, range or type.

    It is also a :class:`ValueError`, so callers can catch it without importing cascada.
    """


class ContradictionError(CascadaError):
    """Raised when the data contradict each other or the assumptions made about them.

    Example: the same input was observed with two different outputs although evaluations are free of noise.
    `trials` are the numbers of the trials that contradict each other, where they are known.
    """

    def __init__(self, *args: object, trials: tuple[int, ...] = ()) -> None:
        super().__init__(*args)
        self.trials = trials


class NumericalError(CascadaError):
    """Raised when floating-point arithmetic cannot give a reliable result.

    Example: a kernel matrix is not positive definite to working precision.
    """


class RefutedError(CascadaError):
    """Raised when a bound is requested although the data refute an assumption it depends on."""


class StoreError(CascadaError):
    """Raised when a store cannot be reached, read or written, or was written by a newer version of cascada."""
