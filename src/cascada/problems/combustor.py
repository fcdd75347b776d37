"""A gas turbine combustor in three stages, computed with Cantera (the extra `simulators`).

Methane and air at 700 K and 10 bar burn in three stirred reactors, one after the other, with the reactions of GRI-Mech
3.0 (53 species):

    mixture and residence time → T, O₂, CO, NO → second mixture → T, O₂, CO, NO → air and burn-out → T, CO, NO → value

The value is a known formula: hot exhaust is worth something, nitrogen oxide and carbon monoxide cost something. Hot and
slow makes nitrogen oxide; cool and quick leaves carbon monoxide.

What one stage hands on is what a probe measures: temperature, oxygen, carbon monoxide and nitrogen oxide. The rest of
the gas follows from the balance of atoms of a lean flame: carbon dioxide, water and nitrogen. Radicals are left out;
they form again within microseconds. So the outputs are the complete state: every stage is a function of its inputs.
"""

from functools import cache
from threading import get_ident
from typing import Any

import numpy as np

from cascada.network import Stage, chain
from cascada.network.network import Network
from cascada.problems.function_networks import Kernel
from cascada.problems.optional_module import optional_module, unless_installed
from cascada.problems.problem import Optimum, Problem
from cascada.problems.value_table import ValueTable
from cascada.space import Real

PRESSURE = 10.0e5  # Pa
PREHEATED = 700.0  # K, of all mixtures and of the air
AIR = 0.79 / 0.21  # moles of nitrogen for one of oxygen

# Value of the exhaust: points per K above the reference, and per ppm of both pollutants.
REFERENCE, PER_KELVIN, PER_NO, PER_CO = 1600.0, 0.1, 0.5, 0.05

# 41 runs of `auto`, then Newton's method with finite differences for the two controls that are not at an end.
BEST_KNOWN = Optimum(
    np.array([[0.5003110699734615, 1.0, 0.5113862619687818, 0.75, 1.0, 0.0, 2.0]]), 24.188001218665917, "numerical"
)


def combustor(kernel: Kernel = None, norm_bound: float | None = None) -> Problem:
    """Two mixtures, air and three residence times → temperature and emissions → the value of the exhaust.

    The problem can be built and listed without Cantera; evaluating it needs Cantera.
    """
    mixture, time = Real(0.45, 0.75), Real(1.0, 20.0, log=True)
    network: Network = chain(
        Stage(
            "primary",
            {"phi1": mixture, "t1": time},
            outputs=["temperature1", "oxygen1", "co1", "no1"],
            kernel=kernel,
            norm_bound=norm_bound,
            function=primary,
            cost=2.0,
        ),
        Stage(
            "secondary",
            {"share": Real(0.1, 0.6), "phi2": mixture, "t2": time},
            outputs=["temperature2", "oxygen2", "co2", "no2"],
            kernel=kernel,
            norm_bound=norm_bound,
            function=secondary,
            cost=3.0,
        ),
        Stage(
            "burnout",
            {"air": Real(0.0, 0.3), "t3": Real(2.0, 30.0, log=True)},
            outputs=["temperature3", "co3", "no3"],
            kernel=kernel,
            norm_bound=norm_bound,
            function=burnout,
            cost=1.0,
        ),
        Stage("value", known=True, function=value, interval=value_between),
    )
    summary = "two mixtures, air, three times → three reactors → temperature, CO, NO → value"
    summary += unless_installed("cantera", "simulators")
    return Problem("combustor", summary, network, ValueTable(network, one_by_one=True), BEST_KNOWN)


def primary(phi1: float, t1: float) -> tuple[float, ...]:
    """Temperature in K, oxygen in %, CO and NO in ppm after the first reactor; t1 in ms."""
    gas = _gas()
    return _measured(_reacted(_fresh(gas, phi1), t1))


def secondary(
    temperature1: float, oxygen1: float, co1: float, no1: float, share: float, phi2: float, t2: float
) -> tuple[float, ...]:
    """The same after `share` kg of a second mixture were added to every kg of gas; t2 in ms."""
    gas = _gas()
    mixed = _burnt(gas, temperature1, oxygen1, co1, no1, 1.0) + _fresh(gas, phi2, share)
    return _measured(_reacted(mixed, t2))


