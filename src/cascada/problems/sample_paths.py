"""Cascades of Gaussian process sample paths, as in Kusakawa et al. (2021), to be maximised.

Each stage is a sample of a zero-mean Gaussian process with a squared exponential kernel, lengthscale 3 and standard
deviation 10/2.58 (99 % of its values lie in [−10, 10]), approximated by 1000 random Fourier features:

    f(u) = Σ_j w_j·√(2/1000)·cos(ω_j·u + φ_j),    ω_j ~ N(0, 1/3²),    φ_j uniform,    w_j ~ N(0, (10/2.58)²).

Its inputs u are the unscaled output of the previous stage and two controls in [−10, 10]. A sum of cosines does not
decay at infinity, so it has no finite norm under its own kernel on any box: norm bounds of these stages are not proven.

The maximum is found stage by stage, in two or three dimensions instead of six or ten. A stage is continuous, so its
values over a box fill an interval, which is one side of the box of the next stage. Hence the maximum of the last stage
over its box is the maximum of the cascade. An output of a stage is attained on the line from a minimiser of that stage
to a maximiser.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from cascada.arrays import Array
from cascada.errors import ArgumentError
from cascada.network import Stage, chain
from cascada.problems.function_networks import Kernel
from cascada.problems.problem import Optimum, Problem
from cascada.problems.value_table import Column, ValueTable
from cascada.space import Real

BOX = 10.0
LENGTHSCALE = 3.0
DEVIATION = 10.0 / 2.58
FEATURES = 1000

_BLOCK = 512  # points processed at once, which limits the memory
_SAMPLE = 13  # log2 of the number of Sobol points, from which local searches start
_STARTS = 12

# Results of `stagewise_optimum` for seed 0 by number of stages, recorded so that listing problems is fast.
_RECORDED: dict[int, tuple[Sequence[float], float]] = {
    3: (
        (-7.58303381765592, 4.613870973958788, 9.45749495378757, 2.1512977420947155, -10.0, -1.7706172893259504),
        15.781075269711774,
    ),
    5: (
        (
            *(-7.86058510046135, 4.819543587602244, 7.075518753533056, 2.7903597926233563, -4.553972620150898),
            *(-7.769483300335859, -0.043823456781084305, -5.631985989829793, -0.6144443728941306, -4.072674455323293),
        ),
        10.725977268883199,
    ),
}


@dataclass(frozen=True, eq=False)
class SamplePath:
    """A sum of cosines of named inputs, which are numbers or columns of numbers."""

    inputs: tuple[str, ...]
    frequencies: Array  # (inputs, features)
    phases: Array  # (features,)
    weights: Array  # (features,)

    def __call__(self, **values: Column) -> Array:
        points = np.stack(
            np.broadcast_arrays(*(np.asarray(values[name], dtype=np.float64) for name in self.inputs)), -1
        )
        flat = points.reshape(-1, len(self.inputs))
        blocks = [flat[i : i + _BLOCK] for i in range(0, len(flat), _BLOCK)]
        found = [np.cos(block @ self.frequencies + self.phases) @ self.weights for block in blocks]
        return np.concatenate([np.empty(0), *found]).reshape(points.shape[:-1])

    def value_and_gradient(self, point: Array) -> tuple[float, Array]:
        """Value and gradient at one point (inputs,)."""
        angles = point @ self.frequencies + self.phases
        return float(np.cos(angles) @ self.weights), -self.frequencies @ (np.sin(angles) * self.weights)


def sample_path(inputs: tuple[str, ...], rng: np.random.Generator) -> SamplePath:
    """A random sample path."""
    frequencies = rng.standard_normal((len(inputs), FEATURES)) / LENGTHSCALE
    phases = rng.uniform(0.0, 2.0 * np.pi, FEATURES)
    weights = DEVIATION * np.sqrt(2.0 / FEATURES) * rng.standard_normal(FEATURES)
    return SamplePath(inputs, frequencies, phases, weights)


def sample_path_cascade(
    stages: int = 3, seed: int = 0, kernel: Kernel = None, norm_bound: float | None = None
) -> Problem:
    """Stages y1, y2, … with two controls each; the same seed gives the same cascade."""
    if stages < 2:
        raise ArgumentError(f"a cascade must have at least 2 stages; got {stages}.")
    rng = np.random.default_rng(seed)
    paths, made = [], []
    for i in range(1, stages + 1):
        controls = (f"x{i}a", f"x{i}b")
        paths.append(sample_path(controls if i == 1 else (f"y{i - 1}", *controls), rng))
        box = {control: Real(-BOX, BOX) for control in controls}
        made.append(Stage(f"y{i}", box, kernel=kernel, norm_bound=norm_bound, function=paths[-1]))
    network = chain(*made)
    answer: Optimum | partial[Optimum] = partial(stagewise_optimum, paths)
    if seed == 0 and stages in _RECORDED:
        point, value = _RECORDED[stages]
        answer = Optimum(np.array([point]), value, "numerical")
    summary = f"{stages} stages, Gaussian process samples of 1000 features, 2 controls each"
    return Problem(f"sample-path-cascade-{stages}", summary, network, ValueTable(network), answer)


def stagewise_optimum(paths: Sequence[SamplePath]) -> Optimum:
    """The maximum of a cascade of sample paths, by a search over the two or three inputs of each stage."""
    from scipy.optimize import brentq

    ends: list[tuple[Array, Array]] = []  # a minimiser and a maximiser of each stage
    side: tuple[tuple[float, float], ...] = ()  # the range of the previous stage
    for path in paths:
        box = np.array([*side, (-BOX, BOX), (-BOX, BOX)])
        ends.append((_extreme(path, box, -1.0), _extreme(path, box, 1.0)))
        side = ((_at(path, ends[-1][0]), _at(path, ends[-1][1])),)
    inputs = ends[-1][1]
    controls = [inputs[1:]]
    for path, (low, high) in zip(reversed(paths[:-1]), reversed(ends[:-1]), strict=True):
        wanted = float(np.clip(inputs[0], _at(path, low), _at(path, high)))

        def short(t: float, path: SamplePath = path, low: Array = low, high: Array = high, y: float = wanted) -> float:
            return _at(path, low + t * (high - low)) - y

        inputs = low + brentq(short, 0.0, 1.0, xtol=1e-15, rtol=1e-15) * (high - low)
        controls.append(inputs[1:] if path is not paths[0] else inputs)
    return Optimum(np.concatenate(controls[::-1])[None], _at(paths[-1], ends[-1][1]), "numerical")


def _at(path: SamplePath, point: Array) -> float:
    return path.value_and_gradient(point)[0]


def _extreme(path: SamplePath, box: Array, sign: float) -> Array:
    """A maximiser of `sign` times a path over a box (inputs, 2)."""
    from scipy.optimize import Bounds, minimize
    from scipy.stats import qmc

    points = qmc.scale(qmc.Sobol(len(box), seed=0).random_base2(_SAMPLE), box[:, 0], box[:, 1])
    values = sign * path(**dict(zip(path.inputs, points.T, strict=True)))

    def negated(x: Array) -> tuple[float, Array]:
        value, gradient = path.value_and_gradient(x)
        return -sign * value, -sign * gradient

    bounds = Bounds(box[:, 0], box[:, 1])
    starts = points[np.argsort(-values)[:_STARTS]]
    found = [
        minimize(negated, x, jac=True, method="L-BFGS-B", bounds=bounds, options={"ftol": 1e-15, "gtol": 1e-10})
        for x in starts
    ]
    return np.clip(min(found, key=lambda result: float(result.fun)).x, box[:, 0], box[:, 1])
