"""Tests that printed bounds are never tighter than the bounds, at all magnitudes and in exact arithmetic."""

import math
import sys
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from cascada.outwards import agreeing, apart, as_given, difference_up, no_better, outside, rounded_down, rounded_up


@st.composite
def scaled(draw: st.DrawFn, smallest: int = -90, largest: int = 90) -> float:
    """Numbers of all magnitudes and both signs, with many or few digits."""
    mantissa = draw(st.floats(1, 10) | st.integers(1, 9) | st.sampled_from([0.3, 1.1, 7.25]))
    number = float(f"{float(mantissa)!r}e{draw(st.integers(smallest, largest))}")
    return draw(st.sampled_from([-1, 1])) * number


numbers = scaled() | st.just(0.0)


@st.composite
def near(draw: st.DrawFn) -> tuple[float, float]:
    """Two numbers in increasing order: far apart, close, or neighbouring floats."""
    low = draw(numbers)
    how = draw(st.sampled_from(["far", "close", "neighbours"]))
    high = draw(numbers) if how == "far" else low + abs(low) * 10.0 ** draw(st.integers(-15, 3))
    high = math.nextafter(low, math.inf) if how == "neighbours" else high
    assume(low < high)
    return low, high


def digits_of(text: str) -> int:
    return len(text.lstrip("-").split("e")[0].replace(".", "").strip("0"))


@given(numbers, st.integers(1, 17))
@example(1000000.4, 6)
@example(1.9816, 3)
@example(-0.0, 3)
@example(9.9999999, 3)
@example(sys.float_info.max, 2)
@example(5e-324, 2)
def test_a_number_lies_between_its_two_roundings(number, digits):
    down, up = rounded_down(number, digits), rounded_up(number, digits)
    assert Fraction(down) <= Fraction(number) <= Fraction(up)
    assert max(digits_of(down), digits_of(up)) <= digits
    if number:
        unit = Fraction(10) ** (Decimal(number).adjusted() - digits + 1)
        assert Fraction(up) - Fraction(down) <= unit


@pytest.mark.parametrize(
    ("number", "digits", "up", "down"),
    [
        (1.9816, 3, "1.99", "1.98"),
        (-1.9816, 3, "-1.98", "-1.99"),
        (1000000.4, 6, "1000010", "1000000"),
        (1000000.0, 3, "1000000", "1000000"),
        (1.25e12, 3, "1.25e+12", "1.25e+12"),
        (2.5e-5, 1, "3e-05", "2e-05"),
        (0.00025, 1, "0.0003", "0.0002"),
        (0.0, 4, "0", "0"),
        (-0.0, 4, "0", "0"),
        (math.inf, 4, "inf", "inf"),
        (-math.inf, 4, "-inf", "-inf"),
    ],
)
def test_rounded_numbers_are_formatted_like_percent_g(number, digits, up, down):
    assert (rounded_up(number, digits), rounded_down(number, digits)) == (up, down)


@given(numbers)
def test_as_given_round_trips(number):
    assert float(as_given(number)) == number
    assert digits_of(as_given(number)) <= 17


@given(numbers, st.integers(1, 17), st.booleans())
@example(0.3, 6, True)
@example(0.1, 6, False)
def test_a_best_value_is_not_printed_better_than_it_is(best, digits, maximised):
    text, sign = no_better(best, digits, maximised), 1 if maximised else -1
    assert sign * float(text) <= sign * best
    assert digits_of(text) <= digits
    if digits_of(as_given(best)) <= digits:
        assert text == as_given(best)
    else:
        assert text == (rounded_down if maximised else rounded_up)(best, digits)


@given(near(), st.booleans())
@example((40.0, 41.9816), True)
@example((999999.7, 1000000.1), False)
@example((-0.2, 0.1), True)  # both shortest decimals lie between the two floats
@example((0.2938123, 1234.56), True)
@example((-1e-12, 5e6), True)
@example((-1e-90, 0.0), True)
@example((0.0, 1e-90), False)
@example((-sys.float_info.max, sys.float_info.max), True)
@example((0.0, 5e-324), True)
def test_printed_best_bound_and_gap_are_true_and_consistent(pair, maximised):
    best, bound = pair if maximised else (-pair[0], -pair[1])
    sign = 1 if maximised else -1
    shown = agreeing(best, bound, maximised)
    printed_best, printed_bound, printed_gap = map(Fraction, shown)
    exact_gap = Fraction(pair[1]) - Fraction(pair[0])
    assert sign * printed_bound >= sign * Fraction(bound)
    assert sign * float(shown.best) <= sign * best
    assert shown.best == as_given(best) or sign * printed_best <= sign * Fraction(best)
    assert printed_bound - printed_best == sign * printed_gap
    assert printed_gap >= exact_gap
    assert printed_gap - exact_gap <= max(exact_gap / 500, 3 * Fraction(max(map(math.ulp, pair))))


