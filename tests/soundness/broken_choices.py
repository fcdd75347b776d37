"""Deliberately broken versions of what the library does with choices, each of which the harness must report."""

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from cascada.arrays import UNIT_ROUNDOFF, Array, IntArray
from cascada.confidence import Belief, Boxes
from cascada.kernels import Coded, Stationary
from cascada.network import Node, StageBelief, category_cells, network
from cascada.network.category_cells import categories_of
from tests.soundness import choices
from tests.soundness.broken import Broken


def first_value_only(stage: StageBelief, cell: Boxes) -> Boxes:
    """One cell (1, d) at the first of the values that it contains, instead of at each of them."""
    codes, ends = list(stage.node.choices), (cell.lower.copy(), cell.upper.copy())
    for end in ends:
        end[:, codes] = cell.lower[:, codes]
    return Boxes(*ends)


def next_category(stage: StageBelief, inputs: Array) -> Iterator[tuple[StageBelief, IntArray, list[int]]]:
    """The beliefs about the categories of rows of inputs, each taken for the one before."""
    every = stage.categories
    for part, rows, kept in categories_of(stage, inputs):
        yield every[(every.index(part) + 1) % len(every)], rows, kept


def l_between_values(self: Belief, differences: Array, distance: Array) -> Array:
    """`Belief.modulus_at` with L also between values without an order."""
    bound = self.norm_bound * distance[..., None]
    if self.lipschitz is not None:
        bound = np.minimum(bound, self.lipschitz * np.linalg.norm(differences, axis=-1)[..., None])
    return bound * (1.0 + 4 * (differences.shape[-1] + 4) * UNIT_ROUNDOFF)


def all_alike(self: Coded, X: Array, Z: Array) -> Array:  # noqa: ARG001
    """The likeness of inputs as if all their values were the same."""
    return np.ones((len(X), len(Z)))


def of_last_stage_only(nodes: Sequence[Node], _objective: tuple[str, str]) -> frozenset[str]:
    """The choices that are not controls of the last stage, as if the others changed nothing."""
    every = {node.input_names[j] for node in nodes for j in node.choices}
    return frozenset(every - set(nodes[-1].input_names))


_by_category = vars(Node)["by_category"].func


def with_the_next_norm(self: Node) -> tuple[Node, ...]:
    """The nodes of the categories, each with the norm bound of the one before."""
    parts = _by_category(self)
    stages = [part.stage for part in parts]
    moved = [*stages[1:], stages[0]]
    return tuple(
        Node(stage, part.input_names, part.inputs, part.columns, part.parents, part.category)
        for part, stage in zip(parts, moved, strict=True)
    )


BROKEN_CHOICES: tuple[Broken, ...] = (
    Broken(
        "a cell with several values of a choice is bounded at the first of them",
        "choices",
        ((category_cells, "_every_value", first_value_only),),
        partial(choices.run, 60, 0, 0, ("first",)),
    ),
    Broken(
        "a stage is bounded by the belief about another category",
        "choices",
        ((category_cells, "categories_of", next_category),),
        partial(choices.run, 60, 0, 0, ("first",)),
    ),
    Broken(
        "the norm bound of one value counts for another",
        "choices",
        ((Node, "by_category", property(with_the_next_norm)),),
        partial(choices.run, 60, 0, 0, ("later",)),
    ),
    Broken(
        "the distance to a run with another value is that within one value",
        "choices",
        ((Coded, "distance_of", Stationary.distance_of),),
        partial(choices.run, 60, 2, 0, ("first",)),
    ),
    Broken(
        "values with a common part count as the same",
        "choices",
        ((Coded, "likeness", all_alike),),
        partial(choices.run, 60, 0, 0, ("first",)),
    ),
    Broken(
        "a Lipschitz constant bounds the difference between two values",
        "choices",
        ((Belief, "modulus_at", l_between_values),),
        partial(choices.run, 40, 6, 0, ("first",)),
    ),
    Broken(
        "a choice of an early stage has one root",
        "choices",
        ((network, "idle_choices", of_last_stage_only),),
        partial(choices.run, 0, 2, 3, ("first",)),
    ),
)
