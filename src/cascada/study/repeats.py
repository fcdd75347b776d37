"""Repeats: observations of the same inputs of a stage in several trials, and contradictions between them."""

import math
from array import array
from collections.abc import Iterator, Sequence

from cascada.errors import ContradictionError
from cascada.network import Network
from cascada.network.noise import can_estimate_noise, scattering
from cascada.outwards import all_as_given
from cascada.store.trial import Trial
from cascada.study.refutation import Refutation

_Key = tuple[str, bytes]  # a stage and its inputs in user units
_Observation = tuple[str, _Key, tuple[float, ...]]  # a stage, a key that stands for its inputs, and its outputs


class Repeats:
    """An index of observations by stage and inputs.

    Its entries are hints: each is verified against the trials of the state that is validated, so that states which were
    dropped do no harm.
    """

    def __init__(self, network: Network) -> None:
        self._network = network
        self._scattering = scattering(network)  # stages that may give other outputs for the same inputs
        self._tolerant = can_estimate_noise(network)  # whether all others may turn out to
        self._seen: dict[_Key, dict[tuple[float, ...], list[int]]] = {}  # outputs → trials that observed them
        self._last: tuple[Trial | None, list[_Observation]] = None, []  # a trial, and what was observed of it

    def check_repeats(self, trial: Trial, trials: Sequence[Trial]) -> None:
        """Raise `ContradictionError` if another trial observed other outputs at the same inputs of a stage.

        Unless the noise of the stages is estimated, or can be: see `repeat`. Where readings have errors, a model finds
        out whether two of them are too different.
        """
        found = None if self._tolerant or self._network.read_with_errors else self.repeat(trial, trials)
        if found is not None:
            name, number, outputs, before = found
            raise ContradictionError(
                f"trial {trial.number}: stage {name!r} was told as {all_as_given(outputs)}, but as "
                f"{all_as_given(before)} for the same inputs in trial {number}. Runs have to be free of noise. If "
                f"readings are not exact, say how far they may be off with error= at the stage.",
                trials=(trial.number, number),
            )

    def scatter(self, trial: Trial, trials: Sequence[Trial]) -> Refutation | None:
        """That readings scatter, if another trial shows it and the noise can be estimated; else None."""
        found = self.repeat(trial, trials) if self._tolerant else None
        if found is None:
            return None
        name, number, outputs, before = found
        names = self._network.node(name).stage.outputs
        values = [f"{o} = {a!r} and {b!r}" for o, a, b in zip(names, outputs, before, strict=True) if a != b]
        return Refutation(
            f"Stage {name!r} gave {', '.join(values)} for the same inputs in trial {trial.number} and trial {number}: "
            f"runs are not exact. The noise of every stage is estimated from now on. Say so from the beginning with "
            f"error='estimate' at the stages, or make the process deterministic (fix its seed, tighten its solver's "
            f"tolerance).",
            trials=(trial.number, number),
        )

    def repeat(
        self, trial: Trial, trials: Sequence[Trial]
    ) -> tuple[str, int, tuple[float, ...], tuple[float, ...]] | None:
        """A stage that gave other outputs for the same inputs in another trial: its name, the number of that trial, and
        both outputs. None if there is none, or only stages whose noise is estimated anyway."""
        for name, key, outputs in self._observations(trial):
            if name in self._scattering:
                continue
            for before, numbers in self._seen.get(key, {}).items():
                if before == outputs:
                    continue
                for number in numbers:
                    if number != trial.number and number < len(trials) and self._has(trials[number], key, before):
                        return name, number, outputs, before
        return None

    def remember(self, trial: Trial) -> None:
        """Add the observations of a trial to the index."""
        for _, key, outputs in self._observations(trial):
            numbers = self._seen.setdefault(key, {}).setdefault(outputs, [])
            if trial.number not in numbers[-1:]:
                numbers.append(trial.number)

    def _has(self, trial: Trial, key: _Key, outputs: tuple[float, ...]) -> bool:
        return any(found == key and seen == outputs for _, found, seen in self._observations(trial))

    def _observations(self, trial: Trial) -> list[_Observation]:
        """The modelled stages whose inputs and outputs are known, with a key that stands for their inputs.

        The key is in user units: two settings of a logarithmic control can share one floating-point logarithm, and
        their outputs may differ.
        """
        last = self._last  # read once: a study and its branch share these rules, and may be used by two threads
        if last[0] is not trial:  # which is checked first, and remembered then
            self._last = last = trial, list(self._observed(trial))
        return last[1]

    def _observed(self, trial: Trial) -> Iterator[_Observation]:
        if not trial.outputs:
            return
        row = self.coded(trial) + [math.nan] * (self._network.width - len(trial.controls))
        for node in self._network.nodes:
            for column, value in zip(node.columns, trial.outputs.get(node.stage.name, ()), strict=False):
                row[column] = value
        for node in self._network.nodes:
            name = node.stage.name
            inputs = [row[column] + 0.0 for column in node.inputs]  # which turns −0.0 into 0.0
            if not node.stage.known and name in trial.outputs and all(map(math.isfinite, inputs)):  # formulas: above
                yield name, (name, array("d", inputs).tobytes()), trial.outputs[name]

    def coded(self, trial: Trial) -> list[float]:
        """The controls of a trial in their order, as numbers; they were validated when the trial began."""
        return self._network.domain.coded(trial.controls)
