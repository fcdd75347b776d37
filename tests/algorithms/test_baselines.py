"""cUCB, OI, cEI, GP-UCB and EI against their literal transcriptions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from cascada.algorithms import CUCB, GPUCB, CascadedEI, ExpectedImprovement, OptimisticImprovement, Situation
from cascada.algorithms.acquisition import Scored
from cascada.arrays import Array
from cascada.gp import OperatorPrediction
from cascada.kernels import Separable, SquaredExponential
from cascada.network import Network, Stage, chain, feed_forward, multi_output_chain
from cascada.network.sampling import sample_objective
from cascada.problems import certified
from cascada.space import Grid, Real
from cascada.study import Study
from cascada.study.advisor import generator
from tests import reference_algorithms as paper
from tests.algorithms.cases import scores, situation_after
from tests.network.cases import points, truth, values
from tests.reference_algorithms import GraphStage, PaperStage, Point

JITTER = 1e-7
B, L = 2.0, 2.0
SAMPLES = 16
GRID = Grid({"x": 6, "y": 6})
SE = SquaredExponential(1.0)
X, Y = {"x": Real(-2, 2)}, {"y": Real(-2, 2)}


# ---- step by step against the transcriptions


@dataclass(frozen=True)
class Step:
    """The data behind the choice of point t."""

    stages: list[PaperStage]
    objective: PaperStage  # the black box
    candidates: list[Point]
    best: float
    t: int
    xi: list[list[float]]


TRANSCRIPTIONS: dict[str, tuple[Scored, Callable[[Step], list[float]]]] = {
    "cUCB": (CUCB(), lambda s: paper.cucb(s.stages, s.candidates, B, L)),
    "OI": (
        OptimisticImprovement(),
        lambda s: paper.optimistic_improvement(s.stages, s.candidates, B, L, 1.0, s.t),
    ),
    "OI, b = 100": (
        OptimisticImprovement(b=100.0),
        lambda s: paper.optimistic_improvement(s.stages, s.candidates, B, L, 100.0, s.t),
    ),
    "cEI": (CascadedEI(samples=SAMPLES), lambda s: paper.cascaded_ei(s.stages, s.candidates, s.xi, s.best)),
    "cEI without tables": (
        CascadedEI(samples=SAMPLES, tables=False),
        lambda s: paper.cascaded_ei(s.stages, s.candidates, s.xi, s.best),
    ),
    "GP-UCB": (GPUCB(), lambda s: paper.gp_ucb(s.objective, s.candidates, B)),
    "EI": (ExpectedImprovement(), lambda s: paper.expected_improvement(s.objective, s.candidates, s.best)),
}


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", TRANSCRIPTIONS)
def test_equals_the_literal_transcription_step_by_step(name: str, seed: int) -> None:
    """The scores agree, and the chosen point has the largest score of those not run before."""
    algorithm, expected_of = TRANSCRIPTIONS[name]
    network = certified("chain", seed, lipschitz=L).network
    study = Study(network, algorithm=algorithm, candidates=GRID, seed=seed, jitter=JITTER)
    candidates = [tuple(row) for row in GRID.points(network.domain).tolist()]
    data: list[tuple[list[Point], list[float]]] = [([], []) for _ in network.nodes]
    run: list[Point] = []
    best = -np.inf
    for t in range(1, 9):
        stages = [PaperStage(inputs, outputs, JITTER) for inputs, outputs in data]
        objective = PaperStage(run, data[-1][1] if run else [], JITTER)
        xi = generator(study.state, study._settings).spawn(1)[0].standard_normal((SAMPLES, 3)).tolist()
        situation = study.situation(())
        assert situation.candidates is not None
        acquisition = algorithm.acquisition(situation, generator(study.state, study._settings))
        tracked, elsewhere = (acquisition.score(at) for at in (situation.candidates, np.array(candidates)))
        trial = study.ask()
        assert trial is not None
        point = tuple(float(value) for value in trial.controls.values())
        assert point not in run
        # The paper does not define the improvement before the first value.
        if t > 1 or name not in ("cEI", "cEI without tables", "EI"):
            expected = expected_of(Step(stages, objective, candidates, best, t, xi))
            for got in (tracked, elsewhere):
                np.testing.assert_allclose(np.exp(got) if name == "EI" else got, expected, atol=1e-6, rtol=1e-6)
            top = max(value for value, other in zip(expected, candidates, strict=True) if other not in run)
            assert expected[candidates.index(point)] >= top - min(1e-6, 1e-5 * abs(top))
        value: Point = point
        outputs = {}
        for node, (inputs, seen) in zip(network.nodes, data, strict=True):
            assert node.stage.function is not None
            (out,) = node.stage.function(**dict(zip(node.input_names, value, strict=True)))
            inputs.append(value)
            seen.append(out)
            outputs[node.stage.name] = [out]
            value = (out,)
        run.append(point)
        best = max(best, value[0])
        study.tell(trial, outputs)


# ---- networks: several parents, controls at later stages, joint norms

A = [[2.0, 0.5], [0.5, 1.0]]
Z = {"z": Real(-1, 1)}


@dataclass(frozen=True)
class Graph:
    """A network, and its stages in the form of the transcription: inputs, B, L, ‖A‖₂ of a joint norm, offsets."""

    network: Network
    stages: Sequence[tuple[list[int], list[float], list[float], float | None, list[float]]]

    def transcribed(self, data: Array) -> list[GraphStage]:
        found = []
        for node, (inputs, bounds, slopes, joint, offset) in zip(self.network.nodes, self.stages, strict=True):
            X = [tuple(row) for row in data[:, inputs].tolist()]
            outputs = [
                PaperStage(X, (data[:, column] - off).tolist(), JITTER)
                for column, off in zip(node.columns, offset, strict=True)
            ]
            found.append(GraphStage(inputs, outputs, bounds, slopes, joint, offset))
        return found


_spectral = float(np.linalg.eigvalsh(np.array(A))[-1])
GRAPHS = {
    "feed-forward": Graph(
        feed_forward(
            Stage(
                "f",
                controls=X | Y,
                outputs=["u", "v"],
                kernel=SE,
                norm_bound=[2.0, 1.0],
                lipschitz=[1.5, 0.7],
                offset=[0.0, -1.0],
            ),
            Stage("g", kernel=SE, norm_bound=3.0),  # the L that follows from the kernel is B
        ),
        [([0, 1], [2.0, 1.0], [1.5, 0.7], None, [0.0, -1.0]), ([2, 3], [3.0], [3.0], None, [0.0])],
    ),
    "controls": Graph(
        chain(
            Stage("f", controls=X, kernel=SE, norm_bound=1.5),
            Stage("g", controls=Z, kernel=SE, norm_bound=2.0, lipschitz=1.2),
            Stage("h", controls=X, kernel=SE, norm_bound=1.0, offset=0.5),  # x is shared with f
        ),
        [
            ([0], [1.5], [1.5], None, [0.0]),
            ([2, 1], [2.0], [1.2], None, [0.0]),
            ([3, 0], [1.0], [1.0], None, [0.5]),
        ],
    ),
    "joint norms": Graph(
        multi_output_chain(
            Stage("f", controls=X | Y, outputs=["u", "v"], kernel=Separable(SE, A), norm_bound=2.0),
            Stage("g", outputs=["w", "q"], controls=Z, kernel=Separable(SE), norm_bound=1.5, lipschitz=1.0),
            Stage("h", kernel=SE, norm_bound=1.0),
        ),
        [
            ([0, 1], [2.0] * 2, [2.0 * _spectral**0.5] * 2, _spectral, [0.0, 0.0]),
            ([3, 4, 2], [1.5] * 2, [1.0] * 2, 1.0, [0.0, 0.0]),
            ([5, 6], [1.0], [1.0], None, [0.0]),
        ],
    ),
    "join": Graph(
        Network(
            [
                Stage("f", controls=X, outputs=["u", "v"], kernel=Separable(SE, A), norm_bound=1.0),
                Stage("g", controls=Y, kernel=SE, norm_bound=2.0),
                Stage("h", parents=["g", "f"], kernel=SE, norm_bound=1.5),
            ]
        ),
        [
            ([0], [1.0] * 2, [_spectral**0.5] * 2, _spectral, [0.0, 0.0]),
            ([1], [2.0], [2.0], None, [0.0]),
            ([4, 2, 3], [1.5], [1.5], None, [0.0]),
        ],
    ),
}


def graph_situation(graph: Graph, t: int = 7, mirrored: bool = False) -> Situation:
    """The situation after t runs of a random process with the graph's norms, with 20 candidates."""
    network = graph.network.mirrored() if mirrored else graph.network
    rng = np.random.default_rng(3)
    data = values(network, truth(network, 4), points(network, t, rng))
    return situation_after(network, data, points(network, 20, rng), JITTER)


