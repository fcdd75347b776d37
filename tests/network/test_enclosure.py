"""Bounds of every value: passed and known outputs, and both forms through all structures."""

from typing import Any

import numpy as np
import pytest

from cascada.confidence import Boxes
from cascada.errors import ArgumentError, CascadaError
from cascada.network import Network, Stage, chain, enclose_network, objective_above, predict, prior_beliefs
from cascada.space import Real
from tests.network.cases import NETWORKS, SEED, X, Y, observed, points, stage, truth, values


def cells_of(network: Network, n: int, rng: np.random.Generator) -> Boxes:
    """Cells of all sizes, the first of them points, within the box of controls."""
    low, high = network.domain.lower, network.domain.upper
    centre = rng.uniform(low, high, (n, len(low)))
    half = 0.5 * (high - low) * 10 ** rng.uniform(-4, 0, (n, 1)) * rng.uniform(0, 1, (n, len(low)))
    half[: n // 4] = 0.0
    return Boxes(np.clip(centre - half, low, high), np.clip(centre + half, low, high))


# ---- passed and known outputs


def passing(control: Real) -> Network:
    first = stage("f", controls={"t": control}, outputs=["u", "t"], passes=["t"])
    return chain(first, stage("g", controls=Y))


@pytest.mark.parametrize("control", [Real(0.5, 8), Real(0.5, 8, log=True)], ids=["plain", "logarithmic"])
def test_passed_outputs_are_exact_copies(control: Real) -> None:
    network = passing(control)
    functions = truth(network, SEED)
    controls = points(network, 5, np.random.default_rng(0))
    for beliefs in (
        prior_beliefs(network),
        prior_beliefs(network).append(values(network, functions, controls)),
    ):
        found = predict(beliefs, {"t": 2.0, "y": 0.0})["f"]
        np.testing.assert_allclose([found.mean[1], found.lower[1], found.upper[1]], 2.0, rtol=1e-12)
        assert found.sd[1] == 0.0
        assert beliefs.stages[0].node.stage.modelled == ("u",)
        cells = Boxes(network.domain.lower[None], network.domain.upper[None])
        column = network.node("f").columns[1]
        for form in ("hull", "union"):
            boxes = enclose_network(beliefs, cells, form=form).boxes
            ends = [boxes.lower[0, column], boxes.upper[0, column]]
            np.testing.assert_allclose(ends, [0.5, 8.0], rtol=1e-12)


def known_chain(**options: Any) -> Network:
    return chain(stage("f", controls=X, norm_bound=1.5), Stage("k", known=True, **options))


def test_known_stages_are_bounded_by_their_lipschitz_constant() -> None:
    beliefs = prior_beliefs(known_chain(lipschitz=2.0, function=lambda f: 2 * f + 1))
    assert beliefs.stages[1].belief is None
    found = predict(beliefs, {"x": 0.0})["k"]
    np.testing.assert_allclose([found.mean, found.sd, found.lower, found.upper], [[1.0], [0.0], [-2.0], [4.0]])


def test_known_stages_are_bounded_by_their_interval_function() -> None:
    def interval(f: tuple[float, float]) -> tuple[float, float]:
        return 0.0, max(abs(f[0]), abs(f[1])) ** 2

    beliefs = prior_beliefs(known_chain(interval=interval, function=lambda f: f * f))
    found = predict(beliefs, {"x": 0.0})["k"]
    np.testing.assert_allclose([found.mean, found.sd, found.lower, found.upper], [[0.0], [0.0], [0.0], [2.25]])


def test_known_stages_with_several_outputs_and_a_logarithmic_control() -> None:
    def double(f: float, t: float) -> dict[str, float]:
        return {"b": t * f, "a": t}

    def interval(f: tuple[float, float], t: tuple[float, float]) -> list[tuple[float, float]]:
        ends = [a * b for a in f for b in t]
        return [t, (min(ends), max(ends))]

    known = Stage(
        "k", controls={"t": Real(1, 4, log=True)}, outputs=["a", "b"], known=True, interval=interval, function=double
    )
    network = chain(stage("f", controls=X), known, objective="k.b")
    found = predict(prior_beliefs(network), {"x": 0.0, "t": 3.0})["k"]
    np.testing.assert_allclose([found.mean, found.lower, found.upper], [[3.0, 0.0], [3.0, -6.0], [3.0, 6.0]])


@pytest.mark.parametrize("pair", [(1.0, -1.0), (np.nan, 1.0), [(0.0, 1.0), (0.0, 1.0)], (-np.inf, np.inf), None])
def test_an_interval_function_must_return_pairs(pair: Any) -> None:
    network = known_chain(interval=lambda **_: pair, function=lambda f: f)
    with pytest.raises(ArgumentError, match="interval function of stage 'k' must return"):
        prior_beliefs(network)


@pytest.mark.parametrize("formula", [lambda **_: float("nan"), lambda **_: 1 / 0, lambda **_: "high"])
def test_a_formula_that_fails_is_reported_with_its_stage(formula: Any) -> None:
    with pytest.raises(CascadaError, match="stage 'k'"):
        prior_beliefs(known_chain(lipschitz=1.0, function=formula))


# ---- bounds


@pytest.mark.parametrize("name", NETWORKS)
def test_both_forms_contain_the_truth_and_union_is_the_tighter(name: str) -> None:
    network = NETWORKS[name]
    functions, _, beliefs = observed(name)
    rng = np.random.default_rng(5)
    cells = cells_of(network, 40, rng)
    hull = enclose_network(beliefs, cells, form="hull").boxes
    union = enclose_network(beliefs, cells, form="union").boxes
    for _ in range(6):
        fractions = np.round(rng.uniform(0, 1, cells.lower.shape) * 4) / 4  # including corners and edges
        coordinates_in = np.clip(cells.lower + fractions * (cells.upper - cells.lower), cells.lower, cells.upper)
        inside = network.domain.decode(coordinates_in)
        if network.domain.discrete:  # only whole numbers are possible points of the cell
            kept = np.all((network.domain.encode(inside) >= cells.lower) & (inside <= cells.upper), axis=1)
        else:
            kept = np.ones(len(inside), dtype=bool)
        truth_values = values(network, functions, inside)[:, len(network.controls) :]
        for boxes in (hull, union):
            lower, upper = boxes.lower[:, len(network.controls) :], boxes.upper[:, len(network.controls) :]
            assert np.all(((lower <= truth_values) & (truth_values <= upper))[kept])
    assert np.all(union.upper <= hull.upper + 1e-9)
    assert np.all(union.lower >= hull.lower - 1e-9)
    assert np.any(union.upper < hull.upper - 1e-3)


def test_the_objective_of_a_mirrored_network_is_negated() -> None:
    _, _, beliefs = observed("chain")
    mirror = beliefs.network.mirrored()
    enclosure = enclose_network(beliefs, cells_of(beliefs.network, 5, np.random.default_rng(0)))
    np.testing.assert_array_equal(objective_above(beliefs.network, enclosure), enclosure.boxes.upper[:, -1])
    np.testing.assert_array_equal(objective_above(mirror, enclosure), -enclosure.boxes.lower[:, -1])
