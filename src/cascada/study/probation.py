"""Out-of-sample test of estimated bounds: whether runs that they were not fitted to agree with them.

Estimated norms and kernels explain the runs that they were fitted to, however few these are. Before a gap is shown,
the bounds have to predict runs that come after the design: every output within its bounds, some of them at points
where the bounds rule out a better value. A run outside the bounds starts the count again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from cascada.arrays import Array
from cascada.confidence import Boxes
from cascada.errors import CascadaError
from cascada.network import Beliefs, enclose_network, objective_above

# Numbers that are told may have lost their last digits.
_SLACK = 1e-9


@dataclass(frozen=True)
class Prediction:
    """What the bounds said about a run before it was learned."""

    agrees: bool  #: whether every observed output lies within its bounds
    probe: bool  #: whether the bounds ruled out that the point is better than the best run


def predicted(beliefs: Beliefs, values: Array, best: float) -> Prediction:
    """Compare what was observed of a run (1, V), NaN where nothing was, with bounds that have not learned it."""
    point = values[:, : beliefs.network.domain.dimension]
    try:
        enclosure = enclose_network(beliefs, Boxes(point, point))
    except CascadaError:  # no value is possible there, or a formula has none
        return Prediction(agrees=False, probe=False)
    seen = np.isfinite(values)
    value, slack = values[seen], _SLACK * (1.0 + np.abs(values[seen]))
    inside = (enclosure.boxes.lower[seen] - slack <= value) & (value <= enclosure.boxes.upper[seen] + slack)
    above = objective_above(beliefs.network, enclosure)
    return Prediction(bool(inside.all()), bool(above[0] <= best))


@dataclass(frozen=True)
class Probation:
    """How many runs agreed with the estimated bounds since the last one that did not."""

    required: int  #: how many have to
    agreed: int = 0
    probes: int = 0  #: how many of them were at a point that the bounds ruled out
    #: Trials that were observed in part since then, by number: whether each is a probe.
    unfinished: Mapping[int, bool] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """Whether a gap by these bounds may be shown."""
        return self.agreed >= self.required and self.probes > 0

    @property
    def probe_is_due(self) -> bool:
        """Whether the next run should be a probe: it is the only one that is missing."""
        return self.agreed >= self.required - 1 and self.probes == 0

    def begun(self, trial: int, probe: bool) -> "Probation":
        """The first outputs of a trial were observed."""
        return replace(self, unfinished={**self.unfinished, trial: probe})

    def completed(self, trial: int) -> "Probation":
        """The objective of a trial was observed; it counts unless it began before the last contradiction."""
        if trial not in self.unfinished:
            return self
        rest = {number: probe for number, probe in self.unfinished.items() if number != trial}
        return Probation(self.required, self.agreed + 1, self.probes + self.unfinished[trial], rest)

    def contradicted(self) -> "Probation":
        """A run lay outside the bounds: those that agreed before say nothing about the bounds that follow."""
        return Probation(self.required)

    def __str__(self) -> str:
        probes = "none" if not self.probes else f"{self.probes}"
        return (
            f"{self.agreed} of {self.required} runs after the design agree with the estimated bounds since the last "
            f"that did not, {probes} of them where the bounds expect nothing better"
        )
