"""The paper's regions for multi-output chains: balls instead of boxes (`eq:del`, `eq:ucb_mul`).

They serve comparison and theory. The union form of `enclosure` is tighter for separable kernels: it uses slopes, and
bounds each output by the joint radius.
"""

import numpy as np

from cascada.arrays import UNIT_ROUNDOFF, Array
from cascada.confidence import Balls, Boxes
from cascada.errors import ArgumentError
from cascada.gp.rounding import NORM_ROUNDING
from cascada.network.beliefs import Beliefs, StageBelief


def ball_regions(beliefs: Beliefs, cells: Boxes) -> list[Balls]:
    """Balls that contain the outputs of every stage of a multi-output chain over cells of controls, in stage order."""
    d = beliefs.network.domain.dimension
    regions: list[Balls] = []
    for i, stage in enumerate(beliefs.stages):
        before = beliefs.stages[i - 1].node.columns if i else ()
        controls = [column for column in stage.node.inputs if column < d]
        if stage.node.inputs != (*before, *controls):
            raise ArgumentError(
                f"balls are for chains: stage {stage.node.stage.name!r} must take all outputs of the stage before it, "
                f"then controls. Use enclose_network."
            )
        box = Boxes(cells.lower[:, controls], cells.upper[:, controls])
        around = (
            Balls(box.centre, np.linalg.norm(box.half, axis=1) * (1 + NORM_ROUNDING))
            if not i
            else regions[-1].product(box)
        )
        regions.append(_image(stage, around))
    return regions


def ball_upper(beliefs: Beliefs, cells: Boxes) -> Array:
    """UCB_t of a multi-output chain over every cell, (n,)."""
    last = ball_regions(beliefs, cells)[-1]
    upper = last.centre[:, 0] + last.radius  # eq:ucb_mul
    return upper + 4 * UNIT_ROUNDOFF * np.abs(upper)


def _image(stage: StageBelief, inputs: Balls) -> Balls:
    """Δ^(i+1) from Δ^(i) (`eq:del`)."""
    offset = stage.node.stage.offset
    if stage.belief is None or not (stage.belief.joint or len(stage.node.columns) == 1):
        raise ArgumentError(f"stage {stage.node.stage.name!r} needs a joint norm (Separable) to be bounded by balls.")
    return stage.belief.image(inputs, offset)
