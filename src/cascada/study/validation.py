"""Validation of reported controls and outputs: their form, formulas, and copies."""

from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cascada.arrays import Array
from cascada.calibration import Calibration, calibrate
from cascada.confidence import Boxes
from cascada.errors import ArgumentError, ContradictionError
from cascada.gp.rounding import SMALLEST_JITTER
from cascada.network import Beliefs, Network, Node, Outputs, prior_beliefs, run_values
from cascada.network.formula import known_values
from cascada.network.limits import excluded, proven
from cascada.network.outputs import UnusableResult, as_outputs_of
from cascada.network.reading_evidence import boxes_of_readings
from cascada.network.slack import output_slack
from cascada.outwards import all_as_given
from cascada.space import ControlValue
from cascada.store.trial import Trial
from cascada.study.measurement import Measurement, measured
from cascada.study.repeats import Repeats
from cascada.study.step_trial import alone


class Rules(Repeats):
    """What the controls and outputs of a network's trials have to satisfy, by themselves and with other trials."""

    def __init__(self, network: Network) -> None:
        super().__init__(network)
        self._formulas = _prior(network)

    @property
    def network(self) -> Network:
        """The network whose trials are validated."""
        return self._network

    # ---- controls

    def controls(self, values: Any) -> dict[str, ControlValue]:
        """Named controls within the domain; `ArgumentError` for anything else."""
        if not isinstance(values, Mapping):
            raise ArgumentError(f"give the controls as a dict, {{'name': value}}; got {values!r:.100}.")
        if self._are_plain(values):
            ranges = self._network.domain.controls
            return {name: c.shown(c.coded(values[name], name)) for name, c in ranges.items()}
        try:
            return self._network.domain.named(self._network.domain.row(values))
        except OverflowError as error:
            raise ArgumentError(f"controls must be numbers: {error}.") from None

    def _are_plain(self, values: Mapping[str, Any]) -> bool:
        """Whether controls are valid floats and ints, as in a log: `Domain.row`, which takes arrays, is slower."""
        ranges = self._network.domain.controls
        if values.keys() != ranges.keys() or any(type(value) not in (int, float) for value in values.values()):
            return False  # choices have their own validation
        return all(c.low <= values[k] <= c.high and (not c.discrete or c.allows(values[k])) for k, c in ranges.items())

    def changed_controls(self, trial: Trial, values: Any) -> dict[str, ControlValue]:
        """All controls of a trial with some of them changed."""
        if not isinstance(values, Mapping):
            raise ArgumentError(f"give the controls as a dict, {{'name': value}}; got {values!r:.100}.")
        return self.controls({**trial.controls, **values})

    def point_keys(self, trial: Trial) -> Iterator[bytes]:
        """The keys of a trial's point, as `algorithms.point_key`: exp(ln x) may be the float next to x, so both."""
        domain = self._network.domain
        row = self.coded(trial)
        yield array("d", [value + 0.0 for value in row]).tobytes()
        if domain.logarithmic:
            yield (domain.decode(domain.encode(np.array([row]))) + 0.0).tobytes()

    # ---- outputs

    def with_outputs(self, before: Trial, outputs: Any, *, following: Collection[str] = ()) -> Trial:
        """The trial with these outputs too, and those of formulas that follow; complete once the objective is known.

        Raises `ArgumentError` for invalid outputs, and `ContradictionError` if they differ from earlier ones. In stages
        of the names `following`, copies take the values of their originals instead.
        """
        if not isinstance(outputs, Mapping):
            raise ArgumentError(f"tell the outputs as a dict of stages, {{'stage': outputs}}; got {outputs!r}.")
        if not before.closed:
            return alone(self, before, outputs)
        known = dict(before.outputs)
        for name, result in outputs.items():
            node = self._network.node(name)
            values = self.outputs(before.number, name, result)
            if node.stage.known and name in self._derived(before.controls, known):  # its last digits may differ
                self._settled(before, {**known, name: values}, following)
                continue
            if self._differs_in_copies(node, known.get(name, values), values):
                self._settled(before, {**known, name: values}, following)
                continue
            if known.get(name, values) != values:
                raise ContradictionError(
                    f"trial {before.number}: stage {name!r} was told as {all_as_given(known[name])} before and now as "
                    f"{all_as_given(values)}. If the first is wrong, correct it: study.correct, `cascada correct`.",
                    trials=(before.number,),
                )
            known[name] = values
        known = self._settled(before, known, following)
        value, feasible = self._network.objective_of(known), self.feasible(before.controls, known)
        if value is None or not self._network.completes(known):
            return replace(before, outputs=known, feasible=feasible)
        return replace(before, outputs=known, value=value, state="complete", reason=None, feasible=feasible)

    def feasible(self, controls: Mapping[str, ControlValue], outputs: Mapping[str, tuple[float, ...]]) -> bool | None:
        """Whether the outputs of a trial satisfy all limits; None without limits, or if it is not known.

        Readings with errors satisfy a limit if all values that they leave possible do, and break it if none does.
        """
        network = self._network
        if not network.read_with_errors or not network.limits:
            return network.is_feasible(outputs)
        boxes = self.boxes(controls, outputs)
        if any(excluded(limit, boxes.lower, boxes.upper)[0] for limit in network.limits):
            return False
        return True if proven(network.limits, boxes.lower, boxes.upper)[0] else None

    def boxes(self, controls: Mapping[str, ControlValue], outputs: Mapping[str, tuple[float, ...]]) -> Boxes:
        """One box (1, V) of the true values of a trial, from its readings alone; infinite where these say nothing."""
        row = run_values(self._network, self._network.domain.row(controls)[None], [outputs])
        return boxes_of_readings(self._formulas, row)

    def corrected(self, trial: Trial, data: Mapping[str, Any]) -> Trial:
        """The trial with corrected outputs of `data["stage"]`, or with corrected `data["controls"]`.

        Outputs of other stages that are copies of a corrected value follow it.
        """
        if "controls" in data:
            controls = self.changed_controls(trial, data["controls"])
            if controls == trial.controls:
                raise ArgumentError(f"trial {trial.number} has these controls already: there is nothing to correct.")
            return self._again(trial, controls, self._measured(trial), self._names)
        name = self._reported(trial, data["stage"], "correct")
        values = self.outputs(trial.number, name, data["outputs"])
        if values == trial.outputs[name]:
            raise ArgumentError(
                f"trial {trial.number}: stage {name!r} is {all_as_given(values)} already: there is nothing to correct."
            )
        return self.retold(trial, name, values)

    def retold(self, trial: Trial, stage: str, values: tuple[float, ...]) -> Trial:
        """The trial with other outputs of a stage, which it has already."""
        others = [other for other in self._names if other != stage]  # its own copies are validated
        return self._again(trial, trial.controls, {**self._measured(trial), stage: values}, others)

    def measurement(self, number: int, data: Mapping[str, Any]) -> Measurement:
        """A measurement of one stage by itself: a new one of this number, or one that replaces another."""
        return measured(self._network, number, data)

    def retracted(self, trial: Trial, stage: Any) -> Trial:
        """The trial without the outputs of a stage; one that was complete runs again, without a lease."""
        rest = self._measured(trial)
        del rest[self._reported(trial, stage, "retract")]
        return self._again(trial, trial.controls, rest, ())

    def revised(self, trial: Trial, values: Any) -> Trial:
        """A running trial with other controls of stages that were not run yet; `ArgumentError` for any other change."""
        if trial.state != "running":
            raise ArgumentError(f"trial {trial.number} is {trial.state}: only a running trial can be revised.")
        controls = self.changed_controls(trial, values)
        for name in self.begun(trial):
            for control in self._network.node(name).stage.controls:
                if controls[control] != trial.controls[control]:
                    raise ArgumentError(
                        f"trial {trial.number}: control {control!r} cannot be revised from {trial.controls[control]!r} "
                        f"to {controls[control]!r}, because stage {name!r} was run with it. If it was set to another "
                        f"value, correct it."
                    )
        if controls == trial.controls:
            raise ArgumentError(f"trial {trial.number} has these controls already: there is nothing to revise.")
        return self._again(trial, controls, self._measured(trial), ())

    def begun(self, trial: Trial) -> list[str]:
        """The stages that a trial has run: those with measured outputs, and all stages before them."""
        found = set(self._measured(trial))
        for node in reversed(self._network.nodes):  # children first
            if node.stage.name in found:
                found.update(node.parents)
        return [name for name in self._names if name in found]

    def _again(
        self, trial: Trial, controls: Mapping[str, ControlValue], outputs: Outputs, following: Collection[str]
    ) -> Trial:
        state = "running" if trial.state == "complete" else trial.state
        bare = replace(trial, controls=controls, outputs={}, value=None, state=state)
        return self.with_outputs(bare, outputs, following=following)

    @property
    def _names(self) -> list[str]:
        return [node.stage.name for node in self._network.nodes]

    def _derived(self, controls: Mapping[str, ControlValue], outputs: Mapping[str, tuple[float, ...]]) -> list[str]:
        """The formulas whose inputs are known."""
        values = run_values(self._network, self._network.domain.row(controls)[None], [outputs])[0]
        formulas = [node for node in self._network.nodes if node.stage.known]
        return [node.stage.name for node in formulas if np.isfinite(values[list(node.inputs)]).all()]

    def _measured(self, trial: Trial) -> Outputs:
        """The outputs of a trial without those that formulas derive from others."""
        derived = self._derived(trial.controls, trial.outputs)
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

    def _settled(self, trial: Trial, outputs: Outputs, following: Collection[str]) -> Outputs:
        """The outputs with the formulas' own values wherever their inputs are known, and exact copies of passed inputs.

        Raises `ContradictionError` if another value was reported, by more than the rounding of a formula; in stages of
        the names `following`, copies take the values of their originals.
        """
        network, found = self._network, dict(outputs)
        boxes = self.boxes(trial.controls, found) if network.read_with_errors else None
        controls = np.array([self.coded(trial)])
        known = {("", name): float(value) for name, value in trial.controls.items() if not isinstance(value, str)}
        slacks: dict[tuple[str, str], float] = {}  # of formulas' outputs and of copies of them
        for node in network.nodes:  # parents first, so that formulas and copies of each other are settled in one pass
            name, stage = node.stage.name, node.stage
            if stage.known:
                inputs = run_values(network, controls, [found])[:, list(node.inputs)]
                if np.isfinite(inputs).all():
                    off = np.zeros(len(node.columns)) if boxes is None else _width(boxes, node.columns)
                    found[name], slack = self._formula_values(trial, node, inputs, found.get(name), off)
                    slacks |= {(name, output): float(s) for output, s in zip(stage.outputs, slack, strict=True)}
            elif name in found:
                if boxes is not None:  # a told copy is another reading of the same value
                    slacks |= self._copy_errors(node, boxes)
                found[name] = self._with_copies(trial, node, found[name], known, slacks, name in following)
            known |= {(name, o): value for o, value in zip(stage.outputs, found.get(name, ()), strict=False)}
        return found

    def _differs_in_copies(self, node: Node, before: tuple[float, ...], now: tuple[float, ...]) -> bool:
        """Whether outputs differ in nothing but copies of readings with errors, each of which is another reading."""
        if before == now or not self._network.read_with_errors:
            return False
        return all(before[j] == now[j] for j in node.stage.modelled_positions)

    def _copy_errors(self, node: Node, boxes: Boxes) -> dict[tuple[str, str], float]:
        """How far another reading of each input that a stage passes on may be from the first, by its place."""
        found = {}
        for output in node.stage.passes:
            column = node.inputs[node.input_names.index(output)]
            if column >= self._network.domain.dimension:
                found[self._original(node, output)] = float(_width(boxes, (column,))[0])
        return found

    def _formula_values(
        self, trial: Trial, node: Node, inputs: Array, reported: tuple[float, ...] | None, off: Array
    ) -> tuple[tuple[float, ...], Array]:
        """A formula's own outputs at known inputs (1, d), and their rounding slack.

        `off` (p,) is how far outputs may be from these because the inputs are readings with errors.
        """
        belief = next(stage for stage in self._formulas.stages if stage.node.stage.name == node.stage.name)
        right = known_values(belief, inputs)[0]
        told = right if reported is None else np.array(reported)
        slack = off + output_slack(belief, Boxes(inputs, inputs), np.maximum(np.abs(right), np.abs(told)))
        if node.stage.name not in self._scattering and np.any(np.abs(right - told) > slack):
            raise ContradictionError(
                f"trial {trial.number}: the known stage {node.stage.name!r} was told as "
                f"{all_as_given(told.tolist())}, but its formula gives {all_as_given(right.tolist())}. Leave it out: "
                f"it follows from its inputs.",
                trials=(trial.number,),
            )
        return tuple(right.tolist()), slack

    def _with_copies(
        self,
        trial: Trial,
        node: Node,
        outputs: tuple[float, ...],
        known: Mapping[tuple[str, str], float],
        slacks: dict[tuple[str, str], float],
        follows: bool,
    ) -> tuple[float, ...]:
        """The outputs of a stage with the values of the inputs that it passes on."""
        named = dict(zip(node.stage.outputs, outputs, strict=True))
        for output in node.stage.passes:
            place = self._original(node, output)
            original, slack = known.get(place, named[output]), slacks.get(place, 0.0)
            if not follows and place[0] not in self._scattering and abs(original - named[output]) > slack:
                raise ContradictionError(
                    f"trial {trial.number}: stage {node.stage.name!r} passes on {output!r}, which is "
                    f"{original:.17g}, but was told as {named[output]:.17g}.",
                    trials=(trial.number,),
                )
            named[output], slacks[node.stage.name, output] = original, slack
        return tuple(named.values())

    def _original(self, node: Node, output: str) -> tuple[str, str]:
        """The stage, "" for a control, and the name of the input that an output is a copy of."""
        owners = [p for p in node.parents if output in self._network.node(p).stage.outputs] or [""]
        return owners[0], output


def stage_name(stage: Any) -> str:
    """The name of a stage; `ArgumentError` if it is not a text."""
    if not isinstance(stage, str):
        raise ArgumentError(f"name the stage by its name; got {stage!r:.300}.")
    return stage


def _width(boxes: Boxes, columns: Sequence[int]) -> Array:
    """The widths of one box in some columns, (p,)."""
    return np.asarray((boxes.upper - boxes.lower)[0, list(columns)])


def _prior(network: Network) -> Beliefs:
    """Beliefs without data, which are all that formulas need."""
    if not network.estimated:
        return prior_beliefs(network, SMALLEST_JITTER)
    return calibrate(network, np.empty((0, network.width)), Calibration(), SMALLEST_JITTER).judging
