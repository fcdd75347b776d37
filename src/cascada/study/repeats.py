"""Observations of the same inputs with different outputs: no deterministic process gives both."""

from collections.abc import Iterator

import numpy as np

from cascada.errors import ContradictionError
from cascada.network import Network, run_values
from cascada.network.network import Node
from cascada.study.trial import Trial


class Repeats:
    """The observations of a study by stage and inputs, the inputs in user units.

    Coordinates would not do: two settings of a logarithmic control can share one floating-point logarithm, and their
    outputs may differ.
    """

    def __init__(self, network: Network) -> None:
        self._network = network
        self._seen: dict[tuple[str, bytes], tuple[int, tuple[float, ...]]] = {}  # the trial, and the outputs

    def check(self, trial: Trial) -> None:
        """Raise `ContradictionError` if another trial observed other outputs at the same inputs of a stage."""
        for node, key, outputs in self._observations(trial):
            other, before = self._seen.get(key, (trial.number, outputs))
            if before != outputs and other != trial.number:
                raise ContradictionError(
                    f"trial {trial.number}: stage {node.stage.name!r} was told as {outputs}, but as {before} for "
                    f"the same inputs in trial {other}. Runs have to be free of noise."
                )

    def add(self, trial: Trial) -> None:
        """Remember what was observed of a trial."""
        for _, key, outputs in self._observations(trial):
            self._seen.setdefault(key, (trial.number, outputs))

    def _observations(self, trial: Trial) -> Iterator[tuple[Node, tuple[str, bytes], tuple[float, ...]]]:
        """The modelled stages whose inputs and outputs are known, with a key that stands for their inputs."""
        if not trial.outputs:
            return
        controls = self._network.domain.row(trial.controls)
        row = run_values(self._network, controls[None], [trial.outputs])[0]
        row[: len(controls)] = controls
        for node in self._network.nodes:
            name = node.stage.name
            inputs = row[list(node.inputs)] + 0.0  # which turns −0.0 into 0.0
            if not node.stage.known and name in trial.outputs and np.isfinite(inputs).all():  # formulas: see `observed`
                yield node, (name, inputs.tobytes()), trial.outputs[name]
