"""Processes: stages wired into a graph, the beliefs about them, and bounds of everything that can come out."""

from cascada.network.beliefs import Beliefs, StageBelief, run_values
from cascada.network.enclosure import Enclosure, enclose_network
from cascada.network.evaluation import Outputs, Process, StageError
from cascada.network.network import Network, Node, chain, feed_forward, multi_output_chain
from cascada.network.stage import Stage

__all__ = [
    "Beliefs",
    "Enclosure",
    "Network",
    "Node",
    "Outputs",
    "Process",
    "Stage",
    "StageBelief",
    "StageError",
    "chain",
    "enclose_network",
    "feed_forward",
    "multi_output_chain",
    "run_values",
]
