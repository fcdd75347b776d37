"""Tests of lower bounds: the count of the proof compared with all search orders, and the orders with their labels."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cascada.errors import ArgumentError
from cascada.kernels import Matern
from cascada.theory.hard import HardFamily, family_of_cells
from cascada.theory.lower import (
    average_cumulative_regret,
    average_simple_regret,
    cumulative_regret_bound,
    longest_horizon,
    lower_cumulative_regret_order,
    lower_simple_regret_order,
    rounds_order,
    simple_regret_bound,
)
from tests.thorough import examples

SETTING: dict[str, Any] = {"dims": (1, 1, 1), "u": 0.5, "u_tilde": 0.3}


def family(cells: int = 10, nu: float = 1.5, dims: tuple[int, ...] = (1, 1)) -> HardFamily:
    return family_of_cells(Matern(nu), 5.0, cells, dims=dims, u=0.5, u_tilde=0.3)


@settings(max_examples=examples(60))
@given(st.integers(2, 14), st.integers(0, 16), st.randoms(use_true_random=False))
def test_no_search_order_has_less_regret_than_the_bound(cells, rounds, random):
    """The best algorithm evaluates the centre of one new cell per round and stays at a maximum."""
    hard = family(cells)
    order = [random.randrange(-1, cells) for _ in range(rounds)]  # −1 is a point where all members are zero
    guess = random.randrange(cells)
    height, simple, cumulative = hard.heights[-1], [], []
    for member in range(hard.members):
        hit = order.index(member) if member in order else None
        simple.append(0.0 if hit is not None or guess == member else height)
        cumulative.append(height * (rounds if hit is None else hit))
    assert np.mean(simple) >= average_simple_regret(hard, rounds).value - 1e-12
    assert np.mean(cumulative) >= average_cumulative_regret(hard, rounds).value - 1e-12


@pytest.mark.parametrize("rounds", [0, 3, 9, 30])
def test_searching_one_cell_per_round_attains_the_bounds(rounds):
    """The bounds are sharp."""
    hard = family(10)
    seen = min(rounds, 10)
    left = max(0, 10 - rounds - 1)
    assert average_simple_regret(hard, rounds).value == pytest.approx(hard.heights[-1] * left / 10)
    total = sum(min(member, rounds) for member in range(10)) / 10
    assert average_cumulative_regret(hard, rounds).value == pytest.approx(hard.heights[-1] * total)
    assert average_cumulative_regret(hard, rounds).constants["T"] == rounds
    assert seen <= 10


@pytest.mark.parametrize(("cells", "longest"), [(1, -1), (2, 0), (10, 4), (11, 4), (12, 5)])
def test_half_as_many_rounds_as_members_leave_regret_epsilon(cells, longest):
    """thm:lower_sim: T ≤ M/2 − 1 ⇒ average simple regret ≥ ε."""
    hard = family(cells)
    assert longest_horizon(hard) == longest
    for rounds in range(longest + 1):
        assert average_simple_regret(hard, rounds).value >= hard.epsilon * (1 - 1e-12)
    if cells % 2 == 0:
        assert average_simple_regret(hard, longest).value == pytest.approx(hard.epsilon, rel=1e-12)
        assert average_simple_regret(hard, longest + 1).value < hard.epsilon


def test_simple_bounds_decrease_and_cumulative_bounds_increase_with_the_horizon():
    horizons = [0, 3, 10, 100]
    simple = [simple_regret_bound(Matern(1.5), 5.0, T, **SETTING) for T in horizons]
    cumulative = [cumulative_regret_bound(Matern(1.5), 5.0, T, **SETTING) for T in horizons]
    assert [bound.value for bound in simple] == sorted((bound.value for bound in simple), reverse=True)
    assert [bound.value for bound in cumulative] == sorted(bound.value for bound in cumulative)
    assert simple[0].status == "proven"
    assert simple[2].constants["M"] > 11
    # The bound of one family is at most the best of all families.
    hard = family_of_cells(Matern(1.5), 5.0, 22, **SETTING)
    assert simple[2].value >= average_simple_regret(hard, 10).value


@pytest.mark.parametrize(("nu", "dimension"), [(1.0, 1), (1.5, 1), (1.5, 2)])
def test_the_explicit_bound_has_the_order_of_the_theorem(nu, dimension):
    """For T → ∞ the slope in log T is −ν/d: as in thm:lower_sim."""
    setting: dict[str, Any] = {**SETTING, "dims": (dimension, 1, 1)}
    few, many = (simple_regret_bound(Matern(nu), 5.0, T, **setting).value for T in (10_000, 160_000))
    order = lower_simple_regret_order(family(10, nu, (dimension, 1, 1)))
    assert math.log(many / few) / math.log(16) == pytest.approx(order.exponents[0], abs=0.02)


def test_bounds_increase_with_depth_and_norm():
    """ε grows with each layer by a factor between αL and L, and with B."""
    by_depth = [simple_regret_bound(Matern(1.5), 5.0, 200, **{**SETTING, "dims": (1, *[1] * m)}) for m in range(4)]
    for shallow, deep in pairwise(by_depth):
        low, high = deep.constants["c"] * deep.constants["L"], deep.constants["L"]
        assert low * (1 - 1e-6) <= deep.value / shallow.value <= high * (1 + 1e-6)
    values = [simple_regret_bound(Matern(1.5), norm, 200, **SETTING).value for norm in (4.0, 5.0, 8.0)]
    assert values == sorted(values)


def test_orders_have_a_status_instead_of_a_value():
    hard = family(10, 1.5, (2, 1, 1))
    size = hard.norm_bound * (hard.alpha * hard.lipschitz) ** 2
    assert hard.alpha == pytest.approx(hard.amplifier.ratio, rel=1e-9)
    simple, rounds, cumulative = (
        lower_simple_regret_order(hard),
        rounds_order(hard),
        lower_cumulative_regret_order(hard),
    )
    assert simple.inside(81) == pytest.approx(size * 81**-0.75)
    assert rounds.inside(1) == pytest.approx((size / hard.epsilon) ** (2 / 1.5))
    assert cumulative.inside(10**8) == pytest.approx(size * 100)  # (10⁸)^{1 − ν/d}
    assert cumulative.inside(4) == pytest.approx(4)  # min{T, ·}
    narrow = lower_cumulative_regret_order(family(10, 1.5, (1, 1, 1)))
    assert narrow.exponents == (0.0,)  # d ≤ ν
    assert narrow.inside(10**6) == pytest.approx((5 * (hard.alpha * hard.lipschitz) ** 2) ** (1 / 1.5))
    for order, label in ((simple, "thm:lower_sim"), (rounds, "thm:lower_sim"), (cumulative, "thm:lower_cml")):
        assert order.status == "up to a constant"
        assert order.label == label
        assert not hasattr(order, "value")


@pytest.mark.parametrize("horizon", [-1, 2.0, True])
def test_an_invalid_horizon_raises_an_argument_error(horizon):
    with pytest.raises(ArgumentError, match="T must be a whole number ≥ 0"):
        average_simple_regret(family(4), horizon)
    with pytest.raises(ArgumentError, match="T must be a whole number ≥ 0"):
        cumulative_regret_bound(Matern(1.5), 5.0, horizon, **SETTING)
