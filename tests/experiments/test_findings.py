"""Tests of verdicts from intervals."""

import pytest

from cascada.experiments.findings import Band, counted


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ([0.01, 0.011, 0.012], "held"),
        ([0.06, 0.061, 0.062], "not held"),
        ([-0.06, -0.061, -0.062], "not held"),
        ([0.04, 0.05, 0.06], "undecided"),
        ([0.05, 0.05, 0.05], "held"),  # "at most" includes its end
        ([0.0, 0.0, 0.0], "not held"),  # a tie does not outperform
        ([1e-17, 2e-17, 3e-17], "not held"),  # nor does a rounding error
    ],
)
def test_a_band_needs_the_whole_interval(values: list[float], verdict: str) -> None:
    assert Band(0.0, 0.05).over_family([{"": value} for value in values]).verdict == verdict


def test_the_number_shown_is_the_one_closest_to_failing() -> None:
    finding = Band(low=0.0).on_chain({"a": 0.3, "b": 0.1, "c": 0.2})
    assert (finding.number, finding.text, finding.verdict) == (0.1, "10.00% (b)", "held")
    assert finding.details == ("a 30.00%", "b 10.00%", "c 20.00%")
    both_ends = Band(-0.1, 0.1).on_chain({"a": -0.05, "b": 0.3})
    assert (both_ends.number, both_ends.verdict) == (0.3, "not held")


def test_a_count_has_its_share_and_interval() -> None:
    finding = counted([True, False, False, False], "held")
    assert (finding.number, finding.text, finding.verdict) == (0.25, "1 of 4 chains", "held")
    assert finding.low is not None
    assert finding.high is not None
    assert finding.low < 0.25 < finding.high
