"""Beliefs by which the estimated gap is judged, where runs are exact.

The bounds are μ ± ρσ. Runs crowd at the best one, and there each of them is predicted so well by its neighbours that a
kink, or the last digits of the kernel, is many sds. Such a residual says how fine the model is, not how far a function
may be from the mean where no run is. So the two are kept apart:

* ρ is 2(1 + 20/n) sds for n runs, times the factor by which runs that are predicted *without their neighbours* ask for
  wider functions (`widening`);
* λ is raised until the residuals of all runs are within ρ: near the crowd a function may be as rough as that.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from cascada.arrays import Array
from cascada.calibration.beliefs import believed, held_out, parts_of, posterior_of, spanned
from cascada.calibration.fit import Fit
from cascada.calibration.runs import Runs
from cascada.calibration.widening import neighbourhoods, widening
from cascada.gp import Posterior
from cascada.gp.rounding import SMALLEST_JITTER
from cascada.network import Beliefs, Network, Node, StageBelief

_LEAST_WIDTH = 2.0  # sds of many runs, and more of few: then the size of a function between them is uncertain
_FEW = 20
_COARSEST = 1e-4  # the largest λ
_STEP = 10**0.5  # its factor


def gap_beliefs(network: Network, judging: Beliefs, data: Array, fits: Mapping[tuple[str, str], Fit]) -> Beliefs:
    """The beliefs for exact runs (t, V): `judging`, with other ones about the outputs that have a fit."""
    runs, found = Runs(data, np.arange(len(data))), []
    parts = [(node.stage.name, part) for node in network.nodes for part in parts_of(node)]
    for (name, part), belief in zip(parts, judging.stages, strict=True):
        fit = fits.get((name, part.stage.outputs[0]))
        if fit is None:
            found.append(belief)
            continue
        node = replace(part, stage=part.stage.fitted(fit.cautious.kernel, fit.cautious.offset))
        posterior, radius = _posterior_and_radius(node, *runs.of(part), fit.ranges)
        found.append(StageBelief(node, believed(node, posterior, np.array([radius]))))
    return spanned(network, found)


def _posterior_and_radius(node: Node, inputs: Array, outputs: Array, ranges: Array) -> tuple[Posterior, float]:
    """The posterior of one output with the smallest λ for which ρ covers the residuals of all runs, and ρ."""
    jitter, blocks = SMALLEST_JITTER, None
    while True:
        posterior = posterior_of(node, inputs, outputs, jitter)
        assert isinstance(posterior, Posterior), "a fitted kernel is of one output"
        if not posterior.count:
            return posterior, _LEAST_WIDTH * (1.0 + _FEW)
        blocks = neighbourhoods(posterior.inputs, ranges) if blocks is None else blocks
        inverse = np.linalg.inv(posterior.factor)
        wider = widening(inverse.T @ inverse, posterior.outputs[:, 0], blocks)
        radius = _LEAST_WIDTH * (1.0 + _FEW / posterior.count) * wider
        if held_out(posterior)[0] <= radius or jitter >= _COARSEST:
            return posterior, radius
        jitter *= _STEP