@pytest.mark.parametrize("mirrored", [False, True], ids=["maximised", "minimised"])
@pytest.mark.parametrize("name", GRAPHS)
def test_the_extension_to_networks_equals_its_transcription(name: str, mirrored: bool) -> None:
    """cUCB is sign·μ̃ + w, and OI's second term is σ̃ without any B."""
    situation = graph_situation(GRAPHS[name], mirrored=mirrored)
    assert situation.candidates is not None
    stages = GRAPHS[name].transcribed(situation.data)
    sign = situation.beliefs.network.sign
    candidates = [tuple(x) for x in situation.candidates.tolist()]
    wide = [paper.along_graph(stages, x, widths=True) for x in candidates]
    mu, width = np.array([sign * mu[-1] for mu, _ in wide]), np.array([error[-1] for _, error in wide])
    sigma = np.array([paper.along_graph(stages, x, widths=False)[1][-1] for x in candidates])
    for at in (situation.candidates, situation.candidates.copy()):  # with and without tracked posteriors
        np.testing.assert_allclose(scores(CUCB(), situation, at), mu + width, atol=1e-6)
        eta = paper.eta(3.0, len(situation.data))
        expected = np.maximum(mu + width - (mu - width).max(), eta * sigma)
        np.testing.assert_allclose(scores(OptimisticImprovement(3.0), situation, at), expected, atol=1e-6)


