"""Beliefs of a network some of whose stages were given no kernel or no norm bound.

Every output of a stage without a kernel is modelled by itself, with its own kernel, B and L. The user's network stays
as it is: a stage's place in the beliefs is taken by one part for each of its outputs, in the same columns.

B cannot be known from data. It is chosen so that the radius ρ = sqrt(B² − ‖w‖²) of the bounds is what it should be:
`width` posterior sds for choosing points; for the gap, what the safety factor leaves and no less than leave-one-out
residuals ask for: |f(x_i) − μ_{−i}(x_i)|/σ_{−i}(x_i) = |α_i|/sqrt((K + λI)⁻¹_ii) must be covered. For a joint norm
each observation is held out from those after it: the part of B² that it uses up is the square of that residual.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from cascada.arrays import Array
from cascada.calibration.fit import Fit, fit_output
from cascada.calibration.settings import Calibration
from cascada.confidence import BallBelief, Belief, Boxes
from cascada.errors import RefutedError
from cascada.gp import OperatorPosterior, Posterior
from cascada.kernels import Additive
from cascada.network import Beliefs, Network, Node, StageBelief, StagePrediction, enclose_network
from cascada.network.beliefs import stretch
from cascada.network.enlarge import raised
from cascada.network.prior import empty_posterior, stage_prior

# Below so many observations every new one leads to a new fit; beyond, every tenth part more.
_ALWAYS = 30
_GROWTH = 1.1
# What held-out residuals ask for is exceeded by this much, for what was not held out.
_MARGIN = 1.5
# And the radius is at least so many sds: two of them where there are many observations. From few, nobody knows how
# large a function is where it was not seen.
_LEAST_WIDTH = 2.0
_FEW = 20
# A sum of effects that misses a run by so much of the outputs' spread is none.
_MISSED = 1e-3


@dataclass(frozen=True, eq=False)
class Calibrated:
    """Beliefs by which points are chosen, beliefs by which the gap is estimated, and the fits behind both."""

    network: Network  # with the bounds that were given, or what they were raised to
    acting: Beliefs
    judging: Beliefs
    fits: Mapping[tuple[str, str], Fit]  # by stage and output
    changes: tuple[str, ...]  # bounds that the newest data refuted, and what they are now


def calibrate(
    network: Network,
    data: Array,
    settings: Calibration,
    jitter: float,
    before: Calibrated | None = None,
    *,
    enlarge: bool = False,
) -> Calibrated:
    """Beliefs from runs (t, V); `before` are those from the first of them.

    `enlarge` raises bounds that were given for some of the stages and that the runs refute.
    """
    found = _calibrated(network if before is None else before.network, data, settings, jitter, before)
    changes = list(found.changes)
    while enlarge and found.judging.evidence:
        assumed, more = raised(found.network, found.judging)
        changes += more
        found = _calibrated(assumed, data, settings, jitter, found)
    return replace(found, changes=tuple(changes))


def _calibrated(
    network: Network, data: Array, settings: Calibration, jitter: float, before: Calibrated | None
) -> Calibrated:
    acting: list[StageBelief] = []
    judging: list[StageBelief] = []
    fits: dict[tuple[str, str], Fit] = {}
    for node in network.nodes:
        for part in _parts(node):
            inputs, outputs = _data(part, data)
            likely = cautious = part
            if part.stage.modelled and part.stage.kernel is None:
                key = node.stage.name, part.stage.outputs[0]
                known = None if before is None else before.fits.get(key)
                fit = _fitted(inputs, outputs[:, 0], _ranges(network, part, data), settings, known)
                fits[key] = fit = _without_a_sum_that_misses(fit, part, inputs, outputs, jitter)
                likely, cautious = (
                    replace(part, stage=part.stage.fitted(m.kernel, m.offset)) for m in (fit.likely, fit.cautious)
                )
            if not likely.stage.estimated:  # nothing is missing: believed as it is in any other network
                given = StageBelief(likely, stage_prior(likely, jitter)).append(data)
                acting.append(given)
                judging.append(given)
                continue
            posterior = _posterior(likely, inputs, outputs, jitter)
            acting.append(StageBelief(likely, _believed(likely, posterior, settings, judging=False)))
            if cautious.stage.kernel is not likely.stage.kernel:
                posterior = _posterior(cautious, inputs, outputs, jitter)
            judging.append(StageBelief(cautious, _believed(cautious, posterior, settings, judging=True)))
    changes = () if before is None else _changes(before.judging, judging)
    return Calibrated(network, _spanned(network, acting), _spanned(network, judging), fits, changes)


def stage_predictions(network: Network, parts: Mapping[str, StagePrediction]) -> dict[str, StagePrediction]:
    """Predictions of the parts of stages as predictions of the stages."""
    result = {}
    for node in network.nodes:
        stage = node.stage
        if stage.name in parts:
            result[stage.name] = parts[stage.name]
            continue
        each = [parts[f"{stage.name}.{output}"] for output in stage.outputs]
        fields = ("mean", "sd", "lower", "upper")
        result[stage.name] = StagePrediction(*(np.concatenate([getattr(p, f) for p in each]) for f in fields))
    return result


def _parts(node: Node) -> list[Node]:
    """A stage without a kernel as one part for each output; any other as it is."""
    stage = node.stage
    if stage.known or not stage.modelled or stage.kernel is not None:
        return [node]
    return [
        replace(node, stage=stage.part(output), columns=(column,))
        for output, column in zip(stage.outputs, node.columns, strict=True)
    ]


def _data(part: Node, data: Array) -> tuple[Array, Array]:
    """The inputs (n, d) and modelled outputs (n, p) of the runs in which all of them were observed, each once.

    A run that is told stage by stage has a row in `told` for every time something was told of it.
    """
    X, Y = data[:, list(part.inputs)], data[:, part.modelled_columns]
    seen = np.isfinite(X).all(axis=1) & np.isfinite(Y).all(axis=1)
    X, Y = X[seen], Y[seen]
    once = np.sort(np.unique(np.hstack([X, Y]), axis=0, return_index=True)[1])
    return X[once], Y[once]


def _ranges(network: Network, part: Node, data: Array) -> Array:
    """What a unit of each input is (d,): a control's range, the observed range of a parent's output."""
    domain = network.domain
    sides = domain.upper - domain.lower
    ranges = []
    for column in part.inputs:
        if column < domain.dimension:
            ranges.append(sides[column])
            continue
        seen = data[np.isfinite(data[:, column]), column]
        spread = float(np.ptp(seen)) if len(seen) else 0.0
        ranges.append(spread if spread > 0 else 1.0)
    return np.array(ranges)


def _fitted(inputs: Array, outputs: Array, ranges: Array, settings: Calibration, before: Fit | None) -> Fit:
    if before is not None:
        same = 0 < len(inputs) == before.count  # what was data is of other stages
        if same or _ALWAYS <= len(inputs) < _GROWTH * before.count:
            return before
    return fit_output(inputs, outputs, ranges, settings, before)


def _without_a_sum_that_misses(fit: Fit, part: Node, inputs: Array, outputs: Array, jitter: float) -> Fit:
    """The same fit, but for a likely kernel that adds up and cannot be right.

    Where inputs interact a little, a sum with some noise explains the data well. But there is no noise, and by a model
    that misses the runs nobody finds the last digits of the best point.
    """
    if not isinstance(fit.likely.kernel, Additive):
        return fit
    model = replace(part, stage=part.stage.fitted(fit.likely.kernel, fit.likely.offset))
    missed = np.abs(_misfit(_posterior(model, inputs, outputs, jitter))).max(initial=0.0)
    return replace(fit, likely=fit.general) if missed > _MISSED * outputs.std() else fit


def _posterior(node: Node, inputs: Array, outputs: Array, jitter: float) -> Posterior | OperatorPosterior:
    posterior = empty_posterior(node, jitter)
    return posterior.append(inputs, outputs - node.stage.offset) if len(inputs) else posterior


def _believed(
    node: Node, posterior: Posterior | OperatorPosterior, settings: Calibration, *, judging: bool
) -> Belief | BallBelief:
    """What is believed of a part whose norm is not known: for choosing points, or for the gap."""
    stage = node.stage
    lipschitz = None if stage.lipschitz is None else stage.lipschitz * stretch(node)
    if judging or settings.width == "norm":
        radius = _safe_radius(posterior, settings)
    else:
        radius = np.full(posterior.output_count, float(settings.width))
    misfit = _misfit(posterior)
    most = 1.01 * np.abs(misfit).max(axis=0, initial=0.0)
    if isinstance(posterior, Posterior):
        # spent = ‖μ‖² + Σ_i ε_i²/(λs²) with the misfits ε of the mean: so much of B² is ρ² and the norm of the mean,
        # and the errors account for the rest.
        squares = (misfit**2).sum(axis=0)
        norm = np.maximum(posterior.spent - squares / (posterior.jitter * posterior.kernel.variance), 0.0)
        bound = np.sqrt(norm + radius**2)
        return Belief(posterior, bound, lipschitz, output_error=most, squared_errors=squares)
    constant = None if lipschitz is None else float(lipschitz)
    norm = float(np.sqrt(posterior.spent + radius[0] ** 2))
    return BallBelief(posterior, norm, constant, output_error=most)


def _misfit(posterior: Posterior | OperatorPosterior) -> Array:
    """How far the mean is from the data, (t, p): with a jitter, no function of its norm need meet them exactly."""
    if not posterior.count:
        return np.zeros((0, posterior.output_count))
    return posterior.predict(posterior.inputs).mean - posterior.outputs


def _safe_radius(posterior: Posterior | OperatorPosterior, settings: Calibration) -> Array:
    """ρ for the gap, for every output (p,)."""
    safe = np.sqrt((settings.safety**2 - 1) * np.atleast_1d(posterior.spent))
    if isinstance(posterior, Posterior):
        asked = held_out(posterior)
    else:  # in the order in which they were told, each from those before it
        asked = np.sqrt(posterior.spent_by_row.max(initial=0.0))
    least = _LEAST_WIDTH * (1.0 + _FEW / max(posterior.count, 1))
    return np.maximum(np.maximum(safe, _MARGIN * asked), least)


def held_out(posterior: Posterior) -> Array:
    """The largest leave-one-out residual in posterior sds, for every output (p,); 0 without data."""
    t = posterior.count
    if not t:
        return np.zeros(posterior.output_count)
    inverse = np.linalg.inv(posterior.factor)  # of L; (K + λI)⁻¹ = L⁻ᵀL⁻¹
    diagonal = np.vecdot(inverse.T, inverse.T)
    alpha = inverse.T @ posterior.whitened
    return np.abs(alpha / np.sqrt(diagonal)[:, None]).max(axis=0)


def _spanned(network: Network, stages: list[StageBelief]) -> Beliefs:
    """Beliefs that know what inputs each stage can get."""
    plain = Beliefs(network, tuple(stages))
    box = Boxes(network.domain.lower[None], network.domain.upper[None])
    try:
        return plain.spanned(enclose_network(plain, box).boxes)
    except RefutedError:  # the norm of another stage, which was given, is wrong: the study says so
        return plain


def _changes(before: Beliefs, now: list[StageBelief]) -> tuple[str, ...]:
    """Bounds that the newest data refute, in words."""
    found: list[str] = []
    for old, new in zip(before.stages, now, strict=True):
        if old.belief is None or old.belief.joint or old.node.stage.norm_bound is not None:
            continue
        earlier, later = old.per_output, new.per_output
        assert earlier is not None, "independent outputs"
        assert later is not None, "independent outputs"
        posterior = later.posterior
        fresh = posterior.rows >= earlier.posterior.received
        if not fresh.any() or earlier.posterior.count < 2 * (posterior.dimension + 1):
            continue  # from so few, nobody would have believed it
        prediction = earlier.posterior.predict(posterior.inputs[fresh])
        seen = posterior.outputs[fresh] + new.node.stage.offset - old.node.stage.offset
        away = np.abs(seen - prediction.mean) / np.maximum(earlier.sd_above(prediction.sd), 1e-300)[:, None]
        found += [
            f"norm_bound of {new.node.stage.name!r}, estimated as {earlier.norm_bound[j]:.4g}, was refuted by a run "
            f"{away[:, j].max():.1f} sds away; with the kernel as it is now, {later.norm_bound[j]:.4g}"
            for j in np.flatnonzero((away > earlier.radius * (1 + 1e-9)).any(axis=0))
        ]
    return tuple(found)
