"""The estimated probability that a stage fails."""

import numpy as np
import pytest

from cascada.network import Network, Stage, chain
from cascada.network.failures import FailureRisk, StageRisk, counts_as_infeasible, failed_stage
from cascada.space import Real

BOX = Real(0, 1)


def process(failure: str = "infeasible") -> Network:
    return chain(
        Stage("a", {"x": BOX}),
        Stage("b", {"y": Real(0, 10)}, failure=failure),  # type: ignore[arg-type]
    )


def risk(failed: list[float], ended: list[float]) -> StageRisk:
    return StageRisk((0,), np.array(failed).reshape(-1, 1), np.array(ended).reshape(-1, 1), np.ones(1))


def test_it_is_one_at_a_failure_and_zero_at_a_success_and_far_away() -> None:
    found = risk([0.2], [0.4]).at(np.array([[0.2], [0.4], [0.3], [100.0]]))
    np.testing.assert_allclose(found[:2], [1.0, 0.0], atol=1e-6)
    # In the middle both have the weight 1/0.1² = 100, and the imagined success has 1/0.2² = 25.
    assert found[2] == pytest.approx(100 / 225)
    assert found[3] < 0.001


def test_it_becomes_sharper_with_runs() -> None:
    """A success next to a failure makes settings beyond it likely again."""
    at = np.array([[0.35]])
    assert risk([0.2], [0.3]).at(at)[0] < 0.2 < risk([0.2], []).at(at)[0]


def test_its_gradient_is_that_of_differences() -> None:
    rng = np.random.default_rng(0)
    some = StageRisk((0, 1, 2), rng.uniform(0, 1, (3, 3)), rng.uniform(0, 1, (5, 3)), np.array([1.0, 2.0, 0.5]))
    at = rng.uniform(0, 1, (20, 3))
    value, slope = some.gradient(at)
    np.testing.assert_allclose(value, some.at(at))
    for j in range(3):
        step = 1e-6 * np.eye(3)[j]
        np.testing.assert_allclose(slope[:, j], (some.at(at + step) - some.at(at - step)) / 2e-6, rtol=1e-5, atol=1e-6)


def test_units_do_not_matter() -> None:
    rng = np.random.default_rng(1)
    failed, ended, at = (rng.uniform(0, 1, (n, 2)) for n in (2, 4, 9))
    scale, columns = np.array([1e3, 1e-2]), (0, 1)
    one = StageRisk(columns, failed, ended, np.ones(2)).at(at)
    np.testing.assert_allclose(StageRisk(columns, failed * scale, ended * scale, scale).at(at * scale), one)


def test_the_stage_that_failed_is_the_first_without_outputs() -> None:
    network = process()
    assert failed_stage(network, {}) == "a"
    assert failed_stage(network, {"a": [1.0]}) == "b"
    assert failed_stage(network, {"a": [1.0], "b": [2.0]}) is None
    assert counts_as_infeasible(network, {"a": [1.0]})
    assert not counts_as_infeasible(network, {})  # its failure is an ordinary one
    assert not counts_as_infeasible(process("fail"), {"a": [1.0]})


def test_failures_are_learned_by_the_inputs_of_their_stage() -> None:
    network = process()
    data = np.array([[0.1, 2.0, 5.0, 1.0], [0.3, 4.0, 9.0, np.nan], [0.2, 1.0, np.nan, np.nan]])
    failed = np.array([[0.3, 4.0, 9.0, np.nan], [0.2, 1.0, np.nan, np.nan]])
    found = FailureRisk.of(network, data, failed)
    assert found is not None
    (stage,) = found.stages
    assert stage.columns == (2, 1)  # a, then y
    np.testing.assert_array_equal(stage.failed, [[9.0, 4.0]])
    np.testing.assert_array_equal(stage.ended, [[5.0, 2.0]])
    np.testing.assert_array_equal(stage.units, [4.0, 10.0])
    assert FailureRisk.of(network, data, failed[:0]) is None
    assert FailureRisk.of(process("fail"), data, failed) is None
    assert FailureRisk.of(network, data, failed[1:]) is None  # only the first stage failed
