"""Tests of orders: exponents and factors of the printed formulas, tables, and fill distances of sampled points."""

import math

import numpy as np
import pytest

from cascada.designs import fill_distance
from cascada.errors import ArgumentError
from cascada.kernels import Matern
from cascada.problems import certified
from cascada.theory.comparison import compare, cucb_order, gpn_ucb_order, mcbo_order, oi_order
from cascada.theory.layers import Layers
from cascada.theory.non_adaptive import (
    layer_fill_distance,
    layer_sd_order,
    restrictive_order,
    simple_regret_order,
    weaker_order,
)
from cascada.theory.promises import layers_of
from cascada.theory.rates import conjectured_sd_sum_rate, sd_sum_rate
from cascada.theory.statement import Order
from cascada.theory.summary import Row, as_markdown, as_text, cumulative_table, summary_table

B, L, T = 2.0, 3.0, 100
CHAIN = Layers("chain", [2, 1, 1, 1], B, L)
MULTI = Layers("multi-output", [2, 3, 2, 4], B, L)
NET = Layers("feed-forward", [2, 3, 2, 4], B, L)
D = 24  # of NET


# ---------------------------------------------------------------- non-adaptive


def test_rough_kernels_have_a_smaller_exponent():
    for layers, root in ((CHAIN, 1), (MULTI, 1), (NET, math.sqrt(D))):
        order = simple_regret_order(layers, 0.5)
        assert order.inside(T) == pytest.approx(root * B * L**3 * T ** (-(0.5**4) / 2))
        assert order.status == "up to a constant and logarithms"
        assert "B = Θ(L)" in order.assumptions
    assert [simple_regret_order(x, 0.5).label for x in (CHAIN, MULTI, NET)] == [
        "thm:fd_chain",
        "thm:fd_mul",
        "thm:fd_net",
    ]


@pytest.mark.parametrize("nu", [1.5, 2.0, 2.5])
def test_smooth_kernels_have_two_terms(nu):
    power = 1 + nu + nu**2
    for layers in (CHAIN, MULTI):
        first, second = (math.exp(t.log_at(T)) for t in simple_regret_order(layers, nu).terms)
        assert first == pytest.approx(B * L ** (3 * nu) * T ** (-nu / 2))
        assert second == pytest.approx(B**power * L ** (nu**3) * T ** (-(nu**2) / 2))
    widths = 3 ** (nu**3 / 2) * 2 ** (nu**2 / 2) * 4 ** (nu / 2)  # D̃^ν_{2,m}
    first, second = (math.exp(t.log_at(T)) for t in simple_regret_order(NET, nu).terms)
    assert first == pytest.approx(D ** (nu / 2) * B * L ** (3 * nu) * T ** (-nu / 2))
    assert second == pytest.approx(widths * B**power * L ** (nu**3) * T ** (-(nu**2) / 2))
    assert weaker_order(NET, nu).inside(T) == pytest.approx(widths * B**power * L ** (nu**3) * T ** (-nu / 2))
    assert simple_regret_order(NET, nu).inside(T) == pytest.approx(max(first, second))


def test_a_single_layer_has_the_rate_of_ordinary_optimisation():
    alone = Layers("chain", [3], B, L)
    for nu in (0.5, 2.5):
        for order in (simple_regret_order(alone, nu), weaker_order(alone, nu), restrictive_order(alone, nu)):
            assert order.inside(T) == pytest.approx(B * T ** (-nu / 3))


def test_the_restrictive_cases():
    for case in (1, 2):
        assert restrictive_order(CHAIN, 0.5, case).inside(T) == pytest.approx(B * L**3 * T**-0.25)
        assert restrictive_order(CHAIN, 2.0, case).inside(T) == pytest.approx(B * L**6 * T**-1.0)
        assert restrictive_order(NET, 0.5, case).inside(T) == pytest.approx(math.sqrt(D) * B * L**3 * T**-0.25)
        assert restrictive_order(NET, 2.0, case).inside(T) == pytest.approx(D * B * L**6 * T**-1.0)
        assert f"Case {case}" in restrictive_order(CHAIN, 2.0, case).assumptions[0]
    with pytest.raises(ArgumentError, match="case must be 1 or 2; got 3"):
        restrictive_order(CHAIN, 2.0, 3)  # type: ignore[arg-type]


@pytest.mark.parametrize("structure", ["chain", "feed-forward", "multi-output"])
@pytest.mark.parametrize("seed", range(4))
def test_fill_distances_of_layers_stay_below_the_bound(structure, seed):
    problem = certified(structure, seed, Matern(2.5))
    layers, rng = layers_of(problem.network), np.random.default_rng(seed)
    dense, design = (problem.values(rng.uniform(-2, 2, (n, 2))) for n in (3000, 40))
    dense = np.vstack([dense, design])
    first = fill_distance(dense[:, :2], design[:, :2])
    for i, node in enumerate(problem.network.nodes, 1):
        measured = fill_distance(dense[:, list(node.inputs)], design[:, list(node.inputs)])
        assert measured <= layer_fill_distance(layers, i, first).value * (1 + 1e-12)  # eq:fill_i, eq:fill_i_net


