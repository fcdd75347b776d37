"""Beliefs about networks that are read with scatter: nominal inputs, replays, repeats, evidence, confidence."""

from typing import Any
from unittest import mock

import numpy as np
import pytest

import cascada as cd
from cascada.arrays import Array
from cascada.confidence import Boxes, cell_bounds
from cascada.confidence.bounded_belief import BoundedBelief
from cascada.confidence.reading_evidence import ConfidentEvidence, Conflict
from cascada.network import enclose_network, prior_beliefs
from cascada.network.scatter import Scatter
from cascada.network.scatter_beliefs import ScatterBeliefs
from tests.network.cases import SE, X

nan = np.nan
SCATTER = cd.SubGaussian(0.05)


def two(first: Any = SCATTER, second: Any = SCATTER, **options: Any) -> ScatterBeliefs:
    """x → f → g, read with scatter."""
    f = cd.Stage("f", controls=X, kernel=SE, norm_bound=2.0, error=first, **options)
    network = cd.chain(f, cd.Stage("g", kernel=SE, norm_bound=2.0, error=second))
    beliefs = prior_beliefs(network, confidence=0.95)
    assert isinstance(beliefs, ScatterBeliefs)
    return beliefs


def runs(n: int, scale: float = 0.05, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, n)
    values = np.stack([x, np.sin(x), np.cos(np.sin(x))], axis=1)
    values[:, 1:] += scale * rng.standard_normal((n, 2))
    return values


def belief(beliefs: ScatterBeliefs, stage: int) -> BoundedBelief:
    found = beliefs.stages[stage].belief
    assert isinstance(found, BoundedBelief)
    return found


def same(one: ScatterBeliefs, other: ScatterBeliefs) -> bool:
    """Whether two beliefs are the same, bit for bit."""
    cells = Boxes(np.linspace(-2, 1, 7)[:, None], np.linspace(-1.5, 2, 7)[:, None])
    boxes = [enclose_network(b, cells).boxes for b in (one, other)]
    return (
        np.array_equal(one.latent.values.lower, other.latent.values.lower)
        and np.array_equal(one.latent.values.upper, other.latent.values.upper)
        and np.array_equal(boxes[0].lower, boxes[1].lower)
        and np.array_equal(boxes[0].upper, boxes[1].upper)
    )


def test_a_single_reading_is_bounded_with_a_part_of_the_risk() -> None:
    beliefs = two(second=cd.Bounded(0.01) + cd.SubGaussian(0.02)).append(np.array([[0.5, 0.3, 0.7], [-1.0, 0.2, 0.1]]))
    values = beliefs.latent.values
    first, second = (np.sqrt(2 * np.log(2 * 2 * t * (t + 1) / 0.025)) for t in (1, 2))
    assert values.upper[0, 1] <= 0.3 + 0.05 * first * (1 + 1e-12)
    assert values.lower[0, 2] == pytest.approx(0.7 - 0.01 - 0.02 * first, rel=1e-9)
    assert values.upper[1, 2] == pytest.approx(0.1 + 0.01 + 0.02 * second, rel=1e-9)


def test_bounds_contain_the_truth_and_averages_sharpen_them() -> None:
    rows, rng = runs(32), np.random.default_rng(3)
    rows[:, 0] = np.tile(rows[:4, 0], 8)
    rows[:, 1:] = np.stack([np.sin(rows[:, 0]), np.cos(np.sin(rows[:, 0]))], axis=1)
    rows[:, 1:] += 0.05 * rng.standard_normal((32, 2))
    beliefs = two().append(rows)
    assert not beliefs.evidence
    assert belief(beliefs, 0).averages[0].belief.posterior.count == 4  # repeats share a row
    assert belief(beliefs, 1).averages[0].belief.posterior.count == 4
    Z = np.linspace(-2, 2, 17)[:, None]
    boxes = enclose_network(beliefs, Boxes(Z, Z)).boxes
    truth = np.stack([Z[:, 0], np.sin(Z[:, 0]), np.cos(np.sin(Z[:, 0]))], axis=1)
    assert np.all((boxes.lower <= truth) & (truth <= boxes.upper))
    with mock.patch.object(ScatterBeliefs, "averaged", lambda _self, _stage, belief, _latent, _inputs: belief):
        single = two().append(rows)
    at = Boxes(rows[:4, :1], rows[:4, :1])
    halves = [cell_bounds(belief(b, 0), at).half.mean() for b in (beliefs, single)]
    assert halves[0] < 0.95 * halves[1]


