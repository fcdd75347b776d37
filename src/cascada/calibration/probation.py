"""Out-of-sample test of estimated bounds: whether runs that they were not fitted to agree with them.

Estimated kernels and norms explain the runs that they were fitted to, however few these are. Before a gap is shown, the
bounds have to hold for d + 1 runs that come after the design, some of them probes: points where the bounds rule out a
better value. A run outside the bounds starts the count again.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from cascada.arrays import Array
from cascada.calibration.noise import noise_sds
from cascada.confidence import Boxes
from cascada.errors import CascadaError
from cascada.network import Beliefs, enclose_network

# Numbers that are told may have lost their last digits: a part of them, so that units do not matter.
_SLACK = 1e-9
# A reading may be so many sds of its noise away from a value within the bounds.
_NOISE_WIDTH = 3.0


def agrees(beliefs: Beliefs, values: Array) -> bool:
    """Whether all that was observed of a run (1, V), NaN where nothing was, lies within bounds that do not know it."""
    point = values[:, : beliefs.network.domain.dimension]
    try:
        boxes = enclose_network(beliefs, Boxes(point, point)).boxes
    except CascadaError:  # no value is possible there, or a formula has none
        return False
    seen = np.isfinite(values)
    value = values[seen]
    slack = _SLACK * np.abs(value) + _NOISE_WIDTH * noise_sds(beliefs)[seen[0]]
    return bool(np.all((boxes.lower[seen] - slack <= value) & (value <= boxes.upper[seen] + slack)))


@dataclass(frozen=True)
class Probation:
    """How many runs agreed with the estimated bounds since the last one that did not."""

    required: int  #: how many have to agree before a gap is shown
    agreed: int = 0
    probes: int = 0  #: how many of them were probes
    #: Trials that were observed in part since then, by number: whether each is a probe.
    unfinished: Mapping[int, bool] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """Whether a gap by these bounds may be shown."""
        return self.agreed >= self.required and self.probes >= self._probes_of(self.agreed)

    @property
    def probe_is_due(self) -> bool:
        """Whether the next run has to be a probe."""
        return self.agreed >= self.required - 1 and self.probes < self._probes_of(self.agreed + 1)

    def begun(self, trial: int, probe: bool) -> "Probation":
        """The first outputs of a trial were observed."""
        return replace(self, unfinished={**self.unfinished, trial: probe})

    def completed(self, trial: int) -> "Probation":
        """The objective of a trial was observed; it counts if it began after the last contradiction."""
        if trial not in self.unfinished:
            return self
        rest = {number: probe for number, probe in self.unfinished.items() if number != trial}
        return Probation(self.required, self.agreed + 1, self.probes + self.unfinished[trial], rest)

    def contradicted(self) -> "Probation":
        """A run lay outside the bounds: those that agreed before do not count for the bounds that follow."""
        return Probation(self.required)

    def __str__(self) -> str:
        agreed, needed = min(self.agreed, self.required), self._probes_of(max(self.agreed, self.required))
        probes = min(self.probes, needed)
        return (
            f"{self.required} runs after the design must agree with it ({agreed} so far), {needed} of them where it "
            f"expects nothing better ({probes} so far)"
        )

    def _probes_of(self, agreed: int) -> int:
        """How many of so many runs have to be probes: one, and one more each time that their number doubles.

        Bounds become narrower with every run next to the best one, so that an old probe says less and less about them.
        """
        return 1 + max(0, math.floor(math.log2(max(agreed, 1) / self.required)))
