"""The runs from which stages are calibrated: what stages behind readings with noise received."""

from collections.abc import Callable
from typing import Literal

import numpy as np
import pytest

import cascada as cd
from cascada.arrays import Array
from cascada.calibration import Calibrated, Calibration, calibrate
from cascada.calibration.noise import noise_sds
from cascada.calibration.runs import Runs
from cascada.gp import Posterior
from cascada.network import Network, Node
from cascada.network.noise import with_noise

LEVEL, SLOPE = 0.05, 8.0


def process(forwards: Literal["value", "reading"] = "value") -> Network:
    """A stage with noise, and a steep one after it, which is read almost exactly."""
    warm = cd.Stage("warm", {"x": cd.Real(0, 1)}, ["heat"], error="estimate", forwards=forwards)
    return with_noise(cd.chain(warm, cd.Stage("press", outputs=["force"], error="estimate")))


def readings(n: int) -> tuple[Array, Array]:
    """Rows of a control, a noisy reading of sin(3x), and the sine of the true value times `SLOPE`; the true values."""
    rng = np.random.default_rng(0)
    x = rng.uniform(size=n)
    true = np.sin(3 * x)
    return np.column_stack([x, true + LEVEL * rng.standard_normal(n), np.sin(SLOPE * true)]), true


def calibrated(network: Network, data: Array) -> Calibrated:
    return calibrate(network, data, Calibration(), 1e-10)


def test_noise_of_an_input_is_not_taken_for_noise_of_the_next_stage() -> None:
    data, _ = readings(40)
    noise = noise_sds(calibrated(process(), data).acting)
    assert noise[1] == pytest.approx(LEVEL, rel=0.4)
    assert noise[2] < 0.3 * LEVEL * SLOPE
    # If the reading is what the next stage is set to, it is an exact input: then these data scatter that much.
    assert noise_sds(calibrated(process("reading"), data).acting)[2] > 0.4 * LEVEL * SLOPE


def test_inputs_of_the_next_stage_are_closer_to_the_true_values_than_readings() -> None:
    data, true = readings(40)
    belief = calibrated(process(), data).acting.stages[1].per_output
    assert belief is not None
    received = belief.posterior.inputs[:, 0]
    assert np.sqrt(((received - true) ** 2).mean()) < 0.5 * np.sqrt(((data[:, 1] - true) ** 2).mean())


def test_readings_are_the_inputs_if_they_explain_the_outputs_better() -> None:
    data, _ = readings(40)
    data[:, 2] = np.sin(SLOPE * data[:, 1])  # the next stage was in fact set to the readings
    found = calibrated(process(), data)
    belief = found.acting.stages[1].per_output
    assert belief is not None
    assert found.fits["press", "force"].as_read
    assert np.array_equal(belief.posterior.inputs[:, 0], data[:, 1])
    # A fit that is kept with more observations keeps its inputs.
    more = np.concatenate([data, data[:1] * np.array([1.01, 1.0, 1.0])])
    later = calibrate(process(), more, Calibration(), 1e-10, found)
    assert later.fits["press", "force"].count == 40
    belief = later.acting.stages[1].per_output
    assert belief is not None
    assert np.array_equal(belief.posterior.inputs[:, 0], more[:, 1])


def test_a_stage_that_is_set_to_readings_has_them_as_inputs() -> None:
    data, _ = readings(12)
    belief = calibrated(process("reading"), data).acting.stages[1].per_output
    assert belief is not None
    assert np.array_equal(belief.posterior.inputs[:, 0], data[:, 1])


def doubling(heat: float) -> float:
    return 2 * heat


def root(heat: float) -> float:
    return heat**0.5 if heat >= 0 else 1 / 0


def with_formula(formula: Callable[[float], float]) -> Network:
    """A stage with noise that also passes its control on, a formula of its output, and a stage after both."""
    warm = cd.Stage("warm", {"x": cd.Real(0, 1)}, ["x", "heat"], passes=["x"], error="estimate")
    known = cd.Stage("scale", outputs=["scaled"], parents=["warm.heat"], known=True, function=formula)
    press = cd.Stage("press", outputs=["force"], parents=["warm.x", "scale"])
    return with_noise(Network([warm, known, press]))


def through(network: Network, data: Array, posterior: Posterior) -> Runs:
    """The runs after the first two stages, of which the modelled output of the first one has this posterior."""
    warm, scale = network.nodes[0], network.nodes[1]
    part = Node(warm.stage.part("heat"), warm.input_names, warm.inputs, warm.columns[1:], warm.parents)
    runs = Runs(data, np.arange(len(data)))
    return runs.through(warm, [(part, posterior)]).through(scale, [])


def smooth(x: Array, y: Array) -> Posterior:
    kernel = cd.SquaredExponential(0.3)
    return Posterior.weighted(kernel, x[:, None], y[:, None], np.full(len(x), 0.5))


def test_formulas_and_copies_follow_the_estimates() -> None:
    x, heat = np.linspace(0, 1, 7), np.linspace(0, 1, 7) ** 2 + 0.1 * (-1.0) ** np.arange(7)
    data = np.column_stack([x, x, heat, 2 * heat, np.ones(7)])
    posterior = smooth(x, heat)
    runs = through(with_formula(doubling), data, posterior)
    inputs, outputs = runs.of(with_formula(doubling).nodes[2])
    mean = posterior.predict(x[:, None]).mean[:, 0]
    assert not np.allclose(mean, heat)
    np.testing.assert_allclose(inputs, np.column_stack([x, 2 * mean]), rtol=1e-12)
    np.testing.assert_array_equal(outputs[:, 0], np.ones(7))
    np.testing.assert_array_equal(runs.data, data)  # readings stay


def test_a_formula_that_is_not_defined_at_an_estimate_keeps_its_value_of_the_reading() -> None:
    x, heat = np.linspace(0, 1, 7), np.full(7, 0.04)
    data = np.column_stack([x, x, heat, heat**0.5, np.ones(7)])
    posterior = smooth(x, np.where(x > 0.5, heat, -heat))
    mean = posterior.predict(x[:, None]).mean[:, 0]
    inputs, _ = through(with_formula(root), data, posterior).of(with_formula(root).nodes[2])
    expected = np.where(mean >= 0, np.sqrt(np.maximum(mean, 0)), heat**0.5)
    assert (mean < 0).any()
    assert (mean >= 0).any()
    np.testing.assert_allclose(inputs[:, 1], expected, rtol=1e-12)


def test_runs_that_are_not_complete_are_not_estimated() -> None:
    x = np.linspace(0, 1, 5)
    heat = np.where(x < 0.3, np.nan, x)
    data = np.column_stack([x, np.where(np.isnan(heat), np.nan, x), heat, 2 * heat, 3 * heat])
    runs = through(with_formula(doubling), data, smooth(x[2:], x[2:]))
    inputs, _ = runs.of(with_formula(doubling).nodes[2])
    assert len(inputs) == 3
    assert runs.received is not None
    assert np.isnan(runs.received[:2, 2]).all()
