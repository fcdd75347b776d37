"""Recommendations: their gap is never smaller than the regret and never larger than the paper's formula."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from cascada.algorithms import NonAdaptive, RandomSearch, Situation, Suggestion
from cascada.arrays import Array
from cascada.network import chain, composite_mean
from cascada.outwards import agreeing
from cascada.problems import STRUCTURES, Problem, certified
from cascada.space import Real
from cascada.study import Recommendation, Study, maximise, minimise
from tests.network.cases import X, Y, stage, truth
from tests.reference_non_adaptive import Layer, printed_bound, returned
from tests.thorough import THOROUGH

SEEDS = (0, 1) if THOROUGH else (1,)
CHAIN = chain(stage("f", controls=X | Y), stage("g"))
FUNCTIONS = truth(CHAIN, 1)


@dataclass(frozen=True)
class At:
    """Algorithm that suggests random points and always recommends the same one."""

    point: tuple[float, ...]

    def suggest(self, situation: Situation, rng: np.random.Generator) -> Suggestion:
        return RandomSearch().suggest(situation, rng)

    def recommend(self, situation: Situation) -> Array | None:  # noqa: ARG002
        return np.array(self.point)


def after_runs(problem: Problem, algorithm: Any, runs: int, **options: Any) -> Study:
    """Return a study of a problem after some runs."""
    study = Study(problem.network, algorithm=algorithm, horizon=runs, **options)
    for _ in range(runs):
        trial = study.ask()
        assert trial is not None
        row = np.array([list(trial.controls.values())], dtype=float)
        values = problem.values(row)[0]
        study.tell(trial, {node.stage.name: values[list(node.columns)] for node in problem.network.nodes})
    return study


def known_gap(found: Recommendation | None) -> float:
    assert found is not None
    assert (found.kind, found.gap is None, found.bound is None, found.worst is None) == ("proven", False, False, False)
    assert found.gap is not None
    return found.gap


def value_at(problem: Problem, found: Recommendation | None) -> float:
    assert found is not None
    return float(problem.objective(np.array([list(found.controls.values())], dtype=float))[0])


# ---- soundness


@pytest.mark.parametrize("structure", STRUCTURES)
def test_no_gap_over_a_box_is_smaller_than_the_regret(structure: str) -> None:
    problem = certified(structure, 1)
    for runs in (1, 7, 16):
        found = after_runs(problem, NonAdaptive(), runs).recommendation()
        value = value_at(problem, found)
        assert known_gap(found) >= problem.optimum[1] - value
        assert found is not None
        assert found.worst is not None
        assert found.bound is not None
        assert found.worst <= value <= found.bound
        assert found.bound >= problem.optimum[1] - 1e-9  # to which the optimum is known


@pytest.mark.parametrize("mirrored", [False, True], ids=["maximised", "minimised"])
@pytest.mark.parametrize("structure", STRUCTURES)
def test_no_gap_over_candidates_is_smaller_than_the_regret(structure: str, mirrored: bool) -> None:
    for seed in SEEDS:
        plain = certified(structure, seed)
        network = plain.network.mirrored() if mirrored else plain.network
        problem = Problem(plain.name, plain.summary, network, plain.values)
        rows = np.random.default_rng(seed).uniform(-2, 2, (60, network.domain.dimension))
        best = network.sign * (network.sign * problem.objective(rows)).max()
        for runs in (1, 5, 20):
            found = after_runs(problem, NonAdaptive(), runs, candidates=rows).recommendation()
            value = value_at(problem, found)
            assert known_gap(found) >= abs(best - value)
            assert found is not None
            assert found.worst is not None
            assert found.bound is not None
            assert network.sign * found.worst <= network.sign * value
            assert network.sign * found.bound >= network.sign * best


@pytest.mark.parametrize("structure", ["chain", "controls", "feed-forward", "multi-output", "join", "known"])
def test_any_recommended_point_has_a_true_gap(structure: str) -> None:
    """A bad point has a large gap; a point that was run has its own value."""
    problem = certified(structure, 2)
    d = problem.network.domain.dimension
    for point in np.random.default_rng(0).uniform(-2, 2, (3, d)):
        found = after_runs(problem, At(tuple(point)), 6).recommendation()
        assert known_gap(found) >= problem.optimum[1] - value_at(problem, found)
    study = after_runs(problem, RandomSearch(), 6)
    assert study.recommendation() is None
    best = study.best_trial
    assert best is not None
    again = after_runs(problem, At(tuple(best.controls.values())), 6)
    assert known_gap(again.recommendation()) == pytest.approx(again.certificate().gap, abs=1e-6)


def test_wrong_ranges_make_a_bad_point_and_no_false_proof() -> None:
    """The proven gap does not depend on the ranges of Case 2: it holds whether they are true or not."""
    problem = certified("chain", 0)
    rows = np.random.default_rng(0).uniform(-2, 2, (80, 2))
    best = problem.objective(rows).max()
    wrong = NonAdaptive(ranges={"s1": (0.9, 0.95), "s2": (-0.2, -0.1)})
    found = after_runs(problem, wrong, 9, candidates=rows).recommendation()
    assert known_gap(found) >= best - value_at(problem, found)
    right = after_runs(problem, NonAdaptive(), 9, candidates=rows).recommendation()
    assert known_gap(found) >= known_gap(right) - 1e-9
    assert found is not None
    assert right is not None
    assert found.assumptions == right.assumptions


# ---- against the printed formula


@pytest.mark.parametrize(
    "structure", ["chain", "chain-3d", "controls", "feed-forward", "feed-forward-3", "multi-output"]
)
def test_the_gap_over_candidates_is_at_most_the_printed_one(structure: str) -> None:
    """2B Σ √D L^{m−i} max σ̃ with loops, after a few runs and after more; the same point is returned."""
    B = L = 2.0
    for seed in SEEDS:
        problem = certified(structure, seed, norm=B, lipschitz=None if structure == "multi-output" else L)
        network = problem.network
        d = network.domain.dimension
        rows = np.random.default_rng(seed).uniform(-2, 2, (30, d))
        for runs in (1, 3, 10):
            study = after_runs(problem, NonAdaptive(), runs, candidates=rows, jitter=1e-6)
            runs_in_order = np.array([list(trial.controls.values()) for trial in study.trials])
            values = problem.values(runs_in_order)
            layers, own = [], []
            for node in network.nodes:
                rows_in = [tuple(row) for row in values[:, list(node.inputs)].tolist()]
                rows_out = [tuple(row) for row in values[:, list(node.columns)].tolist()]
                before = sum(column >= d for column in node.inputs)
                layers.append(Layer(rows_in, rows_out, before, node.stage.joint, 1e-6))
                own.append([column for column in node.inputs if column < d])
            points = [tuple(row) for row in rows.tolist()]
            found = study.recommendation()
            assert found is not None
            assert tuple(found.controls.values()) == points[returned(layers, points, own)]
            assert known_gap(found) <= printed_bound(layers, points, own, B, L) * (1 + 1e-9)


def test_the_bound_over_candidates_is_at_most_that_of_the_certificate() -> None:
    """The bound is at most the certificate's: each candidate has the better of two upper bounds."""
    problem = certified("controls", 0)
    rows = np.random.default_rng(3).uniform(-2, 2, (200, 3))
    study = after_runs(problem, NonAdaptive(), 12, candidates=rows)
    found = study.recommendation()
    assert found is not None
    assert found.bound is not None
    bound = study.certificate().bound
    assert bound is not None
    assert found.bound <= bound


