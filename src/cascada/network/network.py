"""Networks: stages wired into a directed acyclic graph, with one output to maximise or minimise."""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from cascada.choice import MOST_COMBINATIONS
from cascada.errors import ArgumentError
from cascada.kernels import OperatorKernel, Separable, Stationary
from cascada.near_names import did_you_mean
from cascada.network.drawing import Drawn
from cascada.network.limits import Limit
from cascada.network.node import Node, idle_choices
from cascada.network.objective import objective_among
from cascada.network.stage import Stage
from cascada.network.step_groups import Positions, feeders, step_groups
from cascada.network.wiring import parents_first, wires_of
from cascada.space import Choice, Control, Domain


@dataclass(frozen=True, eq=False, init=False)
class Network(Drawn):
    """A process made of stages, parents before children; see `Stage` and `chain`.

    >>> from cascada.kernels import SquaredExponential
    >>> from cascada.space import Real
    >>> k = SquaredExponential(1.0)
    >>> a = Stage("a", controls={"x": Real(0, 1)}, kernel=k, norm_bound=1.0)
    >>> b = Stage("b", parents=["a"], controls={"y": Real(0, 1)}, kernel=k, norm_bound=1.0)
    >>> Network([a, b]).domain.names
    ('x', 'y')
    """

    stages: tuple[Stage, ...]  #: in the order of the argument
    objective: tuple[str, str]  #: stage and output
    domain: Domain  #: the box of controls
    nodes: tuple[Node, ...]  #: parents first
    sign: int  #: 1: the objective is maximised, −1: minimised

    def __init__(self, stages: Sequence[Stage], objective: str | None = None) -> None:
        _check_stages(stages)
        ordered = tuple(stages)
        parents = {stage.name: tuple(stage.parents or ()) for stage in ordered}
        self._build(ordered, parents, objective)

    @classmethod
    def _wired(cls, stages: Sequence[Stage], objective: str | None) -> "Network":
        """The network in which every stage that names no parents follows the stage before it."""
        _check_stages(stages)
        parents: dict[str, tuple[str, ...]] = {}
        before: tuple[str, ...] = ()
        for stage in stages:
            parents[stage.name] = before if stage.parents is None else stage.parents
            before = (stage.name,)
        network = cls.__new__(cls)
        network._build(tuple(stages), parents, objective)
        return network

    def _build(self, stages: tuple[Stage, ...], parents: Mapping[str, tuple[str, ...]], objective: str | None) -> None:
        _check_stages(stages)
        by_name = {stage.name: stage for stage in stages}
        wires = {stage.name: wires_of(stage, parents[stage.name], by_name) for stage in stages}
        ordered = parents_first(stages, wires)
        domain = Domain(_controls(stages))
        columns = {("", name): j for j, name in enumerate(domain.names)}
        nodes = []
        for stage in ordered:
            wire = wires[stage.name]
            names = [output for _, output in wire] + list(stage.controls)
            inputs = [columns[w] for w in wire] + [columns["", c] for c in stage.controls]
            _check_inputs(stage, names)
            for output in stage.outputs:
                columns[stage.name, output] = len(columns)
            outputs = tuple(columns[stage.name, output] for output in stage.outputs)
            owners = tuple(dict.fromkeys(owner for owner, _ in wire))
            nodes.append(Node(stage, tuple(names), tuple(inputs), outputs, owners))
        object.__setattr__(self, "stages", stages)
        object.__setattr__(self, "objective", objective_among(ordered, wires, objective))
        object.__setattr__(self, "domain", Domain(domain.controls, idle_choices(nodes, self.objective)))
        object.__setattr__(self, "nodes", tuple(nodes))
        object.__setattr__(self, "sign", 1)
        if self.unbounded and not self.estimated:
            raise ArgumentError(
                f"stage {self.unbounded[0]!r}: a known stage needs lipschitz= or interval=, so that its values can be "
                f"bounded. Only where a kernel or norm_bound is left out it needs neither, and there is no gap then."
            )

    def assuming(self, stages: Mapping[str, Stage]) -> "Network":
        """The same network with some stages, by name, replaced by others of the same wiring (`Stage.assuming`)."""
        network = copy(self)
        nodes = [replace(node, stage=stages.get(node.stage.name, node.stage)) for node in self.nodes]
        object.__setattr__(network, "nodes", tuple(nodes))
        object.__setattr__(network, "stages", tuple(stages.get(stage.name, stage) for stage in self.stages))
        return network

    def mirrored(self) -> "Network":
        """The same process with its objective minimised instead of maximised, or the reverse."""
        network = copy(self)
        object.__setattr__(network, "sign", -self.sign)
        return network

    def within(self, controls: Mapping[str, Control]) -> "Network":
        """The same process over a smaller box, in which some controls, by name, have another range."""
        network = copy(self)
        ranges = {name: controls.get(name, control) for name, control in self.domain.controls.items()}
        object.__setattr__(network, "domain", Domain(ranges, self.domain.idle))
        return network

    def __repr__(self) -> str:
        stages = ", ".join(f"{node.stage.name}({', '.join(node.input_names)})" for node in self.nodes)
        return f"Network({stages}; {'max' if self.sign > 0 else 'min'} {'.'.join(self.objective)})"

    @property
    def controls(self) -> tuple[str, ...]:
        """The names of the controls, in the order of a candidate's columns."""
        return self.domain.names

    @property
    def context(self) -> tuple[str, ...]:
        """The names of the controls that are measured before a run, not chosen."""
        return tuple(name for name, control in self.domain.controls.items() if control.context)

    @property
    def uncertain(self) -> tuple[str, ...]:
        """The names of the controls whose values in use can deviate from their settings."""
        return tuple(name for name, control in self.domain.controls.items() if control.deviation)

    @property
    def estimated(self) -> bool:
        """Whether the kernel or the norm of some stage has to be estimated from data."""
        return any(stage.estimated for stage in self.stages)

    @cached_property
    def unbounded(self) -> tuple[str, ...]:
        """The stages that are formulas without bounds: with one there is no gap."""
        return tuple(stage.name for stage in self.stages if stage.unbounded)

    @property
    def read_with_errors(self) -> bool:
        """Whether readings of some stage may differ from its values."""
        return any(stage.read_with_errors for stage in self.stages)

    @property
    def scattered(self) -> bool:
        """Whether readings of some stage have sub-Gaussian errors: bounds then hold with a probability."""
        return any(stage.sub_gaussian is not None for stage in self.stages)

    @property
    def noisy(self) -> bool:
        """Whether the noise of some stage is estimated."""
        return any(stage.noisy for stage in self.stages)

    @property
    def stepwise(self) -> bool:
        """Whether some stage can be run by itself, on an output that was kept or at any inputs."""
        return any(stage.reachable != "run" for stage in self.stages)

    @property
    def priced(self) -> bool:
        """Whether costs matter: some stage has one of its own, or can be run by itself."""
        return self.stepwise or any(stage.cost != 1 for stage in self.stages if not stage.known)

    @cached_property
    def feeders(self) -> tuple[Positions, ...]:
        """For every node, the positions of the stages that it is run on: its parents, and those behind formulas."""
        return feeders(self.nodes)

    @cached_property
    def step_groups(self) -> tuple[Positions, ...]:
        """The positions of the stages that are run directly after one another, as one step, in groups."""
        return step_groups(self.nodes)

    @cached_property
    def width(self) -> int:
        """The number of columns: controls and all outputs."""
        return self.domain.dimension + sum(len(node.columns) for node in self.nodes)

    @cached_property
    def objective_column(self) -> int:
        """The column of the output that is maximised."""
        stage, output = self.objective
        node = self.node(stage)
        return node.columns[node.stage.outputs.index(output)]

    @cached_property
    def limits(self) -> tuple[Limit, ...]:
        """The limits that a result must satisfy, parents first."""
        return tuple(
            Limit(node.stage.name, output, column, *node.stage.limits[output])
            for node in self.nodes
            for output, column in zip(node.stage.outputs, node.columns, strict=True)
            if output in node.stage.limits
        )

    def completes(self, outputs: Mapping[str, Sequence[float]]) -> bool:
        """Whether a run with these outputs, by stage, is complete: objective and limited outputs were observed."""
        return all(stage in outputs for stage in (self.objective[0], *(limit.stage for limit in self.limits)))

    def broken_limits(self, outputs: Mapping[str, Sequence[float]]) -> tuple[tuple[Limit, float], ...]:
        """The limits that these outputs, by stage, break, each with the output; none if it was not observed.

        A reading with an error breaks a limit if all values do that it may be of.
        """
        found = []
        for limit in self.limits:
            if limit.stage in outputs:
                stage = self.node(limit.stage).stage
                value, error = outputs[limit.stage][stage.outputs.index(limit.output)], stage.error_of(limit.output)
                if not limit.low - error <= value <= limit.high + error:
                    found.append((limit, value))
        return tuple(found)

    def is_feasible(self, outputs: Mapping[str, Sequence[float]]) -> bool | None:
        """Whether these outputs, by stage, satisfy all limits; None without limits, or if it is not known yet."""
        if not self.limits:
            return None
        if self.broken_limits(outputs):
            return False
        return True if all(limit.stage in outputs for limit in self.limits) else None

    def objective_of(self, outputs: Mapping[str, Sequence[float]]) -> float | None:
        """The objective among the outputs of a run, by stage, as the process gives it; None if it was not observed."""
        stage, output = self.objective
        if stage not in outputs:
            return None
        return outputs[stage][self.node(stage).stage.outputs.index(output)]

    def node(self, name: str) -> Node:
        """The node of a stage; raises `ArgumentError` if there is no such stage."""
        for node in self.nodes:
            if node.stage.name == name:
                return node
        names = [node.stage.name for node in self.nodes]
        known = ", ".join(map(repr, names))
        raise ArgumentError(f"there is no stage {name!r}{did_you_mean(name, names)}; the stages are {known}.")


