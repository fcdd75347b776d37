"""Soundness of revisions: what they say of a batch holds for the true process, and broken versions are caught."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cascada.arrays import Array
from cascada.confidence import Boxes
from cascada.network import Beliefs, Network
from cascada.network.feasibility import enclose_feasible
from cascada.network.given import given_outputs
from cascada.network.slack import around_setting
from cascada.problems import certified
from cascada.problems.certified_problem import STRUCTURES
from cascada.process import Process
from cascada.search import incumbent
from cascada.study import Study, batch, decision
from cascada.study.batch import Batch
from tests.network.cases import NETWORKS, truth
from tests.study.batches import Revised, revisions, violations
from tests.thorough import THOROUGH

SEEDS = range(10 if THOROUGH else 1)
RUNS = 25 if THOROUGH else 4


def limited(network: Network, output: tuple[str, str], interval: tuple[float | None, float | None]) -> Network:
    """The network with a limit of one output."""
    stage, name = output
    limits: Any = {name: interval}
    stages = [replace(one, limits=limits) if one.name == stage else one for one in network.stages]
    made = Network(stages, objective=".".join(network.objective))
    return made if network.sign > 0 else made.mirrored()


def check(network: Network, process: Process, seed: int, runs: int = RUNS, **options: Any) -> list[str]:
    """All wrong statements of the revisions of a study, which must not be empty."""
    study, rng = Study(network, tolerance=0.02, seed=seed, **options), np.random.default_rng(seed)
    found = list(revisions(study, process, runs))
    assert found
    return [text for revised in found for text in violations(network, process, revised, rng)]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("structure", STRUCTURES)
def test_a_batch_is_never_better_than_its_bound(structure: str, seed: int) -> None:
    network = certified(structure, seed).network
    assert check(network, Process(network), seed) == []


@pytest.mark.parametrize("structure", ["controls", "join", "known"])
def test_a_minimised_batch_is_never_better_than_its_bound(structure: str) -> None:
    network = certified(structure, 0).network
    assert check(network.mirrored(), Process(network), 0) == []


@pytest.mark.parametrize("name", NETWORKS)
def test_logarithms_integers_formulas_and_copies(name: str) -> None:
    """`graph` shares a control between a stage that was run and one that was not, and has a logarithmic one."""
    network = NETWORKS[name]
    assert check(network, Process(network, truth(network, 1)), 0, runs=6) == []


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("structure", ["controls", "join", "feed-forward"])
@pytest.mark.parametrize("interval", [(None, 0.2), (-0.3, 0.3)])
def test_a_batch_within_limits_is_never_better_than_its_bound(
    structure: str, interval: tuple[float | None, float], seed: int
) -> None:
    network = limited(certified(structure, seed).network, ("s1", "s1_1"), interval)
    assert check(network, Process(network), seed) == []
    last = limited(network, network.objective, interval)  # of a stage that is still to be run
    assert check(last, Process(last), seed) == []


@pytest.mark.parametrize("structure", ["controls", "join"])
def test_a_batch_of_candidates_is_never_better_than_its_bound(structure: str) -> None:
    network = certified(structure, 0).network
    rows = np.random.default_rng(0).choice(np.linspace(-2, 2, 5), (60, network.domain.dimension))
    study, rng, wrong = Study(network, candidates=rows), np.random.default_rng(0), []
    for found in revisions(study, Process(network), 8):
        wrong += [text for text in violations(network, Process(network), found, rng) if "bound" not in text]
        assert found.revision.bound is not None
        same = [row for row in rows if _is_completion(network, row, found.trial)]
        assert [float(v) for v in found.revision.controls.values()] in [row.tolist() for row in same]
        best = max(Process(network)(network.domain.named(row))["s3"][0] for row in same)
        assert found.revision.bound >= best - 1e-9
    assert wrong == []


def _is_completion(network: Network, row: Array, trial: Any) -> bool:
    fixed = {control for name in trial.outputs for control in network.node(name).stage.controls}
    return all(row[j] == trial.controls[name] for j, name in enumerate(network.controls) if name in fixed)


# ---- broken versions are caught


def test_a_wrong_constant_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(beliefs: Beliefs, outputs: dict[str, tuple[float, ...]], boxes: Boxes | None) -> Beliefs:
        assert boxes is None, "its runs are exact"
        return given_outputs(beliefs, {name: tuple(v + 0.7 for v in values) for name, values in outputs.items()})

    monkeypatch.setattr(batch, "given_outputs", wrong)
    found = []
    for seed in range(3):
        network = certified("chain", seed).network
        found += check(network, Process(network), seed, runs=8)
    assert any("bound" in text for text in found)
    assert any("at least" in text for text in found)


def test_a_shared_control_that_is_not_fixed_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def own(self: Batch) -> frozenset[str]:
        network = self.state.network
        still = {c for name in self.left for c in network.node(name).stage.controls}
        return frozenset(c for name in self.begun for c in network.node(name).stage.controls if c not in still)

    monkeypatch.setattr(Batch, "fixed", property(own))
    found = []
    for seed in range(3):
        network = certified("join", seed).network
        study, rng = Study(network, tolerance=0.02), np.random.default_rng(0)
        for _ in range(6):
            trial = study.ask()
            assert trial is not None
            outputs = Process(network)(trial.controls)
            study.tell_stage(trial, "s1", outputs["s1"])
            revised = Revised(study.trials[trial.number], study.revise(trial))
            found += violations(network, Process(network), revised, rng)
            study.tell(trial, outputs)
    assert "y is fixed" in found
    assert any("at least" in text for text in found)


def test_a_value_from_cut_intervals_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds over feasible settings say nothing about a setting that is not proven to be feasible."""

    def cut(beliefs: Beliefs, points: Array) -> tuple[Array, Array]:
        network = beliefs.network
        found = enclose_feasible(beliefs, around_setting(beliefs, points), network.limits)
        lower = found.boxes.lower[:, network.objective_column]
        return np.where(found.possible, lower, -np.inf), np.zeros(len(points))

    monkeypatch.setattr(incumbent, "_proven", cut)
    found = []
    for seed in range(4):
        network = limited(certified("controls", seed).network, ("s2", "s2_1"), (-0.1, 0.1))
        found += check(network, Process(network), seed, runs=6)
    assert any("at least" in text for text in found)


