"""The errors that cascada raises on purpose.

Every one of them derives from :class:`CascadaError`, so ``except CascadaError`` catches all that the
package reports about its input or its arithmetic and nothing that is a bug. A message says what was
wrong, what was got, and what to do about it.
"""

__all__ = ["ArgumentError", "CascadaError", "ContradictionError", "NumericalError", "RefutedError", "StoreError"]


class CascadaError(Exception):
    """The base of all errors raised by cascada; never raised itself."""


class ArgumentError(CascadaError, ValueError):
    """Raised when an argument has the wrong shape, sign, range or type.

    It is also a :class:`ValueError`, so callers that know nothing of cascada can catch it.
    """


class ContradictionError(CascadaError):
    """Raised when the data contradict each other or the assumptions made about them.

    The plain case is the same input observed with two different outputs where evaluations are free
    of noise: no function at all agrees with such data.
    """


class NumericalError(CascadaError):
    """Raised when floating-point arithmetic cannot deliver an answer that can be trusted.

    For example, a kernel matrix that is not positive definite to working precision.
    """


class RefutedError(CascadaError):
    """Raised when a bound is asked for although the data refute an assumption that it rests on."""


class StoreError(CascadaError):
    """Raised when a store cannot be reached, read or written, or was written by a newer version of cascada."""
