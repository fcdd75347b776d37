"""Gaussian process posteriors of independent outputs, at fixed points, and under operator-valued kernels."""

from cascada.gp.block_posterior import BlockPosterior
from cascada.gp.operator_posterior import OperatorPosterior, OperatorPrediction
from cascada.gp.posterior import Jet, Posterior, Prediction, PredictionGradient
from cascada.gp.separable_posterior import SeparablePosterior
from cascada.gp.tracked_posterior import TrackedPosterior

__all__ = [
    "BlockPosterior",
    "Jet",
    "OperatorPosterior",
    "OperatorPrediction",
    "Posterior",
    "Prediction",
    "PredictionGradient",
    "SeparablePosterior",
    "TrackedPosterior",
]
