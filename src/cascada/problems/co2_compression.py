"""Three compressors that bring carbon dioxide to the pressure of a pipeline, computed with TESPy (extra `simulators`).

A capture plant gives 50 kg/s of carbon dioxide at 1.5 bar and 35 °C; the pipeline takes it at 110 bar, where it is as
dense as a liquid. Behind each compressor it is cooled by water. Each stage is solved as a network of a compressor, a
cooler, which is a heat exchanger of fixed size with a pressure drop, and a pump for its water, with the properties of
real fluids from CoolProp:

    ratio, water → pressure, temperature, power → ratio, water → the same → water → temperature, power → value

The last compressor makes what is missing to 110 bar. The value is a known formula: energy for a tonne, and a warmer gas
costs more further down. Colder gas takes less power to compress, but pumping more water takes power, too.

Water of 20 °C cannot condense carbon dioxide below 57 bar, and the pressures between the stages are below 50 bar. So it
stays a gas, pressure and temperature are its complete state, and every stage is a function of its inputs.
"""

from functools import cache
from typing import Any

import numpy as np

from cascada.network import Stage, StageError
from cascada.network.network import Network
from cascada.problems.function_networks import Kernel
from cascada.problems.optional_module import optional_module, unless_installed
from cascada.problems.problem import Optimum, Problem
from cascada.problems.value_table import ValueTable
from cascada.space import Real

FLOW = 50.0  # kg/s of carbon dioxide
INTAKE = (1.5, 35.0)  # bar, °C
PIPELINE = 110.0  # bar
WATER = 20.0  # °C
PUMPED, DRAINED = 6.0, 3.0  # bar, of the water before and behind a cooler
PUMP = 0.75  # isentropic efficiency of the pumps
# Of the three stages: isentropic efficiency, size of the cooler in kW/K, and its resistance to the flow in 1/m⁴.
EFFICIENCY = (0.82, 0.80, 0.78)
COOLER = (150.0, 150.0, 300.0)
RESISTANCE = (50.0, 400.0, 2000.0)

TONNES = 3.6 * FLOW  # an hour
WARM, PER_KELVIN = 30.0, 0.1  # kWh a tonne for every K above, in the pipeline

BEST_KNOWN = Optimum(np.array([[4.0, 100.0, 4.0, 100.0, 100.0]]), 0.0, "numerical")


def co2_compression(kernel: Kernel = None, norm_bound: float | None = None) -> Problem:
    """Two pressure ratios and three flows of cooling water in kg/s → pressures, temperatures, powers → energy, negated.

    The problem can be built and listed without TESPy; evaluating it needs TESPy.
    """
    water = Real(40.0, 400.0, log=True)
    assumed: dict[str, Any] = {"kernel": kernel, "norm_bound": norm_bound}
    stages = [
        Stage(
            "low",
            {"ratio1": Real(2.5, 6.0), "water1": water},
            outputs=["pressure1", "temperature1", "power1"],
            function=low,
            cost=2.0,
            **assumed,
        ),
        Stage(
            "middle",
            {"ratio2": Real(2.0, 5.5), "water2": water},
            outputs=["pressure2", "temperature2", "power2"],
            parents=["low.pressure1", "low.temperature1"],
            function=middle,
            cost=2.0,
            **assumed,
        ),
        Stage(
            "high",
            {"water3": water},
            outputs=["temperature3", "power3"],
            parents=["middle.pressure2", "middle.temperature2"],
            function=high,
            cost=3.0,
            **assumed,
        ),
        Stage(
            "value",
            parents=["low.power1", "middle.power2", "high"],
            known=True,
            function=value,
            interval=value_between,
        ),
    ]
    network = Network(stages)
    summary = "two pressure ratios, three flows of water → pressures, temperatures, powers → −energy"
    summary += unless_installed("tespy", "simulators")
    return Problem("co2-compression", summary, network, ValueTable(network, one_by_one=True), BEST_KNOWN)


def low(ratio1: float, water1: float) -> tuple[float, float, float]:
    """Pressure in bar and temperature in °C behind the first cooler, and the power of compressor and pump in kW."""
    return compressed(0, *INTAKE, water1, ratio=ratio1)


