"""Tests of the problems behind simulators: tiny studies, best known points, what is handed on, missing libraries."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from cascada.arrays import Array
from cascada.errors import ArgumentError
from cascada.network import Node
from cascada.problems import PROBLEMS, SIMULATORS, Problem
from cascada.problems.optional_module import optional_module
from cascada.process import Process
from cascada.study import maximise
from tests.missing import need_simulator
from tests.problems.echelons import cost_of, stocks

#: The module and the extra of every problem.
NEEDS = {
    "combustor": ("cantera", "simulators"),
    "supply-chain": ("stockpyl", "simulators"),
    "beamline": ("cheetah", "simulators-torch"),
    "fast-charge": ("pybamm", "simulators"),
    "co2-compression": ("tespy", "simulators"),
}
NAMES = sorted(SIMULATORS)


@pytest.fixture
def problem(request: pytest.FixtureRequest) -> Problem:
    """A problem whose simulator is there."""
    name: str = request.param
    need_simulator(*NEEDS[name])
    return SIMULATORS[name]()


def known_stage(problem: Problem) -> Node:
    return next(node for node in problem.network.nodes if node.stage.known)


def test_every_simulator_is_a_built_in_problem() -> None:
    assert set(NEEDS) == set(SIMULATORS) <= set(PROBLEMS)


@pytest.mark.parametrize("name", NAMES)
def test_problems_have_their_names_costs_and_ranges_without_the_simulator(name: str) -> None:
    problem = SIMULATORS[name]()
    assert problem.name == name
    problem.network.domain.check(problem.best.points)
    assert problem.best.how == "numerical"
    assert all(stage.cost > 0 for stage in problem.network.stages if not stage.known)


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_simulator_is_named_with_the_command_that_installs_it(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, extra = NEEDS[name]
    monkeypatch.setitem(sys.modules, module, None)
    optional_module.cache_clear()
    with pytest.raises(ArgumentError, match=rf"the {name} problem needs {module} .*pip install 'cascada\[{extra}\]'"):
        optional_module(module, name, extra)
    optional_module.cache_clear()


@pytest.mark.parametrize("name", NAMES)
def test_the_interval_of_the_last_stage_contains_its_values(name: str) -> None:
    stage = known_stage(SIMULATORS[name]()).stage
    assert stage.function is not None
    assert stage.interval is not None
    inputs = known_stage(SIMULATORS[name]()).input_names
    rng = np.random.default_rng(0)
    for _ in range(100):
        low = rng.uniform(0.01, 50.0, len(inputs)) * rng.choice([1e-2, 1.0, 1e2])
        pairs = dict(zip(inputs, zip(low, low * rng.uniform(1.0, 3.0, len(inputs)), strict=True), strict=True))
        below, above = stage.interval(**pairs)
        values = [stage.function(**{i: rng.uniform(*pair) for i, pair in pairs.items()}) for _ in range(30)]
        values += [stage.function(**{i: rng.choice(pair) for i, pair in pairs.items()}) for _ in range(30)]
        assert below <= min(values) <= max(values) <= above
        assert above - below <= 10 * (max(values) - min(values)) + 1e-9 * (abs(below) + abs(above))


@pytest.mark.parametrize("problem", NAMES, indirect=True)
def test_the_best_known_value_is_attained(problem: Problem) -> None:
    point, value = problem.optimum
    assert problem.objective(point[None])[0] == pytest.approx(value, abs=1e-6 * max(1.0, abs(value)))


@pytest.mark.parametrize("problem", ["beamline", "supply-chain"], indirect=True)
def test_no_small_step_from_the_best_known_point_is_better(problem: Problem) -> None:
    """Of the two with a finished search."""
    point, value = problem.optimum
    domain = problem.network.domain
    centre, width = domain.encode(point[None])[0], domain.upper - domain.lower
    steps = np.random.default_rng(0).uniform(-1, 1, (6, len(width))) * np.repeat([0.1, 0.03, 0.01], 2)[:, None]
    near = np.clip(centre + steps * width, domain.lower, domain.upper)
    assert problem.objective(domain.decode(near)).max() <= value + 1e-9 * max(1.0, abs(value))


@pytest.mark.parametrize("problem", NAMES, indirect=True)
def test_runs_are_exact_and_those_of_the_table_are_those_of_the_process(problem: Problem) -> None:
    domain = problem.network.domain
    middle = domain.decode(0.5 * (domain.lower + domain.upper)[None])
    outputs = Process(problem.network)(domain.named(middle[0]))
    flat = [value for node in problem.network.nodes for value in outputs[node.stage.name]]
    row = problem.values(middle)[0]
    np.testing.assert_allclose(row[domain.dimension :], flat, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(problem.values(middle)[0], row)


@pytest.mark.parametrize("problem", NAMES, indirect=True)
def test_runs_in_threads_are_those_of_one_thread(problem: Problem) -> None:
    domain = problem.network.domain
    points = domain.decode(np.random.default_rng(0).uniform(domain.lower, domain.upper, (3, domain.dimension)))
    with ThreadPoolExecutor(3) as pool:
        together = np.vstack(list(pool.map(lambda point: problem.values(point[None]), points)))
    np.testing.assert_array_equal(together, problem.values(points))


@pytest.mark.parametrize("problem", NAMES, indirect=True)
def test_a_study_of_a_tiny_budget_runs(problem: Problem) -> None:
    result = maximise(problem.network, budget=problem.network.domain.dimension + 3, seed=0, progress=False)
    assert result.best is not None
    assert result.best.value is not None
    assert np.isfinite(result.best.value)
    assert result.best.value <= problem.best.value + 1e-6 * max(1.0, abs(problem.best.value))


def test_a_combustor_keeps_energy_and_burns_leaner_gas_cooler() -> None:
    need_simulator("cantera", "simulators")
    from cascada.problems.combustor import burnout, primary, secondary

    measured = [primary(phi, 5.0) for phi in (0.45, 0.6, 0.75)]
    assert all(a[0] < b[0] and a[1] > b[1] for a, b in pairwise(measured))  # hotter, less oxygen
    # What is handed on is the state: a reactor fed with burnt gas and almost nothing else changes little.
    temperature, oxygen, co, no = measured[1]
    after = secondary(temperature, oxygen, co, no, 1e-6, 0.6, 5.0)
    assert after[0] == pytest.approx(measured[1][0], abs=25.0)
    assert after[1] == pytest.approx(measured[1][1], abs=0.3)
    assert burnout(temperature, oxygen, co, no, 0.3, 5.0)[0] < burnout(temperature, oxygen, co, no, 0.0, 5.0)[0]


def test_the_stages_of_a_supply_chain_are_those_of_the_simulated_whole() -> None:
    """Each stage rebuilds the levels upstream from the parts owed; stockpyl simulates all echelons at once."""
    need_simulator("stockpyl", "simulators")
    serial_system = optional_module("stockpyl.supply_chain_network", "supply-chain", "simulators").serial_system
    simulation = optional_module("stockpyl.sim", "supply-chain", "simulators").simulation
    from cascada.problems.supply_chain import DAYS, HOLDING, WAITING, demand, supply_chain

    levels = (9.0, 7.5, 5.0)
    whole = serial_system(
        num_nodes=3,
        node_order_in_system=[1, 2, 3],
        node_order_in_lists=[1, 2, 3],
        local_holding_cost=list(HOLDING),
        shipment_lead_time=[2, 1, 1],
        stockout_cost=[0, 0, WAITING],
        demand_type="D",
        demand_list=demand(),
        policy_type="BS",
        base_stock_level=list(levels),
    )
    cost = simulation(whole, DAYS, progress_bar=False) / DAYS
    states = [state for node in whole.nodes for state in node.state_vars[:DAYS]]
    under_way = sum(state.in_transit_holding_cost_incurred for state in states) / DAYS
    assert supply_chain().objective(np.array([levels]))[0] == pytest.approx(-(cost - under_way), rel=1e-9)


def test_the_best_levels_of_the_supply_chain_are_not_beaten_in_a_recursion_for_the_stocks() -> None:
    """Without stockpyl; the next test compares both."""
    from scipy.optimize import Bounds, differential_evolution

    from cascada.problems.supply_chain import BEST_KNOWN, demand

    seen = np.array(demand())

    def cost(levels: Array) -> float:
        return cost_of(stocks(levels, seen))

    found = differential_evolution(cost, Bounds([6.0, 2.0, 3.0], [16.0, 10.0, 11.0]), rng=0, tol=1e-10, popsize=12)
    assert -found.fun == pytest.approx(BEST_KNOWN.value, rel=1e-5)
    assert -found.fun <= BEST_KNOWN.value + 1e-9
    assert -cost_of(stocks(BEST_KNOWN.points[0], seen)) == pytest.approx(BEST_KNOWN.value, rel=1e-11)


def test_the_recursion_for_the_stocks_equals_the_simulation() -> None:
    need_simulator("stockpyl", "simulators")
    from cascada.problems.supply_chain import demand, supply_chain

    levels = np.array([[9.0, 7.5, 5.0], [12.0, 3.0, 4.0], [15.9, 2.1, 10.9]])
    expected = [-cost_of(stocks(each, np.array(demand()))) for each in levels]
    np.testing.assert_allclose(supply_chain().objective(levels), expected, rtol=1e-10)


def test_a_beam_without_magnets_grows_as_in_free_space() -> None:
    need_simulator("cheetah", "simulators-torch")
    from cascada.problems.beamline import EMITTANCE, START, first

    length = 2 * 0.2 + 0.4 + 1.2
    width, height, wider, _ = first(0.0, 0.0)
    for found, axis in ((width, "x"), (height, "y")):
        beta, alpha = START[f"beta_{axis}"], START[f"alpha_{axis}"]
        behind = beta - 2 * alpha * length + (1 + alpha**2) / beta * length**2
        assert float(found) == pytest.approx(1e3 * np.sqrt(behind * EMITTANCE), rel=1e-9)
    # The growth is the derivative of the size.
    beta, alpha = START["beta_x"], START["alpha_x"]
    growth = (-alpha + (1 + alpha**2) / beta * length) * EMITTANCE / (1e-3 * float(width))
    assert float(wider) == pytest.approx(1e3 * growth, rel=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_the_documentation_gives_the_best_value(name: str) -> None:
    text = (Path(__file__).parents[2] / "docs" / "suite.md").read_text(encoding="utf-8")
    assert f"`{name}`" in text
    assert f"{SIMULATORS[name]().best.value:.6f}".rstrip("0").rstrip(".").replace("-", "−") in text


def test_ten_minutes_of_charging_are_five_and_five() -> None:
    """What is handed on is the complete state, with the current and at the limit of the voltage."""
    need_simulator("pybamm", "simulators")
    from cascada.problems.fast_charge import charged

    for state, current in (((0.0, 25.0, 0.0), 10.0), ((3.0, 40.0, 30.0), 12.0)):
        half = charged(*state, current, 30.0, minutes=5.0)
        assert charged(*half, current, 30.0, minutes=5.0) == pytest.approx(charged(*state, current, 30.0), rel=1e-6)


def test_a_charger_keeps_to_its_current_and_to_4_2_volts() -> None:
    need_simulator("pybamm", "simulators")
    from cascada.problems.fast_charge import first, second

    charge, temperature, lost = first(6.0, 25.0)
    assert charge == pytest.approx(1.0, rel=1e-9)  # 6 A for ten minutes
    assert temperature > 25.0
    assert lost > 0.0
    assert first(6.0, 45.0)[2] < lost < first(12.0, 25.0)[2] / 2  # warm cells plate less, high currents more
    # An almost full cell takes less than the current would bring, and no more with a higher one.
    full = second(4.2, 25.0, 40.0, 10.0, 25.0)
    assert 4.2 < full[0] < 4.2 + 10.0 / 6.0
    assert second(4.2, 25.0, 40.0, 15.0, 25.0) == pytest.approx(full, rel=1e-9)


def test_pybamm_reports_nothing_and_asks_nothing(tmp_path: Path) -> None:
    """In a process of its own, in which every connection fails, with an empty home."""
    need_simulator("pybamm", "simulators")
    code = """
