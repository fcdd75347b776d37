"""Formatting of numbers with outward rounding, so that printed bounds stay true.

An upper bound rounded to the nearest decimal may be printed smaller than it is, and the printed statement is then
false. All arithmetic here is exact, because a float is a decimal number with finitely many digits. A float that a user
gave or a run returned is represented by its shortest decimal (`repr`), so that 0.3 is printed as 0.3.
"""

import math
from collections.abc import Iterable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import NamedTuple

# Enough digits for the difference of any two floats: 309 before the decimal point and 1074 after it.
_EXACT = Context(prec=1400)
# As in `repr`, an exponent is written for numbers below 1e-4 and from 1e16 on.
_SMALLEST_EXPONENT, _LARGEST_EXPONENT = -4, 15
# Numbers with more zeros before the decimal point that come from rounding are also written with an exponent.
_FILLED_ZEROS = 6

_GAP_DIGITS, _BEST_DIGITS = 4, 5  # the fewest digits shown of the gap and of the best value
_ROOM_FOR_BEST = 10  # the most digits of the larger number when a much smaller best value needs more
_FLOAT_DIGITS = 17  # enough to distinguish any two floats
_APART_DIGITS = range(6, 20)  # with 19 digits, two different floats stay different after rounding towards each other


class Shown(NamedTuple):
    """The best value, its bound and their gap as consistent strings."""

    best: str
    bound: str
    gap: str


def rounded_up(number: float, digits: int) -> str:
    """The smallest decimal with `digits` significant digits that is not below the number.

    >>> rounded_up(1.9816, 3), rounded_up(-1.9816, 3), rounded_up(1000000.4, 6)
    ('1.99', '-1.98', '1000010')
    """
    return _rounded(Decimal(float(number)), digits, ROUND_CEILING)


def rounded_down(number: float, digits: int) -> str:
    """The largest decimal with `digits` significant digits that is not above the number.

    >>> rounded_down(1.9816, 3), rounded_down(-1.9816, 3), rounded_down(2.0, 3)
    ('1.98', '-1.99', '2')
    """
    return _rounded(Decimal(float(number)), digits, ROUND_FLOOR)


def as_given(number: float | str) -> str:
    """The shortest string that parses to the same float; a text as it is.

    >>> as_given(40.0), as_given(0.3), as_given(1 / 3)
    ('40', '0.3', '0.3333333333333333')
    """
    return number if isinstance(number, str) else _text(_shortest(number), 0)


def all_as_given(numbers: Iterable[float]) -> str:
    """Several numbers with all their digits, as in "1.2, 22.8"."""
    return ", ".join(map(as_given, numbers))


def six_digits(value: float | str) -> str:
    """A number with at most six digits, for readers; a text as it is.

    >>> six_digits(0.123456789), six_digits("oak")
    ('0.123457', 'oak')
    """
    return value if isinstance(value, str) else f"{value:.6g}"


def as_percent(probability: float) -> str:
    """A given probability as text, such as "95 %" or "99.9 %"."""
    return f"{(_shortest(probability) * 100).normalize():f} %"


def no_better(best: float, digits: int, maximised: bool = True) -> str:
    """A best value with `digits` significant digits, rounded to the worse side.

    >>> no_better(1.23456, 3), no_better(1.23456, 3, maximised=False), no_better(0.3, 3)
    ('1.23', '1.24', '0.3')
    """
    return _rounded(_shortest(best), digits, ROUND_FLOOR if maximised else ROUND_CEILING)


def agreeing(best: float, bound: float, maximised: bool = True) -> Shown:
    """A best value, a bound on all values and their gap, printed with the same number of decimals.

    The bound is rounded outwards and the best value to its worse side. The printed gap is exactly the difference of the
    two printed numbers and not smaller than the true gap. It exceeds the true gap by at most 0.2 %, or by three times
    the distance from the larger number to the next float. If the gap is 0, all digits are printed. If the best value is
    better than the bound, the bound is replaced by the best value.

    >>> agreeing(40.0, 41.9816)
    Shown(best='40', bound='41.982', gap='1.982')
    >>> agreeing(1000000.1, 999999.7, maximised=False)
    Shown(best='1000000.1', bound='999999.6999', gap='0.4001')
    """
    sign = 1 if maximised else -1
    value, low, high = _shortest(sign * best), Decimal(sign * float(best)), Decimal(sign * float(bound))
    if low >= high:
        return Shown(as_given(best), as_given(best), "0")
    if not (low.is_finite() and high.is_finite()):
        return Shown(no_better(best, _APART_DIGITS[0], maximised), as_given(bound), "inf")
    gap = _EXACT.subtract(high, low)
    unit = _common_unit(low, high, gap)
    grid = Decimal((0, (1,), unit))
    shown_best = value.quantize(grid, ROUND_FLOOR, _EXACT)
    # The shortest decimal of the best value may exceed the float by less than its last bit.
    shown_bound = max(high, _EXACT.add(shown_best, gap)).quantize(grid, ROUND_CEILING, _EXACT)
    shown_gap = _EXACT.subtract(shown_bound, shown_best)
    if not maximised:
        shown_best, shown_bound = shown_best.copy_negate(), shown_bound.copy_negate()
    return Shown(_text(shown_best, unit), _text(shown_bound, unit), _text(shown_gap, unit))


