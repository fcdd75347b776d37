"""Calibrated beliefs about a network in which some stages declare no kernel or no norm bound.

Every output of a stage without a kernel is modelled separately, with its own kernel, B and L. The user's network stays
unchanged: in the beliefs a stage is replaced by one part for each of its outputs, in the same columns.

Data do not determine B. It is chosen through the radius ρ = sqrt(B² − ‖w‖²) of the bounds. For choosing points ρ is
`width` posterior sds. For the gap it follows from the safety factor, and covers at least the leave-one-out residuals
|f(x_i) − μ_{−i}(x_i)|/σ_{−i}(x_i) = |α_i|/sqrt((K + λI)⁻¹_ii). For a joint norm each observation is predicted from the
earlier ones: the part of B² that it uses up is the square of that residual.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cascada.arrays import Array
from cascada.calibration.fit import MANY, Fit
from cascada.calibration.kept import kept_fit
from cascada.calibration.noise import noise_sd
from cascada.calibration.runs import Runs
from cascada.calibration.settings import Calibration
from cascada.calibration.subset import MOST_FITTED, fitted_rows
from cascada.confidence import BallBelief, Belief, Boxes
from cascada.errors import RefutedError
from cascada.gp import OperatorPosterior, Posterior
from cascada.kernels import Additive
from cascada.network import Beliefs, Network, Node, StageBelief, StagePrediction, enclose_network
from cascada.network.beliefs import stretch
from cascada.network.enlargement import raised
from cascada.network.prior import empty_posterior, stage_prior

# Up to this many observations every new one leads to a new fit; beyond, every increase by a tenth.
_ALWAYS = 30
_GROWTH = 1.1
# The radius exceeds the largest held-out residual by this factor, because other points may have larger ones.
_MARGIN = 1.5
# The radius is at least this many sds if there are many observations, and more if there are few: then the size of a
# function between them is uncertain.
_LEAST_WIDTH = 2.0
_FEW = 20
# An additive model that misses a run by more than this part of the outputs' spread is rejected.
_MISSED = 1e-3
# With noise, one whose noise has an sd this many times that of the general model is rejected.
_NOISIER = 1.5


@dataclass(frozen=True, eq=False)
class Calibrated:
    """Beliefs for choosing points (`acting`), beliefs for estimating the gap (`judging`), and the fits behind both."""

    network: Network  # with the declared bounds, raised if the data refuted them
    acting: Beliefs
    judging: Beliefs
    fits: Mapping[tuple[str, str], Fit]  # by stage and output
    changes: tuple[str, ...]  # bounds that the newest data refuted and their new values, in words


def calibrate(
    network: Network,
    data: Array,
    settings: Calibration,
    jitter: float,
    before: Calibrated | None = None,
    *,
    enlarge: bool = False,
    trials: Sequence[int] | None = None,
    alone: Sequence[tuple[int, Array]] = (),
) -> Calibrated:
    """Beliefs from runs (t, V); `before` are those from an initial part of the runs.

    `alone` are observations of single stages: see `Beliefs.append_to`. `enlarge` raises declared bounds that the runs
    refute. `trials` (t,) are the numbers of the runs' trials, by which
    stages with noise tell a second run from another report of the same one; without them every row is a run.
    """
    numbers = np.arange(len(data)) if trials is None else np.array(trials, dtype=np.int64)
    runs = Runs(data, numbers, tuple(alone))
    found = _calibrated(network if before is None else before.network, runs, settings, jitter, before)
    changes = list(found.changes)
    while enlarge and found.judging.evidence:
        assumed, more = raised(found.network, found.judging)
        changes += more
        found = _calibrated(assumed, runs, settings, jitter, found)
    return replace(found, changes=tuple(changes))


def _calibrated(
    network: Network, runs: Runs, settings: Calibration, jitter: float, before: Calibrated | None
) -> Calibrated:
    acting: list[StageBelief] = []
    judging: list[StageBelief] = []
    fits: dict[tuple[str, str], Fit] = {}
    for position, node in enumerate(network.nodes):
        read: list[tuple[Node, Posterior]] = []  # parts with noise whose true values the next stages received
        for part in parts_of(node):
            known = [] if before is None else _posteriors(before, len(acting))
            inputs, outputs = runs.of(part, position)
            likely = cautious = part
            ridge = careful = jitter  # λ of the posteriors
            if part.stage.modelled and part.stage.kernel is None:
                key = node.stage.name, part.stage.outputs[0]
                last = None if before is None else before.fits.get(key)
                ranges = _ranges(network, part, runs.data)
                fit, inputs = _fit_and_inputs(runs, part, position, ranges, settings, last)
                fits[key] = fit = _without_wrong_sum(fit, part, inputs, outputs, jitter, known)
                likely, cautious = (
                    replace(part, stage=part.stage.fitted(m.kernel, m.offset)) for m in (fit.likely, fit.cautious)
                )
                ridge, careful = (max(jitter, m.noise**2 / m.kernel.variance) for m in (fit.likely, fit.cautious))
            if not likely.stage.estimated:  # nothing to estimate: the same belief as in any other network
                declared = StageBelief(likely, stage_prior(likely, jitter)).append(runs.data)
                declared = declared.append(runs.alone_of(position))
                acting.append(declared)
                judging.append(declared)
                continue
            posterior = posterior_of(likely, inputs, outputs, ridge, known)
            acting.append(StageBelief(likely, believed(likely, posterior, _radius(posterior, settings, judging=False))))
            if part.stage.noisy and part.stage.forwards == "value" and isinstance(posterior, Posterior):
                read.append((likely, posterior))
            if cautious.stage.kernel is not likely.stage.kernel:
                posterior = posterior_of(cautious, inputs, outputs, careful, known)
            judging.append(
                StageBelief(cautious, believed(cautious, posterior, _radius(posterior, settings, judging=True)))
            )
        runs = runs.through(node, read)
    changes = () if before is None else _changes(before.judging, judging)
    return Calibrated(network, spanned(network, acting), spanned(network, judging), fits, changes)


def stage_predictions(network: Network, parts: Mapping[str, StagePrediction]) -> dict[str, StagePrediction]:
    """Predictions of whole stages, by name, from those of their parts."""
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


def parts_of(node: Node) -> list[Node]:
    """The parts of a stage: one for each output if it has no kernel, else the stage itself."""
    stage = node.stage
    if stage.known or not stage.modelled or stage.kernel is not None:
        return [node]
    return [
        replace(node, stage=stage.part(output), columns=(column,))
        for output, column in zip(stage.outputs, node.columns, strict=True)
    ]


def _ranges(network: Network, part: Node, data: Array) -> Array:
    """The unit of each input (d,): a control's range, or the observed range of a parent's output."""
    domain = network.domain
    sides = domain.sides
    ranges = []
    for column in part.inputs:
        if column < domain.dimension:
            ranges.append(sides[column])
            continue
        seen = data[np.isfinite(data[:, column]), column]
        spread = float(np.ptp(seen)) if len(seen) else 0.0
        ranges.append(spread if spread > 0 else 1.0)
    return np.array(ranges)


def _fit_and_inputs(
    runs: Runs, part: Node, position: int, ranges: Array, settings: Calibration, last: Fit | None
) -> tuple[Fit, Array]:
    """The fit of an output, and the inputs (n, d) that it is of.

    Behind a stage with noise these are that stage's posterior means or its readings, whichever explain the outputs
    better: the means of a poor model are farther from the true values than readings with little noise.
    """
    (received, outputs), (readings, _) = runs.of(part, position), runs.of(part, position, as_read=True)

    def fitted(inputs: Array) -> Fit:
        codes = tuple(part.choices)
        return _fitted(inputs, outputs[:, 0], ranges, settings, last, part.stage.noisy, codes)

    fit = fitted(received)
    if np.array_equal(received, readings):
        return fit, received
    if fit is last:  # it was chosen with fewer observations
        return fit, readings if fit.as_read else received
    other = fitted(readings)
    return (replace(other, as_read=True), readings) if other.value > fit.value else (fit, received)


def _fitted(
    inputs: Array,
    outputs: Array,
    ranges: Array,
    settings: Calibration,
    before: Fit | None,
    noisy: bool,
    codes: tuple[int, ...],
) -> Fit:
    if before is not None:
        same = 0 < len(inputs) == before.count  # the new observations are of other stages
        if same or _ALWAYS <= len(inputs) < _GROWTH * before.count:
            return before
    if len(inputs) <= MOST_FITTED:
        return kept_fit(inputs, outputs, ranges, settings, before, noisy, codes)
    rows = fitted_rows(len(inputs))
    few = kept_fit(inputs[rows], outputs[rows], ranges, settings, before, noisy, codes)
    return replace(few, count=len(inputs))


def _without_wrong_sum(
    fit: Fit, part: Node, inputs: Array, outputs: Array, jitter: float, known: Sequence[Posterior]
) -> Fit:
    """The fit without an additive likely kernel that does not reproduce the data.

    Where inputs interact slightly, an additive model with some noise explains the data well. But there is no noise, and
    a model that misses the runs cannot find the last digits of the best point. With noise, the sum is wrong if it needs
    much more noise than a model in which all inputs interact.
    """
    if not isinstance(fit.likely.kernel, Additive):
        return fit
    if part.stage.noisy:
        return replace(fit, likely=fit.general) if fit.likely.noise > _NOISIER * fit.general.noise else fit
    model = replace(part, stage=part.stage.fitted(fit.likely.kernel, fit.likely.offset))
    missed = np.abs(_misfit(posterior_of(model, inputs, outputs, jitter, known))).max(initial=0.0)
    return replace(fit, likely=fit.general) if missed > _MISSED * outputs.std() else fit


def posterior_of(
    node: Node, inputs: Array, outputs: Array, jitter: float, known: Sequence[Posterior] = ()
) -> Posterior | OperatorPosterior:
    """The posterior of these observations: a `known` one of the same model and the new rows, in O(n²), or a new one."""
    empty, centred = empty_posterior(node, jitter), outputs - node.stage.offset
    if not len(inputs):
        return empty
    if node.stage.noisy and isinstance(empty, Posterior):  # repeated runs are kept
        return Posterior.weighted(empty.kernel, inputs, centred, np.full(len(inputs), jitter))
    for posterior in known if len(inputs) >= MANY else ():
        if posterior.kernel is node.stage.kernel and posterior.jitter == jitter and _begins(posterior, inputs, centred):
            return posterior.append(inputs[posterior.received :], centred[posterior.received :])
    return empty.append(inputs, centred)


def _begins(posterior: Posterior, inputs: Array, outputs: Array) -> bool:
    """Whether a posterior has the first of these observations, and no others."""
    t = posterior.received
    seen = np.array_equal(posterior.rows, np.arange(t)) and 0 < t <= len(inputs)
    return seen and np.array_equal(posterior.inputs, inputs[:t]) and np.array_equal(posterior.outputs, outputs[:t])


def _posteriors(before: Calibrated, part: int) -> list[Posterior]:
    """The posteriors of a part, by its position, in beliefs from earlier runs."""
    beliefs = (beliefs.stages[part].belief for beliefs in (before.acting, before.judging))
    posteriors = (None if belief is None else belief.posterior for belief in beliefs)
    return [posterior for posterior in posteriors if isinstance(posterior, Posterior)]


def _radius(posterior: Posterior | OperatorPosterior, settings: Calibration, *, judging: bool) -> Array:
    """ρ of every output (p,): for choosing points, or for testing bounds (`judging`)."""
    if judging or settings.width == "norm":
        return _safe_radius(posterior, settings)
    return np.full(posterior.output_count, float(settings.width))


def believed(node: Node, posterior: Posterior | OperatorPosterior, radius: Array) -> Belief | BallBelief:
    """The belief about a part whose norm is not known, with the radius ρ of its outputs (p,)."""
    stage = node.stage
    lipschitz = None if stage.lipschitz is None else stage.lipschitz * stretch(node)
    misfit = _misfit(posterior)
    most = 1.01 * np.abs(misfit).max(axis=0, initial=0.0)
    if stage.noisy and posterior.count:  # a reading may be farther from f than from its mean
        sd = posterior.predict(posterior.inputs).sd
        most = 1.01 * (np.abs(misfit) + radius * sd.reshape(len(misfit), -1)).max(axis=0)
    if isinstance(posterior, Posterior):
        # spent = ‖μ‖² + Σ_i ε_i²/(λs²) with the misfits ε of the mean. B² is ‖μ‖² + ρ²; the errors account for the
        # rest.
        squares = (misfit**2).sum(axis=0)
        norm = np.maximum(posterior.spent - squares / (posterior.jitter * posterior.kernel.variance), 0.0)
        bound = np.sqrt(norm + radius**2)
        return Belief(posterior, bound, lipschitz, output_error=most, squared_errors=squares)
    constant = None if lipschitz is None else float(lipschitz)
    norm = float(np.sqrt(posterior.spent + radius[0] ** 2))
    return BallBelief(posterior, norm, constant, output_error=most)


def _misfit(posterior: Posterior | OperatorPosterior) -> Array:
    """The distance of the mean from the data, (t, p): with a jitter, the mean does not interpolate exactly."""
    if not posterior.count:
        return np.zeros((0, posterior.output_count))
    return posterior.predict(posterior.inputs).mean - posterior.outputs


def _safe_radius(posterior: Posterior | OperatorPosterior, settings: Calibration) -> Array:
    """ρ for the gap, for every output (p,)."""
    safe = np.sqrt((settings.safety**2 - 1) * np.atleast_1d(posterior.spent))
    if isinstance(posterior, Posterior):
        residual = held_out(posterior)
    else:  # in the order of the observations, each predicted from those before it
        residual = np.sqrt(posterior.spent_by_row.max(initial=0.0))
    least = _LEAST_WIDTH * (1.0 + _FEW / max(posterior.count, 1))
    return np.maximum(np.maximum(safe, _MARGIN * residual), least)


def held_out(posterior: Posterior) -> Array:
    """The largest leave-one-out residual in posterior sds, for every output (p,); 0 without data."""
    t = posterior.count
    if not t:
        return np.zeros(posterior.output_count)
    inverse = np.linalg.inv(posterior.factor)  # of L; (K + λI)⁻¹ = L⁻ᵀL⁻¹
    diagonal = np.vecdot(inverse.T, inverse.T)
    alpha = inverse.T @ posterior.whitened
    return np.abs(alpha / np.sqrt(diagonal)[:, None]).max(axis=0)


def spanned(network: Network, stages: list[StageBelief]) -> Beliefs:
    """Beliefs with the range of the possible inputs of each stage."""
    plain = Beliefs(network, tuple(stages))
    if network.unbounded:  # a formula without bounds: inputs of the stages after it can be anything
        return plain
    box = Boxes(network.domain.lower[None], network.domain.upper[None])
    try:
        return plain.spanned(enclose_network(plain, box).boxes)
    except RefutedError:  # a declared norm bound of another stage is wrong: the study reports it
        return plain


def _changes(before: Beliefs, now: list[StageBelief]) -> tuple[str, ...]:
    """Estimated bounds that the newest data refute, in words."""
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
            continue  # an estimate from so few observations means little
        prediction = earlier.posterior.predict(posterior.inputs[fresh])
        seen = posterior.outputs[fresh] + new.node.stage.offset - old.node.stage.offset
        sd = earlier.sd_above(prediction.sd)
        if new.node.stage.noisy:
            sd = np.hypot(sd, noise_sd(old))
        away = np.abs(seen - prediction.mean) / np.maximum(sd, 1e-300)[:, None]
        found += [
            f"norm_bound of {new.node.stage.name!r}, estimated as {earlier.norm_bound[j]:.4g}, was refuted by a run "
            f"{away[:, j].max():.1f} sds away; with the kernel estimated after that run, {later.norm_bound[j]:.4g}"
            for j in np.flatnonzero((away > earlier.radius * (1 + 1e-9)).any(axis=0))
        ]
    return tuple(found)
