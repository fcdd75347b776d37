"""All results of the theory for a network: structure, Σ_T of every layer, bounds, rates and comparisons."""

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from cascada.arrays import Array, as_whole_number
from cascada.confidence import Boxes
from cascada.errors import ArgumentError
from cascada.kernels import Additive, Matern, OperatorKernel, Separable, SquaredExponential, Stationary
from cascada.network import Network, Node, Stage, prior_beliefs
from cascada.space import Real
from cascada.theory.comparison import Comparison, compare
from cascada.theory.layers import Layers, Structure, check_horizon
from cascada.theory.rates import conjectured_sd_sum_rate, sd_sum_rate
from cascada.theory.regret import regret_bounds, trivial_bound
from cascada.theory.statement import Bound, Order
from cascada.theory.summary import Row, cumulative_table, summary_table
from cascada.theory.sums import SdSum, sd_sum


@dataclass(frozen=True)
class Promise:
    """Everything printed by `cascada bounds` for T rounds; `nu` is None if the kernels are not Matérn."""

    horizon: int
    layers: Layers
    nu: float | None
    domains: tuple[tuple[tuple[float, float], ...], ...]  # of every layer, one (low, high) per input
    sums: tuple[SdSum, ...]  # Σ_T of every layer over its whole domain
    bounds: tuple[Bound, ...]  # sharpest first
    trivial: Bound  # the bound that needs no theorem
    rates: tuple[Order, ...]  # of Σ_T: the proven one, then the conjectured one
    cumulative: tuple[Row, ...]  # tab:summary_cml
    summary: tuple[Row, ...]  # tab:summary
    comparisons: tuple[Comparison, ...]
    notes: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """All fields as JSON values."""
        return {
            "horizon": self.horizon,
            "structure": self.layers.structure,
            "dims": list(self.layers.dims),
            "extra_inputs": list(self.layers.extra),
            "norm_bounds": list(self.layers.norm_bounds),
            "lipschitz": list(self.layers.lipschitz),
            "nu": self.nu,
            "domains": [[list(side) for side in domain] for domain in self.domains],
            "sigma": [asdict(one) for one in self.sums],
            "bounds": [bound.as_dict() for bound in self.bounds],
            "trivial": self.trivial.as_dict(),
            "rates": [rate.as_dict(self.horizon) for rate in self.rates],
            "tab:summary_cml": [row.as_dict(self.horizon) for row in self.cumulative],
            "tab:summary": [row.as_dict(self.horizon) for row in self.summary],
            "comparison": [one.as_dict() for one in self.comparisons],
            "notes": list(self.notes),
        }


def promise(network: Network, horizon: int, points: int = 2500, layers: Layers | None = None) -> Promise:
    """All results of the theory for T rounds on a network of one of the three structures.

    Σ_T is bounded over the whole box of possible inputs of a layer with a grid of about `points` points. `layers`
    replaces the constants taken from the network.
    """
    check_horizon(horizon)
    layers = layers_of(network) if layers is None else layers
    spans = [stage.span for stage in prior_beliefs(network).stages]
    sums, domains = [], []
    for node, span in zip(network.nodes, spans, strict=True):
        assert span is not None, "prior beliefs have spans"
        assert node.stage.kernel is not None, "layers_of rejects stages without a kernel"
        Z, fill = cover(span, points, _scalar(node.stage.kernel))
        sums.append(sd_sum(node.stage.kernel, Z, horizon, fill=fill))
        domains.append(tuple(zip(span.lower[0].tolist(), span.upper[0].tolist(), strict=True)))
    nu, notes = _smoothness(network)
    notes += ("Σ_T holds for posteriors whose jitter is at most the λ' that it was bounded with",)
    rates: tuple[Order, ...] = ()
    cumulative: tuple[Row, ...] = ()
    summary: tuple[Row, ...] = ()
    if nu is not None:
        rates = (sd_sum_rate(nu, layers.largest_dimension), conjectured_sd_sum_rate(nu, layers.largest_dimension))
        cumulative, summary = cumulative_table(layers, nu), summary_table(layers, nu)
    comparisons: tuple[Comparison, ...] = ()
    slope = _sd_slope(network)
    if nu is not None and slope is not None and layers.structure != "multi-output" and layers.count > 1:
        comparisons = compare(layers, nu, slope)
    else:
        notes += ("no comparison: it needs a Matérn kernel with ν > 1, two layers and independent outputs",)
    return Promise(
        horizon,
        layers,
        nu,
        tuple(domains),
        tuple(sums),
        regret_bounds(layers, [one.upper for one in sums]),
        trivial_bound(layers, horizon, _prior_sd(network.nodes[-1].stage)),
        rates,
        cumulative,
        summary,
        comparisons,
        notes,
    )