@given(scaled(-12, 12), scaled(-12, 12))
def test_a_printed_best_value_is_close_to_the_best_value(best, distance):
    """A wide gap does not round the best value away."""
    bound = best + abs(distance)
    assume(bound > best)
    printed = float(agreeing(best, bound).best)
    assert abs(printed - best) <= 1.001 * max(1e-4 * abs(best), 1e-9 * abs(bound))


@given(numbers, st.booleans())
def test_without_a_gap_all_digits_are_printed(best, maximised):
    shown = agreeing(best, best, maximised)
    assert shown.best == shown.bound == as_given(best)
    assert shown.gap == "0"


def test_a_bound_worse_than_the_best_value_is_printed_as_that_value():
    assert agreeing(2.0, 1.9999999999) == ("2", "2", "0")
    assert agreeing(2.0, 2.0000000001, maximised=False) == ("2", "2", "0")


def test_an_infinite_bound_is_printed_as_inf():
    assert agreeing(1.23456789, math.inf) == ("1.23456", "inf", "inf")
    assert agreeing(1.23456789, -math.inf, maximised=False) == ("1.23457", "-inf", "inf")
    assert agreeing(0.3, math.inf).best == "0.3"


@pytest.mark.parametrize(
    ("best", "bound", "maximised", "shown"),
    [
        (40.0, 41.9816, True, ("40", "41.982", "1.982")),
        (1000000.4, 1000000.9, True, ("1000000.4", "1000000.9001", "0.5001")),
        (0.2938123456, 1234.56, True, ("0.29381", "1234.56", "1234.26619")),
        (-3.0, -4.5, False, ("-3", "-4.5", "1.5")),
        (1.5e20, 2.0e20, True, ("1.5e+20", "2e+20", "5e+19")),
        (1e6, 1e6 + 2**-33, True, ("1000000", "1000000.0000000002", "2e-10")),
    ],
)
def test_examples_of_best_bound_and_gap(best, bound, maximised, shown):
    assert agreeing(best, bound, maximised) == shown


@given(near(), st.booleans())
@example((1.0, math.nextafter(1.0, 2.0)), True)
@example((0.3, 0.30000001), True)
def test_printed_numbers_show_the_violation(pair, above):
    low, high = pair
    value, bound = (high, low) if above else (low, high)
    sign = 1 if above else -1
    shown_value, shown_bound = apart(value, bound)
    assert sign * Fraction(shown_value) > sign * Fraction(shown_bound)
    assert sign * float(shown_value) <= sign * value
    assert sign * Fraction(shown_bound) >= sign * Fraction(bound)


def test_equal_numbers_and_nan_are_printed_unchanged():
    assert apart(0.1, 0.1) == ("0.1", "0.1")
    assert apart(0.1, math.nan) == ("0.1", "nan")
    assert outside(0.1, math.nan, math.inf) == ("0.1", "nan", "inf")


def test_an_infinite_number_is_printed_apart_from_every_other():
    assert apart(math.inf, 1.0) == ("inf", "1")
    assert apart(0.3, -math.inf) == ("0.3", "-inf")


@given(near(), st.floats(0, 1))
def test_a_number_outside_an_interval_is_printed_outside_it(pair, part):
    low, high = pair
    middle = min(max(low + part * (high - low), low), high)
    assume(low < middle)
    value, shown_low, shown_high = map(Fraction, outside(low, middle, high))
    assert value < shown_low <= Fraction(middle)
    assert shown_high >= Fraction(high)
    assume(middle < high)
    value, shown_low, shown_high = map(Fraction, outside(high, low, middle))
    assert value > shown_high >= Fraction(middle)
    assert shown_low <= Fraction(low)


def test_formatting_does_not_depend_on_the_decimal_context_of_the_caller():
    with localcontext() as context:
        context.prec = 2
        assert agreeing(-40.123456, -41.98765, maximised=False) == ("-40.123", "-41.988", "1.865")
        assert apart(1.0000004, 1.0000001) == ("1.0000004", "1.0000002")
        assert (rounded_up(1.23456, 4), as_given(1.23456)) == ("1.235", "1.23456")
        assert difference_up(1.0, -1e-30) > 1.0


@given(numbers, numbers)
@example(1.0, -1e-30)
@example(0.3, 0.1)
def test_a_difference_is_not_smaller_than_the_exact_one(high, low):
    found, exact = difference_up(high, low), Fraction(high) - Fraction(low)
    assert Fraction(found) >= exact
    assert Fraction(math.nextafter(found, -math.inf)) < exact


def test_differences_beyond_floats_are_infinite():
    assert difference_up(math.inf, 1.0) == math.inf
    assert difference_up(sys.float_info.max, -sys.float_info.max) == math.inf
    assert difference_up(-sys.float_info.max, sys.float_info.max) == -sys.float_info.max
