"""Soundness of bounds from readings with bounded errors.

Every structure and kernel is run at designs with crowds and repeats. Readings are off by errors that are uniform, at
the extremes with random signs, or all at the upper extreme. The sizes of the errors differ from stage to stage, and
some are 0. Some runs are read in part. In some networks a stage forwards its reading.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from cascada.arrays import Array
from cascada.confidence import Boxes
from cascada.confidence.bounded_belief import BoundedBelief
from cascada.confidence.cells import cell_bounds
from cascada.kernels import (
    Additive,
    Matern,
    OperatorExpansion,
    Separable,
    SquaredExponential,
    Stationary,
    random_operator_expansion,
)
from cascada.network import Bounded, Form, Network, Node, Stage, prior_beliefs
from cascada.network.read_beliefs import ReadBeliefs
from cascada.network.run_anchors import slopes
from cascada.problems import Problem, certified
from cascada.space import Domain, Real
from tests.soundness import truths
from tests.soundness.harness import Ledger

STRUCTURES = ("chain", "controls", "feed-forward", "multi-output", "join", "known", "matrix", "copies")
KERNELS: tuple[Stationary, ...] = (SquaredExponential(1.0), Matern(2.5), Matern(1.5, 0.9), Additive(Matern(2.5)))
KINDS = ("uniform", "extreme", "plus")
COUNTS = (1, 6, 25)


@dataclass(frozen=True)
class Case:
    """A process with exact norms, whose stages have errors of known size."""

    problem: Problem
    network: Network
    kind: str

    def run(self, X: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        """True values and readings (n, V) of runs at coordinates X (n, d)."""
        values = np.full((len(X), self.network.width), np.nan)
        values[:, : X.shape[1]] = self.network.domain.decode(X)
        readings = values.copy()
        forwarded = [
            c for node in self.network.nodes if node.stage.forwards == "reading" for c in node.modelled_columns
        ]
        for row, read in zip(values, readings, strict=True):
            for node in self.network.nodes:
                set_to = [float(read[c] if c in forwarded else row[c]) for c in node.inputs]
                row[list(node.columns)] = _called_by_name(node, set_to)
                read[list(node.columns)] = row[list(node.columns)]
                read[node.modelled_columns] += self._errors(node.stage, rng)
                if node.stage.known:  # what is reported of a formula is computed from readings
                    read[list(node.columns)] = _called_by_name(node, [float(read[c]) for c in node.inputs])
        values[:, : X.shape[1]] = readings[:, : X.shape[1]] = X
        return values, readings

    def _errors(self, stage: Stage, rng: np.random.Generator) -> Array:
        size = stage.error_bound
        if self.kind == "uniform":
            return size * rng.uniform(-1, 1, len(size))
        return size * (rng.choice([-1.0, 1.0], len(size)) if self.kind == "extreme" else 1.0)


def _called_by_name(node: Node, inputs: list[float]) -> Any:
    assert node.stage.function is not None, "every stage of a case has its function"
    return node.stage.function(**node.keywords(inputs))


def case(structure: str, kernel: Stationary, kind: str, rng: np.random.Generator) -> Case:
    """A random process of a structure, with errors between 3e-4 and 0.1 or 0."""
    seed = int(rng.integers(1 << 30))
    own = {"matrix": _with_matrix, "copies": _with_copies}
    problem = own[structure](kernel, seed) if structure in own else certified(structure, seed, kernel)
    return case_of(problem, kind, rng)


def case_of(problem: Problem, kind: str, rng: np.random.Generator) -> Case:
    """The process of a problem, with errors between 3e-4 and 0.1 or 0."""
    forwarding = rng.random() < 0.25
    stages = {}
    for stage in problem.network.stages:
        sizes = 10 ** rng.uniform(-3.5, -1, len(stage.modelled)) * (rng.random(len(stage.modelled)) < 0.85)
        stages[stage.name] = _changed(stage, sizes, "reading" if forwarding and rng.random() < 0.5 else "value")
    if not any(stage.error for stage in stages.values()):
        first = problem.network.stages[0]
        stages[first.name] = _changed(first, np.full(len(first.modelled), 0.01), "value")
    return Case(problem, problem.network.assuming(stages), kind)


def _changed(stage: Stage, sizes: Array, forwards: str) -> Stage:
    changed = stage.assuming(stage.norm_bound, stage.lipschitz, stage.norm_bounds)  # a copy
    object.__setattr__(changed, "error", Bounded(tuple(sizes)) if sizes.any() else None)
    object.__setattr__(changed, "forwards", forwards)
    return changed


def _with_matrix(kernel: Stationary, seed: int) -> Problem:
    """A stage whose three outputs share a norm under k·A, with A nearly singular, and a stage after it."""
    rng = np.random.default_rng(seed)
    factor = rng.standard_normal((3, 3)) * [1.0, 0.3, 10 ** rng.uniform(-9, -1)]
    A = factor @ factor.T
    box = {"x": Real(-2, 2), "y": Real(-2, 2)}
    first = random_operator_expansion(Separable(kernel, A), [-2] * 2, [2] * 2, norm=2.0, outputs=3, rng=rng)
    joint = Separable(kernel, tuple(map(tuple, A.tolist())))
    f = Stage("f", box, outputs=["u", "v", "w"], kernel=joint, norm_bound=2.0, function=_by_name(first, ["x", "y"]))
    rest = certified("feed-forward-3", seed, kernel).network.stages[1]
    last = rest.function
    assert last is not None, "certified stages have their functions"

    def second(u: float, v: float, w: float) -> list[float]:
        return list(last(s1_1=u, s1_2=v, s1_3=w))

    g = Stage("g", parents=["f"], kernel=kernel, norm_bound=2.0, function=second)
    return _problem(Network([f, g]))


def _with_copies(kernel: Stationary, seed: int) -> Problem:
    """A stage that passes on a control and another that passes on a reading, with a logarithmic control."""
    stages = certified("controls", seed, kernel).network.stages
    f0, g0, h0 = (stage.function for stage in stages)
    assert f0 is not None, "certified stages have their functions"
    assert g0 is not None, "certified stages have their functions"
    assert h0 is not None, "certified stages have their functions"
    options: dict[str, Any] = {"kernel": kernel, "norm_bound": 2.0, "offset": 100.0}

    def f(t: float) -> list[float]:
        return [100.0 + f0(x=float(np.log(t)))[0], t]

    def g(u: float, t: float) -> list[float]:
        return [100.0 + g0(s1_1=u - 100.0, y=0.1 * t)[0], u]

    def h(v: float, u: float) -> list[float]:
        return [100.0 + h0(s2_1=v - 100.0, z=u - 100.0)[0]]

    scaled = {"kernel": _scaled(kernel)}
    network = Network(
        [
            Stage("f", {"t": Real(0.5, 8.0, log=True)}, outputs=["u", "t"], passes=["t"], function=f, **options),
            Stage("g", parents=["f"], outputs=["v", "u"], passes=["u"], function=g, **(options | scaled)),
            Stage("h", parents=["g"], outputs=["end"], function=h, **options),
        ]
    )
    return _problem(network)


def _scaled(kernel: Stationary) -> Stationary:
    """The kernel of inputs (u, t) of a function whose second input is 0.1·t."""
    inner = kernel.kernel if isinstance(kernel, Additive) else kernel
    ell = kernel.lengthscale if isinstance(kernel.lengthscale, float) else kernel.lengthscale[0]
    scales = (ell, 10.0 * ell)
    same = Matern(inner.nu, scales) if isinstance(inner, Matern) else SquaredExponential(scales)
    return Additive(same) if isinstance(kernel, Additive) else same


def _by_name(function: OperatorExpansion, names: list[str]) -> Callable[..., Any]:
    def call(**values: float) -> Any:
        return function(np.array([[values[name] for name in names]]))[0].tolist()

    return call


def _problem(network: Network) -> Problem:
    def values_at(points: Array) -> Array:
        values = np.full((len(points), network.width), np.nan)
        d = network.domain.dimension
        values[:, :d] = network.domain.encode(points)
        for row, point in zip(values, points, strict=True):
            for node in network.nodes:
                inputs = [float(point[c] if c < d else row[c]) for c in node.inputs]
                row[list(node.columns)] = _called_by_name(node, inputs)
        return values

    return Problem("own", "own", network, values_at, None)


def run(
    points: int,
    seed: int,
    structures: tuple[str, ...] = STRUCTURES,
    kernels: int = len(KERNELS),
    every: int = 1,
) -> Ledger:
    """Check every structure, kernel and kind of errors at growing numbers of runs, or every third combination."""
    ledger = Ledger()
    for s, structure in enumerate(structures):
        for k, kernel in enumerate(KERNELS[:kernels]):
            for e, kind in enumerate(KINDS):
                if (s + k + e) % every:
                    continue
                rng = np.random.default_rng([seed, s, k, e])
                check(ledger, structure, case(structure, kernel, kind, rng), points, rng)
    return ledger


def check(
    ledger: Ledger,
    structure: str,
    one: Case,
    points: int,
    rng: np.random.Generator,
    counts: tuple[int, ...] = COUNTS,
) -> None:
    """Learn runs in parts, up to these numbers; after each of them every bound must contain the truth."""
    note = f"{one.kind} errors {[s.error_bound.tolist() for s in one.network.stages]}"
    beliefs = ledger[f"{structure}: prior"].attempt(lambda: prior_beliefs(one.network), note)
    assert isinstance(beliefs, ReadBeliefs), "the network has errors"
    true = np.empty((0, one.network.width))
    for count in counts:
        X = design(one, count - len(true), true[:, : one.network.domain.dimension], rng)
        values, readings = one.run(X, rng)
        _hide(readings, one.network, rng)
        true = np.concatenate([true, values])
        grown = ledger[f"{structure}: learned"].attempt(_after(beliefs, readings, rng), note)
        if grown is None:
            return
        beliefs = grown
        ledger[f"{structure}: no evidence"].verdict(not beliefs.evidence, f"{note}: {beliefs.evidence}")
        if beliefs.evidence:
            return
        ledger[f"{structure}: latent values"].boxes(beliefs.latent.values, true, truths.NORM, note)
        column = one.network.objective_column
        best = int(beliefs.latent.values.lower[:, column].argmax())
        least = beliefs.latent.values.lower[best, column]
        ledger[f"{structure}: best proven run"].verdict(bool(least <= true[best, column]), note)
        check_bounds(ledger, structure, one, beliefs, points, rng, note)


def _after(beliefs: ReadBeliefs, readings: Array, rng: np.random.Generator) -> Callable[[], ReadBeliefs]:
    """Learn readings, and choose weights at a point or two."""
    domain = beliefs.network.domain
    near = readings[-1, : domain.dimension] + 0.05 * rng.standard_normal(domain.dimension)
    near = np.clip(near, domain.lower, domain.upper)
    near[domain.choices] = readings[-1, domain.choices]
    far = coded(domain, rng.uniform(domain.lower, domain.upper)[None], rng)[0]

    def learn() -> ReadBeliefs:
        return beliefs.append(readings).refined(near).refined(far)

    return learn


def design(one: Case, count: int, before: Array, rng: np.random.Generator) -> Array:
    """Points (n, d): half of them in a crowd, some repeated."""
    domain = one.network.domain
    X = rng.uniform(domain.lower, domain.upper, (count, domain.dimension))
    centre = rng.uniform(domain.lower, domain.upper)
    crowd = rng.random(count) < 0.5
    X[crowd] = centre + 10 ** rng.uniform(-6, -1) * rng.standard_normal((int(crowd.sum()), domain.dimension))
    X = coded(domain, np.clip(X, domain.lower, domain.upper), rng)
    everything = np.concatenate([before, X])
    repeated = rng.random(count) < 0.25
    X[repeated] = everything[rng.integers(len(everything), size=int(repeated.sum()))]
    return X


def coded(domain: Domain, X: Array, rng: np.random.Generator) -> Array:
    """Points (n, d) with random values of the choices in the place of numbers between two of them."""
    if not domain.choices:
        return X
    return np.where(np.isin(np.arange(domain.dimension), domain.choices), domain.uniform(rng, len(X)), X)


def _hide(readings: Array, network: Network, rng: np.random.Generator) -> None:
    """Remove the readings of some stages of some runs."""
    for row in readings:
        for node in network.nodes:
            if rng.random() < 0.1:
                row[list(node.columns)] = np.nan


def check_bounds(
    ledger: Ledger, structure: str, one: Case, beliefs: ReadBeliefs, points: int, rng: np.random.Generator, note: str
) -> None:
    """Check all values over points and cells, in both forms, their slopes, and the values of single stages."""
    domain, d = one.network.domain, one.network.domain.dimension
    runs = beliefs.latent.readings[:, :d]
    close = runs[rng.integers(len(runs), size=points // 2)]
    close = close + 10 ** rng.uniform(-6, -1, (points // 2, 1)) * rng.standard_normal(close.shape)
    Z = np.concatenate([rng.uniform(domain.lower, domain.upper, (points // 2, d)), close, runs])
    Z = coded(domain, np.clip(Z, domain.lower, domain.upper), rng)
    half = (domain.upper - domain.lower) * 10 ** rng.uniform(-6, 0, (len(Z), 1)) * rng.uniform(0, 0.5, Z.shape)
    half[:, domain.choices] = 0.0
    cells = Boxes(np.maximum(Z - half, domain.lower), np.minimum(Z + half, domain.upper))
    inside = truths.points_in(cells, 4, rng)
    at_points = one.problem.values(domain.decode(Z))[:, d:]
    in_cells = one.problem.values(domain.decode(inside.reshape(-1, d))).reshape(*inside.shape[:2], -1)[:, :, d:]
    forms: tuple[Form, ...] = ("union", "hull")
    for form in forms:
        for name, where, truth in (("points", Boxes(Z, Z), at_points), ("cells", cells, in_cells)):
            compute = _outputs(beliefs, where, form)
            ledger[f"{structure}: {name}, {form}"].try_boxes(compute, truth, truths.NORM, note)
    change = np.abs(in_cells[:, 1:] - in_cells[:, :1])  # (n, k, V)
    moved = np.abs(inside[:, 1:] - inside[:, :1])

    def margins() -> Array:
        steepest = slopes(beliefs, cells)[:, d:]  # (n, V, d)
        with np.errstate(invalid="ignore"):
            most = np.nansum(steepest[:, None] * moved[:, :, None], axis=3)
        return most - change + 1e-12 * np.abs(in_cells[:, 1:])

    ledger[f"{structure}: slopes"].try_margins(margins, change.size, note)
    for stage in beliefs.stages:
        if isinstance(stage.belief, BoundedBelief):
            at, belief, node = one.problem.values(domain.decode(Z)), stage.belief, stage.node
            inputs, outputs = at[:, list(node.inputs)], at[:, node.modelled_columns] - node.stage.offset
            rounding = 1e-13 * np.abs(node.stage.offset).max(initial=0.0)
            wide = Boxes(inputs - rounding, inputs + rounding)
            tally = ledger[f"{structure}: single stage"]
            tally.try_boxes(partial(cell_bounds, belief, wide), outputs, truths.NORM, note)


def _outputs(beliefs: ReadBeliefs, where: Boxes, form: Form) -> Callable[[], Boxes]:
    return lambda: truths.output_boxes(beliefs, where, form)
