"""Baselines under changes of the problem: shifts, scales, orders, mirrors, and data that they must ignore."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given as examples
from hypothesis import settings
from hypothesis import strategies as st

from cascada.algorithms import CUCB, GPUCB, CascadedEI, ExpectedImprovement, OptimisticImprovement, Situation
from cascada.algorithms.acquisition import Scored
from cascada.algorithms.black_box import default_kernel
from cascada.arrays import Array
from cascada.errors import ArgumentError
from cascada.kernels import Additive, Matern, SquaredExponential
from cascada.network import Network, Stage, chain, composite_mean
from cascada.network.sampling import improvement
from cascada.space import Real
from tests import thorough
from tests.algorithms.cases import SCORED, scores, situation_after
from tests.network.cases import NETWORKS, points, truth, values
from tests.reference_algorithms import PaperStage, chained, eta

XY = {"x": Real(-2, 2), "y": Real(-2, 2)}
BLACK_BOX: list[Scored] = [GPUCB(), ExpectedImprovement()]
CASCADED_EI = [algorithm for algorithm in SCORED if isinstance(algorithm, CascadedEI)]

every_algorithm = pytest.mark.parametrize("algorithm", SCORED, ids=str)


def process(scale: float = 1.0, shift: float = 0.0) -> Network:
    """f → g → h whose objective is scaled and shifted: ‖c·h‖ under the kernel c²·k is ‖h‖ under k."""
    kernel = SquaredExponential(1.0)
    last = Stage("h", kernel=SquaredExponential(1.0, variance=scale**2), norm_bound=1.5, offset=shift)
    return chain(
        Stage("f", controls=XY, kernel=kernel, norm_bound=2.0), Stage("g", kernel=kernel, norm_bound=2.0), last
    )


def runs(t: int = 8, seed: int = 0) -> Array:
    """Rows of controls and outputs of the plain process."""
    return values(process(), truth(process(), seed), points(process(), t, np.random.default_rng(seed)))


def candidates(n: int = 40, seed: int = 7) -> Array:
    return points(process(), n, np.random.default_rng(seed))


def plain(seed: int = 0, t: int = 8) -> Situation:
    return situation_after(process(), runs(t, seed), candidates())


def on_objective(algorithm: Scored, factor: float) -> Scored:
    """The same algorithm for a scaled objective: the kernel of a black box is scaled as well."""
    if isinstance(algorithm, GPUCB):
        return replace(algorithm, kernel=SquaredExponential(1.0, variance=factor**2), norm_bound=1.5)
    if isinstance(algorithm, ExpectedImprovement):
        return replace(algorithm, kernel=SquaredExponential(1.0, variance=factor**2))
    return algorithm


# ---- shifts and scales of the objective


@every_algorithm
@settings(max_examples=thorough.examples(20))
@examples(shift=st.floats(-50, 50), seed=st.integers(0, 5))
def test_a_shift_of_the_objective_changes_no_choice(algorithm: Scored, shift: float, seed: int) -> None:
    """Offset and outputs of the last stage are shifted; upper bounds shift with them, improvements do not change."""
    data = runs(seed=seed)
    moved = data.copy()
    moved[:, -1] += shift
    before = scores(algorithm, situation_after(process(), data, candidates()))
    after = scores(algorithm, situation_after(process(shift=shift), moved, candidates()))
    bounds = isinstance(algorithm, CUCB)  # a black box subtracts the offset
    np.testing.assert_allclose(after, before + bounds * shift, atol=1e-6, rtol=1e-6)
    assert before[after.argmax()] >= before.max() - 1e-9 * (1 + abs(before.max()))


@every_algorithm
@settings(max_examples=thorough.examples(20))
@examples(power=st.integers(-20, 20), seed=st.integers(0, 5))
def test_a_scale_of_the_objective_changes_no_choice(algorithm: Scored, power: int, seed: int) -> None:
    """Outputs, variance and so the Lipschitz constant are scaled; powers of 2, so that nothing is rounded."""
    factor = 2.0**power
    data = runs(seed=seed)
    scaled = data.copy()
    scaled[:, -1] *= factor
    before = scores(on_objective(algorithm, 1.0), situation_after(process(), data, candidates()))
    after = scores(on_objective(algorithm, factor), situation_after(process(factor), scaled, candidates()))
    if isinstance(algorithm, ExpectedImprovement):
        np.testing.assert_allclose(after, before + np.log(factor), rtol=1e-9, atol=1e-9)
    else:
        np.testing.assert_allclose(after / factor, before, rtol=1e-9, atol=1e-9)
    assert before[after.argmax()] >= before.max() - 1e-9 * (1 + abs(before.max()))


@settings(max_examples=thorough.examples(20))
@examples(factor=st.floats(1, 10), seed=st.integers(0, 5))
def test_norm_bounds_scale_the_width_of_the_bounds(factor: float, seed: int) -> None:
    """With a declared L, c·B widens UCB − μ̃ by c and does not change σ̃, nor OI's second term.

    (c ≥ 1, so that the declared L stays smaller than that of the kernel.)
    """
    data, L = runs(seed=seed), np.array([1.5])
    stages = {stage.name: stage for stage in process().stages}
    usual = process().assuming({name: stage.assuming(stage.norm_bound, L) for name, stage in stages.items()})
    other = process().assuming(
        {name: stage.assuming(factor * np.array(stage.norm_bound), L) for name, stage in stages.items()}
    )
    before, after = (situation_after(network, data, candidates()) for network in (usual, other))
    mean = composite_mean(before.beliefs, candidates())[:, -1]
    np.testing.assert_allclose(
        scores(CUCB(), after) - mean, factor * (scores(CUCB(), before) - mean), rtol=1e-9, atol=1e-9
    )
    exploring = OptimisticImprovement(b=1e9)
    np.testing.assert_allclose(scores(exploring, after), scores(exploring, before), rtol=1e-9)


# ---- orders


@every_algorithm
@settings(max_examples=thorough.examples(10))
@examples(order=st.permutations(range(40)), seed=st.integers(0, 5))
def test_the_order_of_candidates_does_not_matter(algorithm: Scored, order: list[int], seed: int) -> None:
    data = runs(seed=seed)
    before = scores(algorithm, situation_after(process(), data, candidates()))
    after = scores(algorithm, situation_after(process(), data, candidates()[order]))
    np.testing.assert_allclose(after, before[order], rtol=1e-9, atol=1e-9)


@every_algorithm
def test_the_order_of_runs_does_not_matter(algorithm: Scored) -> None:
    data = runs()
    before = scores(algorithm, situation_after(process(), data, candidates()))
    after = scores(algorithm, situation_after(process(), data[::-1], candidates()))
    np.testing.assert_allclose(after, before, rtol=1e-6, atol=1e-6)


@every_algorithm
@pytest.mark.parametrize("structure", ["chain", "graph", "passes and integers", "multi-output chain", "rough chain"])
def test_a_score_does_not_depend_on_the_other_points(algorithm: Scored, structure: str) -> None:
    """Points are scored one by one, all at once, as the candidates or not; far more points than one block."""
    network = NETWORKS[structure]
    data = values(network, truth(network, 5), points(network, 20, np.random.default_rng(0)))
    many = network.domain.encode(points(network, 3000, np.random.default_rng(1)))
    situation = situation_after(network, data, many)
    as_candidates = scores(algorithm, situation)
    separately = scores(algorithm, situation, many[::100].copy())
    alone = np.concatenate([scores(algorithm, situation, point[None].copy()) for point in many[::1000]])
    np.testing.assert_allclose(separately, as_candidates[::100], rtol=1e-6, atol=2e-6)
    np.testing.assert_allclose(alone, as_candidates[::1000], rtol=1e-6, atol=2e-6)


# ---- data that an algorithm uses


@pytest.mark.parametrize("algorithm", BLACK_BOX, ids=str)
def test_a_black_box_ignores_what_happens_inside(algorithm: Scored) -> None:
    """Other intermediate outputs, or none, give the same scores to the last digit."""
    data = runs()
    other, silent = data.copy(), data.copy()
    other[:, 2:4] = np.random.default_rng(0).standard_normal((len(data), 2))
    silent[:, 2:4] = np.nan
    expected = scores(algorithm, situation_after(process(), data, candidates()))
    for changed in (other, silent):
        np.testing.assert_array_equal(scores(algorithm, situation_after(process(), changed, candidates())), expected)


@pytest.mark.parametrize("algorithm", [a for a in SCORED if a not in BLACK_BOX], ids=str)
def test_a_grey_box_uses_what_happens_inside(algorithm: Scored) -> None:
    data = runs()
    partial = np.concatenate([data, runs(12, seed=0)[8:]])
    partial[8:, -1] = np.nan  # four more runs without an observed objective
    before, after = (scores(algorithm, situation_after(process(), rows, candidates())) for rows in (data, partial))
    assert not np.allclose(after, before, rtol=0.1, atol=0.0)


@pytest.mark.parametrize("algorithm", BLACK_BOX, ids=str)
def test_a_black_box_learns_nothing_from_partial_runs(algorithm: Scored) -> None:
    data = runs()
    partial = np.concatenate([data, runs(12, seed=0)[8:]])
    partial[8:, -1] = np.nan
    before, after = (scores(algorithm, situation_after(process(), rows, candidates())) for rows in (data, partial))
    np.testing.assert_array_equal(after, before)


def test_the_kernel_of_a_black_box_is_chosen_from_the_network() -> None:
    """It is that of a first stage with all controls, else one that fits the box; or the argument of the algorithm."""
    data = runs()
    situation = situation_after(process(), data, candidates())
    first = SquaredExponential(1.0)
    for algorithm, other in (
        (GPUCB(), GPUCB(kernel=first)),
        (ExpectedImprovement(), ExpectedImprovement(kernel=first)),
    ):
        np.testing.assert_array_equal(scores(algorithm, situation), scores(other, situation))
    network = NETWORKS["chain with controls"]
    inside = values(network, truth(network, 0), points(network, 5, np.random.default_rng(0)))
    split = situation_after(network, inside, points(network, 9, np.random.default_rng(1)))
    fitting = GPUCB(kernel=Matern(2.5, (1.0, 1.0)), norm_bound=1.0)  # a quarter of each range, B of the last stage
    np.testing.assert_array_equal(scores(GPUCB(), split), scores(fitting, split))
    assert np.abs(scores(GPUCB(), split) - scores(GPUCB(norm_bound=2.0), split)).max() > 1e-3


def test_an_additive_kernel_of_one_stage_is_not_used_for_the_whole() -> None:
    kernel = Matern(2.5, (0.4, 0.7), 2.0)
    controls = {"x": Real(0, 1), "y": Real(0, 1)}
    network = chain(
        Stage("f", controls=controls, kernel=Additive(kernel), norm_bound=1.0),
        Stage("g", kernel=Matern(2.5), norm_bound=1.0),
    )
    assert default_kernel(network) == kernel


# ---- OI between its two ends


@pytest.mark.parametrize("seed", range(6))
def test_without_its_second_term_optimistic_improvement_is_cucb(seed: int) -> None:
    situation = plain(seed)
    cucb, none = CUCB(), OptimisticImprovement(b=0.0)
    first, second = (algorithm.suggest(situation, np.random.default_rng(seed)).point for algorithm in (cucb, none))
    np.testing.assert_array_equal(first, second)
    lower = -scores(
        cucb, replace(situation, beliefs=situation_after(process().mirrored(), situation.data, None).beliefs)
    )
    np.testing.assert_allclose(
        scores(none, situation), np.maximum(scores(cucb, situation) - lower.max(), 0.0), atol=1e-9
    )


@pytest.mark.parametrize("seed", range(6))
def test_with_a_dominant_second_term_optimistic_improvement_explores(seed: int) -> None:
    """It runs the point with the largest σ̃ (`eq:kusa_sig`)."""
    L = np.array([1.5])
    network = process().assuming({stage.name: stage.assuming(stage.norm_bound, L) for stage in process().stages})
    situation = situation_after(network, runs(seed=seed), candidates())
    stages = []
    for node in network.nodes:
        inputs = [tuple(row) for row in situation.data[:, list(node.inputs)].tolist()]
        stages.append(PaperStage(inputs, situation.data[:, node.columns[0]].tolist(), 1e-10))
    sigma = np.array([chained(stages, tuple(x), 1.5)[1] for x in candidates().tolist()])
    chosen = OptimisticImprovement(b=1e12).suggest(situation, np.random.default_rng(0)).point
    np.testing.assert_array_equal(chosen, candidates()[sigma.argmax()])


@pytest.mark.parametrize("t", [0, 1, 2, 7])
def test_eta_is_finite_at_the_first_step_and_falls(t: int) -> None:
    """η_{t−1} for the choice of point t, with η_1 where the print takes the logarithm of 0."""
    assert OptimisticImprovement(b=3.0).eta(t) == pytest.approx(eta(3.0, max(t, 1)))
    assert np.isfinite(scores(OptimisticImprovement(b=3.0), plain(t=t))).all()
    assert OptimisticImprovement(b=3.0).eta(t + 2) < OptimisticImprovement(b=3.0).eta(t)


# ---- minimising


@pytest.mark.parametrize("algorithm", [a for a in SCORED if a not in CASCADED_EI], ids=str)
@pytest.mark.parametrize("shift", [0.0, 3.0])
def test_minimising_is_maximising_the_negated_objective(algorithm: Scored, shift: float) -> None:
    data = runs()
    data[:, -1] += shift
    negated = data * np.where(np.arange(data.shape[1]) == data.shape[1] - 1, -1.0, 1.0)
    lowest = situation_after(process(shift=shift).mirrored(), data, candidates())
    highest = situation_after(process(shift=-shift), negated, candidates())
    np.testing.assert_allclose(scores(algorithm, lowest), scores(algorithm, highest), rtol=1e-9, atol=1e-9)
    first, second = (algorithm.suggest(situation, np.random.default_rng(0)).point for situation in (lowest, highest))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("tables", [True, False])
def test_minimising_by_samples_is_maximising_the_negated_samples(tables: bool) -> None:
    """As above, with the same ξ: that of an objective which is minimised is negated."""
    data = runs()
    negated = data * np.where(np.arange(data.shape[1]) == data.shape[1] - 1, -1.0, 1.0)
    lowest = situation_after(process().mirrored(), data, candidates())
    highest = situation_after(process(), negated, candidates())
    algorithm = CascadedEI(samples=64, tables=tables)
    xi = np.random.default_rng(0).spawn(1)[0].standard_normal((64, 3))
    expected = improvement(highest.beliefs, candidates(), xi, highest.best)
    assert expected.max() > 0
    np.testing.assert_allclose(scores(algorithm, lowest), expected, atol=1e-6)


# ---- arguments


def test_invalid_arguments_are_refused() -> None:
    for samples in (0, -1, True, 2.5, "many"):
        with pytest.raises(ArgumentError, match="samples must be a whole number of at least 1; got"):
            CascadedEI(samples=samples)  # type: ignore[arg-type]
    for b in (-1.0, np.inf, np.nan):
        with pytest.raises(ArgumentError, match="b must be"):
            OptimisticImprovement(b=b)
    for bound in (0.0, -1.0, np.nan):
        with pytest.raises(ArgumentError, match="norm_bound must be"):
            GPUCB(norm_bound=bound)


def test_a_black_box_needs_a_scalar_kernel() -> None:
    for algorithm in (GPUCB(kernel="rbf"), ExpectedImprovement(kernel="rbf")):  # type: ignore[arg-type]
        with pytest.raises(ArgumentError, match=r"kernel must be a scalar kernel over all controls.*; got 'rbf'"):
            algorithm.suggest(situation_after(process(), runs(), candidates()), np.random.default_rng(0))
