"""Beliefs before the first run: the assumptions about every stage, and the range of its inputs."""

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from cascada.confidence import BallBelief, Belief, BeliefBase, Boxes
from cascada.confidence.bounded_belief import Assumption, BoundedBelief
from cascada.confidence.split_belief import SplitBelief
from cascada.confidence.split_bounded_belief import SplitBoundedBelief
from cascada.errors import ArgumentError
from cascada.gp import BlockPosterior, OperatorPosterior, Posterior, SeparablePosterior
from cascada.gp.rounding import SMALLEST_JITTER
from cascada.kernels import OperatorKernel, Separable, Stationary
from cascada.network.beliefs import Beliefs, StageBelief, logarithmic_inputs, stretch
from cascada.network.enclosure import enclose_network
from cascada.network.network import Network
from cascada.network.node import Node
from cascada.network.read_beliefs import ReadBeliefs
from cascada.network.scatter import CONFIDENCE, Scatter
from cascada.network.scatter_beliefs import ScatterBeliefs

S = TypeVar("S", bound=SplitBelief)

# A range of this many lengthscales is certainly a mistake, and its square times a variance is still a finite float.
_WIDEST = 1e50


def prior_beliefs(
    network: Network,
    jitter: float = SMALLEST_JITTER,
    tight: bool = True,
    confidence: float = CONFIDENCE,
    scatter: Scatter | None = None,
) -> Beliefs:
    """The beliefs before the first run; raises `ArgumentError` if ranges are too wide for float64.

    `confidence` is the probability with which their bounds hold if a stage is read with sub-Gaussian errors. `scatter`
    is what was fixed before the first reading, if norm bounds or scales were raised since then.
    """
    beliefs: Beliefs
    if network.read_with_errors:
        read = tuple(StageBelief(node, read_prior(node)) for node in network.nodes)
        if network.scattered:
            beliefs = ScatterBeliefs.begun(network, read, scatter or Scatter.of(network, confidence))
        else:
            beliefs = ReadBeliefs.prior(network, read)
    else:
        stages = [StageBelief(node, stage_prior(node, jitter, tight)) for node in network.nodes]
        beliefs = Beliefs(network, tuple(stages))
    whole = Boxes(network.domain.lower[None], network.domain.upper[None])
    with np.errstate(over="ignore", invalid="ignore"):  # `_check_span` reports ranges that are too wide
        spanned = beliefs.spanned(enclose_network(beliefs, whole, form="hull").boxes)
    for stage in spanned.stages:
        for part in stage.categories or (stage,):
            _check_span(part)
    return spanned


def _check_span(stage: StageBelief) -> None:
    """Raise `ArgumentError` if the inputs span so many lengthscales that squares could leave the range of floats."""
    belief = stage.per_output
    if belief is None or stage.span is None:
        return
    sides = (stage.span.upper - stage.span.lower)[0]
    if belief.lipschitz is not None and not np.log10(belief.lipschitz).max() + np.log10(sides.max()) <= 300:
        raise ArgumentError(
            f"stage {stage.node.stage.name!r}: lipschitz times the range of its inputs is more than 1e300, which "
            f"float64 cannot compute with. Choose other units, or leave lipschitz out."
        )
    wide = sides / belief.kernel.lengthscales(len(stage.node.inputs))
    for name, width in zip(stage.node.input_names, wide, strict=True):
        if not width <= _WIDEST:
            raise ArgumentError(
                f"stage {stage.node.stage.name!r}: its input {name!r} ranges over {width:.3g} lengthscales, more than "
                f"{_WIDEST:g}. Give a longer lengthscale."
            )


def stage_prior(node: Node, jitter: float, tight: bool = True) -> Belief | BallBelief | SplitBelief | None:
    """The belief about a stage before any data; None if it has no modelled output.

    Raises `ArgumentError` if its kernel or norm bound has to be estimated.
    """
    if not node.stage.modelled:
        return None
    if node.categories is not None:
        return _split(SplitBelief, node, [stage_prior(part, jitter, tight) for part in node.by_category])
    bound, lipschitz = _constants(node)
    posterior = empty_posterior(node, jitter)
    if isinstance(posterior, Posterior):
        return Belief(posterior, bound, lipschitz, tight)
    return BallBelief(posterior, float(bound), None if lipschitz is None else float(lipschitz), tight)


def _split(kind: type[S], node: Node, parts: Sequence[BeliefBase[Any] | None]) -> S:
    """The belief about a stage from those about its categories."""
    assert node.categories is not None, "only asked of a stage with categories"
    return kind.of(node.categories, tuple(part for part in parts if part is not None), node.category_names)


def read_prior(node: Node) -> BoundedBelief | SplitBoundedBelief | None:
    """The belief about a stage of a network that is read with errors; see `stage_prior`."""
    if not node.stage.modelled:
        return None
    if node.categories is not None:
        return _split(SplitBoundedBelief, node, [read_prior(part) for part in node.by_category])
    bound, lipschitz = _constants(node)
    posterior = empty_posterior(node, SMALLEST_JITTER)
    if isinstance(posterior, Posterior):
        return BoundedBelief(Assumption(posterior.kernel, bound, lipschitz, posterior.dimension))
    if isinstance(posterior, SeparablePosterior):
        return BoundedBelief(
            Assumption.of_joint(posterior, float(bound), None if lipschitz is None else float(lipschitz))
        )
    raise ArgumentError(
        f"stage {node.stage.name!r} has the kernel {node.stage.kernel!r}, and some stage has error=: they are not "
        f"supported together. Use Separable(...) or a kernel with one norm per output."
    )


def _constants(node: Node) -> tuple[Any, Any]:
    """B and L of a stage; `ArgumentError` if its kernel or norm bound has to be estimated."""
    stage = node.stage
    if stage.estimated:
        raise ArgumentError(
            f"stage {stage.name!r} has no kernel or no norm_bound: give both. Only a study or maximise estimates them."
        )
    return stage.norm_bound, None if stage.lipschitz is None else stage.lipschitz * stretch(node)


def empty_posterior(node: Node, jitter: float) -> Posterior | OperatorPosterior:
    """The posterior of a stage's modelled outputs before any data, of the kind that its kernel needs."""
    kernel, d, p = node.kernel, len(node.inputs), len(node.stage.modelled)
    rounded = bool(logarithmic_inputs(node)) or node.stage.noisy  # the same input may have several outputs
    if isinstance(kernel, Stationary):
        return Posterior.empty(kernel, d, p, jitter, rounded)
    if isinstance(kernel, Separable):
        return SeparablePosterior.empty(kernel, d, p, jitter, rounded)
    assert isinstance(kernel, OperatorKernel), "only asked of stages with a kernel"
    return BlockPosterior.empty(kernel, d, p, jitter, rounded)