def layers_of(network: Network) -> Layers:
    """Structure, dimensions, B and L of a network; raises `ArgumentError` if it has none of the three structures.

    L is, per coordinate, the smaller of the given constant and the one implied by the kernel and B. If the outputs of a
    layer differ in B or L, the largest is used.
    """
    _check_given(network)
    for node in network.nodes:
        _check_stage(node)
    _check_wiring(network)
    beliefs = prior_beliefs(network)
    norms, slopes = [], []
    for stage in beliefs.stages:
        belief = stage.belief
        assert belief is not None, "every stage is modelled"
        assert belief.raw_lipschitz is not None, "a network without any L is rejected at construction"
        norms.append(float(np.max(belief.norm_bound)))
        slopes.append(float(np.max(belief.raw_lipschitz)))
    widths = [len(node.columns) for node in network.nodes[:-1]]
    dims = [len(network.nodes[0].inputs), *widths]
    extra = [0, *(len(node.inputs) - width for node, width in zip(network.nodes[1:], widths, strict=True))]
    return Layers(_structure(network), dims, norms, slopes, extra)


def network_of(layers: Layers, kernel: Stationary) -> Network:
    """A network of these layers on [0, 1]^d, one kernel for all of them, without functions."""
    if any(layers.extra):
        raise ArgumentError(
            f"additional inputs have no default ranges; got extra = {layers.extra}. Construct the network instead."
        )
    widths = [*layers.dims[1:], 1]
    stages = []
    for i, width in enumerate(widths):
        joint = layers.structure == "multi-output" and width > 1
        stages.append(
            Stage(
                f"f{i + 1}",
                controls={f"x{j + 1}": Real(0, 1) for j in range(layers.dimension)} if i == 0 else {},
                outputs=[f"y{i + 1}_{j + 1}" for j in range(width)],
                parents=[f"f{i}"] if i else [],
                kernel=Separable(kernel) if joint else kernel,
                norm_bound=layers.norm_bounds[i],
                lipschitz=layers.lipschitz[i],
            )
        )
    return Network(stages)


def cover(box: Boxes, points: int, kernel: Stationary) -> tuple[Array, float]:
    """The centres of at most `points` equal cells of one box, and their fill distance in the kernel's scaled distance.

    >>> from cascada.kernels import SquaredExponential
    >>> centres, fill = cover(Boxes(np.zeros((1, 1)), np.ones((1, 1))), 4, SquaredExponential(0.5))
    >>> centres.ravel().tolist(), fill
    ([0.125, 0.375, 0.625, 0.875], 0.25)
    """
    points = as_whole_number(points, "points")
    lower, upper = box.lower[0], box.upper[0]
    d = len(lower)
    side = max(1, int(points ** (1 / d) + 1e-9))
    if side == 1:  # in any number of dimensions
        return ((lower + upper) / 2)[None], float(kernel.scaled_norm((upper - lower) / 2))
    axes = [low + (high - low) * (np.arange(side) + 0.5) / side for low, high in zip(lower, upper, strict=True)]
    centres = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, d)
    return centres, float(kernel.scaled_norm((upper - lower) / (2 * side)))


def _check_given(network: Network) -> None:
    missing = []
    for stage in network.stages:
        parts = [name for name in ("kernel", "norm_bound") if stage.modelled and getattr(stage, name) is None]
        if parts:
            missing.append(f"{stage.name!r} ({' and '.join(parts)})")
    if missing:
        raise ArgumentError(
            f"the theory needs kernels and norm bounds; missing for the stages {', '.join(missing)}. "
            f"Give kernel= and norm_bound= (estimates from data are not enough)."
        )