# ---- the rule


def costly(structure: str, seed: int, runs: int) -> Study:
    """A study whose stages cost 1, 10 and 100, and whose runs are revised and discarded."""
    network = certified(structure, seed).network
    costs = {"s1": 1.0, "s2": 10.0, "s3": 100.0}
    study = Study(network, tolerance=0.02, algorithm="gpn_ucb")
    for _ in revisions(study, Process(network), runs, costs):
        pass
    return study


def discarded(study: Study) -> int:
    return sum(trial.state == "abandoned" for trial in study.trials)


def test_a_rule_that_asks_for_as_much_as_a_new_run_promises_discards_more(monkeypatch: pytest.MonkeyPatch) -> None:
    study = costly("controls", 0, 40)
    assert study.within_tolerance
    assert discarded(study) < len(study.trials) / 2
    monkeypatch.setattr(decision, "_ENOUGH", 1.0)
    demanding = costly("controls", 0, 25)
    assert discarded(demanding) > discarded(study)
    assert len(demanding.trials) > len(study.trials)


def test_a_rule_that_asks_for_as_much_as_the_gap_stalls(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run never promises all of the gap, and its first stage is cheap: with κ = 1 nearly every run is given up."""
    assert costly("join", 1, 30).within_tolerance
    monkeypatch.setattr(decision, "_ENOUGH", 1.0)
    monkeypatch.setattr(Batch, "next_gain", lambda _, best, bound: bound - best)
    stalled = costly("join", 1, 30 if THOROUGH else 12)
    assert not stalled.within_tolerance
    assert discarded(stalled) > 0.9 * len(stalled.trials)