def test_fill_distances_and_their_orders():
    assert layer_fill_distance(CHAIN, 1, 0.1).value == 0.1
    assert layer_fill_distance(MULTI, 3, 0.1).value == pytest.approx(0.9)
    assert layer_fill_distance(NET, 3, 0.1).value == pytest.approx(0.9 * math.sqrt(6))
    assert layer_fill_distance(NET, 3, 0.1).label == "eq:fill_i_net"
    assert layer_sd_order(CHAIN, 3, 2.0).inside(T) == pytest.approx((L**2) ** 2 * T**-1.0)
    assert layer_sd_order(NET, 3, 2.0).inside(T) == pytest.approx((math.sqrt(6) * L**2) ** 2 * T**-1.0)
    assert [layer_sd_order(x, 2, 2.0).label for x in (CHAIN, MULTI, NET)] == [
        "cor:fill_chain",
        "cor:fill_mul",
        "cor:fill_net",
    ]
    with pytest.raises(ArgumentError, match=r"layer must be a whole number from 1 to 4; got 5"):
        layer_fill_distance(CHAIN, 5, 0.1)
    with pytest.raises(ArgumentError, match="δ_T must be a finite number ≥ 0"):
        layer_fill_distance(CHAIN, 2, -0.1)
    with pytest.raises(ArgumentError, match="no additional inputs"):
        layer_sd_order(Layers("chain", [1, 1], B, L, [0, 1]), 2, 2.0)


# ---------------------------------------------------------------- Σ_T


def test_rates_of_the_sum():
    assert sd_sum_rate(1.5, 2).exponents == pytest.approx(((1.5 + 2) / (3 + 2),))
    assert sd_sum_rate(1.5, 2).exponents[0] == pytest.approx((1 + 2 / (2 * 1.5 + 2)) / 2)
    assert conjectured_sd_sum_rate(1.5, 2).exponents == pytest.approx((0.25,))
    assert conjectured_sd_sum_rate(2.0, 2).inside(T) == pytest.approx(math.log(T))
    assert conjectured_sd_sum_rate(2.0, 2).inside(1) == 0
    assert conjectured_sd_sum_rate(2.5, 2).inside(T) == 1
    assert conjectured_sd_sum_rate(2.5, 2).status.startswith("conjectured")
    with pytest.raises(ArgumentError, match="nu must be a finite number above 0"):
        sd_sum_rate(-1.0, 2)
    with pytest.raises(ArgumentError, match="dimension must be a whole number"):
        sd_sum_rate(1.0, 0)


def test_additional_inputs_count_for_domains_and_not_for_widths():
    layers = Layers("feed-forward", [2, 3, 1], B, L, [0, 2, 1])
    assert (layers.dimension, layers.largest_dimension, layers.width_product()) == (5, 5, 3)
    assert layers.input_dims == (2, 5, 2)
    assert simple_regret_order(layers, 2.5).exponents[0] == -0.5


# ---------------------------------------------------------------- comparison


def test_orders_of_other_algorithms_agree_with_the_paper():
    l1, sigma, plus, nu = 2.0, 1.5, 9.0, 1.5
    assert gpn_ucb_order(NET, nu).terms[0].log_factor == pytest.approx(math.log(2**4 * B * L**3 * math.sqrt(D)))
    assert cucb_order(NET, nu, l1, sigma).terms[0].log_factor == pytest.approx(
        math.log(B * (B * sigma + l1) ** 3 * D * plus)
    )
    assert mcbo_order(NET, nu, sigma).terms[0].log_factor == pytest.approx(
        math.log(B**4 * sigma**4 * L**4 * 4**4 * plus)
    )
    slow = 20.5 * math.log(4) + 5 * math.log(B) + 64 * math.log(l1) + 192 * math.log(B * sigma + l1)
    slow += 32 * math.log(D) + 17 * math.log(plus)
    order = oi_order(NET, nu, l1, sigma)
    assert order.terms[0].log_factor == pytest.approx(slow)
    assert order.exponents == pytest.approx((-nu / (2 * nu + 2),))
    assert order.inside(T) < math.inf


