"""Fast charging of a lithium-ion cell in three steps of ten minutes, computed with PyBaMM (the extra `simulators`).

A cell of 5 Ah (LG M50, parameters `OKane2022`) begins at 25 °C with a tenth of its charge. Each step has a current and
a temperature of the coolant. At 4.2 V the charger holds the voltage and lowers the current, as chargers do. A high
current charges fast and plates metallic lithium on the negative electrode, which is lost; a warm cell plates less and
ages more:

    current, coolant → charge, temperature, lost lithium → the same → the same → value

The value is a known formula. The single-particle model with quadratic profiles, a lumped temperature and irreversible
plating has four numbers as its state: the mean concentrations in both electrodes, the temperature and the plated
lithium. Charge and lost lithium give both concentrations, because lithium is conserved, and what was plated does not
change the rate of plating. So the outputs are the complete state: every stage is a function of its inputs.
"""

import os
from collections.abc import Callable
from functools import cache
from threading import Lock
from typing import Any

import numpy as np

from cascada.network import Stage
from cascada.network.network import Network
from cascada.problems.function_networks import Kernel
from cascada.problems.optional_module import optional_module, unless_installed
from cascada.problems.problem import Optimum, Problem
from cascada.problems.value_table import ValueTable
from cascada.space import Real

MINUTES = 10.0  # of a step
FIRST = 0.1  # state of charge at the beginning
AMBIENT = 25.0  # °C, of the cell at the beginning
HOLD = 4.2  # V, above which the charger does not go
COOLING = 50.0  # W/(m²·K), a cell between cooled plates
TOLERANCE = 1e-10  # of the solver, relative and absolute

# Value: points per Ah in the cell (1 % of its capacity is a point), per mAh of lost lithium, and per K² of warmth.
PER_CHARGE, PER_LOST, PER_WARMTH = 20.0, 0.5, 0.02

FARADAY = 96485.33212  # C/mol
KELVIN = 273.15

_ALONE = Lock()  # a simulation of PyBaMM is not for several threads at once

# Local search by gradients from Sobol points, then the simplex method; 60 runs of `auto` come to 45.05883.
BEST_KNOWN = Optimum(
    np.array([[5.0864985357010015, 25.64070786814142, 6.764793151385213, 32.23307595911638, 15.0, 39.54811226355281]]),
    45.059150736148815,
    "numerical",
)


def fast_charge(kernel: Kernel = None, norm_bound: float | None = None) -> Problem:
    """Three currents in A and temperatures of the coolant in °C → charge, temperature, lost lithium → value.

    The problem can be built and listed without PyBaMM; evaluating it needs PyBaMM.
    """
    current, coolant = Real(1.0, 15.0), Real(15.0, 50.0)
    stages = []
    functions: tuple[Callable[..., Any], ...] = (first, second, third)
    for i, function in enumerate(functions, 1):
        stages.append(
            Stage(
                f"step {i}",
                {f"current{i}": current, f"coolant{i}": coolant},
                outputs=[f"charge{i}", f"temperature{i}", f"lost{i}"],
                parents=[f"step {i - 1}"] if i > 1 else [],
                kernel=kernel,
                norm_bound=norm_bound,
                function=function,
                cost=MINUTES,
            )
        )
    measured = ["step 1.temperature1", "step 2.temperature2", "step 3"]
    network = Network([*stages, Stage("value", parents=measured, known=True, function=value, interval=value_between)])
    summary = "three currents and coolants → charge, temperature, lost lithium after each step → value"
    summary += unless_installed("pybamm", "simulators")
    return Problem("fast-charge", summary, network, ValueTable(network, one_by_one=True), BEST_KNOWN)


def first(current1: float, coolant1: float) -> tuple[float, float, float]:
    """Charge put in, in Ah, temperature in °C and lost lithium in mAh after the first step."""
    return charged(0.0, AMBIENT, 0.0, current1, coolant1)


def second(
    charge1: float, temperature1: float, lost1: float, current2: float, coolant2: float
) -> tuple[float, float, float]:
    """The same after the second step."""
    return charged(charge1, temperature1, lost1, current2, coolant2)


def third(
    charge2: float, temperature2: float, lost2: float, current3: float, coolant3: float
) -> tuple[float, float, float]:
    """The same after the third step."""
    return charged(charge2, temperature2, lost2, current3, coolant3)


def value(temperature1: Any, temperature2: Any, charge3: Any, temperature3: Any, lost3: Any) -> Any:
    """The value of the charge in points, a known formula."""
    warmth = sum((each - AMBIENT) ** 2 for each in (temperature1, temperature2, temperature3))
    return PER_CHARGE * charge3 - PER_LOST * lost3 - PER_WARMTH * warmth


