"""A beamline in three segments with two quadrupole magnets each, computed with Cheetah (the extra `simulators-torch`).

A beam of electrons of 100 MeV passes the segments; their magnets focus it in one direction and spread it in the other.
The controls are the six strengths. Behind every segment a screen and the slits next to it measure the sizes of the beam
in both directions and how they grow: with the emittance, which magnets do not change, they are the complete state of a
beam without coupling. A last formula says how round and small the spot on the target is:

    k1, k2 → sizes and growths → k3, k4 → sizes and growths → k5, k6 → sizes → value
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from cascada.arrays import Array
from cascada.network import Stage, chain
from cascada.problems.function_networks import Kernel
from cascada.problems.optional_module import optional_module, unless_installed
from cascada.problems.problem import Optimum, Problem
from cascada.problems.value_table import Column, ValueTable
from cascada.space import Real

ENERGY = 100.0e6  # eV
EMITTANCE = 2.0e-8  # m·rad in both directions
START = {"beta_x": 8.0, "alpha_x": 1.0, "beta_y": 3.0, "alpha_y": -0.5}  # m, no unit
STRENGTH = 6.0  # 1/m², the largest
MAGNET, BETWEEN, AFTER = 0.2, 0.4, 1.2  # m: of a magnet, of the gaps between them and before the screen
WANTED = 0.1  # mm, the size of the spot in both directions
SMALLEST = 1e-6  # mm: a model of the sizes may predict less, which no beam has

# No quality is above 0, and this point attains it: found by local searches from a Sobol sample. There are others.
BEST_KNOWN = Optimum(
    np.array(
        [
            [
                -2.568412670593048,
                -0.1785547468749744,
                -0.7407830250882288,
                4.10878643781091,
                -5.998024358852246,
                2.631030955710335,
            ]
        ]
    ),
    0.0,
    "numerical",
)


def beamline(kernel: Kernel = None, norm_bound: float | None = None) -> Problem:
    """The strengths of six quadrupoles in 1/m² → sizes of the beam on three screens in mm → quality of the spot.

    The problem can be built and listed without Cheetah; evaluating it needs Cheetah.
    """
    strength = Real(-STRENGTH, STRENGTH)
    stages = []
    functions: tuple[Callable[..., Any], ...] = (first, second, third)
    for i, function in enumerate(functions, 1):
        outputs = [f"{name}{i}" for name in ("width", "height", "wider", "higher")][: 4 if i < 3 else 2]
        controls = {f"k{2 * i - 1}": strength, f"k{2 * i}": strength}
        stages.append(
            Stage(f"segment {i}", controls, outputs=outputs, kernel=kernel, norm_bound=norm_bound, function=function)
        )
    network = chain(*stages, Stage("spot", known=True, function=spot, interval=spot_between))
    summary = "six quadrupoles in three segments → beam sizes on three screens → quality of the spot"
    summary += unless_installed("cheetah", "simulators-torch")
    return Problem("beamline", summary, network, ValueTable(network), BEST_KNOWN)


def first(k1: Column, k2: Column) -> tuple[Column, ...]:
    """Width and height of the beam in mm on the first screen, and how much they grow in mm/m behind it."""
    return _measured(_through(START, k1, k2))


def second(
    width1: Column, height1: Column, wider1: Column, higher1: Column, k3: Column, k4: Column
) -> tuple[Column, ...]:
    """The same on the second screen."""
    return _measured(_through(_state(width1, height1, wider1, higher1), k3, k4))


def third(
    width2: Column, height2: Column, wider2: Column, higher2: Column, k5: Column, k6: Column
) -> tuple[Column, ...]:
    """Width and height of the spot in mm."""
    return _measured(_through(_state(width2, height2, wider2, higher2), k5, k6))[:2]


def spot(width3: Column, height3: Column) -> Column:
    """The quality of the spot: 0 where it is as wide and as high as wanted, a known formula."""
    sizes = (np.maximum(size, SMALLEST) / WANTED for size in (width3, height3))
    return -sum(np.log(size) ** 2 for size in sizes)


def spot_between(width3: tuple[float, float], height3: tuple[float, float]) -> tuple[float, float]:
    """The interval of qualities for intervals of both sizes, rounded outwards."""
    nearest = farthest = 0.0
    for low, high in (width3, height3):
        ends = [float(np.log(max(end, SMALLEST) / WANTED)) for end in (low, high)]
        slack = 1e-14 * (1.0 + max(map(abs, ends)))
        nearest += max(ends[0] - slack, -ends[1] - slack, 0.0) ** 2
        farthest += (max(map(abs, ends)) + slack) ** 2
    return -farthest * (1.0 + 1e-14), -nearest * (1.0 - 1e-14)


def _state(width: Column, height: Column, wider: Column, higher: Column) -> dict[str, Column]:
    """The Twiss parameters of a beam from what is measured: σ² = β·ε, and dσ/ds = −α·ε/σ."""
    sizes = [np.maximum(np.asarray(size, dtype=np.float64), SMALLEST) * 1e-3 for size in (width, height)]
    growths = [np.asarray(growth, dtype=np.float64) * 1e-3 for growth in (wider, higher)]
    found = {}
    for axis, size, growth in zip("xy", sizes, growths, strict=True):
        found[f"beta_{axis}"], found[f"alpha_{axis}"] = size**2 / EMITTANCE, -growth * size / EMITTANCE
    return found


def _measured(beam: Any) -> tuple[Array, ...]:
    beta, alpha = ([getattr(beam, f"{name}_{axis}").numpy() for axis in "xy"] for name in ("beta", "alpha"))
    sizes = [np.sqrt(b * EMITTANCE) for b in beta]
    growths = [-a * EMITTANCE / size for a, size in zip(alpha, sizes, strict=True)]
    return tuple(1e3 * each for each in (*sizes, *growths))


def _through(state: dict[str, Column], k1: Column, k2: Column) -> Any:
    """The beam behind a segment; all arguments are numbers, or columns of numbers."""
    cheetah, torch = (optional_module(name, "beamline", "simulators-torch") for name in ("cheetah", "torch"))

    def tensor(values: Column) -> Any:
        return torch.as_tensor(np.array(values, dtype=np.float64))  # a copy, which torch may write to

    exact = {"dtype": torch.float64}
    beam = cheetah.ParameterBeam.from_twiss(
        **{name: tensor(value) for name, value in state.items()},
        emittance_x=tensor(EMITTANCE),
        emittance_y=tensor(EMITTANCE),
        energy=tensor(ENERGY),
        **exact,
    )
    segment = cheetah.Segment(
        [
            cheetah.Quadrupole(length=tensor(MAGNET), k1=tensor(k1), **exact),
            cheetah.Drift(length=tensor(BETWEEN), **exact),
            cheetah.Quadrupole(length=tensor(MAGNET), k1=tensor(k2), **exact),
            cheetah.Drift(length=tensor(AFTER), **exact),
        ]
    )
    return segment.track(beam)
