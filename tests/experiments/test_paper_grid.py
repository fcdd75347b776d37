"""Tests of the paper's variant, compared with its literal transcription."""

import numpy as np
import pytest

from cascada.errors import ArgumentError
from cascada.experiments.paper_grid import PaperGrid
from cascada.network import Network, Stage, chain
from cascada.problems import certified
from cascada.space import Grid, Real
from cascada.study import Study
from tests.reference_algorithms import PaperStage, paper_grid_ucb

JITTER = 1e-7


def a_chain(seed: int) -> Network:
    return certified("chain", seed, lipschitz=2.0).network


@pytest.mark.parametrize(("seed", "grid"), [(0, PaperGrid(-5, 5, 21, 1.0)), (1, PaperGrid(-2, 2, 5, 0.6))])
def test_equals_the_literal_transcription_step_by_step(seed: int, grid: PaperGrid) -> None:
    """Also with a grid so coarse that Δ ∩ D is often empty and a window may hold no point."""
    network = a_chain(seed)
    study = Study(network, algorithm=grid, candidates=Grid({"x": 6, "y": 6}), seed=seed, jitter=JITTER)
    candidates = [tuple(row) for row in Grid({"x": 6, "y": 6}).points(network.domain).tolist()]
    D = np.linspace(grid.low, grid.high, grid.points).tolist()
    data: list[tuple[list[tuple[float, ...]], list[float]]] = [([], []) for _ in network.nodes]
    for _ in range(8):
        stages = [PaperStage(X, y, JITTER) for X, y in data]
        expected = paper_grid_ucb(stages, candidates, D, grid.radius, B=2.0, L=2.0)
        beliefs = [stage.belief for stage in study.beliefs.stages]
        got = grid.upper(beliefs, np.array(candidates))  # type: ignore[arg-type]
        np.testing.assert_allclose(got, expected, atol=1e-6)
        trial = study.ask()
        assert trial is not None
        point = tuple(trial.controls.values())
        assert expected[candidates.index(point)] >= max(expected) - 1e-6
        value: tuple[float, ...] = point
        outputs = {}
        for node, (X, y) in zip(network.nodes, data, strict=True):
            assert node.stage.function is not None
            (out,) = node.stage.function(**dict(zip(node.input_names, value, strict=True)))
            if value not in X:
                X.append(value)
                y.append(out)
            outputs[node.stage.name] = [out]
            value = (out,)
        study.tell(trial, outputs)


def test_ties_are_broken_by_the_generator() -> None:
    """Before the first run all candidates are equal."""
    network = a_chain(0)
    firsts = set()
    for seed in range(8):
        trial = Study(network, algorithm=PaperGrid(), candidates=Grid({"x": 5, "y": 5}), seed=seed).ask()
        assert trial is not None
        firsts.add(tuple(trial.controls.values()))
    assert len(firsts) > 1


def test_the_certificate_does_not_come_from_the_algorithm() -> None:
    """The certificate of such a study comes from certified bounds."""
    network = a_chain(0)
    study = Study(network, algorithm=PaperGrid(), candidates=Grid({"x": 5, "y": 5}))
    trial = study.ask()
    assert trial is not None
    suggestion = study.algorithm.suggest(study.situation(()), np.random.default_rng(0))
    assert suggestion.bound is None


def test_unsupported_networks_raise_an_argument_error() -> None:
    with pytest.raises(ArgumentError, match="candidates"):
        Study(a_chain(0), algorithm=PaperGrid()).ask()
    with pytest.raises(ArgumentError, match="chains of scalar stages"):
        Study(certified("controls", lipschitz=2.0).network, algorithm=PaperGrid(), candidates=[[0.0, 0.0, 0.0]]).ask()
    kernel = a_chain(0).stages[0].kernel
    bare = chain(
        Stage("f", controls={"x": Real(0, 1)}, kernel=kernel, norm_bound=1.0), Stage("g", kernel=kernel, norm_bound=1.0)
    )
    with pytest.raises(ArgumentError, match="lipschitz="):
        Study(bare, algorithm=PaperGrid(), candidates=[[0.5]]).ask()
