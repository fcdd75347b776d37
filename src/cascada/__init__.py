"""Optimise multi-stage processes whose every stage can be observed, with a proven gap to the best."""

from cascada.calibration import Calibration
from cascada.confidence import BallBelief, Balls, Belief, Boxes, EnvelopeTable, Evidence, cell_bounds, envelope
from cascada.errors import ArgumentError, CascadaError, ContradictionError, NumericalError, RefutedError
from cascada.gp import BlockPosterior, Posterior, SeparablePosterior, TrackedPosterior
from cascada.kernels import Additive, BlockKernel, Matern, Separable, SquaredExponential
from cascada.network import Network, Stage, StageError, chain, feed_forward, multi_output_chain
from cascada.search import Certificate
from cascada.space import Grid, Integer, Real
from cascada.study import Recommendation, Result, Study, Trial, maximise, minimise

__version__ = "0.1.0"

__all__ = [
    "Additive",
    "ArgumentError",
    "BallBelief",
    "Balls",
    "Belief",
    "BlockKernel",
    "BlockPosterior",
    "Boxes",
    "Calibration",
    "CascadaError",
    "Certificate",
    "ContradictionError",
    "EnvelopeTable",
    "Evidence",
    "Grid",
    "Integer",
    "Matern",
    "Network",
    "NumericalError",
    "Posterior",
    "Real",
    "Recommendation",
    "RefutedError",
    "Result",
    "Separable",
    "SeparablePosterior",
    "SquaredExponential",
    "Stage",
    "StageError",
    "Study",
    "TrackedPosterior",
    "Trial",
    "__version__",
    "cell_bounds",
    "chain",
    "envelope",
    "feed_forward",
    "maximise",
    "minimise",
    "multi_output_chain",
]