def chain(*stages: Stage, objective: str | None = None) -> Network:
    """The network in which each stage follows the one before it, unless it names its parents."""
    return Network._wired(stages, objective)


def feed_forward(*stages: Stage, objective: str | None = None) -> Network:
    """The paper's feed-forward network: wired like a chain, every output of a stage has its own norm."""
    _check_stages(stages)
    for stage in stages:
        if isinstance(stage.kernel, OperatorKernel):
            raise ArgumentError(
                f"stage {stage.name!r} of a feed-forward network needs a scalar kernel; got {stage.kernel!r}. "
                f"Use multi_output_chain for joint norms, or chain for both."
            )
    return Network._wired(stages, objective)


def multi_output_chain(*stages: Stage, objective: str | None = None) -> Network:
    """The paper's multi-output chain: wired like a chain, the outputs of a stage share one norm."""
    _check_stages(stages)
    for stage in stages:
        if isinstance(stage.kernel, Stationary) and len(stage.modelled) > 1:
            raise ArgumentError(
                f"stage {stage.name!r} of a multi-output chain needs a kernel with a joint norm, such as "
                f"Separable({stage.kernel!r}); a scalar kernel means independent outputs."
            )
    return Network._wired(stages, objective)


def _check_stages(stages: Sequence[Stage]) -> None:
    if not isinstance(stages, Sequence) or isinstance(stages, str):
        raise ArgumentError(f"a network needs a list of stages, Network([a, b]); got {stages!r:.100}.")
    if not stages:
        raise ArgumentError("a network needs at least one stage; got none.")
    for stage in stages:
        if not isinstance(stage, Stage):
            hint = " Give the stages one by one: chain(a, b)." if isinstance(stage, list | tuple) else ""
            raise ArgumentError(f"a network is made of Stage objects; got {stage!r:.100}.{hint}")
    names = [stage.name for stage in stages]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ArgumentError(f"stage names must differ; {', '.join(map(repr, twice))} is used twice.")


