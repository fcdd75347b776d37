"""Deterministic confidence bounds: they hold for every function that agrees with the data and the assumptions."""

from cascada.confidence.ball_belief import BallBelief
from cascada.confidence.belief import Belief
from cascada.confidence.belief_base import BeliefBase
from cascada.confidence.cells import cell_bounds
from cascada.confidence.envelope import envelope
from cascada.confidence.evidence import Evidence
from cascada.confidence.regions import Balls, Boxes
from cascada.confidence.table import EnvelopeTable

__all__ = [
    "BallBelief",
    "Balls",
    "Belief",
    "BeliefBase",
    "Boxes",
    "EnvelopeTable",
    "Evidence",
    "cell_bounds",
    "envelope",
]
