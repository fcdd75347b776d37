"""Beliefs about networks that are read with errors: latent values, repeats, forwarded readings, evidence, the floor."""

from typing import Any

import numpy as np
import pytest

import cascada as cd
from cascada.confidence import Boxes
from cascada.confidence.reading_evidence import Conflict, ReadingEvidence
from cascada.network import enclose_network, prior_beliefs
from cascada.network.floor import floor_at
from cascada.network.read_beliefs import ReadBeliefs
from tests.network.cases import SE, X

nan = np.nan


def two(first: Any = 0.01, second: Any = 0.01, **options: Any) -> ReadBeliefs:
    """x → f → g, read with errors."""
    f = cd.Stage("f", controls=X, kernel=SE, norm_bound=2.0, error=first, **options)
    beliefs = prior_beliefs(cd.chain(f, cd.Stage("g", kernel=SE, norm_bound=2.0, error=second)))
    assert isinstance(beliefs, ReadBeliefs)
    return beliefs


def columns(beliefs: ReadBeliefs, row: int) -> list[tuple[float, float]]:
    values = beliefs.latent.values
    return list(zip(values.lower[row].tolist(), values.upper[row].tolist(), strict=True))[1:]


def test_a_value_is_within_the_error_of_its_reading() -> None:
    beliefs = two(0.01, 0.02).append(np.array([[0.5, 0.3, 0.7]]))
    (low, high), (least, most) = columns(beliefs, 0)
    assert (low, high) == pytest.approx((0.29, 0.31), abs=1e-12)
    assert low < 0.29  # rounded outwards
    assert (least, most) == pytest.approx((0.68, 0.72), abs=1e-12)


def test_repeats_are_intersected_and_never_averaged() -> None:
    beliefs = two(0.01).append(np.array([[0.5, 0.300, 0.7], [0.5, 0.315, 0.7], [0.6, 0.31, 0.7]]))
    assert columns(beliefs, 0) == columns(beliefs, 1)
    assert columns(beliefs, 0)[0] == pytest.approx((0.305, 0.31), abs=1e-12)
    assert beliefs.stages[0].per_output.posterior.count == 2  # type: ignore[union-attr]


def test_readings_at_opposite_extremes_pin_a_value_down() -> None:
    """Without outward rounding, their intervals would not meet."""
    beliefs = two(0.1).append(np.array([[0.5, 0.3 + 0.1, 0.7], [0.5, 0.3 - 0.1, 0.7]]))
    assert not beliefs.evidence
    (low, high), _ = columns(beliefs, 0)
    assert low <= 0.3 <= high < 0.3 + 1e-12


def test_repeats_that_differ_by_more_than_twice_the_error_refute_it() -> None:
    beliefs = two(0.01).append(np.array([[0.5, 0.30, 0.7], [0.1, 0.2, 0.3], [0.5, 0.34, 0.7]]))
    (found,) = beliefs.evidence["f"]
    assert (found.assumption, found.rows, found.given) == ("error", (0, 2), 0.01)
    assert found.needed == pytest.approx(0.02)
    assert "The error is given as 0.01, but observations 0 and 2 are possible only with more than" in found.in_words("")
    with pytest.raises(cd.RefutedError, match="stage 'f'"):
        beliefs.check()
    with pytest.raises(cd.RefutedError):
        enclose_network(beliefs, Boxes(np.zeros((1, 1)), np.zeros((1, 1))))
    assert beliefs.append(np.array([[0.2, 0.2, 0.2]])).evidence  # it stays refuted


def test_a_norm_that_is_too_small_is_refuted_with_both_ways_out() -> None:
    rng = np.random.default_rng(0)
    x = np.linspace(-2, 2, 12)
    rows = np.stack([x, 1.5 * np.sin(4 * x) + 0.01 * rng.uniform(-1, 1, 12), np.full(12, nan)], axis=1)
    beliefs = two(0.01).append(rows)
    (found,) = beliefs.evidence["f"]
    assert isinstance(found, ReadingEvidence)
    assert found.needed > 2.0
    assert found.needed_error is not None
    assert found.needed_error > 0.01
    words = found.in_words("", trials=range(12))
    assert "The norm_bound is given as 2 and the error as 0.01" in words
    assert "or with errors of more than" in words
    enough = cd.Stage("f", controls=X, kernel=SE, norm_bound=2.0, error=2.0)
    assert not prior_beliefs(cd.chain(enough)).append(rows[:, :2]).evidence


def test_a_slope_that_is_too_small_is_refuted_whatever_the_errors() -> None:
    beliefs = two(0.01, lipschitz=0.5).append(np.array([[0.0, 0.0, nan], [0.1, 0.3, nan]]))
    found = beliefs.evidence["f"][0]
    assert (found.assumption, found.rows) == ("lipschitz", (0, 1))
    assert found.smallest == pytest.approx(2.8)
    assert "Or the errors of the readings are larger than given" in found.in_words("")
    assert not two(0.2, lipschitz=0.5).append(np.array([[0.0, 0.0, nan], [0.1, 0.3, nan]])).evidence


def test_a_contradiction_of_several_stages_names_them_without_a_number() -> None:
    network = cd.chain(
        cd.Stage("f", controls=X, kernel=SE, norm_bound=2.0, error=0.01),
        cd.Stage("g", kernel=SE, norm_bound=0.3, lipschitz=0.1, error=0.01),
        cd.Stage("h", known=True, function=lambda g: g, interval=lambda g: g),
    )
    # f is not read at the second run, but it is known to be close to that of the first one.
    beliefs = prior_beliefs(network).append(np.array([[0.0, 0.0, 0.29, nan], [1e-6, nan, -0.29, nan]]))
    (found,) = beliefs.evidence["g"]
    assert isinstance(found, Conflict)
    words = found.in_words("")
    assert "norm_bound or error of stage 'f'" in words
    assert "norm_bound or lipschitz or error of stage 'g'" in words


