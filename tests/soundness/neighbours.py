"""Soundness of runs whose controls are one float apart, in every kind of control and at both ends of its range.

Stages have exact norms, and act on the exact logarithm of a logarithmic control: all values are computed with 60 digits
and rounded once. Different settings may share one floating-point logarithm; all their runs are true.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from cascada.arrays import Array
from cascada.confidence import Boxes
from cascada.kernels import Matern, SquaredExponential, Stationary
from cascada.network import Beliefs, Form, Network, Stage, chain
from cascada.space import Control, Integer, Real
from cascada.study import Study
from tests.soundness import exact, truths
from tests.soundness.exact import ExactFunction, mp
from tests.soundness.harness import Ledger

#: Ranges of all magnitudes; a control is logarithmic or not, or whole.
KINDS: dict[str, tuple[Control, ...]] = {
    "real": (Real(-2, 2), Real(0, 1e-80), Real(1e15, 1e15 + 1000), Real(-1e80, 1e80), Real(0.999, 1.001)),
    "logarithmic": (
        Real(1e-8, 1e8, log=True),
        Real(1e-80, 1e-70, log=True),
        Real(1e75, 1e80, log=True),
        Real(20, 21, log=True),
        Real(0.5, 2, log=True),
    ),
    "integer": (Integer(0, 12), Integer(2**51 - 40, 2**51), Integer(-(10**15), 10**15)),
}
FORMS: tuple[Form, ...] = ("union", "hull")
_CENTRES = 5


@dataclass(frozen=True, eq=False)
class Scene:
    """x → f → g, where x may be an input of g as well; both functions have the norm that the network declares."""

    network: Network
    control: Control
    shared: bool
    first: ExactFunction
    second: ExactFunction

    def run(self, x: float) -> dict[str, float]:
        """The outputs of a run, rounded once."""
        coordinate = mp.log(mp.mpf(x)) if self.control.log else mp.mpf(x)
        between = exact.rounded(self.first.exact([coordinate])[0])
        last = self.second.exact([between, coordinate] if self.shared else [between])[0]
        return {"f": between, "g": exact.rounded(last)}

    def values(self, settings: Sequence[float]) -> Array:
        """Outputs (n, 2), rounded once."""
        return np.array([list(self.run(x).values()) for x in settings])


def run(points: int, seed: int) -> Ledger:
    """Tell clusters of neighbours in every kind of control, and check `points` settings."""
    ledger = Ledger()
    for i, (kind, controls) in enumerate(KINDS.items()):
        for j, control in enumerate(controls):
            rng = np.random.default_rng([seed, i, j, 6])
            check(ledger, kind, draw(control, rng), points, rng)
    return ledger


def draw(control: Control, rng: np.random.Generator) -> Scene:
    """Random functions of exact norm, with lengthscales from a hundredth of the range to all of it."""
    ends = np.log([control.low, control.high]) if control.log else np.array([control.low, control.high], dtype=float)
    length = float((ends[1] - ends[0]) * 10 ** rng.uniform(-2, 0))
    kernels: list[Stationary] = [SquaredExponential(length), Matern(2.5, length), Matern(1.5, length)]
    kernel = kernels[rng.integers(3)]
    norm, shared = float(10 ** rng.uniform(-5, 5)), bool(rng.uniform() < 0.5)
    first = _function(kernel, rng.uniform(ends[0], ends[1], (_CENTRES, 1)), norm, rng)
    scales = (norm, length) if shared else (norm,)
    low = np.array([-norm, ends[0]][: len(scales)])
    high = np.array([norm, ends[1]][: len(scales)])
    other = SquaredExponential(tuple(0.5 * scale for scale in scales))
    second = _function(other, rng.uniform(low, high, (_CENTRES, len(scales))), truths.NORM, rng)
    network = chain(
        Stage("f", controls={"x": control}, kernel=kernel, norm_bound=norm),
        Stage("g", controls={"x": control} if shared else {}, kernel=other, norm_bound=truths.NORM),
    )
    return Scene(network, control, shared, first, second)


def _function(kernel: Stationary, centres: Array, norm: float, rng: np.random.Generator) -> ExactFunction:
    """A random function of exactly this norm."""
    inner = [[mp.mpf(entry)] for entry in rng.standard_normal(len(centres)).tolist()]
    length = mp.sqrt(exact.joint_square(kernel, centres, np.eye(1), inner))
    return ExactFunction(kernel, centres, inner).times(mp.mpf(norm) / length)


def neighbours(control: Control, count: int, rng: np.random.Generator) -> list[float]:
    """Successive settings: from the low end, up to the high end, or from anywhere."""
    if isinstance(control, Integer):
        width = min(count, control.high - control.low + 1)
        starts = (control.low, control.high - width + 1, int(rng.integers(control.low, control.high - width + 2)))
        first = starts[rng.integers(3)]
        return [first + i for i in range(width)]
    inside = float(rng.uniform(control.low, control.high))
    if control.log:
        inside = float(np.exp(rng.uniform(np.log(control.low), np.log(control.high))))
    inside = float(np.clip(inside, control.low, control.high))
    start = (float(control.low), float(control.high), inside)[rng.integers(3)]
    upwards = [start]
    for _ in range(count - 1):
        upwards.append(float(np.nextafter(upwards[-1], control.high if start < control.high else control.low)))
    return list(dict.fromkeys(upwards))


def check(ledger: Ledger, kind: str, scene: Scene, points: int, rng: np.random.Generator) -> None:
    """Check that true runs at neighbours are accepted in any order, and bounds hold there, nearby and elsewhere."""
    settings = [x for _ in range(3) for x in neighbours(scene.control, int(rng.integers(2, 6)), rng)]
    note = f"{scene.control}, {scene.network.nodes[0].stage.kernel}, shared: {scene.shared}, x = {settings}"

    def observed() -> Study:
        study = Study(scene.network)
        for x in rng.permutation(np.array(settings, dtype=object)).tolist():
            study.add_trial({"x": x}, scene.run(x))
        study.beliefs.check()
        return study

    study = ledger[f"{kind}: true runs accepted"].attempt(observed, note)
    if study is None:
        return
    anywhere = rng.uniform(scene.network.domain.lower, scene.network.domain.upper, (points, 1))
    elsewhere = scene.network.domain.decode(anywhere)[:, 0].tolist()
    around = [x for _ in range(4) for x in neighbours(scene.control, 4, rng)]
    queries = [*settings, *around, *elsewhere]
    truth = scene.values(queries)
    norms = np.array([float(node.stage.norm_bound[0]) for node in scene.network.nodes])  # type: ignore[index]
    check_bounds(ledger, kind, study.beliefs, np.array(queries, dtype=float)[:, None], truth, norms, note, rng)
    for x, values in list(zip(queries, truth, strict=True))[: len(settings) + 4]:
        ledger[f"{kind}: predictions"].try_boxes(partial(_predicted, study, x), values[None], norms, note)
    certificate = ledger[f"{kind}: certificate"].attempt(lambda: study.certificate(cells=100), note)
    if certificate is None:
        return
    ledger[f"{kind}: not refuted"].verdict(certificate.kind == "proven", f"{note}: {certificate}")
    if certificate.bound is not None:
        margin = np.array([certificate.bound - truth[:, 1].max()]) / truths.NORM
        ledger[f"{kind}: proven bound"].add(margin, margin, note)


def _predicted(study: Study, x: float) -> Boxes:
    """The bounds of both outputs that a study predicts at one setting."""
    stages = study.predict({"x": x})
    ends = [[getattr(stages[name], end)[0] for name in ("f", "g")] for end in ("lower", "upper")]
    return Boxes(np.array(ends[:1]), np.array(ends[1:]))


def check_bounds(
    ledger: Ledger,
    kind: str,
    beliefs: Beliefs,
    settings: Array,
    truth: Array,
    norms: Array,
    note: str,
    rng: np.random.Generator,
) -> None:
    """Check all outputs over the coordinates of settings (n, 1), and over cells around them."""
    domain = beliefs.network.domain
    Z = domain.encode(settings)
    ledger[f"{kind}: points"].try_boxes(lambda: truths.output_boxes(beliefs, Boxes(Z, Z)), truth, norms, note)
    for size in (1e-15, 1e-8, 0.1):
        half = size * (domain.upper - domain.lower) * rng.uniform(0, 1, Z.shape)
        cells = Boxes(np.maximum(Z - half, domain.lower), np.minimum(Z + half, domain.upper))
        for form in FORMS:
            compute = partial(truths.output_boxes, beliefs, cells, form)
            ledger[f"{kind}: cells"].try_boxes(compute, truth, norms, note)