import socket

def refuse(*arguments, **options):
    raise AssertionError(f"a connection to {arguments}")

socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse
from cascada.problems.fast_charge import first
assert first(6.0, 25.0)[0] > 0.9
import pybamm
assert pybamm.config.check_opt_out()
assert pybamm.telemetry._posthog.disabled
"""
    environment = {name: text for name, text in os.environ.items() if name not in ("CI", "PYBAMM_DISABLE_TELEMETRY")}
    environment |= {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert not list(tmp_path.rglob("config.yml"))


def test_a_compressed_gas_keeps_energy_and_has_the_temperature_of_its_cooler() -> None:
    """The same stage from the properties of the fluids alone."""
    need_simulator("tespy", "simulators")
    from cascada.problems.co2_compression import COOLER, DRAINED, EFFICIENCY, FLOW, PUMP, PUMPED, WATER, low

    properties = optional_module("CoolProp.CoolProp", "co2-compression", "simulators").PropsSI
    ratio, water = 4.0, 100.0
    pressure, temperature, power = low(ratio, water)

    bar, kelvin = 1e5, 273.15
    before = {what: properties(what, "P", 1.5 * bar, "T", 35.0 + kelvin, "CO2") for what in "HS"}
    ideal = properties("H", "P", 1.5 * ratio * bar, "S", before["S"], "CO2")
    behind = before["H"] + (ideal - before["H"]) / EFFICIENCY[0]
    still = {what: properties(what, "P", 1.0 * bar, "T", WATER + kelvin, "water") for what in "HS"}
    pumped = still["H"] + (properties("H", "P", PUMPED * bar, "S", still["S"], "water") - still["H"]) / PUMP
    assert power == pytest.approx(1e-3 * (FLOW * (behind - before["H"]) + water * (pumped - still["H"])), rel=1e-6)
    assert 1.5 * ratio * 0.95 < pressure < 1.5 * ratio

    # Heat = size × logarithmic mean of the differences at both ends.
    heat = FLOW * (behind - properties("H", "P", pressure * bar, "T", temperature + kelvin, "CO2"))
    hot = properties("T", "P", 1.5 * ratio * bar, "H", behind, "CO2") - kelvin
    drained = properties("T", "P", DRAINED * bar, "H", pumped + heat / water, "water") - kelvin
    cold = properties("T", "P", PUMPED * bar, "H", pumped, "water") - kelvin
    ends = hot - drained, temperature - cold
    mean = (ends[0] - ends[1]) / np.log(ends[0] / ends[1])
    assert heat == pytest.approx(1e3 * COOLER[0] * mean, rel=1e-4)


def test_condensed_gas_is_an_error_that_says_what_was_given() -> None:
    need_simulator("tespy", "simulators")
    from cascada.network import StageError
    from cascada.problems.co2_compression import high

    with pytest.raises(StageError, match=r"TESPy found no state of the stage for 60 bar, -150 °C"):
        high(60.0, -150.0, 100.0)