def test_what_is_reported_of_a_formula_is_ignored() -> None:
    f = cd.Stage("f", controls=X, kernel=SE, norm_bound=2.0, error=0.1)
    double = cd.Stage("double", parents="f", known=True, function=lambda f: 2 * f, lipschitz=2.0)
    beliefs = prior_beliefs(cd.Network([f, double])).append(np.array([[0.5, 0.3, 0.6]]))
    assert isinstance(beliefs, ReadBeliefs)
    low, high = columns(beliefs, 0)[1]
    assert (low, high) == pytest.approx((0.4, 0.8), abs=1e-9)


def test_a_copy_has_the_interval_of_its_source() -> None:
    f = cd.Stage("f", controls=X, kernel=SE, norm_bound=2.0, error=0.1)
    g = cd.Stage("g", parents="f", outputs=["f", "g"], passes=["f"], kernel=SE, norm_bound=2.0)
    beliefs = prior_beliefs(cd.Network([f, g], objective="g.g")).append(np.array([[0.5, 0.3, 0.3, 0.2]]))
    assert isinstance(beliefs, ReadBeliefs)
    assert columns(beliefs, 0)[0] == columns(beliefs, 0)[1]


def test_a_forwarded_reading_is_an_exact_input() -> None:
    rows = np.array([[0.5, 0.3, 0.7], [0.5, 0.31, 0.705]])
    value, reading = two(0.1).append(rows), two(0.1, forwards="reading").append(rows)
    of_value, of_reading = (b.stages[1].per_output for b in (value, reading))
    assert of_value is not None
    assert of_reading is not None
    assert len(of_value.anchors[0]) == 1  # repeats share the value
    assert of_reading.anchors[0][:, 0].tolist() == [0.3, 0.31]
    assert np.all(of_reading.anchors[1].half < 0.0101)
    # At the first setting, g(x) is not what was read, because f was set to another value.
    at = Boxes(np.array([[0.5]]), np.array([[0.5]]))
    bounds = enclose_network(reading, at).boxes
    assert bounds.upper[0, 2] - bounds.lower[0, 2] > 0.05


def test_an_unread_parent_is_known_through_its_bounds() -> None:
    beliefs = two(0.001, 0.001).append(np.array([[x, np.sin(x), nan] for x in np.linspace(-2, 2, 12)]))
    after = beliefs.append(np.array([[0.55, nan, 0.4]]))
    low, high = columns(after, 12)[0]
    assert low <= np.sin(0.55) <= high < low + 0.1
    assert after.stages[1].per_output.posterior.count == 1  # type: ignore[union-attr]


def test_runs_one_by_one_or_at_once_are_both_learned() -> None:
    rows = np.array([[0.5, 0.3, 0.7], [-0.5, 0.1, 0.2], [0.5, 0.305, 0.7]])
    once, each, loop = two().append(rows), two().append(rows, each=True), two()
    for row in rows:
        loop = loop.append(row[None])
    np.testing.assert_array_equal(each.latent.values.lower, loop.latent.values.lower)
    assert once.latent.values.lower.shape == each.latent.values.lower.shape


def test_chosen_weights_narrow_the_bounds_at_a_point() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, 25)
    rows = np.stack([x, np.sin(x) + 0.05 * rng.uniform(-1, 1, 25), np.full(25, nan)], axis=1)
    beliefs, point = two(0.05).append(rows), np.array([0.123])
    before, after = (
        enclose_network(b, Boxes(point[None], point[None])).boxes for b in (beliefs, beliefs.refined(point))
    )
    assert np.all(after.lower >= before.lower - 1e-12)
    assert np.diff([before.upper[0, 1] - before.lower[0, 1], after.upper[0, 1] - after.lower[0, 1]]) < 0


def test_networks_that_errors_do_not_support_are_refused() -> None:
    block = cd.BlockKernel("own", lambda x, z: SE(x, z)[:, :, None, None] * np.eye(1))
    f = cd.Stage("f", controls=X, kernel=SE, norm_bound=2.0, error=0.1)
    g = cd.Stage("g", kernel=block, norm_bound=2.0, lipschitz=1.0)
    with pytest.raises(cd.ArgumentError, match=r"stage 'g' has the kernel .*, and some stage has error="):
        prior_beliefs(cd.chain(f, g))


# ---- the floor


def test_before_the_first_run_the_floor_is_that_of_half_the_steepest_slopes() -> None:
    floor = floor_at(two(0.1, 0.03), np.zeros(1))
    assert floor.estimate == pytest.approx(2 * (0.03 + 2 * 1.0 * 0.1))  # B = 2 and a lengthscale of 1
    assert (floor.stage, floor.reached) == ("f", False)


def test_the_floor_grows_with_the_slopes_and_names_the_stage_that_weighs_most() -> None:
    x = np.linspace(-2, 2, 15)
    rows = np.stack([x, np.sin(x), np.sin(np.sin(x))], axis=1)
    floor = floor_at(two(0.05, 0.001).append(rows), np.array([0.0]))
    assert floor.stage == "f"
    assert floor.estimate == pytest.approx(2 * (0.001 + 2 * 0.05), rel=0.3)


def test_the_floor_is_reached_where_all_values_are_known_to_within_their_errors() -> None:
    rows = np.array([[0.5, 0.3 + s, 0.7 + s] for s in (-0.05, 0.05)])
    assert floor_at(two(0.1, 0.1).append(rows), np.array([0.5])).reached
    assert not floor_at(two(0.1, 0.1).append(rows), np.array([-1.5])).reached
