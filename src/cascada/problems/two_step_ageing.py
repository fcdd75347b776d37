"""Two-step ageing of an aluminium–zirconium alloy, based on the model in `precipitation`.

The case is that of Nguyen et al., "Cascade Bayesian optimization" (2016): a heat treatment in two steps, the state of
the alloy between them, and its strength at the end. A low temperature forms many nuclei. A high temperature lets them
grow before the solute is lost to grain boundaries. After too long a time they coarsen. The best treatment lies inside
all ranges. There is a second local maximum of 145 MPa, about the best strength of a single step.
"""

import numpy as np

from cascada.network import Stage, chain
from cascada.problems.function_networks import Kernel
from cascada.problems.precipitation import AS_QUENCHED, Precipitates, aged, yield_strength
from cascada.problems.problem import Optimum, Problem
from cascada.problems.value_table import ValueTable
from cascada.space import Real

_STATE = ("radius", "density", "solute")

# Found by `python -m benchmarks.best_known`.
BEST_KNOWN = Optimum(
    np.array([[398.05611844774495, 9.283730184722812, 465.0096231838369, 1.852718742402213]]),
    151.35824697455078,
    "numerical",
)


def ageing(kernel: Kernel = None, norm_bound: float | None = None) -> Problem:
    """(T1, t1) → state → with (T2, t2) → state → yield strength in MPa.

    T in °C, t in hours on a logarithmic scale. The state is the mean radius of the precipitates in nm, log₁₀ of their
    number per m³, and the atomic fraction of solute left.
    """
    network = chain(
        Stage(
            "age 1",
            {"T1": Real(350.0, 500.0), "t1": Real(0.3, 30.0, log=True)},
            outputs=_STATE,
            kernel=kernel,
            norm_bound=norm_bound,
            function=first_step,
        ),
        Stage(
            "age 2",
            {"T2": Real(350.0, 500.0), "t2": Real(0.3, 30.0, log=True)},
            outputs=_STATE,
            kernel=kernel,
            norm_bound=norm_bound,
            function=second_step,
        ),
        Stage("test", outputs=["strength"], kernel=kernel, norm_bound=norm_bound, function=strength),
    )
    summary = "two ageing steps of an alloy, 3 state variables → strength"
    return Problem("ageing", summary, network, ValueTable(network, one_by_one=True), BEST_KNOWN)


def first_step(T1: float, t1: float) -> tuple[float, float, float]:
    """The state after the first step, from the quenched alloy."""
    return _as_outputs(aged(AS_QUENCHED, T1, t1))


def second_step(radius: float, density: float, solute: float, T2: float, t2: float) -> tuple[float, float, float]:
    """The state after the second step."""
    return _as_outputs(aged(Precipitates(radius, density, solute), T2, t2))


def strength(radius: float, density: float, solute: float) -> float:
    """Yield strength in MPa."""
    return yield_strength(Precipitates(radius, density, solute))


def _as_outputs(state: Precipitates) -> tuple[float, float, float]:
    return state.radius, state.density, state.solute
