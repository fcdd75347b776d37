"""The theory as numbers: regret bounds, Σ_T and γ_T, fill distances, hard functions, lower bounds.

A proven number is a `Bound`; a result known up to a constant is an `Order`. `promise` computes all for a network.
"""

from cascada.theory.comparison import Comparison, compare
from cascada.theory.information import InformationGain, information_gain
from cascada.theory.layers import Layers
from cascada.theory.measurement import Measured, measure
from cascada.theory.non_adaptive import (
    layer_fill_distance,
    layer_sd_order,
    restrictive_order,
    simple_regret_order,
)
from cascada.theory.promises import Promise, layers_of, promise
from cascada.theory.regret import per_step_bound, regret_bounds, step_weights, theorem_bound
from cascada.theory.statement import Bound, Order
from cascada.theory.summary import cumulative_table, summary_table
from cascada.theory.sums import SdSum, sd_sum

__all__ = [
    "Bound",
    "Comparison",
    "InformationGain",
    "Layers",
    "Measured",
    "Order",
    "Promise",
    "SdSum",
    "compare",
    "cumulative_table",
    "information_gain",
    "layer_fill_distance",
    "layer_sd_order",
    "layers_of",
    "measure",
    "per_step_bound",
    "promise",
    "regret_bounds",
    "restrictive_order",
    "sd_sum",
    "simple_regret_order",
    "step_weights",
    "summary_table",
    "theorem_bound",
]