def value_between(
    temperature1: tuple[float, float],
    temperature2: tuple[float, float],
    charge3: tuple[float, float],
    temperature3: tuple[float, float],
    lost3: tuple[float, float],
) -> tuple[float, float]:
    """The interval of values for intervals of all measurements, rounded outwards."""
    nearest, farthest = [], []
    for low, high in (temperature1, temperature2, temperature3):
        nearest.append(AMBIENT + max(low - AMBIENT, AMBIENT - high, 0.0))
        farthest.append(AMBIENT + max(AMBIENT - low, high - AMBIENT))
    low = value(farthest[0], farthest[1], charge3[0], farthest[2], lost3[1])
    high = value(nearest[0], nearest[1], charge3[1], nearest[2], lost3[0])
    size = PER_CHARGE * max(map(abs, charge3)) + PER_LOST * max(map(abs, lost3))
    slack = 1e-13 * (size + PER_WARMTH * sum((AMBIENT + each) ** 2 for each in map(abs, farthest)))
    return low - slack, high + slack


def charged(
    charge: float, temperature: float, lost: float, current: float, coolant: float, minutes: float = MINUTES
) -> tuple[float, float, float]:
    """The state after some minutes at a current, or at the highest voltage that the charger allows."""
    with _ALONE:
        return _charged((charge, temperature, lost), current, coolant, 60.0 * minutes)


def _charged(
    state: tuple[float, float, float], current: float, coolant: float, left: float
) -> tuple[float, float, float]:
    with_current, at_voltage = _simulation(at_voltage=False), _simulation(at_voltage=True)
    try:
        # The simulation ends early where the voltage reaches its limit.
        solution = with_current.solve([0.0, left], inputs={**_inputs(state, coolant), "Current function [A]": -current})
    except _pybamm().SolverError as error:
        if "non-positive at initial conditions" not in str(error):
            raise
    else:  # without that message: the voltage is below its limit at the beginning
        state, left = _after(state, solution), left - float(solution.t[-1])
    if left > 0.0:
        state = _after(state, at_voltage.solve([0.0, left], inputs=_inputs(state, coolant)))
    return state


def _inputs(state: tuple[float, float, float], coolant: float) -> dict[str, float]:
    """What PyBaMM needs to begin at a state."""
    charge, temperature, lost = state
    negative, positive = _electrodes()
    return {
        "Initial concentration in negative electrode [mol.m-3]": (
            negative[0] + (3600.0 * charge - 3.6 * lost) / FARADAY / negative[1]
        ),
        "Initial concentration in positive electrode [mol.m-3]": positive[0] - 3600.0 * charge / FARADAY / positive[1],
        "Initial temperature [K]": temperature + KELVIN,
        "Ambient temperature [K]": coolant + KELVIN,
    }


def _after(state: tuple[float, float, float], solution: Any) -> tuple[float, float, float]:
    def last(name: str) -> float:
        return float(solution[name].entries[-1])

    plated = last("Loss of lithium to negative lithium plating [mol]") * FARADAY / 3.6
    temperature = last("Volume-averaged cell temperature [K]") - KELVIN
    return state[0] - last("Discharge capacity [A.h]"), temperature, state[2] + plated


@cache
def _pybamm() -> Any:
    """PyBaMM, without its telemetry, which otherwise asks at the import and may report what is run."""
    os.environ["PYBAMM_DISABLE_TELEMETRY"] = "true"
    pybamm = optional_module("pybamm", "fast-charge", "simulators")
    pybamm.telemetry.disable()  # it may have been imported before
    return pybamm


@cache
def _electrodes() -> tuple[tuple[float, float], tuple[float, float]]:
    """The concentration at the beginning in mol/m³ and the volume in m³ of the negative and the positive electrode."""
    pybamm = _pybamm()
    cell = pybamm.ParameterValues("OKane2022")
    x0, x100, y100, y0 = map(float, pybamm.lithium_ion.get_min_max_stoichiometries(cell))
    area = cell["Electrode height [m]"] * cell["Electrode width [m]"]
    found = []
    for electrode, empty, full in (("negative", x0, x100), ("positive", y0, y100)):
        thickness = cell[f"{electrode.capitalize()} electrode thickness [m]"]
        share = cell[f"{electrode.capitalize()} electrode active material volume fraction"]
        most = cell[f"Maximum concentration in {electrode} electrode [mol.m-3]"]
        found.append(((empty + FIRST * (full - empty)) * most, area * thickness * share))
    return found[0], found[1]


@cache
def _simulation(at_voltage: bool) -> Any:
    """The model, built once, at a current or at the highest voltage; each use sets the whole state first."""
    pybamm = _pybamm()
    options = {"thermal": "lumped", "lithium plating": "irreversible", "particle": "quadratic profile"}
    cell = pybamm.ParameterValues("OKane2022")
    changes: dict[str, Any] = dict.fromkeys(_inputs((0.0, AMBIENT, 0.0), AMBIENT), "[input]")
    changes["Total heat transfer coefficient [W.m-2.K-1]"] = COOLING
    if at_voltage:
        options["operating mode"] = "voltage"
        changes |= {"Voltage function [V]": HOLD, "Upper voltage cut-off [V]": HOLD + 0.5}
    else:
        changes |= {"Current function [A]": "[input]", "Upper voltage cut-off [V]": HOLD}
    cell.update(changes, check_already_exists=False)
    solver = pybamm.IDAKLUSolver(rtol=TOLERANCE, atol=TOLERANCE)
    return pybamm.Simulation(pybamm.lithium_ion.SPM(options), parameter_values=cell, solver=solver)
