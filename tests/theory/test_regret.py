"""Tests of the constants of thm:ucb_chain, thm:ucb_mul and thm:ucb_net and of the sums in their proofs."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cascada.errors import ArgumentError
from cascada.theory.layers import Layers
from cascada.theory.regret import (
    enclosing_ball_weights,
    geometric_bound,
    geometric_sum,
    layered_bound,
    per_step_bound,
    regret_bounds,
    step_weights,
    summed_bound,
    theorem_bound,
    trivial_bound,
)
from tests.theory import reference

STRUCTURES = {"chain": [3, 1, 1, 1], "multi-output": [3, 2, 4, 2], "feed-forward": [3, 2, 4, 2]}
constants = st.floats(0.05, 20)
deep = st.integers(1, 6)


def layers(structure: str, m: int, B: float, L: float) -> Layers:
    wide = [2, 3, 1, 4, 2, 5][:m]
    return Layers(structure, [2, *[1] * (m - 1)] if structure == "chain" else wide, B, L)  # type: ignore[arg-type]


@given(deep, constants, constants)
def test_sums_of_weights_are_those_of_the_proofs(m, B, L):
    chain, multi, net = (layers(s, m, B, L) for s in STRUCTURES)
    assert sum(step_weights(chain)) == pytest.approx(float(reference.chain_constant(B, L, m)), rel=1e-13)
    assert sum(step_weights(multi)) == pytest.approx(float(reference.multi_output_constant(B, L, m)), rel=1e-13)
    exact = float(reference.network_constant(B, L, list(net.dims)))
    assert sum(step_weights(net)) == pytest.approx(exact, rel=1e-13)
    assert geometric_bound(chain, 1.0).value == pytest.approx(sum(step_weights(chain)), rel=1e-12)


@pytest.mark.parametrize("structure", STRUCTURES)
@given(m=deep, B=constants, L=constants, data=st.data())
def test_each_form_is_at_most_the_next(structure, m, B, L, data):
    given_layers = layers(structure, m, B, L)
    sums = data.draw(st.lists(st.floats(0, 100), min_size=m, max_size=m))
    values = [bound.value for bound in regret_bounds(given_layers, sums)]
    assert all(a <= b * (1 + 1e-12) for a, b in pairwise(values))


def test_theorem_bounds_have_the_printed_constants():
    assert theorem_bound(Layers("chain", [2, 1, 1], 3.0, 2.0), 10.0).value == 2**4 * 3 * 2**2 * 10
    assert theorem_bound(Layers("multi-output", [2, 3, 2], 3.0, 2.0), 10.0).value == 5**3 * 3 * 2**2 * 10
    net = theorem_bound(Layers("feed-forward", [2, 3, 2], 3.0, 2.0), 10.0)
    assert net.value == pytest.approx(2**4 * math.sqrt(6) * 3 * 2**2 * 10)
    assert (net.label, net.status) == ("thm:ucb_net", "proven")
    assert net.constants == {"m": 3, "B": 3, "L": 2, "D_{2,m}": 6, "Σ_T": 10}


def test_one_layer_is_ordinary_optimisation():
    for structure in STRUCTURES:
        alone = Layers(structure, [2], 3.0, 2.0)  # type: ignore[arg-type]
        assert step_weights(alone) == (6.0,)
    assert geometric_bound(Layers("chain", [2], 3.0, 2.0), 1.0).value == 6.0


def test_a_chain_is_a_feed_forward_network_of_width_one():
    chain, net = (Layers(s, [2, 1, 1], 3.0, 2.0) for s in ("chain", "feed-forward"))
    for bound in (summed_bound, geometric_bound, theorem_bound):
        assert bound(chain, 7.0).value == bound(net, 7.0).value


@given(deep, constants, constants)
def test_multi_output_weights_in_paper_and_by_enclosing_balls(m, B, L):
    multi = layers("multi-output", m, B, L)
    assert all(a <= b * (1 + 1e-12) for a, b in zip(enclosing_ball_weights(multi), step_weights(multi), strict=True))


@pytest.mark.parametrize("structure", STRUCTURES)
@given(m=deep, B=constants, L=constants, more=st.floats(1, 3))
def test_bounds_grow_with_every_constant(structure, m, B, L, more):
    for bound in (summed_bound, geometric_bound, theorem_bound):
        here = bound(layers(structure, m, B, L), 5.0).value
        slack = 1 + 1e-12
        assert here <= bound(layers(structure, m, B * more, L), 5.0).value * slack
        assert here <= bound(layers(structure, m, B, L * more), 5.0).value * slack
        assert here <= bound(layers(structure, m, B, L), 5.0 * more).value * slack


def test_rounding_to_the_theorem_needs_a_slope_of_one():
    flat = Layers("chain", [1, 1], 1.0, 0.4)
    rounded = 2**3 * 0.4  # 2^{m+1} B L^{m−1} at L = 0.4
    assert geometric_bound(flat, 1.0).value == pytest.approx(3.6)
    assert geometric_bound(flat, 1.0).value > rounded
    theorem = theorem_bound(flat, 1.0)
    assert theorem.value == 8.0
    assert "taken at L = 1 instead of 0.4" in theorem.assumptions[-1]


def test_a_geometric_sum_with_ratio_one_is_finite():
    assert geometric_bound(Layers("chain", [1, 1, 1], 1.0, 0.5), 1.0).value == 6.0
    assert geometric_bound(Layers("multi-output", [1, 1, 1], 1.0, 0.2), 1.0).value == 12.0
    assert geometric_sum(1.0 + 1e-12, 1000) == pytest.approx(1000, rel=1e-9)


def test_each_layer_uses_its_own_constants():
    own = Layers("chain", [2, 1, 1], norm_bound=[1.0, 2.0, 3.0], lipschitz=[9.0, 2.0, 5.0])
    assert step_weights(own) == (2 * 1 * 4 * 10, 2 * 2 * 10, 2 * 3)  # the L of the first layer is not used
    multi = Layers("multi-output", [2, 2, 2], norm_bound=[1.0, 2.0, 3.0], lipschitz=[9.0, 2.0, 5.0])
    assert step_weights(multi) == (4 * 1 * 10 * 10, 4 * 2 * 10, 6)
    assert sum(step_weights(own)) <= geometric_bound(own, 1.0).value


def test_per_step_bound_is_the_double_sum():
    own, rng = Layers("feed-forward", [2, 3, 2], 1.5, 0.7), np.random.default_rng(0)
    sds = rng.uniform(0, 1, (20, 3))
    slow = sum(w * sds[t, i] for t in range(20) for i, w in enumerate(step_weights(own)))
    assert per_step_bound(own, sds).value == pytest.approx(slow)
    assert per_step_bound(own, sds).value <= layered_bound(own, sds.sum(axis=0).tolist()).value * (1 + 1e-12)


def test_the_trivial_bound():
    bound = trivial_bound(Layers("chain", [2, 1], [1.0, 3.0], 2.0), 10, 0.5)
    assert (bound.value, bound.formula) == (2 * 3 * 0.5 * 10, "2 B s T")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("ring", [1], 1.0, 1.0), "structure must be one of chain, multi-output, feed-forward; got 'ring'"),
        (("chain", [2, 2], 1.0, 1.0), "every layer of a chain but the first has one input"),
        (("chain", [], 1.0, 1.0), "dims must be the input dimension of every layer"),
        (("chain", [0], 1.0, 1.0), "whole numbers ≥ 1"),
        (("chain", [2, 1], [1.0], 1.0), "norm_bound must be one number, or one for each of the 2 layers; got 1"),
        (("chain", [2, 1], 1.0, -1.0), "lipschitz must be a finite number above 0"),
        (("chain", [2, 1], 1.0, 1.0, [1, 0]), "extra must be 0 for the first layer"),
    ],
)
def test_invalid_layers_raise_an_argument_error(arguments, complaint):
    with pytest.raises(ArgumentError, match=complaint):
        Layers(*arguments)


def test_invalid_sums_raise_an_argument_error():
    chain = Layers("chain", [2, 1], 1.0, 1.0)
    with pytest.raises(ArgumentError, match="Σ_T must be a finite number ≥ 0; got nan"):
        theorem_bound(chain, math.nan)
    with pytest.raises(ArgumentError, match="one number for each of the 2 layers; got 1"):
        layered_bound(chain, [1.0])
    with pytest.raises(ArgumentError, match="sds must not be negative"):
        per_step_bound(chain, [[0.1, -0.1]])
    with pytest.raises(ArgumentError, match="exceeds the largest floating-point number"):
        theorem_bound(Layers("chain", [2] + [1] * 900, 1.0, 4.0), 1.0)
