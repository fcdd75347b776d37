"""Norm bounds from the runs of a study: the smallest norms that the runs allow, and a suggestion with a margin.

Under a kernel, the smallest function through the observations of a stage has a norm that can be computed: the true norm
is at least that. It grows with every observation that adds something new, so a bound needs a margin.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cascada.arrays import Array
from cascada.calibration.fit import Fit
from cascada.errors import ArgumentError, CascadaError
from cascada.gp.rounding import SMALLEST_JITTER
from cascada.kernels import Matern, OperatorKernel, SquaredExponential, Stationary
from cascada.network import Network, Node, Stage
from cascada.network.prior import empty_posterior
from cascada.outwards import rounded_up
from cascada.space import Choice
from cascada.study.certificate import Certificate
from cascada.study.reader import Reader
from cascada.study.study import Study

#: A suggested bound is at least this many times the smallest norm that the runs allow.
MARGIN = 1.5
_MOST = 4.0  # and at most this many times
_PARTS = (0.25, 0.5, 0.75, 1.0)  # of the observations, for how the norm grew
_DIGITS = 3  # of lengthscales and offsets that are suggested
_CELLS = 20_000  # of the search for the gap


@dataclass(frozen=True, eq=False)
class StageNorms:
    """What the runs say of the norm of a stage."""

    stage: str
    outputs: tuple[str, ...]  #: one norm each; a joint norm is one for all of them
    kernel: Stationary | OperatorKernel
    fitted: bool  #: whether the kernel was fitted to the runs; if not, it was given
    offset: tuple[float, ...]
    counts: tuple[int, ...]  #: numbers of observations, in their order
    #: The smallest norm that the first so many observations allow, for each number and each norm.
    norms: tuple[tuple[float, ...], ...]
    given: tuple[float, ...] | None  #: the present norm bounds; None if they are estimated
    suggested: tuple[float, ...]

    @property
    def margins(self) -> tuple[float, ...]:
        """How many times the smallest norm the suggested bounds are."""
        return tuple(b / n if n else np.inf for b, n in zip(self.suggested, self.norms[-1], strict=True))


@dataclass(frozen=True, eq=False)
class Norms:
    """The norms of all stages, and what gap the suggested bounds would prove with the same runs."""

    stages: tuple[StageNorms, ...]
    certificate: Certificate | None  #: by the suggested bounds; None if they leave something unbounded
    why_not: str = ""  #: why there is none


def norms_of(study: Reader) -> Norms:
    """The norms of the stages of a study; `ArgumentError` if its readings are not exact, or there are too few runs."""
    if study.noisy:
        raise ArgumentError(
            "norms are computed from exact readings, and those of this study have errors or noise; give norm_bound "
            "from what is known of the process (docs/norms.md)."
        )
    found, assumed = [], {}
    for node in study.network.nodes:
        if node.stage.modelled:
            norms, stage = _of_stage(study, node)
            found.append(norms)
            assumed[node.stage.name] = stage
    return Norms(tuple(found), *_proven(study, study.network.assuming(assumed)))


def _of_stage(study: Reader, node: Node) -> tuple[StageNorms, Stage]:
    """The norms of a stage, and the stage with what is suggested."""
    stage, data = node.stage, study.model.data
    inputs, outputs = data[:, list(node.inputs)], data[:, node.modelled_columns]
    seen = np.isfinite(inputs).all(axis=1) & np.isfinite(outputs).all(axis=1)
    once = np.sort(np.unique(inputs[seen], axis=0, return_index=True)[1])
    inputs, outputs = inputs[seen][once], outputs[seen][once]
    if len(inputs) < len(_PARTS):
        raise ArgumentError(
            f"stage {stage.name!r} has {len(inputs)} observations at different inputs, too few for its norm; run the "
            f"process at least {len(_PARTS)} times."
        )
    if stage.kernel is None and any(isinstance(control, Choice) for control in stage.controls.values()):
        raise ArgumentError(
            f"stage {stage.name!r} has a Choice and no kernel: no kernel is suggested for it; give it one first."
        )
    if stage.kernel is None:
        kernel, offset = _fitted(study, node)
        declared = stage.fitted(kernel, offset)
    else:
        declared = stage
    counts = [max(1, round(part * len(inputs))) for part in _PARTS]
    norms = np.array([_norm(node, declared, inputs[:n], outputs[:n]) for n in counts])
    suggested = np.array([float(rounded_up(value, 2)) for value in norms[-1] * _margins(norms)])
    bounds = suggested[0] if isinstance(declared.kernel, OperatorKernel) else suggested
    assert declared.kernel is not None, "it was given or fitted"
    given = None if stage.norm_bound is None else tuple(map(float, stage.norm_bound.flat))
    found = StageNorms(
        stage.name,
        tuple(stage.modelled),
        declared.kernel,
        stage.kernel is None,
        tuple(declared.offset.tolist()),
        tuple(counts),
        tuple(map(tuple, norms.tolist())),
        given,
        tuple(suggested.tolist()),
    )
    return found, declared.assuming(np.asarray(bounds), declared.lipschitz)


def _margins(norms: Array) -> Array:
    """The margin of each norm (p,): larger where the norm still grew in the second half of the observations."""
    growth = norms[-1] / np.maximum(norms[1], np.finfo(float).tiny)
    return np.clip(growth**2, MARGIN, _MOST)


def _norm(node: Node, stage: Stage, inputs: Array, outputs: Array) -> Array:
    """The smallest norms (p,), or (1,) if it is joint, of functions through observations (n, d) and (n, p)."""
    empty = empty_posterior(replace(node, stage=stage), SMALLEST_JITTER)
    posterior = empty.append(inputs, outputs - stage.offset)
    return np.sqrt(np.atleast_1d(posterior.spent))


def _fitted(study: Reader, node: Node) -> tuple[Stationary, list[float]]:
    """One kernel of variance 1 for all outputs of a stage, and their offsets, from the fits of the outputs.

    It is the roughest of the fitted ones, with the shortest lengthscales.
    """
    calibrated = study.model.calibrated
    assert calibrated is not None, "a stage without a kernel is calibrated"
    fits: Sequence[Fit] = [calibrated.fits[node.stage.name, output] for output in node.stage.modelled]
    kernels = [fit.cautious.kernel for fit in fits]
    scales = np.min([kernel.lengthscales(len(node.inputs)) for kernel in kernels], axis=0)
    shortest = tuple(float(f"{scale:.{_DIGITS}g}") for scale in scales)
    rough = [kernel.nu for kernel in kernels if isinstance(kernel, Matern)]
    kernel = Matern(min(rough), shortest) if rough else SquaredExponential(shortest)
    return kernel, [float(f"{fit.cautious.offset:.{_DIGITS}g}") for fit in fits]


def _proven(study: Reader, network: Network) -> tuple[Certificate | None, str]:
    """What the same runs prove in a network with suggested bounds; None and the reason if they prove nothing."""
    if network.unbounded:
        return None, f"nothing bounds the formula of {network.unbounded[0]!r}: give it interval= or lipschitz="
    if network.context:
        return None, f"the best setting depends on {', '.join(network.context)}"
    other = Study(network)
    try:
        other.add_trials([(t.controls, t.outputs, f"trial {t.number}") for t in study.trials if t.outputs])
        return other.certificate(cells=_CELLS), ""
    except CascadaError as error:
        return None, str(error)
