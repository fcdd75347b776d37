"""Nodes: stages with their place in a network, and the categories into which choices split them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from cascada.arrays import Array
from cascada.gp.categories import Categories
from cascada.kernels import Coded, OperatorKernel, Stationary
from cascada.network.stage import Stage
from cascada.space import Choice


@dataclass(frozen=True, eq=False)
class Node:
    """A stage and its place in the network.

    Every value of a run has a column: the controls first, then the outputs stage by stage, parents before children.
    """

    stage: Stage
    input_names: tuple[str, ...]  #: parents' outputs, then controls: the keywords of the stage's function
    inputs: tuple[int, ...]  #: their columns
    columns: tuple[int, ...]  #: the columns of the outputs
    parents: tuple[str, ...]  #: the names of the parent stages
    category: str = ""  #: which category it is about, " for wood = 'oak'", if it is about one

    @property
    def modelled_columns(self) -> list[int]:
        """The columns of the modelled outputs."""
        return [self.columns[position] for position in self.stage.modelled_positions]

    @cached_property
    def choices(self) -> Mapping[int, Choice]:
        """The inputs whose values have no order, by position."""
        controls = self.stage.controls
        named = {j: controls[name] for j, name in enumerate(self.input_names) if name in controls}
        return {j: control for j, control in named.items() if isinstance(control, Choice)}

    def keywords(self, inputs: Iterable[Any]) -> dict[str, Any]:
        """Inputs, or (low, high) pairs of them, by name; a choice is the name of its value."""
        found = dict(zip(self.input_names, inputs, strict=True))
        for j, control in self.choices.items():
            value = found[self.input_names[j]]
            found[self.input_names[j]] = control.shown(value[0] if isinstance(value, tuple) else value)
        return found

    @cached_property
    def kernel(self) -> Stationary | OperatorKernel | None:
        """The kernel of all inputs: that of the stage, with the codes of choices whose values share a norm."""
        kernel = self.stage.kernel
        if not self.choices or isinstance(kernel, Coded) or not isinstance(kernel, Stationary):
            return kernel
        return Coded(kernel, tuple(self.choices), tuple(control.alike or 0.0 for control in self.choices.values()))

    @cached_property
    def categories(self) -> Categories | None:
        """The combinations of values each of which has a norm of its own; None without choices, or where estimated."""
        own = {j: control for j, control in self.choices.items() if control.alike is None}
        if not own or self.category or not self.stage.modelled or self.stage.estimated:
            return None
        counts = tuple(len(control.values) for control in own.values())
        return Categories(tuple(own), counts, len(self.inputs))

    @cached_property
    def by_category(self) -> "tuple[Node, ...]":
        """The node of each category: without the inputs that tell categories apart, and with its own norm bound."""
        assert self.categories is not None, "only asked of a stage with categories"
        kept = self.categories.others
        names, inputs = tuple(self.input_names[j] for j in kept), tuple(self.inputs[j] for j in kept)
        stage, parts = self.stage, []
        for codes, name in zip(self.categories.codes, self.category_names, strict=True):
            own = stage
            if stage.norm_bounds is not None:
                value = self.choices[self.categories.columns[0]].values[codes[0]]
                own = stage.assuming(stage.norm_bounds[value], stage.lipschitz)
            parts.append(replace(self, stage=own, input_names=names, inputs=inputs, category=name))
        return tuple(parts)

    @cached_property
    def category_names(self) -> tuple[str, ...]:
        """How evidence names each category: " for wood = 'oak'"."""
        assert self.categories is not None, "only asked of a stage with categories"
        columns = self.categories.columns
        return tuple(
            " for "
            + " and ".join(
                f"{self.input_names[j]} = {self.choices[j].values[code]!r}"
                for j, code in zip(columns, codes, strict=True)
            )
            for codes in self.categories.codes
        )

    @cached_property
    def ranges(self) -> tuple[Array, Array] | None:
        """The low and the high ends of the outputs' ranges, (p,) each; None if no output has one."""
        if not self.stage.ranges:
            return None
        ends = [self.stage.ranges.get(output, (-np.inf, np.inf)) for output in self.stage.outputs]
        return np.array([low for low, _ in ends]), np.array([high for _, high in ends])


def idle_choices(nodes: Sequence[Node], objective: tuple[str, str]) -> frozenset[str]:
    """The choices that change neither the objective nor a limited output."""
    needed: set[str] = set()
    reaching: set[str] = set()
    choices = {name for node in nodes for name, one in node.stage.controls.items() if isinstance(one, Choice)}
    for node in reversed(nodes):  # children first
        if node.stage.name == objective[0] or node.stage.limits or node.stage.name in needed:
            needed.update(node.parents)
            reaching.update(node.stage.controls)
    return frozenset(choices - reaching)
