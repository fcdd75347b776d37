"""The stock of a process whose stages are run one at a time: outputs that exist, complete runs under way, and money.

A stage is given by its position in `Network.nodes`, here and in `steps`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from cascada.arrays import Array


@dataclass(frozen=True, eq=False)
class Item:
    """What one run of a stage left: its outputs, and how many runs of every later stage they can still feed.

    `closed`: the row is of one run, in which every ancestor was run at exactly the values that the row says. Then it
    has all controls and outputs upstream. Otherwise it has the inputs and the outputs of the stage only.
    """

    node: int
    source: int  #: the trial or the measurement; only returned, never read
    row: Array  #: (V,), coordinates, NaN where nothing is known
    closed: bool
    left: Mapping[int, float]  #: by the position of the later stage; infinite for a file. Formulas need no portion.


@dataclass(frozen=True, eq=False)
class Begun:
    """A complete run that was begun and is not finished, and of which no step is pending."""

    label: int  #: only returned, never read
    point: Array  #: (d,), its controls
    row: Array  #: (V,), with the outputs of its steps so far


@dataclass(frozen=True, eq=False)
class Stock:
    """Everything that is known of steps besides the beliefs; items in the order in which they were made."""

    items: tuple[Item, ...] = ()
    begun: tuple[Begun, ...] = ()
    #: Steps under way: a stage, and a row (V,) with its inputs.
    pending: tuple[tuple[int, Array], ...] = field(default=())
    spent: float = 0.0  #: on all steps, pending and failed ones included
    #: The part of it in closed trajectories that reached the objective and all limited outputs, each item counted once,
    #: or in steps of complete runs that were begun.
    spent_on_runs: float = 0.0
