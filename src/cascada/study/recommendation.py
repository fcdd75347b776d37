"""A recommended point that need not have been run: what it gives at least, and how far it can be from the best.

The library computes this for any algorithm. With μ^g the composite mean and e(x) how far g(x) can be from it
(`eq:fd_1`, `eq:fd_2`), a point x_T that maximises μ^g has g(x*) − g(x_T) ≤ e(x*) + e(x_T) (`eq:fd_end`), where x* is
not known. What is used is the largest upper bound of all settings minus the lower bound at x_T, each the better of two,
by the composite mean and by the enclosure: over candidates at most max_x e(x) + e(x_T), and so at most the printed
bound.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cascada.algorithms import Algorithm, Situation
from cascada.arrays import Array
from cascada.confidence import Boxes
from cascada.errors import RefutedError
from cascada.network import Beliefs, composite_mean, enclose_network
from cascada.network.composite import composite_bounds
from cascada.network.slack import objective_slack
from cascada.outwards import agreeing, apart, difference_up, six_digits
from cascada.search import Candidates
from cascada.search.refined_search import candidates_above
from cascada.space import ControlValue
from cascada.study.advisor import check_coordinates, named, situation
from cascada.study.certificate import Certificate, GapKind, certainty
from cascada.study.incumbent import best_proven_setting
from cascada.study.judge import certify, without_bound
from cascada.study.model import Model
from cascada.study.settings import Settings
from cascada.study.state import State

# Candidates whose bounds are computed together: enough for NumPy, and little memory.
_BLOCK = 4096


@dataclass(frozen=True)
class Recommendation:
    """`mean` is the composite mean at `controls`, `worst` the least good value there, `bound` what no setting beats.

    `gap`, the distance between the last two, is how far the point can be from the best possible; its `kind` means what
    it does for a `Certificate`. None where nothing is known.
    """

    controls: Mapping[str, ControlValue]
    mean: float
    worst: float | None
    bound: float | None
    gap: float | None
    kind: GapKind
    assumptions: tuple[str, ...]
    over: str
    maximised: bool = True
    #: The probability with which a *confident* gap holds; None for other kinds.
    confidence: float | None = None

    @property
    def summary(self) -> str:
        """What it says, without what it rests on."""
        settings = ", ".join(f"{name} = {six_digits(value)}" for name, value in self.controls.items())
        text = f"Recommended: {settings}, where the composite mean is {self.mean:.6g}."
        if self.kind == "refuted":
            return f"{text}\nThe data refute an assumption, so nothing is proven of it."
        if self.worst is None or self.bound is None or self.gap is None:
            return f"{text}\nNothing is proven of it yet."
        shown = agreeing(self.worst, self.bound, self.maximised)
        least, word = ("at least", "higher") if self.maximised else ("at most", "lower")
        return (
            f"{text}\n{certainty(self.kind, self.confidence)}: it gives {least} {shown.best}, and no setting in "
            f"{self.over} gives a value {word} than {shown.bound}: it is within {shown.gap} of the best possible."
        )

    def __str__(self) -> str:
        rests = "\n".join(f"  - {line}" for line in self.assumptions)
        return self.summary if self.gap is None else f"{self.summary} This rests on:\n{rests}"


def recommended(model: Model, state: State, settings: Settings) -> dict[str, ControlValue] | None:
    """The controls that the algorithm recommends, if they are not simply those of the best run.

    With noise the best run is that with the best composite mean. It need not be that with the best reading, so it is
    recommended unless the algorithm recommends another point.
    """
    point = recommended_point(settings.algorithm, situation(model, state, settings))
    if point is None and model.noisy and model.noisy_best is not None:
        point = model.noisy_best[0]
    if point is None and model.read_with_errors:
        proven = best_proven_setting(model, state, settings)
        point = None if proven is None else proven.point
    return None if point is None else named(point, state.network, settings)


def recommend(
    model: Model, state: State, settings: Settings, certificate: Certificate | None = None
) -> Recommendation | None:
    """What can be said of the recommended controls; over a box, by the bound of a certificate of this study."""
    controls = recommended(model, state, settings)
    if controls is None:
        return None
    now = without_bound(model, state, settings)
    rests_on = [None if c is None else (c.kind, c.assumptions, c.corrections) for c in (certificate, now)]
    if certificate is None or rests_on[0] != rests_on[1]:
        # Bounds survive more data, but neither a changed assumption nor a correction.
        certificate = certify(model, state, settings)
    try:
        return recommendation_at(model.judging, controls, settings.candidates, certificate)
    except RefutedError as error:
        model.refuted_by(error)
        model.certificate = None
        return recommendation_at(model.judging, controls, settings.candidates, without_bound(model, state, settings))


def recommendation_at(
    beliefs: Beliefs, controls: Mapping[str, ControlValue], candidates: Array | None, certificate: Certificate
) -> Recommendation:
    """What can be said of recommended controls, over candidates (n, d) in coordinates, or over the box.

    `certificate` is that of the study with these beliefs: over a box its bound is used.
    """
    network = beliefs.network
    point, sign = network.domain.encode(network.domain.row(controls)[None]), network.sign
    mean = float(composite_mean(beliefs, point)[0, network.objective_column])
    worst = bound = gap = None
    if certificate.kind != "refuted" and certificate.bound is not None:
        low = _below(beliefs, point)
        high = sign * certificate.bound if candidates is None else _above(beliefs, candidates)
        run = np.append(point[0], np.full(network.width - point.shape[1], np.nan))  # not run, perhaps
        if high < low - objective_slack(beliefs, run):
            least, most = apart(sign * low, sign * high)
            words = ("at least", "more") if sign > 0 else ("at most", "less")
            raise RefutedError(
                f"the recommended point gives {words[0]} {least}, but nothing gives {words[1]} than {most}."
            )
        worst, bound, gap = sign * low, sign * high, max(difference_up(high, low), 0.0)  # eq:fd_end
    return Recommendation(
        controls=dict(controls),
        mean=mean,
        worst=worst,
        bound=bound,
        gap=gap,
        kind=certificate.kind,
        confidence=certificate.confidence,
        assumptions=certificate.assumptions,
        over=certificate.over,
        maximised=certificate.maximised,
    )


def _below(beliefs: Beliefs, point: Array) -> float:
    """A lower bound of what is maximised at one point (1, d)."""
    boxes = enclose_network(beliefs, Boxes(point, point)).boxes
    column = beliefs.network.objective_column
    enclosed = boxes.lower[0, column] if beliefs.network.sign > 0 else -boxes.upper[0, column]
    if beliefs.network.read_with_errors:
        return float(enclosed)
    return float(max(enclosed, composite_bounds(beliefs, point).lower[0, 0]))


def _above(beliefs: Beliefs, candidates: Array) -> float:
    """An upper bound of what is maximised over all candidates (n, d): each has the better of its two bounds."""
    if beliefs.network.read_with_errors:
        return float(candidates_above(beliefs, candidates).max())
    enclosed = Candidates.of(candidates).follow(beliefs).upper(beliefs)
    parts = [candidates[i : i + _BLOCK] for i in range(0, len(candidates), _BLOCK)]
    composite = np.concatenate([composite_bounds(beliefs, part).upper[:, 0] for part in parts])
    return float(np.minimum(enclosed, composite).max())  # eq:fd_1, eq:fd_2


def recommended_point(algorithm: Algorithm, now: Situation) -> Array | None:
    """The coordinates (d,) that an algorithm recommends, validated, because the algorithm may be the user's."""
    point = algorithm.recommend(now)
    if point is not None:
        check_coordinates(point, now.domain, f"the point that recommend() of {type(algorithm).__name__} returns")
    return point