def test_a_nominal_input_does_not_depend_on_the_reading_of_its_stage_nor_on_later_ones() -> None:
    f = cd.Stage("f", controls=X, kernel=SE, norm_bound=2.0, error=cd.SubGaussian(0.05))
    g = cd.Stage("g", kernel=SE, norm_bound=2.0, error=cd.SubGaussian(0.05))
    h = cd.Stage("h", kernel=SE, norm_bound=2.0, error=cd.SubGaussian(0.05))
    beliefs = prior_beliefs(cd.chain(f, g, h)).append(np.array([[x, np.sin(x), 0.8, 0.7] for x in (-1.0, 0.1, 1.2)]))
    assert isinstance(beliefs, ScatterBeliefs)
    row = np.array([0.4, 0.39, 0.93, 0.8])
    before = beliefs.nominal_inputs(row)
    assert set(before) == {"f", "g", "h"}
    assert before["f"] == (0.4,)
    for column, unchanged, changed in ((1, "f", "g"), (2, "fg", "h"), (3, "fgh", "")):
        other = row.copy()
        other[column] += 0.02
        after = beliefs.nominal_inputs(other)
        assert {name: after[name] for name in unchanged} == {name: before[name] for name in unchanged}
        assert all(after[name] != before[name] for name in changed)


def test_replaying_reports_with_stored_nominal_inputs_gives_the_same_beliefs_bit_for_bit() -> None:
    live, stored = two(), []
    for number, row in enumerate(runs(8)):
        half = row.copy()
        half[2] = nan
        for report in (half, row):  # the stages are reported one after the other
            nominal = live.nominal_inputs(report, number)
            stored.append((report, number, nominal))
            live = live.append(report[None], runs=[number], nominal=[nominal])
        if number == 4:
            live = live.refined(np.zeros(1))  # a search may do this between reports
    replayed = two()
    for number, (report, run, nominal) in enumerate(stored):
        replayed = replayed.append(report[None], runs=[run], nominal=[nominal])
        if number == 9:
            replayed = replayed.refined(np.zeros(1))
    assert same(live, replayed)
    # Without what was stored, a replay that does not refine would choose other nominal inputs.
    at_once = two().append(
        np.array([s[0] for s in stored]), runs=[s[1] for s in stored], nominal=[s[2] for s in stored]
    )
    np.testing.assert_array_equal(at_once.latent.nominal["g"], live.latent.nominal["g"])


def test_a_report_that_repeats_earlier_stages_counts_their_readings_once() -> None:
    row = np.array([0.4, 0.39, nan])
    full = np.array([0.4, 0.39, 0.9])
    beliefs = two().append(np.array([row, full, full]), runs=[7, 7, 7])
    assert beliefs.latent.runs == (7,)
    assert beliefs.latent.turns[:, 1:].tolist() == [[1, 1]]
    assert len(belief(beliefs, 0).averages[0].bias) == 1
    alone = two().append(np.array([full, full]))
    assert alone.latent.turns[:, 1:].tolist() == [[1, 1], [2, 2]]


def test_a_repeat_takes_the_nominal_input_of_its_first_run() -> None:
    beliefs = two().append(np.array([[0.4, 0.39, 0.9], [0.4, 0.5, 0.8], [0.41, 0.5, 0.8]]))
    nominal = beliefs.latent.nominal["g"][:, 0]
    assert nominal[0] == nominal[1] != nominal[2]


def test_a_forwarded_reading_is_the_nominal_input_itself() -> None:
    beliefs = two(forwards="reading").append(np.array([[0.4, 0.39, 0.9], [0.4, 0.5, 0.8]]))
    assert beliefs.latent.nominal["g"][:, 0].tolist() == [0.39, 0.5]
    assert np.all(belief(beliefs, 1).averages[0].bias < 1e-14)
    unread = two(forwards="reading").append(np.array([[0.4, nan, 0.9]]))
    assert np.isnan(unread.latent.nominal["g"][0, 0])  # nothing is known of the input
    assert "g" not in two(forwards="reading").nominal_inputs(np.array([0.4, nan, 0.9]))


@pytest.mark.parametrize(
    ("report", "message"),
    [
        ([0.4, 0.40, 0.9], r"run 3: stage 'f' was reported as \[0.39\] before; got \[0.4\]"),
        ([0.5, 0.39, 0.9], "run 3: a control of stage 'f' differs"),
    ],
)
def test_a_changed_report_of_a_run_is_refused(report: list[float], message: str) -> None:
    beliefs = two().append(np.array([[0.4, 0.39, nan]]), runs=[3])
    with pytest.raises(cd.ArgumentError, match=message):
        beliefs.append(np.array([report]), runs=[3])