def _controls(stages: Sequence[Stage]) -> dict[str, Control]:
    """All controls by name; raises `ArgumentError` if two stages give a shared control different ranges."""
    controls: dict[str, Control] = {}
    for stage in stages:
        for name, control in stage.controls.items():
            if controls.setdefault(name, control) != control:
                raise ArgumentError(
                    f"control {name!r} is {controls[name]} in one stage and {control} in {stage.name!r}; a shared "
                    f"control is one coordinate with one range. Give them different names if they are two."
                )
    combinations = int(np.prod([len(one.values) for one in controls.values() if isinstance(one, Choice)], dtype=float))
    if combinations > MOST_COMBINATIONS:
        raise ArgumentError(
            f"the choices of a process may have at most {MOST_COMBINATIONS:,} combinations of values, all of which are "
            f"searched; got {combinations:,}. Leave out values or choices that do not matter."
        )
    if not controls:
        raise ArgumentError("a network needs at least one control; give one to a stage: controls={'x': Real(0, 1)}.")
    if all(control.context for control in controls.values()):
        raise ArgumentError(
            f"a network needs at least one control that is chosen; context=True is given for all of them: "
            f"{', '.join(controls)}."
        )
    return controls


def _check_inputs(stage: Stage, names: list[str]) -> None:
    if not names:
        raise ArgumentError(f"stage {stage.name!r} has no input: give it a parent or a control.")
    clash = sorted({name for name in names if names.count(name) > 1})
    if clash:
        raise ArgumentError(
            f"stage {stage.name!r} has {', '.join(map(repr, clash))} both as a control and as a parent's output; "
            f"rename one of them."
        )
    missing = [output for output in stage.passes if output not in names]
    if missing:
        raise ArgumentError(
            f"stage {stage.name!r} passes on {', '.join(map(repr, missing))}, which is not among its inputs: "
            f"{', '.join(names)}."
        )
    if stage.known:
        if stage.function is None:
            raise ArgumentError(f"the known stage {stage.name!r} needs its formula: function=.")
        return
    if not stage.modelled:
        return
    choices = [name for name, control in stage.controls.items() if isinstance(control, Choice)]
    if choices and stage.joint and stage.norm_bound is None:
        raise ArgumentError(
            f"stage {stage.name!r} has the choice {choices[0]!r} and a joint norm that is estimated, which is not "
            f"supported; give norm_bound=, or leave kernel= out."
        )
    if stage.kernel is None:
        return  # estimated from data
    names = [name for name in names if name not in choices]
    scalar = stage.kernel.kernel if isinstance(stage.kernel, Separable) else stage.kernel
    if isinstance(scalar, Stationary):
        try:
            scalar.lengthscales(max(len(names), 1))
        except ArgumentError as error:
            raise ArgumentError(f"stage {stage.name!r} with inputs {', '.join(names)}: {error}") from None
        if scalar.lipschitz_factor is None and stage.lipschitz is None:
            raise ArgumentError(
                f"stage {stage.name!r}: functions of {scalar} have no Lipschitz constant of their own; give lipschitz=."
            )
    elif stage.lipschitz is None:
        raise ArgumentError(f"stage {stage.name!r}: a general operator-valued kernel needs lipschitz=.")
