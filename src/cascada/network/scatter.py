"""Scatter: what sub-Gaussian errors of readings allow to say with a given probability.

The risk α = 1 − confidence is divided in two halves. One pays for bounds that average over all readings of an output
(`confidence.averages`), the same part for each of the p outputs of the network that are read with scatter. The
categories of a stage are bounded by themselves, and share the part of each output equally: in which category the next
reading is made is known before it, so those of one category are a sequence to which the theorem applies. The other half
pays for a bound of every single reading: reading t of an output is off by at most R·sqrt(2·log(2p·t(t + 1)/(α/2))), for
all t and all outputs at once. With these bounds everything that holds for bounded errors holds.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cascada.arrays import UNIT_ROUNDOFF, Array, IntArray
from cascada.confidence.averages import first_weight
from cascada.errors import ArgumentError
from cascada.network.network import Network

#: The probability with which bounds hold if nothing else is given.
CONFIDENCE = 0.95


def as_confidence(confidence: Any) -> float:
    """A probability below 1 as a float; `ArgumentError` otherwise."""
    number = isinstance(confidence, int | float | np.number) and not isinstance(confidence, bool)
    if not number or not 0.0 < confidence <= 1 - 1e-12:
        raise ArgumentError(f"confidence must be a number above 0 and below 1, such as 0.95; got {confidence!r}.")
    return float(confidence)


@dataclass(frozen=True)
class Scatter:
    """What is fixed before the first reading: the confidence, and λ0 of every output that is read with scatter.

    The norm bounds and the scales of the scatter may be raised later, but not what is kept here.
    """

    confidence: float
    first: Mapping[int, float]  # λ0 by the column of the output

    @classmethod
    def of(cls, network: Network, confidence: float) -> "Scatter":
        """For a network with scatter, whose kernels and norm bounds are given."""
        first = {}
        for node in network.nodes:
            bound, kernel = node.stage.norm_bound, node.stage.kernel
            for j, column in enumerate(node.modelled_columns):
                if node.stage.error_scale[j] > 0:
                    assert bound is not None, "the beliefs of the stage need it as well"
                    variance = getattr(kernel, "variance", 1.0)
                    first[column] = first_weight(float(node.stage.error_scale[j]), float(bound[j]), variance)
        return cls(as_confidence(confidence), first)

    def risk_of_average(self, categories: int = 1) -> float:
        """α of the bounds that average over the readings of one output, in each of the categories of its stage."""
        return 0.5 * (1.0 - self.confidence) / (len(self.first) * categories) * (1 - 8 * UNIT_ROUNDOFF)

    def most_sds(self, turns: IntArray) -> Array:
        """How far reading t of an output can be off in units of R, rounded up; `turns` are the numbers t = 1, 2, …"""
        t = np.asarray(turns, dtype=np.float64)
        odds = 2 * len(self.first) * t * (t + 1) / (0.5 * (1.0 - self.confidence))
        return np.asarray(np.sqrt(2 * np.log(odds * (1 + 16 * UNIT_ROUNDOFF))) * (1 + 16 * UNIT_ROUNDOFF))

    def most_of_next(self, scale: Array, count: IntArray | int) -> Array:
        """How far the next reading can be off, by its scale R, after `count` readings of the same output."""
        return np.asarray(scale * self.most_sds(np.asarray(count) + 1))
