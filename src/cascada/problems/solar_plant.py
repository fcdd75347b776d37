"""A photovoltaic plant on a clear day, computed with pvlib (the extra `problems`).

The controls are the tilt and azimuth of two strings of modules, of 55 and 45 kW. Five times of a spring day at 45°
north represent two and a half hours each. The AC power is limited to 50 kW, and electricity is expensive in the morning
and in the evening, so both strings should not face south. The network is feed-forward 4-5-5-1 with a known last stage:

    tilts, azimuths → irradiance of the modules (W/m², mean over the plant) → AC power (kW) → revenue (€)

The limit is a kink: the power stage has a Lipschitz constant but is in no RKHS of a smooth kernel. The choice of string
for each direction and the hours at the limit give many local maxima within 0.5 % of the best.

Sun and sky do not depend on the controls. They are computed once from solar time and a given turbidity, without data
files.
"""

from dataclasses import dataclass
from functools import cache
from types import ModuleType

import numpy as np

from cascada.arrays import Array
from cascada.network import Stage, feed_forward
from cascada.problems.function_networks import Kernel
from cascada.problems.optional_module import optional_module, unless_installed
from cascada.problems.problem import Optimum, Problem
from cascada.problems.value_table import Column, ValueTable
from cascada.space import Real

LATITUDE = 45.0
ALTITUDE = 300.0  # m
DAY = 105  # of the year: mid-April
HOURS = (7.0, 9.5, 12.0, 14.5, 17.0)  # solar time
TURBIDITY = 3.0  # Linke's: a clean atmosphere
AIR = (16.0, 21.0, 25.0, 27.0, 26.0)  # °C
WIND = 2.0  # m/s

CAPACITY = (55.0, 45.0)  # kW of each string under 1000 W/m² at 25 °C
LIMIT = 50.0  # kW of AC power
EFFICIENCY = 0.96  # of the inverter at its limit
LOSS_PER_DEGREE = -0.004

SPAN = 2.5  # hours represented by each of the five times
PRICES = (0.16, 0.09, 0.05, 0.08, 0.18)  # €/kWh
PAID = tuple(SPAN * price for price in PRICES)  # €/kW

# Found by `python -m benchmarks.best_known`.
BEST_KNOWN = Optimum(
    np.array([[70.60090749769701, 259.214669256248, 54.6595304333737, 115.18457178742767]]),
    56.221120769153075,
    "numerical",
)


def pv_plant(kernel: Kernel = None, norm_bound: float | None = None) -> Problem:
    """Tilt and azimuth (from north, clockwise) of two strings, in degrees → revenue of a day in €.

    The problem can be built and listed without pvlib; evaluating it needs pvlib.
    """
    tilt, azimuth = Real(5.0, 85.0), Real(60.0, 300.0)
    network = feed_forward(
        Stage(
            "irradiance",
            {"tilt1": tilt, "azimuth1": azimuth, "tilt2": tilt, "azimuth2": azimuth},
            outputs=[f"g{i}" for i in range(1, 6)],
            kernel=kernel,
            norm_bound=norm_bound,
            function=irradiance,
        ),
        Stage(
            "power",
            outputs=[f"p{i}" for i in range(1, 6)],
            kernel=kernel,
            norm_bound=norm_bound,
            function=power,
        ),
        Stage("revenue", known=True, function=revenue, interval=revenue_between),
    )
    summary = "tilt and azimuth of two strings → irradiance at 5 times → AC power → revenue"
    summary += unless_installed("pvlib", "problems")
    return Problem("pv-plant", summary, network, ValueTable(network), BEST_KNOWN)


def irradiance(tilt1: Column, azimuth1: Column, tilt2: Column, azimuth2: Column) -> tuple[Column, ...]:
    """Irradiance of the modules in W/m² at the five times, averaged over the plant."""
    shares = np.array(CAPACITY) / sum(CAPACITY)
    first, second = _on_plane(tilt1, azimuth1), _on_plane(tilt2, azimuth2)
    return tuple(np.moveaxis(shares[0] * first + shares[1] * second, -1, 0))


