"""Validation of reported controls and outputs: their form, formulas, copies, and contradictions between runs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cascada.arrays import Array
from cascada.calibration import Calibration, calibrate
from cascada.confidence import Boxes
from cascada.errors import ArgumentError, ContradictionError
from cascada.gp.rounding import SMALLEST_JITTER
from cascada.network import Beliefs, Network, Node, Outputs, prior_beliefs, run_values
from cascada.network.consistency import formula_outputs
from cascada.network.formula import known_values
from cascada.network.outputs import UnusableResult, as_outputs_of
from cascada.network.slack import output_slack
from cascada.store.trial import Trial

_Key = tuple[str, bytes]  # a stage and its inputs in user units


class Rules:
    """What the controls and outputs of a network's trials have to satisfy.

    It also keeps an index of observations by stage and inputs. Entries of the index are hints: each is verified
    against the trials of the state that is validated, so that states which were dropped do no harm.
    """

    def __init__(self, network: Network) -> None:
        self._network = network
        self._formulas = _prior(network)
        self._seen: dict[_Key, dict[tuple[float, ...], list[int]]] = {}  # outputs → trials that observed them

    # ---- controls

    def controls(self, values: Any) -> dict[str, float | int]:
        """Named controls within the domain; `ArgumentError` for anything else."""
        if not isinstance(values, Mapping):
            raise ArgumentError(f"give the controls as a dict, {{'name': value}}; got {values!r:.100}.")
        try:
            return self._network.domain.named(self._network.domain.row(values))
        except OverflowError as error:
            raise ArgumentError(f"controls must be numbers: {error}.") from None

    def changed_controls(self, trial: Trial, values: Any) -> dict[str, float | int]:
        """All controls of a trial with some of them changed."""
        if not isinstance(values, Mapping):
            raise ArgumentError(f"give the controls as a dict, {{'name': value}}; got {values!r:.100}.")
        return self.controls({**trial.controls, **values})

    def point_keys(self, trial: Trial) -> Iterator[bytes]:
        """The keys of a trial's point, as `algorithms.point_key`: exp(ln x) may be the float next to x, so both."""
        domain = self._network.domain
        row = domain.row(trial.controls)[None]
        for point in (row, domain.decode(domain.encode(row))):
            yield (point + 0.0).tobytes()

    # ---- outputs

    def with_outputs(self, before: Trial, outputs: Any) -> Trial:
        """The trial with these outputs too, and those of formulas that follow; complete once the objective is known.

        Raises `ArgumentError` for invalid outputs, and `ContradictionError` if they differ from earlier ones.
        """
        if not isinstance(outputs, Mapping):
            raise ArgumentError(f"tell the outputs as a dict of stages, {{'stage': outputs}}; got {outputs!r}.")
        known = dict(before.outputs)
        for name, result in outputs.items():
            node = self._network.node(name)
            values = self.outputs(before.number, name, result)
            if node.stage.known and name in known:  # worked out before; the last digits may differ
                self._formula_values(before, {**known, name: values})
                continue
            if known.get(name, values) != values:
                raise ContradictionError(
                    f"trial {before.number}: stage {name!r} was told as {known[name]} before and now as {values}."
                )
            known[name] = values
        self._check_copies(before, known)
        known |= self._formula_values(before, known)
        known |= formula_outputs(self._formulas, self._network.domain.row(before.controls), known)
        value = self._network.objective_of(known)
        if value is None:
            return replace(before, outputs=known)
        return replace(before, outputs=known, value=value, state="complete", reason=None)

    def corrected(self, trial: Trial, data: Mapping[str, Any]) -> Trial:
        """The trial with corrected outputs of `data["stage"]`, or with corrected `data["controls"]`.

        Outputs of other stages that are copies of a corrected value follow it.
        """
        measured = self._measured(trial)
        if "controls" in data:
            controls = self.changed_controls(trial, data["controls"])
            if controls == trial.controls:
                raise ArgumentError(f"trial {trial.number} has these controls already: there is nothing to correct.")
            return self._again(trial, controls, self._with_copies(controls, measured))
        name = self._reported(trial, data["stage"], "correct")
        values = self.outputs(trial.number, name, data["outputs"])
        if values == trial.outputs[name]:
            raise ArgumentError(
                f"trial {trial.number}: stage {name!r} is {values} already: there is nothing to correct."
            )
        after = self._with_copies(trial.controls, {**measured, name: values})
        return self._again(trial, trial.controls, {**after, name: values})  # its own copies are validated

    def retracted(self, trial: Trial, stage: Any) -> Trial:
        """The trial without the outputs of a stage; one that was complete runs again, without a lease."""
        measured = self._measured(trial)
        del measured[self._reported(trial, stage, "retract")]
        return self._again(trial, trial.controls, measured)

    def _again(self, trial: Trial, controls: Mapping[str, float | int], outputs: Outputs) -> Trial:
        state = "running" if trial.state == "complete" else trial.state
        return self.with_outputs(replace(trial, controls=controls, outputs={}, value=None, state=state), outputs)

    def _measured(self, trial: Trial) -> Outputs:
        """The outputs of a trial without those that formulas derive from others."""
        values = run_values(self._network, self._network.domain.row(trial.controls)[None], [trial.outputs])[0]
        derived = [
            node.stage.name
            for node in self._network.nodes
            if node.stage.known and np.isfinite(values[list(node.inputs)]).all()
        ]
        return {name: values for name, values in trial.outputs.items() if name not in derived}

    def _reported(self, trial: Trial, stage: Any, act: str) -> str:
        """The name of a stage whose outputs were reported and are not derived by a formula."""
        name = stage_name(stage)
        self._network.node(name)
        if name not in trial.outputs:
            known = ", ".join(trial.outputs) or "none"
            raise ArgumentError(
                f"trial {trial.number} has no outputs of stage {name!r} to {act}; its stages with outputs: {known}."
            )
        if name not in self._measured(trial):
            raise ArgumentError(
                f"trial {trial.number}: stage {name!r} is a formula and follows from its inputs; {act} these instead."
            )
        return name

    def outputs(self, number: int, stage: str, result: Any) -> tuple[float, ...]:
        """A result of a trial's stage as its outputs in order; `ArgumentError` if it is not one."""
        try:
            return as_outputs_of(self._network.node(stage), result)
        except UnusableResult as error:
            raise ArgumentError(f"trial {number}: stage {stage!r} {error}.") from None

    def _check_copies(self, trial: Trial, outputs: Mapping[str, tuple[float, ...]]) -> None:
        """Raise `ContradictionError` if an output that a stage passes on differs from the input that it copies."""
        known = {("", name): float(value) for name, value in trial.controls.items()}
        for node in self._network.nodes:
            for output, value in zip(node.stage.outputs, outputs.get(node.stage.name, ()), strict=False):
                known[node.stage.name, output] = value
        for node in self._network.nodes:
            for output in node.stage.passes:
                original, copy = known.get(self._original(node, output)), known.get((node.stage.name, output))
                if original is not None and copy is not None and original != copy:
                    raise ContradictionError(
                        f"trial {trial.number}: stage {node.stage.name!r} passes on {output!r}, which is "
                        f"{original:.17g}, but was told as {copy:.17g}."
                    )

    def _with_copies(self, controls: Mapping[str, float | int], outputs: Outputs) -> Outputs:
        """The outputs, with the present value of its original wherever a stage passes an input on."""
        known = {("", name): float(value) for name, value in controls.items()}
        found = dict(outputs)
        for node in self._network.nodes:  # parents first
            name, stage = node.stage.name, node.stage
            if name in found:
                named = dict(zip(stage.outputs, found[name], strict=True))
                named |= {o: known.get(self._original(node, o), named[o]) for o in stage.passes}
                known |= {(name, output): value for output, value in named.items()}
                found[name] = tuple(named.values())
        return found

    def _original(self, node: Node, output: str) -> tuple[str, str]:
        """The stage, "" for a control, and the name of the input that an output is a copy of."""
        owners = [p for p in node.parents if output in self._network.node(p).stage.outputs] or [""]
        return owners[0], output

    def _formula_values(self, trial: Trial, outputs: Mapping[str, tuple[float, ...]]) -> Outputs:
        """The formulas' own values of known stages that were reported and whose inputs are known: these are kept.

        Raises `ContradictionError` if something else was reported.
        """
        values = run_values(self._network, self._network.domain.row(trial.controls)[None], [outputs])
        found: Outputs = {}
        for stage in self._formulas.stages:
            name = stage.node.stage.name
            inputs = values[:, list(stage.node.inputs)]
            if not stage.node.stage.known or name not in outputs or not np.isfinite(inputs).all():
                continue
            right, reported = known_values(stage, inputs)[0], np.array(outputs[name])
            larger = np.maximum(np.abs(right), np.abs(reported))
            if np.any(np.abs(right - reported) > output_slack(stage, Boxes(inputs, inputs), larger)):
                raise ContradictionError(
                    f"trial {trial.number}: the known stage {name!r} was told as {tuple(reported.tolist())}, but its "
                    f"formula gives {tuple(right.tolist())}. Leave it out: it follows from its inputs."
                )
            found[name] = tuple(right.tolist())
        return found

    # ---- the same inputs with different outputs

    def check_repeats(self, trial: Trial, trials: Sequence[Trial]) -> None:
        """Raise `ContradictionError` if another trial observed other outputs at the same inputs of a stage."""
        for name, key, outputs in self._observations(trial):
            for before, numbers in self._seen.get(key, {}).items():
                if before == outputs:
                    continue
                for number in numbers:
                    if number != trial.number and number < len(trials) and self._has(trials[number], key, before):
                        raise ContradictionError(
                            f"trial {trial.number}: stage {name!r} was told as {outputs}, but as {before} for the "
                            f"same inputs in trial {number}. Runs have to be free of noise."
                        )

    def remember(self, trial: Trial) -> None:
        """Add the observations of a trial to the index."""
        for _, key, outputs in self._observations(trial):
            numbers = self._seen.setdefault(key, {}).setdefault(outputs, [])
            if trial.number not in numbers[-1:]:
                numbers.append(trial.number)

    def _has(self, trial: Trial, key: _Key, outputs: tuple[float, ...]) -> bool:
        return any(found == key and seen == outputs for _, found, seen in self._observations(trial))

    def _observations(self, trial: Trial) -> Iterator[tuple[str, _Key, tuple[float, ...]]]:
        """The modelled stages whose inputs and outputs are known, with a key that stands for their inputs.

        The key is in user units: two settings of a logarithmic control can share one floating-point logarithm, and
        their outputs may differ.
        """
        if not trial.outputs:
            return
        controls: Array = self._network.domain.row(trial.controls)
        row = run_values(self._network, controls[None], [trial.outputs])[0]
        row[: len(controls)] = controls
        for node in self._network.nodes:
            name = node.stage.name
            inputs = row[list(node.inputs)] + 0.0  # which turns −0.0 into 0.0
            if not node.stage.known and name in trial.outputs and np.isfinite(inputs).all():  # formulas: see above
                yield name, (name, inputs.tobytes()), trial.outputs[name]


def stage_name(stage: Any) -> str:
    """The name of a stage; `ArgumentError` if it is not a text."""
    if not isinstance(stage, str):
        raise ArgumentError(f"name the stage by its name; got {stage!r:.300}.")
    return stage


def _prior(network: Network) -> Beliefs:
    """Beliefs without data, which are all that formulas need."""
    if not network.estimated:
        return prior_beliefs(network, SMALLEST_JITTER)
    return calibrate(network, np.empty((0, network.width)), Calibration(), SMALLEST_JITTER).judging
