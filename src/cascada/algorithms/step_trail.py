"""A trajectory of a process under construction: controls, outputs that exist, and outputs that are imagined."""

from collections.abc import Sequence

import numpy as np

from cascada.algorithms.stock import Item
from cascada.arrays import Array
from cascada.network import Beliefs
from cascada.network.mean import with_mean_of


class Trail:
    """Values (V,) of all controls, and of the outputs so far; and for every stage the run that its output is of."""

    def __init__(self, beliefs: Beliefs, x: Array, values: Array | None = None) -> None:
        self._beliefs, self._network = beliefs, beliefs.network
        self._x = x
        self.now = np.full(self._network.width, np.nan) if values is None else values.copy()
        self.now[: len(x)] = x
        self._runs: dict[int, Array | None] = {}

    def take(self, item: Item) -> None:
        """Go on with the output of an item."""
        columns = list(self._network.nodes[item.node].columns)
        self.now[columns] = item.row[columns]
        self._runs[item.node] = item.row if item.closed else None

    def imagine(self, node: int, run: Array | None, outputs: Array | None = None) -> None:
        """Go on with the mean of a stage, or with these outputs of an item; `run`: see `run_of`."""
        columns = list(self._network.nodes[node].columns)
        self.now[columns] = with_mean_of(self._beliefs, node, self.now)[columns] if outputs is None else outputs
        if run is not None:
            run = run.copy()
            run[columns] = self.now[columns]
        self._runs[node] = run

    def reach(self, node: int) -> bool:
        """Evaluate the formulas that a stage is fed by; whether all its inputs are known then."""
        for i in self._formulas([node]):
            columns = list(self._network.nodes[i].columns)
            self.now[columns] = with_mean_of(self._beliefs, i, self.now)[columns]
        return bool(np.isfinite(self.now[list(self._network.nodes[node].inputs)]).all())

    def run_of(self, nodes: Sequence[int]) -> Array | None:
        """The one run (V,) that some stages are run in, up to their inputs; None if what they are run on is of several.

        A control that a stage shares with what it is run on must have the same value there.
        """
        d = len(self._x)
        own = {c for i in (*nodes, *self._formulas(nodes)) for c in self._network.nodes[i].inputs if c < d}
        run = np.full(self._network.width, np.nan)
        run[list(own)] = self._x[list(own)]
        for feeder in sorted({s for i in nodes for s in self._network.feeders[i]} - set(nodes)):
            part = self._runs.get(feeder)
            if part is None:
                return None
            both = np.isfinite(run) & np.isfinite(part)
            if not np.array_equal(run[both], part[both]):
                return None
            run = np.where(np.isfinite(run), run, part)
        for i in self._formulas(nodes):
            columns = list(self._network.nodes[i].columns)
            run[columns] = self.now[columns]
        return run

    def run_to(self, node: int) -> Array | None:
        """The one run (V,) up to the outputs of a stage; None if there is none."""
        return self._runs.get(node)

    def _formulas(self, nodes: Sequence[int]) -> list[int]:
        """The formulas that feed some stages, directly or through others, parents first."""
        position = {node.stage.name: i for i, node in enumerate(self._network.nodes)}
        found, ahead = set[int](), list(nodes)
        while ahead:
            parents = {position[name] for name in self._network.nodes[ahead.pop()].parents}
            new = {i for i in parents if self._network.nodes[i].stage.known} - found
            found |= new
            ahead += new
        return sorted(found)
