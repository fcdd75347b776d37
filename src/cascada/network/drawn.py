"""Networks whose stages are drawn functions: values of all columns, with gradients, at points of the controls.

Every stage has S drawn functions, and the s-th of every stage together are the s-th drawn process. Formulas of known
stages are evaluated, copied outputs are copied, and an output with a range is cut at its ends.
"""

from collections.abc import Callable, Mapping

import numpy as np

from cascada.arrays import Array, IntArray
from cascada.gp.paths import Paths
from cascada.network.beliefs import StageBelief, logarithmic_inputs
from cascada.network.formula import likely_values
from cascada.network.mean import passed_on
from cascada.network.network import Network
from cascada.network.node import Node

# The step of difference quotients of formulas, relative to an input of at least 1.
_STEP = 1e-6


class DrawnNetwork:
    """S processes; `paths` are the drawn functions of every modelled output, by stage and output."""

    def __init__(self, network: Network, paths: Mapping[tuple[str, str], Paths]) -> None:
        self.network, self._paths = network, paths

    def __call__(self, points: Array, path: IntArray, slopes: bool = False) -> tuple[Array, Array | None]:
        """Values (n, V) of the processes with the numbers `path` (n,) at points (n, d); gradients (n, V, d).

        NaN where a formula is not defined.
        """
        network, (n, d) = self.network, points.shape
        values = np.empty((n, network.width))
        values[:, :d] = points
        gradients = np.zeros((n, network.width, d)) if slopes else None
        if gradients is not None:
            gradients[:, np.arange(d), np.arange(d)] = 1.0
        for node in network.nodes:
            inputs = values[:, list(node.inputs)]
            entering = None if gradients is None else gradients[:, list(node.inputs)]
            if node.stage.known:
                found, slope = _formula(node, inputs, slopes)
            else:
                found, slope = self._drawn(node, inputs, path, slopes)
            if slope is not None and entering is not None and gradients is not None:
                gradients[:, list(node.columns)] = slope @ entering
            if node.ranges is not None:
                low, high = node.ranges
                if gradients is not None:
                    gradients[:, list(node.columns)] *= ((found >= low) & (found <= high))[:, :, None]
                found = np.clip(found, low, high)
            values[:, list(node.columns)] = found
        return values, gradients

    def _drawn(self, node: Node, inputs: Array, path: IntArray, slopes: bool) -> tuple[Array, Array | None]:
        """Outputs (n, p) of a stage at its inputs (n, q), and their gradients (n, p, q)."""
        stage, copies = node.stage, passed_on(StageBelief(node, None), inputs)
        values = np.empty((len(inputs), len(stage.outputs)))
        gradients = np.zeros((*values.shape, inputs.shape[1])) if slopes else None
        for j, output in enumerate(stage.outputs):
            if output in stage.passes:
                values[:, j] = copies[output]
                if gradients is not None:
                    position = node.input_names.index(output)
                    of_logarithm = position in logarithmic_inputs(node)
                    gradients[:, j, position] = values[:, j] if of_logarithm else 1.0
                continue
            values[:, j], slope = self._paths[stage.name, output](inputs, path, slopes)
            if gradients is not None and slope is not None:
                gradients[:, j] = slope
        return values, gradients


def _formula(node: Node, inputs: Array, slopes: bool) -> tuple[Array, Array | None]:
    """Outputs (n, p) of a known stage, and difference quotients (n, p, q) as their gradients."""
    belief = StageBelief(node, None)
    values = likely_values(belief, inputs)
    if not slopes:
        return values, None
    return values, _quotients(lambda at: likely_values(belief, at), inputs)


def _quotients(function: Callable[[Array], Array], inputs: Array) -> Array:
    """Central difference quotients (n, p, q) of a function of inputs (n, q)."""
    columns = []
    for i in range(inputs.shape[1]):
        step = _STEP * np.maximum(1.0, np.abs(inputs[:, i]))
        ahead, behind = inputs.copy(), inputs.copy()
        ahead[:, i] += step
        behind[:, i] -= step
        columns.append((function(ahead) - function(behind)) / (2 * step)[:, None])
    return np.stack(columns, axis=2)
