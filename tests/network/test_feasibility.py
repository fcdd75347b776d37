"""Feasibility of cells: against a slow version cell by cell, and against dense samples of a true process."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cascada.arrays import Array
from cascada.confidence import Boxes
from cascada.confidence.affine import Affine
from cascada.errors import RefutedError
from cascada.kernels import SquaredExponential
from cascada.network import Beliefs, Network, Stage, chain, enclose_network, prior_beliefs
from cascada.network.enclosure import Enclosure, possible_values
from cascada.network.feasibility import enclose_feasible, enclose_settings, feasible_mean
from cascada.network.limits import Limit, satisfied
from cascada.process import Process
from cascada.space import Integer, Real
from cascada.study import Study


def bump(x: float, y: float) -> float:
    """A section of the kernel, of norm 1."""
    return float(np.exp(-0.5 * (x**2 + y**2)))


def mixed(**limits: Mapping[str, tuple[float | None, float | None]]) -> Network:
    """A logarithmic and an integer control, an output that is passed on, and a formula; limits by stage."""
    kernel = SquaredExponential(1.0)
    dry = Stage(
        "dry",
        controls={"heat": Real(0.1, 10.0, log=True), "turns": Integer(0, 4)},
        outputs=["moisture", "heat"],
        passes=["heat"],
        kernel=kernel,
        norm_bound=2.0,
        function=lambda heat, turns: (bump(np.log(heat) - 1, turns - 1) - bump(np.log(heat) + 1, turns - 3), heat),
        limits=limits.get("dry"),
    )
    press = Stage(
        "press",
        parents=["dry.moisture"],
        controls={"force": Real(-1, 1)},
        kernel=kernel,
        norm_bound=3.0,
        function=lambda moisture, force: 2 * bump(moisture - 0.3, force - 0.5) - bump(moisture + 0.5, force),
        limits=limits.get("press"),
    )
    profit = Stage(
        "profit",
        parents=["press", "dry.heat"],
        known=True,
        function=lambda press, heat: press - 0.01 * heat,
        interval=lambda press, heat: (press[0] - 0.01 * heat[1] - 1e-12, press[1] - 0.01 * heat[0] + 1e-12),
        limits=limits.get("profit"),
    )
    return Network([dry, press, profit])


def truth(network: Network, points: Array) -> Array:
    """All values (n, V) at points (n, d) in user units."""
    process, domain = Process(network), network.domain
    rows = []
    for point in points:
        outputs = process.run(domain.named(point))
        rows.append(np.concatenate([domain.encode(point[None])[0], *(outputs[n.stage.name] for n in network.nodes)]))
    return np.array(rows)


def settings(network: Network, n: int, rng: np.random.Generator) -> Array:
    """Random settings (n, d) in user units."""
    domain = network.domain
    return domain.decode(rng.uniform(domain.lower, domain.upper, (n, domain.dimension)))


def learned(network: Network, n: int, seed: int = 0) -> Beliefs:
    """Beliefs after n random runs."""
    rows = truth(network, settings(network, n, np.random.default_rng(seed)))
    return prior_beliefs(network).append(rows) if n else prior_beliefs(network)


def random_cells(network: Network, n: int, rng: np.random.Generator) -> Boxes:
    """Cells of all sizes; integer sides between whole numbers."""
    domain = network.domain
    ends = rng.uniform(domain.lower, domain.upper, (2, n, domain.dimension))
    shrink = 10.0 ** rng.uniform(-3, 0, (n, 1))
    lower, upper = np.minimum(*ends), np.maximum(*ends)
    upper = lower + shrink * (upper - lower)
    lower[:, domain.discrete], upper[:, domain.discrete] = (
        np.floor(lower[:, domain.discrete]),
        np.ceil(upper[:, domain.discrete]),
    )
    return Boxes(lower, upper)


def one_by_one(beliefs: Beliefs, cell: Boxes, limits: Sequence[Limit]) -> tuple[bool, bool, Boxes | None]:
    """Whether one cell may be feasible, whether it is, and its cut boxes: stage by stage, one limit at a time."""
    certain, values = True, Enclosure(cell, Affine.of_cells(cell))
    for stage in beliefs.stages:
        boxes, affine = possible_values(stage, *values.columns(stage.node.inputs))
        for column, low, high in zip(stage.node.columns, boxes.lower[0], boxes.upper[0], strict=True):
            for limit in limits:
                if limit.column == column:
                    certain &= limit.low <= low and high <= limit.high
        cut = Boxes(boxes.lower.copy(), boxes.upper.copy())
        for j, column in enumerate(stage.node.columns):
            for limit in limits:
                if limit.column == column:
                    cut.lower[0, j] = max(cut.lower[0, j], limit.low)
                    cut.upper[0, j] = min(cut.upper[0, j], limit.high)
        if (cut.lower > cut.upper).any():
            return False, False, None
        assert affine is not None
        values = values.joined(cut, affine)
    return True, certain, values.boxes


LIMITS: list[dict[str, Any]] = [
    {"dry": {"moisture": (None, 0.3)}},
    {"dry": {"moisture": (-0.2, 0.1)}},
    {"dry": {"heat": (0.5, 4.0)}},  # passed on: a logarithmic control
    {"profit": {"profit": (0.2, None)}},  # a formula, and the objective itself
    {"dry": {"moisture": (-0.5, None), "heat": (None, 5.0)}, "press": {"press": (None, 0.8)}},
]


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("runs", [0, 6, 25])
def test_cells_are_enclosed_as_one_by_one(limits: dict[str, Any], runs: int) -> None:
    network = mixed(**limits)
    beliefs, cells = learned(network, runs), random_cells(network, 60, np.random.default_rng(1))
    found = enclose_feasible(beliefs, cells, network.limits)
    for i in range(60):
        cell = Boxes(cells.lower[[i]], cells.upper[[i]])
        possible, certain, boxes = one_by_one(beliefs, cell, network.limits)
        assert (found.possible[i], found.certain[i]) == (possible, certain)
        if boxes is None:
            assert np.isnan(found.boxes.lower[i]).all()
        else:
            np.testing.assert_allclose(found.boxes.lower[i], boxes.lower[0], rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(found.boxes.upper[i], boxes.upper[0], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("limits", LIMITS)
def test_bounds_hold_at_dense_samples(limits: dict[str, Any], sign: int) -> None:
    network, rng = mixed(**limits), np.random.default_rng(2)
    beliefs, domain = learned(network, 12), network.domain
    cells = random_cells(network, 20, rng)
    found = enclose_feasible(beliefs, cells, network.limits)
    above, below = (bound(network.objective_column, sign) for bound in (found.above, found.below))
    for i in range(20):
        inside = rng.uniform(cells.lower[i], cells.upper[i], (40, domain.dimension))
        values = truth(network, domain.decode(inside))
        feasible, objective = satisfied(network.limits, values), sign * values[:, network.objective_column]
        assert found.possible[i] or not feasible.any()
        assert feasible.all() or not found.certain[i]
        if feasible.any():
            assert above[i] >= objective[feasible].max()
        assert below[i] <= objective.min()
        assert found.certain[i] or np.isneginf(below[i])


def test_without_limits_the_enclosure_is_that_of_the_network() -> None:
    network = mixed()
    beliefs, cells = learned(network, 8), random_cells(network, 30, np.random.default_rng(3))
    found, plain = enclose_feasible(beliefs, cells, ()), enclose_network(beliefs, cells)
    assert found.possible.all()
    assert found.certain.all()
    np.testing.assert_array_equal(found.boxes.lower, plain.boxes.lower)
    np.testing.assert_array_equal(found.boxes.upper, plain.boxes.upper)


def test_a_limit_that_always_holds_changes_no_bound() -> None:
    network = mixed(dry={"moisture": (-100, 100)})
    beliefs, cells = learned(network, 8), random_cells(network, 30, np.random.default_rng(3))
    found, plain = enclose_feasible(beliefs, cells, network.limits), enclose_network(beliefs, cells)
    assert found.certain.all()
    np.testing.assert_array_equal(found.boxes.upper, plain.boxes.upper)


def test_an_interval_is_cut_before_later_stages_use_it() -> None:
    """The objective at feasible points of a wide cell is bounded more tightly than at all points."""
    network = mixed(dry={"moisture": (None, 0.0)})
    beliefs = learned(network, 25)
    whole = Boxes(network.domain.lower[None], network.domain.upper[None])
    press = network.node("press").columns[0]
    found, plain = enclose_feasible(beliefs, whole, network.limits), enclose_network(beliefs, whole)
    assert found.boxes.upper[0, network.node("dry").columns[0]] == 0.0
    assert found.boxes.upper[0, press] - found.boxes.lower[0, press] < (plain.boxes.upper - plain.boxes.lower)[0, press]


def test_a_limit_on_the_objective_caps_its_bound() -> None:
    network = mixed(profit={"profit": (None, 0.5)})
    found = enclose_feasible(
        learned(network, 5), Boxes(network.domain.lower[None], network.domain.upper[None]), network.limits
    )
    assert found.above(network.objective_column, 1)[0] == 0.5


def test_cells_are_independent_of_each_other() -> None:
    """Infeasible cells are left out of later stages, which must not change the others."""
    network = mixed(dry={"moisture": (0.4, None)})
    beliefs, cells = learned(network, 20), random_cells(network, 80, np.random.default_rng(4))
    found = enclose_feasible(beliefs, cells, network.limits)
    assert 0 < found.possible.sum() < 80
    kept = Boxes(cells.lower[found.possible], cells.upper[found.possible])
    alone = enclose_feasible(beliefs, kept, network.limits)
    np.testing.assert_allclose(alone.boxes.upper, found.boxes.upper[found.possible], rtol=1e-12)


@pytest.mark.parametrize("limits", [{"dry": {"heat": (20.0, None)}}, {"profit": {"profit": (50.0, None)}}])
def test_all_cells_may_be_infeasible(limits: dict[str, Any]) -> None:
    network = mixed(**limits)
    found = enclose_feasible(learned(network, 3), random_cells(network, 5, np.random.default_rng(8)), network.limits)
    assert not found.possible.any()
    assert not found.certain.any()
    assert np.isneginf(found.above(network.objective_column, 1)).all()


def test_settings_of_logarithmic_controls_include_their_rounding() -> None:
    network = mixed(dry={"heat": (None, 3.0)})
    points = network.domain.encode(np.array([[3.0, 1, 0.2], [np.nextafter(3.0, 4.0), 1, 0.2], [2.9, 1, 0.2]]))
    found = enclose_settings(learned(network, 4), points)
    assert found.certain.tolist() == [False, False, True]  # the logarithm of 3 is rounded, so nothing is certain there
    assert found.possible[0]


def test_an_empty_box_that_no_limit_explains_refutes_an_assumption() -> None:
    """With limits or without them, the data of this stage leave no possible value."""
    network = chain(
        Stage(
            "s",
            controls={"x": Real(-1, 1)},
            kernel=SquaredExponential(1.0),
            norm_bound=2.0,
            ranges={"s": (5.0, 6.0)},
            limits={"s": (5.5, None)},
        )
    )
    whole = Boxes(network.domain.lower[None], network.domain.upper[None])
    with pytest.raises(RefutedError, match="range"):
        enclose_feasible(prior_beliefs(network), whole, network.limits)


def test_feasible_mean_is_minus_infinity_where_the_mean_breaks_a_limit() -> None:
    network = mixed(dry={"moisture": (None, 0.0)})
    beliefs = learned(network, 30)
    points = network.domain.encode(settings(network, 200, np.random.default_rng(6)))
    mean, plain = feasible_mean(beliefs, points), feasible_mean(learned(mixed(), 30), points)
    feasible = satisfied(network.limits, truth(network, network.domain.decode(points)))
    assert np.mean(np.isfinite(mean) == feasible) > 0.95
    np.testing.assert_allclose(mean[np.isfinite(mean)], plain[np.isfinite(mean)])


def test_a_run_that_lacks_a_limited_output_is_not_feasible() -> None:
    network = mixed(press={"press": (0.0, None)})
    assert not network.is_feasible({"dry": (0.1, 1.0)})
    assert network.is_feasible({"press": (0.1,)})
    assert Study(network).best_trial is None


def test_a_changed_stage_keeps_everything_else() -> None:
    """Also an error that is to be estimated, which is stored under another name than that of its argument."""
    stage = Stage("a", controls={"x": Real(0, 1)}, error="estimate", timeout=3.0)
    other = replace(stage, limits={"a": (-np.inf, 1.0)})
    assert other.limits == {"a": (-np.inf, 1.0)}
    assert other.noisy
    assert other.timeout == 3.0