# ---- content of a recommendation


def test_the_mean_is_the_composite_mean_and_the_parts_add_up() -> None:
    for optimise, sign in ((maximise, 1.0), (minimise, -1.0)):
        result = optimise(CHAIN, FUNCTIONS, budget=9, algorithm=NonAdaptive())
        found = result.recommendation
        assert found is not None
        assert result.recommended == found.controls
        assert found.worst is not None
        assert found.bound is not None
        assert found.gap == pytest.approx(sign * (found.bound - found.worst))
        assert sign * found.worst <= sign * found.mean <= sign * found.bound
        assert found.kind == result.certificate.kind == "proven"
        assert found.assumptions == result.certificate.assumptions
        study = Study(CHAIN)
        for trial in result.trials:
            study.tell(study.enqueue_trial(trial.controls), trial.outputs)
        point = np.array([list(found.controls.values())])
        assert found.mean == pytest.approx(composite_mean(study.beliefs, point)[0, CHAIN.objective_column])
        text = str(found)
        assert text.startswith(f"Recommended: x = {found.controls['x']:.6g}, y = {found.controls['y']:.6g}, where")
        least, word = ("at least", "higher") if sign > 0 else ("at most", "lower")
        shown = agreeing(found.worst, found.bound, maximised=sign > 0)
        assert f"Proven: it gives {least} {shown.best}, and no setting in the box of controls gives a" in text
        assert f"{word} than {shown.bound}: it is within {shown.gap} of the best possible" in text
        assert text.endswith("  - every run is exact: no noise")
        assert found.summary in str(result)