def power(g1: Column, g2: Column, g3: Column, g4: Column, g5: Column) -> tuple[Column, ...]:
    """AC power in kW at the five times: the cells heat up in the sun, and the inverter has a limit."""
    pvlib = _pvlib()
    light = np.stack(np.broadcast_arrays(g1, g2, g3, g4, g5), axis=-1)
    cell = pvlib.temperature.faiman(light, np.array(AIR), WIND)
    direct = pvlib.pvsystem.pvwatts_dc(light, cell, sum(CAPACITY), LOSS_PER_DEGREE)
    return tuple(np.moveaxis(pvlib.inverter.pvwatts(direct, LIMIT / EFFICIENCY, EFFICIENCY), -1, 0))


def revenue(p1: Column, p2: Column, p3: Column, p4: Column, p5: Column) -> Column:
    """Revenue in € per day, a known formula."""
    return sum(paid * value for paid, value in zip(PAID, (p1, p2, p3, p4, p5), strict=True))


def revenue_between(**pairs: tuple[float, float]) -> tuple[float, float]:
    """The interval of revenues for intervals of powers, rounded outwards; prices are positive."""
    low = revenue(**{name: pair[0] for name, pair in pairs.items()})
    high = revenue(**{name: pair[1] for name, pair in pairs.items()})
    slack = 1e-14 * revenue(**{name: abs(pair[0]) + abs(pair[1]) for name, pair in pairs.items()})
    return low - slack, high + slack


@dataclass(frozen=True, eq=False)
class Sky:
    """Sun and clear sky at the five times, each (5,); angles in degrees, irradiances in W/m²."""

    zenith: Array
    azimuth: Array
    direct: Array  # on a plane facing the sun
    total: Array  # on the ground
    diffuse: Array
    beyond: float  # outside the atmosphere


@cache
def sky() -> Sky:
    """The sun and sky of the day."""
    pvlib = _pvlib()
    angle = np.radians(15.0 * (np.array(HOURS) - 12.0))
    latitude, declination = np.radians(LATITUDE), pvlib.solarposition.declination_spencer71(DAY)
    zenith = pvlib.solarposition.solar_zenith_analytical(latitude, angle, declination)
    azimuth = pvlib.solarposition.solar_azimuth_analytical(latitude, angle, declination, zenith)
    degrees = np.degrees(zenith)
    mass = pvlib.atmosphere.get_relative_airmass(degrees)
    mass = pvlib.atmosphere.get_absolute_airmass(mass, pvlib.atmosphere.alt2pres(ALTITUDE))
    beyond = pvlib.irradiance.get_extra_radiation(DAY)
    clear = pvlib.clearsky.ineichen(degrees, mass, TURBIDITY, altitude=ALTITUDE, dni_extra=beyond)
    return Sky(degrees, np.degrees(azimuth) % 360.0, clear["dni"], clear["ghi"], clear["dhi"], float(beyond))


def _on_plane(tilt: Column, azimuth: Column) -> Array:
    """W/m² on planes (…), at the five times: (…, 5)."""
    above = sky()
    # The diffuse model of Hay and Davies is continuous; that of Perez has steps between classes of clearness.
    parts = _pvlib().irradiance.get_total_irradiance(
        np.asarray(tilt, dtype=np.float64)[..., None],
        np.asarray(azimuth, dtype=np.float64)[..., None],
        above.zenith,
        above.azimuth,
        above.direct,
        above.total,
        above.diffuse,
        dni_extra=above.beyond,
        model="haydavies",
    )
    return np.asarray(parts["poa_global"], dtype=np.float64)


def _pvlib() -> ModuleType:
    return optional_module("pvlib", "pv-plant", "problems")