def apart(value: float, bound: float) -> tuple[str, str]:
    """A given or observed number and a bound it violates, with enough digits to show the violation.

    Both are rounded towards each other, so that both printed statements are true.

    >>> apart(1000000.4, 1000000.12), apart(0.3, 0.75)
    (('1000000.4', '1000000.2'), ('0.3', '0.75'))
    """
    if not (value < bound or value > bound):  # equal, or one of them is NaN after an overflow
        return as_given(value), as_given(bound)
    first, second = (ROUND_FLOOR, ROUND_CEILING) if value > bound else (ROUND_CEILING, ROUND_FLOOR)
    for digits in _APART_DIGITS:
        texts = _rounded(_shortest(value), digits, first), _rounded(Decimal(float(bound)), digits, second)
        low, high = map(Decimal, texts if value < bound else texts[::-1])
        if low < high:
            return texts
    raise AssertionError("19 digits distinguish any two floats")


def outside(value: float, low: float, high: float) -> tuple[str, str, str]:
    """A number and an interval it lies outside of, rounded outwards, with enough digits to show it.

    >>> outside(2.0, 0.123456789, 1.9999999)
    ('2', '0.123456', '1.9999999')
    """
    if value > high:
        shown, end = apart(value, high)
        return shown, rounded_down(low, _APART_DIGITS[0]), end
    shown, end = apart(value, low)
    return shown, end, rounded_up(high, _APART_DIGITS[0])


def difference_up(high: float, low: float) -> float:
    """high − low, rounded up to a float.

    >>> difference_up(1.0, 1e-30), difference_up(1.0, -1e-30)
    (1.0, 1.0000000000000002)
    """
    difference = high - low
    if not (math.isfinite(high) and math.isfinite(low)):
        return difference
    exact = _EXACT.subtract(Decimal(float(high)), Decimal(float(low)))
    return math.nextafter(difference, math.inf) if Decimal(float(difference)) < exact else difference


def _common_unit(best: Decimal, bound: Decimal, gap: Decimal) -> int:
    """The exponent of the last decimal with which a best value, a bound and their gap are printed."""
    largest = max(number.adjusted() for number in (best, bound) if number)
    unit = gap.adjusted() + 1 - _GAP_DIGITS
    if best:  # otherwise a gap of thousands would round a best value of 0.2 to 0
        unit = min(unit, max(best.adjusted() + 1 - _BEST_DIGITS, largest + 1 - _ROOM_FOR_BEST))
    return max(unit, largest + 1 - _FLOAT_DIGITS)


def _shortest(number: float) -> Decimal:
    return Decimal(repr(float(number)))


def _rounded(number: Decimal, digits: int, rounding: str) -> str:
    rounded = Context(prec=digits, rounding=rounding).plus(number)
    return _text(rounded, rounded.adjusted() + 1 - digits)


def _text(number: Decimal, unit: int) -> str:
    """A decimal without trailing zeros; `unit` is the exponent of the last digit that is not padding."""
    if not number.is_finite():
        return str(float(number))
    if not number:
        return "0"
    if _SMALLEST_EXPONENT <= number.adjusted() <= _LARGEST_EXPONENT and unit <= _FILLED_ZEROS:
        text = f"{number:f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    digits = "".join(map(str, number.as_tuple().digits)).rstrip("0")
    mantissa = f"{digits[0]}.{digits[1:]}".rstrip(".")
    return f"{'-' if number.is_signed() else ''}{mantissa}e{number.adjusted():+03d}"