def test_a_wrong_number_of_nominal_inputs_is_refused() -> None:
    with pytest.raises(cd.ArgumentError, match="stage 'f' has 1 inputs; got 2 nominal inputs"):
        two().append(np.array([[0.4, 0.39, nan]]), nominal=[{"f": (0.4, 0.1)}])


def test_controls_of_stages_that_were_not_read_may_change() -> None:
    y = {"y": cd.Real(-2, 2)}
    f = cd.Stage("f", controls=X, kernel=SE, norm_bound=2.0, error=cd.SubGaussian(0.05))
    g = cd.Stage("g", controls=y, kernel=SE, norm_bound=2.0, error=cd.SubGaussian(0.05))
    beliefs = prior_beliefs(cd.chain(f, g)).append(np.array([[0.4, 0.1, 0.39, nan]]))
    assert isinstance(beliefs, ScatterBeliefs)
    after = beliefs.append(np.array([[0.4, 0.2, 0.39, 0.3]]), runs=[0])
    assert after.latent.readings[0].tolist() == [0.4, 0.2, 0.39, 0.3]
    assert after.latent.nominal["g"][0, 1] == 0.2


def test_readings_that_no_function_explains_are_refuted_at_the_confidence() -> None:
    x = np.linspace(-2, 2, 12)
    beliefs = two().append(np.stack([x, 1.8 * np.sin(6 * x), np.full(12, nan)], axis=1))
    (found,) = beliefs.evidence["f"]
    assert isinstance(found, ConfidentEvidence)
    assert found.needed > 2.0
    assert "At confidence 95 %: The norm_bound is given as 2" in found.in_words("", trials=range(12))
    assert "or with larger errors" in found.in_words("")
    with pytest.raises(cd.RefutedError, match="At confidence 95 %"):
        beliefs.check()
    assert beliefs.append(np.array([[0.0, 0.0, 0.0]])).evidence  # it stays refuted
    assert beliefs.nominal_inputs(np.array([0.0, 0.0, 0.0]))  # and goes on without an error


def test_repeats_that_scatter_too_much_are_refuted_without_a_number() -> None:
    beliefs = two().append(np.array([[0.5, -0.4, nan], [0.5, 0.4, nan]]))
    (found,) = beliefs.evidence["f"]
    assert isinstance(found, Conflict)
    assert found.in_words("").startswith("At confidence 95 %, no values agree with all readings")
    assert "norm_bound or error of stage 'f'" in found.in_words("")


def test_what_is_fixed_at_the_start_is_kept_when_bounds_are_raised() -> None:
    before = two().network
    scatter = Scatter.of(before, 0.9)
    raised = [cd.Stage(s.name, s.controls, kernel=SE, norm_bound=3.0, error=cd.SubGaussian(0.1)) for s in before.stages]
    beliefs = prior_beliefs(cd.chain(*raised), scatter=scatter).append(runs(3))
    assert isinstance(beliefs, ScatterBeliefs)
    assert beliefs.confidence == 0.9
    first = belief(beliefs, 0).averages[0].output
    assert (first.scale, first.norm_bound) == (0.1, 3.0)
    assert first.first == pytest.approx(16 * 0.05**2 / 4)
    assert first.risk == pytest.approx(0.1 / 2 / 2)


@pytest.mark.parametrize("confidence", [0, 1, 1.5, -0.5, np.nan, True, "high", None])
def test_an_invalid_confidence_is_refused(confidence: Any) -> None:
    with pytest.raises(cd.ArgumentError, match=r"confidence must be a number above 0 and below 1, such as 0.95; got"):
        prior_beliefs(two().network, confidence=confidence)


def test_a_larger_confidence_gives_wider_bounds() -> None:
    rows, at = runs(12), Boxes(np.zeros((1, 1)), np.zeros((1, 1)))
    widths = []
    for confidence in (0.5, 0.95, 0.999):
        boxes = enclose_network(prior_beliefs(two().network, confidence=confidence).append(rows), at).boxes
        widths.append(float(boxes.upper[0, 2] - boxes.lower[0, 2]))
    assert widths == sorted(widths)


def test_stages_with_bounded_errors_and_exact_ones_are_not_averaged() -> None:
    beliefs = two(second=0.01).append(runs(5, 0.002))
    assert belief(beliefs, 0).averages
    assert not belief(beliefs, 1).averages
    assert set(beliefs.nominal_inputs(runs(1)[0])) == {"f"}
