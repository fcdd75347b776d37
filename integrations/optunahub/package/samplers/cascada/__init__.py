"""The sampler of cascada, as an OptunaHub package."""

from cascada import Integer, Matern, Network, Real, SquaredExponential, Stage, StageError, chain
from cascada.integrations.optuna import CascadaSampler

__all__ = [
    "CascadaSampler",
    "Integer",
    "Matern",
    "Network",
    "Real",
    "SquaredExponential",
    "Stage",
    "StageError",
    "chain",
]
