"""Networks of stages, the beliefs about them, and bounds of all their values."""

from cascada.network.ball_form import ball_regions, ball_upper
from cascada.network.beliefs import Beliefs, StageBelief, run_values
from cascada.network.enclosure import (
    Enclosure,
    Form,
    enclose_network,
    enclose_stage,
    objective_above,
    tabulated,
)
from cascada.network.enlargement import enlarged
from cascada.network.error import Bounded, SubGaussian
from cascada.network.mean import StagePrediction, composite_mean, hallucinated, predict
from cascada.network.network import Network, chain, feed_forward, multi_output_chain
from cascada.network.node import Node
from cascada.network.outputs import Outputs, StageError
from cascada.network.prior import prior_beliefs
from cascada.network.stage import Stage

__all__ = [
    "Beliefs",
    "Bounded",
    "Enclosure",
    "Form",
    "Network",
    "Node",
    "Outputs",
    "Stage",
    "StageBelief",
    "StageError",
    "StagePrediction",
    "SubGaussian",
    "ball_regions",
    "ball_upper",
    "chain",
    "composite_mean",
    "enclose_network",
    "enclose_stage",
    "enlarged",
    "feed_forward",
    "hallucinated",
    "multi_output_chain",
    "objective_above",
    "predict",
    "prior_beliefs",
    "run_values",
    "tabulated",
]