@pytest.mark.parametrize("mirrored", [False, True], ids=["maximised", "minimised"])
@pytest.mark.parametrize("name", ["feed-forward", "controls"])
def test_samples_of_networks_equal_their_transcription(name: str, mirrored: bool) -> None:
    """Every output of every stage has its own draw, the same for all points."""
    situation = graph_situation(GRAPHS[name], mirrored=mirrored)
    assert situation.candidates is not None
    stages = GRAPHS[name].transcribed(situation.data)
    sign, count = situation.beliefs.network.sign, sum(len(stage.outputs) for stage in stages)
    xi = np.random.default_rng(0).spawn(1)[0].standard_normal((SAMPLES, count))
    xi[:, -1] *= sign  # the draw of an objective that is minimised is negated
    expected = []
    for x in situation.candidates.tolist():
        total = 0.0
        for draws in xi.tolist():
            sample, rest = list(x), iter(draws)
            for stage in stages:
                z = tuple(sample[j] for j in stage.inputs)
                drawn = [f.mean(z) + f.sd(z) * next(rest) for f in stage.outputs]
                sample += [value + off for value, off in zip(drawn, stage.offset, strict=True)]
            total += max(sign * sample[-1] - situation.best, 0.0)
        expected.append(total / SAMPLES)
    assert max(expected) > 0
    for at in (situation.candidates, situation.candidates.copy()):
        np.testing.assert_allclose(scores(CascadedEI(SAMPLES), situation, at), expected, atol=1e-6)


def test_samples_of_a_joint_norm_have_its_mean_and_covariance() -> None:
    """The outputs of a stage k·A covary as σ²A does; checked on the difference of two outputs, a known stage."""
    difference = Stage("d", parents=["f.u", "f.v"], known=True, lipschitz=2.0, function=lambda u, v: u - v)
    f = Stage("f", controls=X, outputs=["u", "v"], kernel=Separable(SE, A), norm_bound=2.0)
    network = Network([f, difference])
    data = values(network, truth(network, 0), np.array([[-1.0], [0.5]]))
    situation = situation_after(network, data, np.array([[0.1], [1.9]]))
    belief = situation.beliefs.stages[0].belief
    assert belief is not None
    S = 40_000
    got = sample_objective(
        situation.beliefs, np.array([[0.1], [1.9]]), np.random.default_rng(0).standard_normal((S, 2))
    )
    prediction = belief.posterior.predict(np.array([[0.1], [1.9]]))
    assert isinstance(prediction, OperatorPrediction)
    mean = prediction.mean @ [1.0, -1.0]
    sd = np.sqrt(np.einsum("i,nij,j->n", [1.0, -1.0], prediction.covariance, [1.0, -1.0]))
    np.testing.assert_array_less(np.abs(got.mean(axis=1) - mean), 5 * sd / np.sqrt(S))
    np.testing.assert_array_less(np.abs(got.std(axis=1) / sd - 1), 5 / np.sqrt(2 * S))
