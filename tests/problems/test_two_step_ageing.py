"""Tests of the ageing of an alloy: completeness of the state, laws of precipitation, and two local maxima."""

import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from cascada.problems import precipitation
from cascada.problems.precipitation import AS_QUENCHED, Precipitates, aged, rates, yield_strength
from cascada.problems.two_step_ageing import BEST_KNOWN, first_step, second_step, strength
from tests.problems.search import polished, practice, sobol
from tests.thorough import examples

TEMPERATURES = st.floats(350.0, 500.0)
HOURS = st.floats(0.3, 30.0)


def close(one: Precipitates, other: Precipitates, tolerance: float = 1e-8) -> bool:
    return (
        abs(one.radius / other.radius - 1) < tolerance
        and abs(one.density - other.density) < tolerance
        and abs(one.solute - other.solute) < tolerance * AS_QUENCHED.solute
    )


@settings(max_examples=examples(40), deadline=None)
@given(TEMPERATURES, HOURS, TEMPERATURES, HOURS, st.floats(0.02, 0.98))
def test_the_state_is_complete(before, first, temperature, hours, part):
    """Ageing in one step equals ageing in two consecutive steps of the same total time, from any state."""
    for state in (AS_QUENCHED, aged(AS_QUENCHED, before, first)):
        whole = aged(state, temperature, hours)
        assert close(aged(aged(state, temperature, part * hours), temperature, (1 - part) * hours), whole)


def test_ten_hours_equal_one_hour_and_nine_hours():
    state = first_step(T1=410.0, t1=10.0)
    assert second_step(*first_step(T1=410.0, t1=1.0), T2=410.0, t2=9.0) == pytest.approx(state, rel=1e-8)
    assert strength(*state) == yield_strength(Precipitates(*state))


@pytest.mark.parametrize(("temperature", "hours"), [(350.0, 30.0), (400.0, 3.0), (450.0, 10.0), (500.0, 0.3)])
def test_another_solver_gives_the_same_state(temperature, hours):
    start = [math.log(AS_QUENCHED.radius), AS_QUENCHED.density * math.log(10.0), 1.0]
    ends = (0.0, 3600.0 * hours)
    found = solve_ivp(rates(temperature), ends, start, method="Radau", rtol=1e-9, atol=1e-11)
    log_radius, log_number, total = found.y[:, -1]
    state = aged(AS_QUENCHED, temperature, hours)
    assert math.log(state.radius) == pytest.approx(log_radius, abs=2e-6)
    assert state.density * math.log(10.0) == pytest.approx(log_number, abs=2e-6)
    inside = state.fraction
    solute = state.solute * (1 - inside) + 0.25 * inside
    assert solute == pytest.approx(total * AS_QUENCHED.solute, rel=2e-6)


def test_the_total_solute_never_increases():
    totals = []
    for hours in (0.3, 1.0, 3.0, 10.0, 30.0):
        state = aged(AS_QUENCHED, 425.0, hours)
        totals.append(state.solute * (1 - state.fraction) + 0.25 * state.fraction)
        assert 0 < state.solute < AS_QUENCHED.solute
    assert AS_QUENCHED.solute > totals[0]
    assert totals == sorted(totals, reverse=True)
    assert totals[-1] < 0.9 * AS_QUENCHED.solute


def test_large_particles_coarsen_by_the_law_of_lifshitz_slyozov_and_wagner(monkeypatch):
    """R³ grows with time at the rate 4/9·R₀·D·c_e/c_p, if no solute is lost and all has precipitated."""
    monkeypatch.setattr(precipitation, "_BOUNDARY_LOSS", (0.0, 0.0, 673.15))
    temperature, kelvin = 475.0, 748.15
    start = aged(AS_QUENCHED, temperature, 300.0)
    end = aged(start, temperature, 300.0)
    kT = 1.380649e-23 * kelvin
    capillary = 1e9 * 2 * 0.11 * 1.66e-29 / (0.25 * kT)
    diffusivity = 7.28e-2 * 1e18 * math.exp(-242e3 / (8.314462618 * kelvin))
    soluble = math.exp(2.5 - 0.78 * 1.602176634e-19 / kT)
    at_interface = soluble * math.exp(capillary / (0.5 * (start.radius + end.radius)))
    expected = 4 / 9 * capillary * diffusivity * at_interface / 0.25 * 300 * 3600
    assert end.radius**3 - start.radius**3 == pytest.approx(expected, rel=0.1)
    assert end.density < start.density


def test_small_particles_dissolve_when_heated():
    small = aged(AS_QUENCHED, 350.0, 30.0)
    hot = aged(small, 500.0, 0.05)
    assert hot.density < small.density
    assert hot.radius > small.radius


def test_low_temperatures_make_many_particles_and_high_ones_large_ones():
    cold, hot = aged(AS_QUENCHED, 390.0, 10.0), aged(AS_QUENCHED, 490.0, 10.0)
    assert cold.density > hot.density + 0.5
    assert hot.radius > 3 * cold.radius


def test_strength_peaks_between_cutting_and_looping():
    fraction = 4e-3
    radii = np.geomspace(0.5, 30.0, 60)
    densities = np.log10(fraction / (4 / 3 * np.pi * (1e-9 * radii) ** 3))
    values = [strength(r, d, 1e-4) for r, d in zip(radii, densities, strict=True)]
    assert 0 < int(np.argmax(values)) < len(values) - 1


def test_the_structure():
    network = practice("ageing").network
    assert [node.input_names for node in network.nodes] == [
        ("T1", "t1"),
        ("radius", "density", "solute", "T2", "t2"),
        ("radius", "density", "solute"),
    ]
    assert [node.stage.outputs for node in network.nodes] == [("radius", "density", "solute")] * 2 + [("strength",)]
    assert [control.log for control in network.domain.controls.values()] == [False, True, False, True]


def test_the_best_treatment_lies_inside_all_ranges():
    problem = practice("ageing")
    domain = problem.network.domain
    unit = (domain.encode(BEST_KNOWN.points)[0] - domain.lower) / (domain.upper - domain.lower)
    assert np.all((unit > 0.1) & (unit < 0.9))


def test_two_local_maxima():
    problem = practice("ageing")
    ends = [
        polished(problem, np.array(start), most=400)
        for start in ([400.0, 9.0, 460.0, 2.0], [416.75, 26.25, 390.3, 24.95])
    ]
    assert ends[0][1] == pytest.approx(BEST_KNOWN.value, rel=1e-6)
    assert ends[1][1] == pytest.approx(145.2509, abs=1e-3)
    # The second is a maximum of its neighbourhood.
    around = ends[1][0] * (1 + 0.01 * np.random.default_rng(0).uniform(-1, 1, (40, 4)))
    assert problem.objective(problem.network.domain.decode(problem.network.domain.encode(around))).max() < ends[1][1]


def test_a_call_takes_milliseconds():
    problem = practice("ageing")
    points = sobol(problem, 5, seed=3)
    start = time.process_time()  # CPU time of this process, because the machine may be busy
    problem.values(points)
    assert (time.process_time() - start) / len(points) < 0.05
