"""Fast charging of a lithium-ion cell in three stages, computed with PyBaMM (the extra `simulators`).

A cell of 5 Ah (LG M50; parameters of O'Kane et al. 2022) is charged from 10 % by three currents for eight minutes each,
with a pause after each in which concentrations even out. The fan may blow harder in each. The single particle model
with electrolyte, a lumped temperature, growth of the SEI and plating of lithium gives

    current, cooling → charge, temperature, loss → current, cooling → the same → current, cooling → the same → value

Charge and temperature after a pause are the complete state. The value is a known formula: the charge, less what the
wear and the fan cost. Hot cells lose lithium to the SEI, and quick charging of a full or a cold cell plates it.
"""

import os
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from cascada.network import Network, Stage
from cascada.problems.function_networks import Kernel
from cascada.problems.optional_module import optional_module, unless_installed
from cascada.problems.problem import Optimum, Problem
from cascada.problems.value_table import ValueTable
from cascada.space import Real

CAPACITY = 5.0  # A·h
EMPTY = 10.0  # % of the capacity, at the start
ROOM = 298.15  # K
SECONDS = 480.0  # of each stage
RATES = ((0.5, 1.8), (0.4, 1.5), (0.3, 1.2))  # A of charge for every A·h of the capacity
COOLING = (10.0, 60.0)  # W/(m²·K) of the surface

PER_LOSS, PER_FAN = 0.6, 0.04  # what a lost mA·h and a W/(m²·K) of cooling cost, in % of charge

BEST_KNOWN = Optimum(np.array([[1.5, 30.0, 1.0, 30.0, 0.7, 30.0]]), 0.0, "numerical")


def fast_charge(kernel: Kernel = None, norm_bound: float | None = None) -> Problem:
    """Three currents (in C) and coolings (in W/(m²·K)) → charge, temperature and loss of capacity → value.

    The problem can be built and listed without PyBaMM; evaluating it needs PyBaMM.
    """
    stages = []
    functions: tuple[Callable[..., Any], ...] = (first, second, third)
    for i, (function, rates) in enumerate(zip(functions, RATES, strict=True), 1):
        stages.append(
            Stage(
                f"charge {i}",
                {f"rate{i}": Real(*rates), f"fan{i}": Real(*COOLING, log=True)},
                outputs=[f"charge{i}", f"temperature{i}", f"loss{i}"],
                parents=[f"charge {i - 1}.charge{i - 1}", f"charge {i - 1}.temperature{i - 1}"] if i > 1 else None,
                kernel=kernel,
                norm_bound=norm_bound,
                function=function,
            )
        )
    last = Stage(
        "value",
        {f"fan{i}": Real(*COOLING, log=True) for i in (1, 2, 3)},
        parents=["charge 3.charge3", *(f"charge {i}.loss{i}" for i in (1, 2, 3))],
        known=True,
        function=value,
        interval=value_between,
    )
    network = Network([*stages, last])
    summary = "three currents and coolings → charge, temperature and loss after each → value"
    summary += unless_installed("pybamm", "simulators")
    return Problem("fast-charge", summary, network, ValueTable(network, one_by_one=True), BEST_KNOWN)


def first(rate1: float, fan1: float) -> tuple[float, float, float]:
    """Charge in %, temperature in °C and lost capacity in mA·h of the first stage."""
    return _charged(EMPTY, ROOM - 273.15, rate1, fan1)


def second(charge1: float, temperature1: float, rate2: float, fan2: float) -> tuple[float, float, float]:
    """The same of the second stage."""
    return _charged(charge1, temperature1, rate2, fan2)


def third(charge2: float, temperature2: float, rate3: float, fan3: float) -> tuple[float, float, float]:
    """The same of the third stage."""
    return _charged(charge2, temperature2, rate3, fan3)


def value(charge3: Any, loss1: Any, loss2: Any, loss3: Any, fan1: Any, fan2: Any, fan3: Any) -> Any:
    """The value of a charge in points, a known formula."""
    return charge3 - PER_LOSS * (loss1 + loss2 + loss3) - PER_FAN * (fan1 + fan2 + fan3)


def value_between(charge3: tuple[float, float], **others: tuple[float, float]) -> tuple[float, float]:
    """The interval of values for intervals of charge, losses and coolings, rounded outwards."""
    slack = 1e-14 * sum(max(map(abs, pair)) for pair in (charge3, *others.values()))
    low = value(charge3[0], **{name: high for name, (_, high) in others.items()})
    return low - slack, value(charge3[1], **{name: low for name, (low, _) in others.items()}) + slack


def _charged(charge: float, temperature: float, rate: float, fan: float) -> tuple[float, float, float]:
    """Charge, temperature and loss after a stage that begins with a cell at rest."""
    found = _simulation().solve(
        [0.0, SECONDS],
        initial_soc=charge / 100.0,
        inputs={
            "Current function [A]": -CAPACITY * rate,
            "Initial temperature [K]": temperature + 273.15,
            "Total heat transfer coefficient [W.m-2.K-1]": fan,
        },
    )

    def at_end(name: str) -> float:
        return float(np.ravel(found[name].entries[..., -1])[-1])

    loss = at_end("Loss of capacity to negative SEI [A.h]") + at_end(
        "Loss of capacity to negative lithium plating [A.h]"
    )
    after = at_end("Volume-averaged cell temperature [K]") - 273.15
    return charge + 100.0 * rate * SECONDS / 3600.0, after, 1000.0 * loss


@cache
def _simulation() -> Any:
    """The model of the cell, built once."""
    os.environ.setdefault("PYBAMM_DISABLE_TELEMETRY", "true")  # read when PyBaMM is imported
    pybamm = optional_module("pybamm", "fast-charge", "simulators")
    model = pybamm.lithium_ion.SPMe(
        {"thermal": "lumped", "lithium plating": "irreversible", "SEI": "ec reaction limited"}
    )
    values = pybamm.ParameterValues("OKane2022")
    values.update(
        {
            "Current function [A]": "[input]",
            "Initial temperature [K]": "[input]",
            "Total heat transfer coefficient [W.m-2.K-1]": "[input]",
            "Ambient temperature [K]": ROOM,
            "Upper voltage cut-off [V]": 6.0,  # plating is what limits the current here, and an event would be a kink
        }
    )
    solver = pybamm.IDAKLUSolver(rtol=1e-8, atol=1e-8)
    return pybamm.Simulation(model, parameter_values=values, solver=solver)