def test_a_refined_certificate_gives_a_smaller_gap() -> None:
    problem = certified("controls-4d", 0)
    study = after_runs(problem, NonAdaptive(), 16)
    quick = study.recommendation(study.certificate(cells=200))
    slow = study.recommendation(study.certificate(cells=4000))
    assert known_gap(slow) < known_gap(quick)


def test_a_recommendation_from_refuted_data_has_no_gap() -> None:
    study = Study(CHAIN, algorithm=NonAdaptive(runs=4))
    before = study.certificate()
    trial = study.ask()
    assert trial is not None
    study.tell(trial, {"f": 7.5, "g": 1.0})
    for found in (study.recommendation(), study.recommendation(before)):
        assert found is not None
        assert (found.kind, found.gap, found.bound, found.worst) == ("refuted", None, None, None)
        assert str(found).endswith("The data refute an assumption, so nothing is proven of it.")


def test_a_later_refutation_removes_a_proven_gap() -> None:
    study = after_runs(certified("chain", 0), NonAdaptive(), 4)
    older = study.certificate()
    assert known_gap(study.recommendation(older)) > 0
    study.refute("The furnace was not the same.")
    found = study.recommendation(older)
    assert found is not None
    assert (found.kind, found.gap) == ("refuted", None)


def test_raised_norm_bounds_make_the_gap_estimated() -> None:
    problem = certified("controls", 3)
    small = {stage.name: stage.assuming(np.array([0.3]), None) for stage in problem.network.stages}
    network = problem.network.assuming(small)
    result = maximise(network, budget=12, algorithm=NonAdaptive(), on_violation="enlarge")
    found = result.recommendation
    assert found is not None
    assert (found.kind, result.gap_kind) == ("estimated", "estimated")
    assert found.gap is not None
    assert any("raised from 0.3" in line for line in found.assumptions)
    assert "Estimated: it gives at least" in str(found)
    stopped = maximise(network, budget=12, algorithm=NonAdaptive())
    assert stopped.status == "refuted"
    assert stopped.recommendation is not None
    assert stopped.recommendation.gap is None


def test_there_is_no_gap_before_the_first_complete_run() -> None:
    study = Study(CHAIN, algorithm=At((0.5, 0.25)))
    study.tell_stage(study.enqueue_trial({"x": 0.0, "y": 0.0}), "f", 0.1)
    found = study.recommendation()
    assert found is not None
    assert (found.controls, found.gap, found.bound) == ({"x": 0.5, "y": 0.25}, None, None)
    assert str(found).endswith("Nothing is proven of it yet.")


def test_candidates_of_a_logarithmic_control_are_recommended_as_given() -> None:
    network = chain(stage("f", controls={"t": Real(0.1, 30, log=True)}))
    rows = [[0.3], [0.7], [1.1], [7.3], [29.9]]
    result = maximise(network, truth(network, 0), budget=5, candidates=rows, algorithm=NonAdaptive())
    assert result.recommended is not None
    assert [result.recommended["t"]] in rows
    assert result.recommendation is not None
    assert result.recommendation.gap == pytest.approx(0.0, abs=1e-5)


@dataclass(frozen=True)
class Careless:
    """Algorithm that recommends a chosen value, valid or not."""

    answer: Any

    def suggest(self, situation: Situation, rng: np.random.Generator) -> Suggestion:
        return RandomSearch().suggest(situation, rng)

    def recommend(self, situation: Situation) -> Array | None:  # noqa: ARG002
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    "answer", [[0.0, 0.0], np.zeros(3), np.array([0.0, np.nan]), np.array([0.0, 99.0]), ValueError("no idea")], ids=repr
)
def test_an_invalid_recommendation_does_not_lose_the_runs(answer: Any) -> None:
    problem = certified("chain", 0)
    with pytest.warns(RuntimeWarning, match="could recommend no point: .*(coordinate|no idea)") as found:
        result = maximise(problem.network, budget=3, algorithm=Careless(answer), progress=False)
    assert found[0].filename == __file__  # not a line of cascada
    assert (result.recommended, result.recommendation, len(result.trials)) == (None, None, 3)


def test_contradicting_bounds_prove_no_gap() -> None:
    """The bound is below the certain value of the point, because it is from another process's certificate."""
    problem = certified("chain", 0)
    study = after_runs(problem, NonAdaptive(runs=25), 25)
    certificate = replace(study.certificate(), bound=-10.0)
    found = study.recommendation(certificate)
    assert found is not None
    assert (found.kind, found.gap) == ("refuted", None)
    assert study.certificate().kind == "refuted"
