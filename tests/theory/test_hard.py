"""Tests of hard functions of the three structures: heights, norms, supports and inequalities of their constants."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cascada.arrays import Array
from cascada.errors import ArgumentError
from cascada.kernels import Matern, OperatorExpansion, Separable
from cascada.theory.hard import HardFamily, family_of_cells, hard_family
from cascada.theory.layers import Structure
from tests.theory.reference import positive_members
from tests.thorough import examples

STRUCTURES: dict[Structure, tuple[int, ...]] = {
    "chain": (2, 1, 1),
    "multi-output": (2, 3, 2),
    "feed-forward": (2, 2, 3),
}


def make(structure: Structure = "chain", dims: tuple[int, ...] | None = None, epsilon: float = 0.05) -> HardFamily:
    chosen = STRUCTURES[structure] if dims is None else dims
    return hard_family(Matern(1.5), 5.0, epsilon, dims=chosen, u=0.5, u_tilde=0.3, structure=structure)


def composite(family: HardFamily, member: int, points: Array) -> Array:
    for i in range(1, family.depth + 1):
        points = family.layer(i, member)(points)
    return points[:, 0]


@settings(max_examples=examples(30))
@given(
    nu=st.floats(1.0, 3.5),
    u=st.floats(0.3, 1.0),
    share=st.floats(0.1, 0.9),
    depth=st.integers(1, 6),
    dimension=st.integers(1, 3),
    norm=st.floats(8.0, 60.0),
    part=st.floats(1e-3, 1.0),
)
def test_every_family_satisfies_the_theorem(nu, u, share, depth, dimension, norm, part):
    arguments: dict[str, Any] = {"dims": (dimension, *[1] * (depth - 1)), "u": u, "u_tilde": share * u}
    try:
        family = hard_family(Matern(nu), norm, 1e6, **arguments)
    except ArgumentError as error:
        if "condition" in str(error):
            return
        epsilon = part * float(str(error).split("Use epsilon ≤ ")[1].split(",")[0])
    family = hard_family(Matern(nu), norm, epsilon, **arguments)
    assert family.heights[-1] == pytest.approx(2 * epsilon, rel=1e-10)
    assert family.needle.norm(family.kernel) == pytest.approx(norm, rel=1e-10)
    assert family.amplifier.expansion().norm[0] == pytest.approx(norm, rel=1e-10)
    low, high = family.alpha * family.lipschitz, family.lipschitz
    for before, after in pairwise(family.heights):  # eq:height
        assert before < low * before * (1 + 1e-9) <= after * (1 + 2e-9) <= high * before * (1 + 3e-9)
    first = 0.5 * family.needle.height  # eq:alpha_fractions
    assert epsilon / high ** (depth - 1) <= first * (1 + 1e-9)
    assert first <= epsilon / low ** (depth - 1) * (1 + 1e-9)
    assert family.alpha * (1 - 1e-9) <= family.amplification <= 1 + 1e-9
    assert depth == 1 or family.alpha <= family.amplifier.ratio * (1 + 1e-9)
    assert family.members == family.cells**dimension == max(1, int(0.5 / family.needle.width)) ** dimension
    assert family.needle.width <= 0.5 * (1 + 1e-9)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_a_member_is_high_at_its_centre_and_zero_outside_its_ball(structure):
    """thm:hard_chain, thm:hard_mul, thm:hard_net."""
    family = make(structure)
    rng = np.random.default_rng(0)
    for member in (0, 7, family.members - 1):
        centre = family.centre(member)
        assert composite(family, member, centre[None])[0] == pytest.approx(0.1, rel=1e-10)
        directions = rng.standard_normal((300, 2))
        radii = family.needle.width * rng.uniform(0, 2, 300)
        points = centre + directions * (radii / np.linalg.norm(directions, axis=1))[:, None]
        values = composite(family, member, points)
        assert values.max() <= 0.1 * (1 + 1e-12)
        assert (values[radii < 0.99 * family.needle.width] > 0).all()
        assert (values[radii >= family.needle.width * (1 + 1e-9)] == 0).all()


@pytest.mark.parametrize("structure", STRUCTURES)
def test_the_first_output_carries_the_chain_and_the_others_are_zero(structure):
    """fig:mul_lower, fig:net_lower: wider layers do not change the values."""
    family, plain = make(structure), make("chain")
    points = family.centre(3) + np.linspace(-0.02, 0.02, 41)[:, None] * [1.0, 0.3]
    values, expected = points, points
    for i in range(1, family.depth + 1):
        values, expected = family.layer(i, 3)(values), plain.layer(i, 3)(expected)
        assert values.shape == (41, family.dims[i] if i < 3 else 1)
        np.testing.assert_allclose(values[:, 0], expected[:, 0], rtol=1e-12, atol=1e-300)
        assert not values[:, 1:].any()
    assert family.heights == plain.heights
    assert family.needle == plain.needle


def test_a_vector_valued_amplifier_has_the_same_joint_norm():
    """eq:mul_norm for g̃·e₁ under Γ = k·I, on inputs of any dimension."""
    family = make("multi-output")
    sections = family.amplifier.expansion(3)
    vectors = np.hstack([sections.coefficients, np.zeros((2, 1))])
    assert OperatorExpansion(Separable(family.kernel), sections.centres, vectors).norm == pytest.approx(5.0, rel=1e-12)


@pytest.mark.parametrize(("dims", "epsilon"), [((1, 1), 0.02), ((2, 1), 0.05), ((3,), 0.01), ((2, 1, 1), 0.3)])
def test_supports_are_disjoint_and_within_the_cube(dims, epsilon):
    family = make("chain", dims, epsilon)
    width, count = family.needle.width, min(family.members, 400)
    centres = np.array([family.centre(member) for member in range(count)])
    assert family.cells == int(0.5 / width)
    assert (centres - width >= 0).all()
    assert (centres + width <= 1).all()
    gaps = np.linalg.norm(centres[:, None] - centres[None], axis=-1) + 10 * np.eye(count)
    assert gaps.min() >= 2 * width
    points = np.random.default_rng(0).uniform(0, 1, (200, dims[0]))
    positive = np.array([family.layer(1, member)(points)[:, 0] > 0 for member in range(count)])
    assert (positive.sum(axis=0) <= 1).all()
    for j, member in enumerate(positive_members(family, points)):
        if member < count:
            assert list(np.flatnonzero(positive[:, j])) == ([] if member < 0 else [member])


@settings(max_examples=examples(30))
@given(cells=st.integers(1, 60), depth=st.integers(1, 4), dimension=st.integers(1, 3), nu=st.floats(1.0, 3.0))
def test_family_of_cells_has_the_given_number_of_cells_and_norm(cells, depth, dimension, nu):
    arguments: dict[str, Any] = {"dims": (dimension, *[1] * (depth - 1)), "u": 0.5, "u_tilde": 0.3}
    family = family_of_cells(Matern(nu), 6.0, cells, **arguments)
    assert family.members == cells**dimension
    assert family.needle.width <= 0.5 / cells
    assert family.needle.norm(family.kernel) == pytest.approx(6.0, rel=1e-10)
    assert all(height <= 0.3 * (1 + 1e-12) for height in family.heights[:-1])
    again = hard_family(Matern(nu), 6.0, family.epsilon * (1 - 1e-9), **arguments)
    assert again.needle.width == pytest.approx(family.needle.width, rel=1e-6)
    assert again.cells >= cells


def test_a_steep_needle_sets_the_lipschitz_constant():
    """At ν = 1, L' = Θ(B): L is that of the needle, and α is below r_min/r_max."""
    family = hard_family(Matern(1.0), 3.0, 0.02, dims=(1, 1), u=0.5, u_tilde=0.3)
    assert family.lipschitz == family.needle.lipschitz > family.amplifier.lipschitz
    assert family.alpha < family.amplifier.ratio
    smooth = make()
    assert smooth.lipschitz == smooth.amplifier.lipschitz
    assert smooth.alpha == pytest.approx(smooth.amplifier.ratio, rel=1e-9)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"kernel": Matern(0.9)}, r"need nu ≥ 1 \(thm:hard_chain\).*got nu = 0\.9"),
        ({"kernel": Separable(Matern(1.5))}, "known for Matérn kernels"),
        ({"epsilon": 2.0}, r"epsilon = 2 is too large for norm_bound = 5.*Use epsilon ≤ 0\.87409"),
        ({"epsilon": 0.0}, "epsilon must be a finite number above 0"),
        ({"dims": ()}, "whole numbers ≥ 1"),
        ({"dims": (1, 2)}, "later layers of a chain have one input"),
        ({"structure": "tree"}, "structure must be chain, multi-output or feed-forward"),
        ({"u": 0.2}, "condition 1"),
        ({"norm_bound": 2.0}, "condition 2"),
    ],
)
def test_invalid_arguments_of_a_family_raise_an_argument_error(change, complaint):
    arguments: dict[str, Any] = {
        "kernel": Matern(1.5),
        "norm_bound": 5.0,
        "epsilon": 0.05,
        "dims": (1, 1, 1),
        "u": 0.5,
        "u_tilde": 0.3,
    }
    with pytest.raises(ArgumentError, match=complaint):
        hard_family(**{**arguments, **change})


def test_the_largest_suggested_epsilon_is_possible():
    for dims in ((1,), (1, 1), (3, 1, 1), (2, 1, 1, 1)):
        with pytest.raises(ArgumentError, match="Use epsilon") as e:
            make("chain", dims, 50.0)
        offered = float(str(e.value).split("Use epsilon ≤ ")[1].split(",")[0])
        assert make("chain", dims, offered).epsilon == pytest.approx(offered, rel=1e-10)
        with pytest.raises(ArgumentError, match="Use epsilon"):
            make("chain", dims, offered * 1.001)


@pytest.mark.parametrize("member", [-1, 49, 1.5, True])
def test_an_invalid_member_raises_an_argument_error(member):
    with pytest.raises(ArgumentError, match="member must be a whole number from 0 to 48"):
        make("chain", (1, 1, 1)).centre(member)


@pytest.mark.parametrize("cells", [0, 1.5, True])
def test_invalid_cells_raise_an_argument_error(cells):
    with pytest.raises(ArgumentError, match="cells must be a whole number"):
        family_of_cells(Matern(1.5), 5.0, cells, dims=(1,), u=0.5, u_tilde=0.3)
