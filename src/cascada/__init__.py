"""Optimise multi-stage processes whose every stage can be observed, with a proven gap to the best."""

from cascada.confidence import BallBelief, Balls, Belief, Boxes, EnvelopeTable, Evidence, cell_bounds, envelope
from cascada.errors import ArgumentError, CascadaError, ContradictionError, NumericalError, RefutedError
from cascada.gp import BlockPosterior, Posterior, SeparablePosterior, TrackedPosterior
from cascada.kernels import BlockKernel, Matern, Separable, SquaredExponential

__version__ = "0.1.0"

__all__ = [
    "ArgumentError",
    "BallBelief",
    "Balls",
    "Belief",
    "BlockKernel",
    "BlockPosterior",
    "Boxes",
    "CascadaError",
    "ContradictionError",
    "EnvelopeTable",
    "Evidence",
    "Matern",
    "NumericalError",
    "Posterior",
    "RefutedError",
    "Separable",
    "SeparablePosterior",
    "SquaredExponential",
    "TrackedPosterior",
    "__version__",
    "cell_bounds",
    "envelope",
]
