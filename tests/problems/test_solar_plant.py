"""Tests of the solar plant: the power limit, local maxima, the known last stage, and the optional dependency."""

import subprocess
import sys

import numpy as np
import pytest

from cascada.problems.solar_plant import (
    BEST_KNOWN,
    LIMIT,
    PAID,
    irradiance,
    power,
    pv_plant,
    revenue,
    revenue_between,
    sky,
)
from tests.missing import need_module
from tests.problems.search import polished, practice, sobol

WITHOUT_PVLIB = """
import sys
sys.modules["pvlib"] = None
from cascada.problems import PRACTICE
from cascada.kernels import Matern
problem = PRACTICE["pv-plant"](kernel=Matern(2.5), norm_bound=10.0)
print(problem.summary)
print(problem.best.value)
try:
    problem.objective(problem.best.points)
except ValueError as error:
    print(error)
"""


@pytest.fixture
def pvlib() -> None:
    need_module("pvlib", "problems")


def test_the_structure_is_4_5_5_1():
    network = practice("pv-plant").network
    assert network.domain.names == ("tilt1", "azimuth1", "tilt2", "azimuth2")
    assert [len(node.stage.outputs) for node in network.nodes] == [5, 5, 1]
    assert [len(node.inputs) for node in network.nodes] == [4, 5, 5]
    assert [node.stage.known for node in network.nodes] == [False, False, True]


@pytest.mark.usefixtures("pvlib")
def test_the_sky_is_that_of_a_clear_spring_day():
    """Noon at latitude 45° and declination δ: the sun is δ above the equator. The ranges are from textbooks."""
    above = sky()
    declination = 23.45 * np.sin(np.radians(360 / 365 * (284 + 105)))
    assert above.zenith[2] == pytest.approx(45.0 - declination, abs=0.5)
    np.testing.assert_allclose(above.zenith, above.zenith[::-1], atol=1e-9)
    np.testing.assert_allclose(above.azimuth + above.azimuth[::-1], 360.0, atol=1e-6)
    assert above.azimuth[2] == pytest.approx(180.0)
    assert np.all(np.diff(above.azimuth) > 0)
    horizontal = above.direct * np.cos(np.radians(above.zenith)) + above.diffuse
    np.testing.assert_allclose(horizontal, above.total, rtol=1e-6)
    assert 800 < above.direct[2] < 1000


@pytest.mark.usefixtures("pvlib")
def test_irradiance_follows_the_sun():
    east, south, west = (np.array(irradiance(60.0, a, 60.0, a)) for a in (90.0, 180.0, 270.0))
    assert east.argmax() < south.argmax() < west.argmax()
    np.testing.assert_allclose(east, west[::-1], rtol=1e-9)
    # The strings are weighted by their capacity.
    np.testing.assert_allclose(irradiance(60.0, 90.0, 60.0, 270.0), 0.55 * east + 0.45 * west, rtol=1e-12)


@pytest.mark.usefixtures("pvlib")
def test_power_is_clipped_somewhere_and_not_everywhere():
    problem = practice("pv-plant")
    powers = problem.values(sobol(problem, 10))[:, 9:14]
    clipped = powers >= LIMIT * (1 - 1e-12)
    assert powers.max() <= LIMIT * (1 + 1e-12)
    assert np.all(clipped.mean(axis=0) > 0.02)
    assert np.all(clipped.mean(axis=0) < 0.95)
    assert clipped.all(axis=1).sum() == 0


@pytest.mark.usefixtures("pvlib")
def test_power_grows_with_light_up_to_the_limit_and_falls_with_temperature():
    light = np.linspace(10.0, 1100.0, 200)
    for column in power(light, light, light, light, light):
        assert np.all(np.diff(column) >= 0)
        below = column < LIMIT
        per_light = column[below] / light[below]
        assert per_light[-1] < per_light.max()


def test_revenue_is_linear_and_its_interval_holds_it():
    rng = np.random.default_rng(0)
    low = rng.uniform(-5, 20, (50, 5))
    high = low + rng.uniform(0, 20, (50, 5))
    names = [f"p{i}" for i in range(1, 6)]
    for a, b in zip(low, high, strict=True):
        ends = revenue_between(**{name: (x, y) for name, x, y in zip(names, a, b, strict=True)})
        assert revenue(*a) == pytest.approx(np.array(PAID) @ a, rel=1e-12)
        for point in rng.uniform(a, b, (20, 5)):
            assert ends[0] <= revenue(*point) <= ends[1]
        assert ends[0] <= revenue(*a)
        assert revenue(*b) <= ends[1]


@pytest.mark.usefixtures("pvlib")
def test_many_local_maxima_within_half_a_percent():
    """Each is found from different starts and is the best of its neighbourhood."""
    problem = practice("pv-plant")
    starts = [
        [70.6, 259.2, 54.7, 115.2],
        [66.5, 104.8, 65.0, 254.2],
        [66.7, 255.3, 65.1, 106.3],
        [49.4, 243.0, 65.8, 104.0],
        [70.4, 101.0, 56.1, 247.0],
    ]
    rng = np.random.default_rng(0)
    values = []
    for start in starts:
        point, value = polished(problem, np.array(start), kinks=True)
        for scale in (0.1, 1.0, 3.0):
            near = np.clip(point + scale * rng.uniform(-1, 1, (300, 4)), (5, 60, 5, 60), (85, 300, 85, 300))
            assert problem.objective(near).max() <= value + 1e-7
        values.append(value)
    assert len({round(value, 3) for value in values}) == len(starts)
    assert values[0] == pytest.approx(BEST_KNOWN.value, rel=1e-7)
    assert min(values) > BEST_KNOWN.value * 0.995


@pytest.mark.usefixtures("pvlib")
def test_two_strings_that_both_face_south_earn_less():
    problem = practice("pv-plant")
    south = np.column_stack([np.tile([40.0, 180.0], (1, 2))])
    assert problem.objective(south)[0] < 0.9 * BEST_KNOWN.value


def test_without_pvlib_the_problem_is_listed_and_names_the_missing_package():
    done = subprocess.run([sys.executable, "-c", WITHOUT_PVLIB], check=True, capture_output=True, text=True)
    summary, value, error = done.stdout.splitlines()
    assert "pip install 'cascada[problems]'" in summary
    assert float(value) == BEST_KNOWN.value
    assert error.startswith("the pv-plant problem needs pvlib (")
    assert error.endswith("Run: pip install 'cascada[problems]'.")


@pytest.mark.usefixtures("pvlib")
def test_with_pvlib_the_summary_names_no_package():
    assert "pip install" not in pv_plant().summary