def _check_stage(node: Node) -> None:
    stage = node.stage
    if stage.known or stage.passes:
        raise ArgumentError(
            f"the theorems need networks in which every output is unknown; stage {stage.name!r} is "
            f"{'a known formula' if stage.known else 'partly passed on'}. Leave the stage out, or model its outputs."
        )
    if not isinstance(stage.kernel, Stationary | Separable):
        raise ArgumentError(
            f"Σ_T is bounded for scalar and separable kernels; stage {stage.name!r} has the kernel {stage.kernel!r}."
        )


def _check_wiring(network: Network) -> None:
    seen: set[int] = set()
    before: tuple[int, ...] = ()
    d = network.domain.dimension
    for node in network.nodes:
        own = [column for column in node.inputs if column < d]
        if tuple(column for column in node.inputs if column >= d) != before or seen & set(own):
            raise ArgumentError(
                f"stage {node.stage.name!r} breaks the chain of layers: the theorems are for chains, multi-output "
                f"chains and feed-forward networks, where the inputs of a layer are all outputs of the previous layer "
                f"and its own controls; got {network!r}."
            )
        seen |= set(own)
        before = node.columns
    last = network.nodes[-1]
    if network.objective_column not in last.columns or len(last.columns) != 1:
        raise ArgumentError(
            f"the last stage {last.stage.name!r} must have one output, which is optimised; got {network!r}."
        )


def _structure(network: Network) -> Structure:
    wide = [node.stage for node in network.nodes if len(node.columns) > 1]
    if not wide:
        return "chain"
    joint = [stage.joint for stage in wide]
    if all(joint):
        return "multi-output"
    if not any(joint):
        return "feed-forward"
    names = ", ".join(repr(stage.name) for stage in wide)
    raise ArgumentError(
        f"the theorems need either joint norms or one norm per output; the stages {names} have both kinds. "
        f"Give all of them Separable kernels, or none."
    )


def _scalar(kernel: Stationary | OperatorKernel) -> Stationary:
    scalar = kernel.kernel if isinstance(kernel, Separable) else kernel
    assert isinstance(scalar, Stationary), "layers_of rejects other kernels"
    return scalar


def _prior_sd(stage: Stage) -> float:
    """s, or s·sqrt(‖A‖₂): |f| ≤ B times it. An offset shifts the range and keeps its width."""
    assert stage.kernel is not None, "layers_of rejects stages without a kernel"
    root = math.sqrt(stage.kernel.spectral_norm) if isinstance(stage.kernel, Separable) else 1.0
    return root * math.sqrt(_scalar(stage.kernel).variance)


def _smoothness(network: Network) -> tuple[float | None, tuple[str, ...]]:
    """ν if all stages have Matérn kernels with the same ν, else None and a note."""
    kernels = [_scalar(node.stage.kernel) for node in network.nodes if node.stage.kernel is not None]
    smooth = {kernel.nu for kernel in kernels if isinstance(kernel, Matern)}
    if len(smooth) == 1 and all(isinstance(kernel, Matern) for kernel in kernels):
        return smooth.pop(), ()
    kinds = {Additive: "additive", SquaredExponential: "squared exponential"}
    what = next((text for kind, text in kinds.items() if any(isinstance(k, kind) for k in kernels)), "various")
    return None, (f"no rates: the paper gives them for Matérn kernels of one ν; here they are {what}",)


def _sd_slope(network: Network) -> float | None:
    """L_σ = s·sqrt(−φ''(0))/ℓ, the largest of all layers; None if a kernel implies none."""
    slopes = []
    for node in network.nodes:
        assert node.stage.kernel is not None, "layers_of rejects stages without a kernel"
        kernel = _scalar(node.stage.kernel)
        if kernel.lipschitz_factor is None:
            return None
        slopes.append(kernel.lipschitz_factor / float(kernel.lengthscales(len(node.inputs)).min()))
    return max(slopes) if all(map(math.isfinite, slopes)) else None