def middle(pressure1: float, temperature1: float, ratio2: float, water2: float) -> tuple[float, float, float]:
    """The same of the second stage."""
    return compressed(1, pressure1, temperature1, water2, ratio=ratio2)


def high(pressure2: float, temperature2: float, water3: float) -> tuple[float, float]:
    """Temperature in °C behind the third cooler, and the power of compressor and pump in kW."""
    return compressed(2, pressure2, temperature2, water3, behind=PIPELINE)[1:]


def value(power1: Any, power2: Any, temperature3: Any, power3: Any) -> Any:
    """The energy for a tonne in kWh, negated, a known formula."""
    return -(power1 + power2 + power3) / TONNES - PER_KELVIN * (temperature3 - WARM)


def value_between(
    power1: tuple[float, float],
    power2: tuple[float, float],
    temperature3: tuple[float, float],
    power3: tuple[float, float],
) -> tuple[float, float]:
    """The interval of values for intervals of powers and temperature, rounded outwards."""
    pairs = (power1, power2, temperature3, power3)
    sizes = [max(map(abs, pair)) for pair in pairs]
    slack = 1e-14 * (sum(sizes) / TONNES + PER_KELVIN * (sizes[2] + WARM))
    return value(*(high for _, high in pairs)) - slack, value(*(low for low, _ in pairs)) + slack


def compressed(
    stage: int, pressure: float, temperature: float, water: float, **wanted: float
) -> tuple[float, float, float]:
    """Pressure, temperature and power of a stage with a pressure `ratio`, or with the pressure `behind` its cooler.

    The network is built anew every time: a solver that began at the solution before would depend on it.
    """
    parts, connections, networks = _tespy()
    network = networks.Network(iterinfo=False)
    network.units.set_defaults(
        pressure="bar",
        pressure_difference="bar",
        temperature="degC",
        power="kW",
        heat="kW",
        heat_transfer_coefficient="kW/K",
    )
    compressor, cooler, pump = parts.Compressor("compressor"), parts.HeatExchanger("cooler"), parts.Pump("pump")

    def between(source: Any, out: str, target: Any, into: str, **known: Any) -> Any:
        made = connections.Connection(source, out, target, into)
        made.set_attr(**known)
        network.add_conns(made)
        return made

    gas = {"fluid": {"CO2": 1}, "m": FLOW, "p": pressure, "T": temperature}
    between(parts.Source("gas"), "out1", compressor, "in1", **gas)
    between(compressor, "out1", cooler, "in1")
    cooled = between(cooler, "out1", parts.Sink("next"), "in1")
    cold = {"fluid": {"water": 1}, "m": water, "p": 1.0, "T": WATER}
    between(parts.Source("basin"), "out1", pump, "in1", **cold)
    between(pump, "out1", cooler, "in2", p=PUMPED)
    between(cooler, "out2", parts.Sink("drain"), "in1")
    pump.set_attr(eta_s=PUMP)
    compressor.set_attr(eta_s=EFFICIENCY[stage])
    cooler.set_attr(UA=COOLER[stage], zeta1_d4=RESISTANCE[stage], dp2=PUMPED - DRAINED)
    if "ratio" in wanted:
        compressor.set_attr(pr=wanted["ratio"])
    else:
        cooled.set_attr(p=wanted["behind"])
    try:
        network.solve("design", print_results=False)
        problem = None if network.status == 0 else f"status {network.status}"
    except ValueError as error:  # a state that the properties of the fluid do not cover
        problem = str(error)
    if problem is not None:
        raise StageError(
            f"TESPy found no state of the stage for {pressure:g} bar, {temperature:g} °C and {water:g} kg/s of water "
            f"({problem}). The stage takes gas at {INTAKE[0]:g} to 50 bar, warmer than {WATER:g} °C."
        )
    return float(cooled.p.val), float(cooled.T.val), float(compressor.P.val + pump.P.val)


@cache
def _tespy() -> tuple[Any, Any, Any]:
    """The modules of TESPy for components, connections and networks."""
    components, connections, networks = (
        optional_module(f"tespy.{name}", "co2-compression", "simulators")
        for name in ("components", "connections", "networks")
    )
    return components, connections, networks
