"""A model of precipitation during isothermal ageing with mean radius, number density and solute concentration.

A mean-radius model of the Kampmann–Wagner family: nuclei form, grow, dissolve and coarsen simultaneously, with one
radius instead of a distribution. The numbers have the order reported for Al₃Zr in aluminium. They were chosen for
illustration and are not fitted to an alloy.

Letters: R radius, N number density, V = 4/3·πR³N volume fraction, c solute in the matrix (atomic fraction), c_e its
solubility, c_p = 1/4 its fraction in a precipitate, D diffusivity, γ interface energy, Ω atomic volume,
R₀ = 2γΩ/(c_p·kT) the capillary length, S = c/c_e, ρ = R·ln(S)/R₀ the radius over the critical one.

    growth          v = D/R·(c − c_i)/c_p,    c_i = c_e·exp(R₀/R)                             (Gibbs–Thomson)
    nucleation      J = 4N₀Ω√(γ/kT)·D·c/a⁴·exp(−ΔG*/kT),    ΔG* = 16πγ³/(3g²),    g = c_p·kT·ln(S)/Ω
    coarsening      N is lost at the rate 4/9·c_i/c_p·R₀D/R³, with which R³ grows as in Lifshitz–Slyozov–Wagner
    dissolution     N is lost at the rate D/R²·c_i/c_p where ρ is well below 1
    loss            the total solute falls by k·(c − c_e): coarse particles on grain boundaries, which add no strength

All rates depend only on the state and the temperature, not on time. So the state (R, N, c) is complete: 10 hours equal
1 hour followed by 9. All switches are smooth, and so is the result.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from cascada.arrays import Array

_BOLTZMANN = 1.380649e-23  # J/K
_GAS = 8.314462618  # J/(mol K)
_EV = 1.602176634e-19  # J
_CELSIUS = 273.15
_HOUR = 3600.0

_ATOMIC_VOLUME = 1.66e-29  # Ω, m³
_LATTICE = 4.05e-10  # a, m
_IN_PRECIPITATE = 0.25  # c_p
_INTERFACE = 0.11  # γ, J/m²
_SITES = 1e25  # N₀, 1/m³
_DIFFUSIVITY = (7.28e-2, 242e3)  # m²/s, J/mol: zirconium in aluminium
_SOLUBILITY = (2.5, 0.78)  # entropy in k, enthalpy in eV
_BOUNDARY_LOSS = (1 / (40 * _HOUR), 120e3, 673.15)  # k at 400 °C in 1/s, J/mol

# Lower limits of R and N: their logarithms are integrated and would diverge at 0.
_LEAST_RADIUS = 0.3  # nm
_LEAST_DENSITY = 1e15  # 1/m³
_LEAST_SOLUTE = 1e-12  # a trial step of the solver may use up more solute than there is
# Below this supersaturation, exp(−ΔG*/kT) is 0 in floating point.
_LEAST_LOG_SUPERSATURATION = 0.05
_SWITCH_AT, _SWITCH_STEEPNESS = 0.5, 10.0  # of the dissolution, in ρ

# Solver errors act like noise: with a tolerance of 1e-6 they are 1e-5 of the range of the strength, here 1e-9.
_TOLERANCE = 1e-11


@dataclass(frozen=True)
class Precipitates:
    """The state: mean radius in nm, log₁₀ of the number per m³, solute left in the matrix as an atomic fraction."""

    radius: float
    density: float
    solute: float

    @property
    def fraction(self) -> float:
        """The volume fraction of the precipitates."""
        return _volume(self.radius, 10.0**self.density)


AS_QUENCHED = Precipitates(radius=0.5, density=15.0, solute=1.4e-3)


def aged(state: Precipitates, temperature: float, hours: float) -> Precipitates:
    """The state after `hours` at a temperature in °C."""
    from scipy.integrate import odeint

    number = 10.0**state.density
    inside = state.fraction
    total = state.solute * (1.0 - inside) + _IN_PRECIPITATE * inside
    start = [math.log(state.radius), math.log(number), total / AS_QUENCHED.solute]
    path, report = odeint(
        rates(temperature),
        start,
        [0.0, hours * _HOUR],
        rtol=_TOLERANCE,
        atol=_TOLERANCE,
        mxstep=100_000,
        tfirst=True,
        full_output=True,
    )
    if report["message"] != "Integration successful.":
        raise ArithmeticError(
            f"the precipitation model failed at {temperature:g} °C for {hours:g} h: {report['message']}"
        )
    log_radius, log_number, total = path[-1].tolist()
    radius, total = math.exp(log_radius), total * AS_QUENCHED.solute
    inside = _volume(radius, math.exp(log_number))
    return Precipitates(radius, log_number / math.log(10.0), (total - _IN_PRECIPITATE * inside) / (1.0 - inside))


def rates(temperature: float) -> Callable[[float, Array], list[float]]:
    """Rates per second of ln R (nm), ln N (1/m³) and the total solute (over that of the quenched alloy), given °C."""
    kelvin = temperature + _CELSIUS
    kT = _BOLTZMANN * kelvin
    diffusivity = 1e18 * _DIFFUSIVITY[0] * math.exp(-_DIFFUSIVITY[1] / (_GAS * kelvin))  # nm²/s
    soluble = math.exp(_SOLUBILITY[0] - _SOLUBILITY[1] * _EV / kT)
    per_fraction = _IN_PRECIPITATE * kT / _ATOMIC_VOLUME  # g = this·ln S
    capillary = 1e9 * 2.0 * _INTERFACE / per_fraction  # R₀, nm
    barrier = 16.0 * math.pi * _INTERFACE**3 / (3.0 * per_fraction**2 * kT)  # ΔG*/kT = this/ln²S
    # Zeldovich's factor is proportional to g² and the attachment rate to 1/g²; their product does not depend on g.
    attempts = 4.0 * _SITES * _ATOMIC_VOLUME * math.sqrt(_INTERFACE / kT) * 1e-18 * diffusivity / _LATTICE**4
    # A nucleus is slightly larger than the critical radius; otherwise it would not grow.
    beyond_critical = 1e9 * 0.5 * math.sqrt(kT / (math.pi * _INTERFACE))
    loss_rate, activation, reference = _BOUNDARY_LOSS
    loss = loss_rate * math.exp(-activation / _GAS * (1.0 / kelvin - 1.0 / reference))

    def rate(_: float, state: Array) -> list[float]:
        log_radius, log_number, total = state.tolist()
        radius, number = math.exp(log_radius), math.exp(log_number)
        inside = _volume(radius, number)
        solute = (total * AS_QUENCHED.solute - _IN_PRECIPITATE * inside) / (1.0 - inside)
        solute = max(solute, _LEAST_SOLUTE)
        log_supersaturation = math.log(solute / soluble)
        curvature = capillary / radius
        at_interface = soluble * math.exp(curvature)
        detached = diffusivity / radius**2 * at_interface / _IN_PRECIPITATE
        growth = diffusivity / radius**2 * solute / _IN_PRECIPITATE - detached  # v/R
        dissolving = _falling(_SWITCH_STEEPNESS * (log_supersaturation / curvature - _SWITCH_AT))
        born = larger = 0.0  # per particle
        if log_supersaturation > _LEAST_LOG_SUPERSATURATION:
            born = attempts * solute * math.exp(-barrier / log_supersaturation**2) / number
            larger = (capillary / log_supersaturation + beyond_critical) / radius - 1.0
        # Dissolving particles reduce the number and do not change the mean radius of the others.
        grown = (1.0 - dissolving) * (1.0 - (_LEAST_RADIUS / radius) ** 4) * growth
        lost = (dissolving + 4.0 / 9.0 * curvature) * detached * (1.0 - _LEAST_DENSITY / number)
        leaving = loss * (solute - soluble) * (1.0 - inside)
        return [grown + born * larger, born - lost, -leaving / AS_QUENCHED.solute]

    return rate


def yield_strength(state: Precipitates) -> float:
    """Yield strength in MPa of aluminium, solute, and precipitates, which are cut if small and looped if large.

    Cutting is proportional to √(V·R), looping to ln(R)/spacing (Orowan). The smaller one determines the strength; the
    transition is smooth.
    """
    radius = 1e-9 * state.radius
    number = 10.0**state.density
    cut = _CUTTING * math.sqrt(state.fraction * radius / _BURGERS)
    in_plane = math.sqrt(2.0 * radius * number)  # the inverse of the mean spacing of particles in a plane
    looped = _LOOPING * 0.5 * math.log1p((1.6 * radius / _BURGERS) ** 2) * in_plane
    return _PURE + _SOLUTE * state.solute ** (2.0 / 3.0) + 1.0 / math.hypot(1.0 / cut, 1.0 / looped)


_BURGERS = 2.86e-10  # m
_PURE = 20.0  # MPa
_SOLUTE = 700.0  # MPa
_CUTTING = 1500.0  # MPa
# 0.4·M·G·b/(π√(1 − Poisson's ratio)) with a Taylor factor M = 3.06 and a shear modulus G = 25.4 GPa, in MPa·m.
_LOOPING = 0.4 * 3.06 * 25.4e3 * _BURGERS / (math.pi * math.sqrt(1.0 - 0.345))


def _volume(radius: float, number: float) -> float:
    """V for a radius in nm and a number per m³."""
    return 4.0 / 3.0 * math.pi * (1e-9 * radius) ** 3 * number


def _falling(z: float) -> float:
    """A smooth step from 1 to 0."""
    return 1.0 / (1.0 + math.exp(z)) if z < 700.0 else 0.0