def test_the_default_slope_favours_the_other_algorithms():
    cucb, mcbo, oi = compare(NET, 1.5, 1.5)
    assert cucb.theirs.constants["L_f"] == L / 2  # sqrt(max d_i) = 2
    assert cucb.log10_ratio == pytest.approx(math.log10(B * (B * 1.5 + 1.5) ** 3 * D * 9 / (16 * B * 27 * D**0.5)))
    assert mcbo.ratio > 1
    assert oi.theirs.exponents > oi.ours.exponents  # ours decreases faster with T
    assert compare(Layers("chain", [2, 1, 1, 1, 1, 1, 1, 1], B, L), 1.5, 1.5)[2].ratio == math.inf
    with pytest.raises(ArgumentError, match="independent outputs"):
        compare(MULTI, 1.5, 1.5)
    with pytest.raises(ArgumentError, match="at least two layers"):
        compare(Layers("chain", [2], B, L), 1.5, 1.5)


def test_without_two_to_the_m_our_factor_is_never_larger_than_that_of_cucb():
    # The paper's claim, B·L^{m−1}·√D ≤ B·(B·L_σ + L_f)^{m−1}·D, with the smallest L_f that L allows in each layer.
    rng = np.random.default_rng(0)
    for _ in range(200):
        m, d = int(rng.integers(2, 6)), int(rng.integers(1, 5))
        layers = Layers("feed-forward", [2, *[d] * (m - 1)], float(rng.uniform(0.1, 5)), float(rng.uniform(0.1, 5)))
        cucb = compare(layers, 1.5, float(rng.uniform(0.01, 3)))[0]
        assert cucb.log10_ratio >= -m * math.log10(2) - 1e-12


# ---------------------------------------------------------------- tables


def order_of(row: Row) -> Order:
    assert row.order is not None
    return row.order


@pytest.mark.parametrize(("layers", "factor"), [(CHAIN, 2**4), (MULTI, 5**4), (NET, 2**4 * math.sqrt(D))])
def test_the_table_of_all_rates(layers, factor):
    nu, d = 1.5, layers.largest_dimension
    lower, upper, lower_simple, upper_simple, restricted = summary_table(layers, nu, c=0.9)
    assert order_of(lower).inside(10**9) == pytest.approx(B * (0.9 * L) ** 3 * 1e9 ** (1 - nu / 2))
    assert order_of(lower).inside(1) == 1  # min{T, ·}
    assert order_of(upper).inside(T) == pytest.approx(factor * B * L**3 * T ** (1 - nu / d))
    assert order_of(upper).status.startswith("conjectured")
    assert order_of(lower_simple).inside(T) == pytest.approx(B * (0.9 * L) ** 3 * T ** (-nu / 2))
    assert upper_simple.order == weaker_order(layers, nu)
    assert restricted.order == restrictive_order(layers, nu)
    assert [row.side for row in (lower, upper, lower_simple)] == ["lower", "upper", "lower"]


def test_the_cases_of_the_table():
    smooth = summary_table(CHAIN, 3.0)
    assert order_of(smooth[0]).inside(10**9) == pytest.approx((B * L**3) ** (2 / 3))
    assert order_of(smooth[1]).inside(T) == pytest.approx(2**4 * B * L**3)
    equal = summary_table(CHAIN, 2.0)
    assert order_of(equal[1]).formula == "O(2^m B L^(m−1) log T)"
    assert order_of(equal[1]).inside(T) == pytest.approx(2**4 * B * L**3 * math.log(T))
    rough = summary_table(CHAIN, 0.5)
    assert (rough[0].order, rough[2].order) == (None, None)
    assert "no lower bound for ν < 1" in rough[0].reason


def test_networks_with_additional_inputs_have_no_lower_bound():
    """Otherwise the proven rate of GPN-UCB would be below it: Õ(T^0.75) and Ω(T^0.9)."""
    controls = Layers("chain", [1] * 10, B, L, extra=[0] + [1] * 9)
    for row in (*summary_table(controls, 1.0), *cumulative_table(controls, 1.0)):
        assert row.order is None or row.side == "upper"


def test_the_short_table():
    lower, upper = cumulative_table(CHAIN, 1.5)
    assert order_of(lower).inside(T) == pytest.approx(B * L**3 * T**0.25)
    assert order_of(upper).inside(T) / order_of(lower).inside(T) == pytest.approx(2**4)  # a factor 2^m apart, at c = 1
    assert all(row.order is None for row in cumulative_table(CHAIN, 2.5))
    with pytest.raises(ArgumentError, match="c must be at most 1"):
        cumulative_table(CHAIN, 1.5, c=1.1)


def test_tables_have_text_markdown_and_json_forms():
    rows = (*summary_table(NET, 0.5), *cumulative_table(NET, 0.5))
    text, markdown = as_text(rows, T), as_markdown(rows, T)
    assert len(text.splitlines()) == 1 + len(rows)
    assert all(line.count("|") == 8 for line in markdown.splitlines())
    assert "√D_{2,m} B L^(m−1) T^(−ν^m/d)" in text
    content = [row.as_dict(T) for row in rows]
    assert content[0]["order"] is None
    assert content[3]["order"]["log10_inside"] == pytest.approx(math.log10(weaker_order(NET, 0.5).inside(T)))