def burnout(
    temperature2: float, oxygen2: float, co2: float, no2: float, air: float, t3: float
) -> tuple[float, float, float]:
    """Temperature in K, CO and NO in ppm after `air` kg of air were added to every kg of gas; t3 in ms."""
    gas = _gas()
    mixed = _burnt(gas, temperature2, oxygen2, co2, no2, 1.0) + _fresh(gas, 0.0, air)
    temperature, _, co, no = _measured(_reacted(mixed, t3))
    return temperature, co, no


def value(temperature3: Any, co3: Any, no3: Any) -> Any:
    """The value of the exhaust in points, a known formula."""
    return PER_KELVIN * (temperature3 - REFERENCE) - PER_NO * no3 - PER_CO * co3


def value_between(
    temperature3: tuple[float, float], co3: tuple[float, float], no3: tuple[float, float]
) -> tuple[float, float]:
    """The interval of values for intervals of temperature and emissions, rounded outwards."""
    sizes = [max(map(abs, pair)) for pair in (temperature3, co3, no3)]
    slack = 1e-14 * (PER_KELVIN * (sizes[0] + REFERENCE) + PER_CO * sizes[1] + PER_NO * sizes[2])
    low = value(temperature3[0], co3[1], no3[1]) - slack
    return low, value(temperature3[1], co3[0], no3[0]) + slack


def _gas() -> Any:
    """The gas of this thread; each use sets its whole state first, so that no call depends on the one before."""
    return _loaded(get_ident())


@cache
def _loaded(thread: int) -> Any:  # noqa: ARG001 - threads may not share a gas: a state would mix with another
    return optional_module("cantera", "combustor", "simulators").Solution("gri30.yaml")


def _fresh(gas: Any, phi: float, mass: float = 1.0) -> Any:
    """Methane and air of an equivalence ratio, 0 for air alone."""
    cantera = optional_module("cantera", "combustor", "simulators")
    gas.TPX = PREHEATED, PRESSURE, {"CH4": phi / 2.0, "O2": 1.0, "N2": AIR}
    return cantera.Quantity(gas, mass=mass, constant="HP")


def _burnt(gas: Any, temperature: float, oxygen: float, co: float, no: float, mass: float) -> Any:
    """The gas of a lean flame with what a probe measures: oxygen in %, CO and NO in ppm of all moles.

    For every mole of methane, 2a moles of oxygen, 2a·AIR of nitrogen, c of carbon monoxide and n moles in all:
    c = x_CO·n,  2a − 2 + c/2 = x_O₂·n,  n = 1 + c/2 + 2a(1 + AIR). These are three linear equations.
    """
    cantera = optional_module("cantera", "combustor", "simulators")
    x_oxygen, x_co, x_no = oxygen / 100.0, co * 1e-6, no * 1e-6
    left = np.array([[0.0, 1.0, -x_co], [2.0, 0.5, -x_oxygen], [-2.0 * (1.0 + AIR), -0.5, 1.0]])
    a, c, n = np.linalg.solve(left, np.array([0.0, 2.0, 1.0])).tolist()
    # Clipped, since a model may try values that no flame gives.
    moles = {"O2": x_oxygen * n, "CO": c, "CO2": 1.0 - c, "H2O": 2.0, "N2": 2.0 * a * AIR, "NO": x_no * n}
    gas.TPX = temperature, PRESSURE, {name: max(value, 0.0) for name, value in moles.items()}
    return cantera.Quantity(gas, mass=mass, constant="HP")


def _reacted(inflow: Any, milliseconds: float) -> Any:
    """The gas that leaves a burning stirred reactor in its steady state."""
    cantera = optional_module("cantera", "combustor", "simulators")
    gas, seconds = inflow.phase, milliseconds / 1000.0
    gas.TPX = inflow.T, PRESSURE, inflow.X
    entrance, exit_ = cantera.Reservoir(gas, clone=True), cantera.Reservoir(gas, clone=True)
    gas.equilibrate("HP")  # the reactor is lit
    reactor = cantera.IdealGasReactor(gas, clone=True)
    flow = cantera.MassFlowController(entrance, reactor, mdot=lambda _: reactor.mass / seconds)
    cantera.PressureController(reactor, exit_, primary=flow, K=1e-5)
    network = cantera.ReactorNet([reactor])
    network.rtol, network.atol = 1e-9, 1e-16
    network.advance_to_steady_state()
    return reactor.phase


def _measured(gas: Any) -> tuple[float, float, float, float]:
    oxygen, co, no = (float(gas[name].X[0]) for name in ("O2", "CO", "NO"))
    return float(gas.T), 100.0 * oxygen, 1e6 * co, 1e6 * no
