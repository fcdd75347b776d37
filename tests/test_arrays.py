"""Tests of the validation of numbers."""

from typing import Any

import numpy as np
import pytest

from cascada.arrays import as_whole_number, is_whole_number
from cascada.errors import ArgumentError


@pytest.mark.parametrize("value", [1, 7, np.int64(3), np.uint8(2), 10**30])
def test_a_whole_number_is_returned_as_an_int(value: Any) -> None:
    found = as_whole_number(value, "budget")
    assert type(found) is int
    assert found == value


@pytest.mark.parametrize("value", [0, -3, True, 2.0, 2.5, "3", None, np.float64(1), np.bool_(True), [1]])
def test_other_values_are_rejected(value: Any) -> None:
    assert not is_whole_number(value)
    with pytest.raises(ArgumentError, match=r"^budget must be a whole number ≥ 1; got .*\.$") as caught:
        as_whole_number(value, "budget")
    assert repr(value) in str(caught.value)


def test_an_error_names_both_limits_and_ends_with_the_advice() -> None:
    assert as_whole_number(0, "member", at_least=0, at_most=4) == 0
    with pytest.raises(
        ArgumentError, match=r"^member must be a whole number from 0 to 4; got 5\. Use a smaller one\.$"
    ):
        as_whole_number(5, "member", at_least=0, at_most=4, advice="Use a smaller one.")


def test_an_error_shortens_long_values() -> None:
    with pytest.raises(ArgumentError) as caught:
        as_whole_number("x" * 1000, "budget")
    assert len(str(caught.value)) < 200
