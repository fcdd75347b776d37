"""Validation of reported controls and outputs: their form, formulas, copies, and contradictions between runs."""

import math
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
from cascada.network.noise import can_estimate_noise, scattering
from cascada.network.outputs import UnusableResult, as_outputs_of
from cascada.network.slack import output_slack
from cascada.store.trial import Trial
from cascada.study.refutation import Refutation

_Key = tuple[str, bytes]  # a stage and its inputs in user units
_Observation = tuple[str, _Key, tuple[float, ...]]  # a stage, a key that stands for its inputs, and its outputs


class Rules:
    """What the controls and outputs of a network's trials have to satisfy.

    It also keeps an index of observations by stage and inputs. Entries of the index are hints: each is verified
    against the trials of the state that is validated, so that states which were dropped do no harm.
    """

    def __init__(self, network: Network) -> None:
        self._network = network
        self._formulas = _prior(network)
        self._scattering = scattering(network)  # stages that may give other outputs for the same inputs
        self._tolerant = can_estimate_noise(network)  # whether all others may turn out to
        self._seen: dict[_Key, dict[tuple[float, ...], list[int]]] = {}  # outputs → trials that observed them
        self._last: tuple[Trial | None, list[_Observation]] = None, []  # a trial, and what was observed of it

    # ---- controls

    def controls(self, values: Any) -> dict[str, float | int]:
        """Named controls within the domain; `ArgumentError` for anything else."""
        if not isinstance(values, Mapping):
            raise ArgumentError(f"give the controls as a dict, {{'name': value}}; got {values!r:.100}.")
        if self._are_plain(values):
            ranges = self._network.domain.controls
            return {name: int(values[name]) if c.integer else float(values[name]) for name, c in ranges.items()}
        try:
            return self._network.domain.named(self._network.domain.row(values))
        except OverflowError as error:
            raise ArgumentError(f"controls must be numbers: {error}.") from None

    def _are_plain(self, values: Mapping[str, Any]) -> bool:
        """Whether controls are valid floats and ints, as in a log: `Domain.row`, which takes arrays, is slower."""
        ranges = self._network.domain.controls
        if values.keys() != ranges.keys() or any(type(value) not in (int, float) for value in values.values()):
            return False
        return all(c.low <= values[k] <= c.high and (not c.discrete or c.allows(values[k])) for k, c in ranges.items())

    def changed_controls(self, trial: Trial, values: Any) -> dict[str, float | int]:
        """All controls of a trial with some of them changed."""
        if not isinstance(values, Mapping):
            raise ArgumentError(f"give the controls as a dict, {{'name': value}}; got {values!r:.100}.")
        return self.controls({**trial.controls, **values})

    def point_keys(self, trial: Trial) -> Iterator[bytes]:
        """The keys of a trial's point, as `algorithms.point_key`: exp(ln x) may be the float next to x, so both."""
        domain = self._network.domain
        row = self._controls_of(trial)
        yield array("d", [value + 0.0 for value in row]).tobytes()
        if domain.logarithmic:
            yield (domain.decode(domain.encode(np.array([row]))) + 0.0).tobytes()

    def _controls_of(self, trial: Trial) -> list[float]:
        """The controls of a trial in their order; they were validated when the trial began."""
        return [float(trial.controls[name]) for name in self._network.domain.names]

    # ---- outputs

    def with_outputs(self, before: Trial, outputs: Any, *, following: Collection[str] = ()) -> Trial:
        """The trial with these outputs too, and those of formulas that follow; complete once the objective is known.

        Raises `ArgumentError` for invalid outputs, and `ContradictionError` if they differ from earlier ones. In stages
        of the names `following`, copies take the values of their originals instead.
        """
        if not isinstance(outputs, Mapping):
            raise ArgumentError(f"tell the outputs as a dict of stages, {{'stage': outputs}}; got {outputs!r}.")
        known = dict(before.outputs)
        for name, result in outputs.items():
            node = self._network.node(name)
            values = self.outputs(before.number, name, result)
            if node.stage.known and name in self._derived(before.controls, known):  # its last digits may differ
                self._settled(before, {**known, name: values}, following)
                continue
            if known.get(name, values) != values:
                raise ContradictionError(
                    f"trial {before.number}: stage {name!r} was told as {known[name]} before and now as {values}. If "
                    f"the first is wrong, correct it: study.correct, `cascada correct`.",
                    trials=(before.number,),
                )
            known[name] = values
        known = self._settled(before, known, following)
        value, feasible = self._network.objective_of(known), self._network.is_feasible(known)
        if value is None or not self._network.completes(known):
            return replace(before, outputs=known, feasible=feasible)
        return replace(before, outputs=known, value=value, state="complete", reason=None, feasible=feasible)

    def corrected(self, trial: Trial, data: Mapping[str, Any]) -> Trial:
        """The trial with corrected outputs of `data["stage"]`, or with corrected `data["controls"]`.

        Outputs of other stages that are copies of a corrected value follow it.
        """
        measured = self._measured(trial)
        if "controls" in data:
            controls = self.changed_controls(trial, data["controls"])
            if controls == trial.controls:
                raise ArgumentError(f"trial {trial.number} has these controls already: there is nothing to correct.")
            return self._again(trial, controls, measured, self._names)
        name = self._reported(trial, data["stage"], "correct")
        values = self.outputs(trial.number, name, data["outputs"])
        if values == trial.outputs[name]:
            raise ArgumentError(
                f"trial {trial.number}: stage {name!r} is {values} already: there is nothing to correct."
            )
        others = [other for other in self._names if other != name]  # its own copies are validated
        return self._again(trial, trial.controls, {**measured, name: values}, others)

    def retracted(self, trial: Trial, stage: Any) -> Trial:
        """The trial without the outputs of a stage; one that was complete runs again, without a lease."""
        measured = self._measured(trial)
        del measured[self._reported(trial, stage, "retract")]
        return self._again(trial, trial.controls, measured, ())

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
        self, trial: Trial, controls: Mapping[str, float | int], outputs: Outputs, following: Collection[str]
    ) -> Trial:
        state = "running" if trial.state == "complete" else trial.state
        bare = replace(trial, controls=controls, outputs={}, value=None, state=state)
        return self.with_outputs(bare, outputs, following=following)

    @property
    def _names(self) -> list[str]:
        return [node.stage.name for node in self._network.nodes]

    def _derived(self, controls: Mapping[str, float | int], outputs: Mapping[str, tuple[float, ...]]) -> list[str]:
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
        controls = np.array([self._controls_of(trial)])
        known = {("", name): float(value) for name, value in trial.controls.items()}
        slacks: dict[tuple[str, str], float] = {}  # of formulas' outputs and of copies of them
        for node in network.nodes:  # parents first, so that formulas and copies of each other are settled in one pass
            name, stage = node.stage.name, node.stage
            if stage.known:
                inputs = run_values(network, controls, [found])[:, list(node.inputs)]
                if np.isfinite(inputs).all():
                    found[name], slack = self._formula_values(trial, node, inputs, found.get(name))
                    slacks |= {(name, output): float(s) for output, s in zip(stage.outputs, slack, strict=True)}
            elif name in found:
                found[name] = self._with_copies(trial, node, found[name], known, slacks, name in following)
            known |= {(name, o): value for o, value in zip(stage.outputs, found.get(name, ()), strict=False)}
        return found

    def _formula_values(
        self, trial: Trial, node: Node, inputs: Array, reported: tuple[float, ...] | None
    ) -> tuple[tuple[float, ...], Array]:
        """A formula's own outputs at known inputs (1, d), and their rounding slack."""
        belief = next(stage for stage in self._formulas.stages if stage.node.stage.name == node.stage.name)
        right = known_values(belief, inputs)[0]
        told = right if reported is None else np.array(reported)
        slack = output_slack(belief, Boxes(inputs, inputs), np.maximum(np.abs(right), np.abs(told)))
        if node.stage.name not in self._scattering and np.any(np.abs(right - told) > slack):
            raise ContradictionError(
                f"trial {trial.number}: the known stage {node.stage.name!r} was told as {tuple(told.tolist())}, but "
                f"its formula gives {tuple(right.tolist())}. Leave it out: it follows from its inputs.",
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

    # ---- the same inputs with different outputs

    def check_repeats(self, trial: Trial, trials: Sequence[Trial]) -> None:
        """Raise `ContradictionError` if another trial observed other outputs at the same inputs of a stage.

        Unless the noise of the stages is estimated, or can be: see `repeat`.
        """
        found = None if self._tolerant else self.repeat(trial, trials)
        if found is not None:
            name, number, outputs, before = found
            raise ContradictionError(
                f"trial {trial.number}: stage {name!r} was told as {outputs}, but as {before} for the same inputs in "
                f"trial {number}. Runs have to be free of noise.",
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
        row = self._controls_of(trial) + [math.nan] * (self._network.width - len(trial.controls))
        for node in self._network.nodes:
            for column, value in zip(node.columns, trial.outputs.get(node.stage.name, ()), strict=False):
                row[column] = value
        for node in self._network.nodes:
            name = node.stage.name
            inputs = [row[column] + 0.0 for column in node.inputs]  # which turns −0.0 into 0.0
            if not node.stage.known and name in trial.outputs and all(map(math.isfinite, inputs)):  # formulas: above
                yield name, (name, array("d", inputs).tobytes()), trial.outputs[name]


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
