"""Tests of the adapters of other libraries with fakes, and with the real libraries if they are installed."""

import sys

import numpy as np
import pytest

from cascada.errors import ArgumentError
from cascada.experiments.bench_plan import BenchJob, BenchSettings, work
from cascada.experiments.contestants import PeerContestant, contestant
from cascada.experiments.peers import PEERS, from_unit, require, to_unit
from cascada.space import Choice, Domain, Real
from tests.experiments import fake_peers
from tests.experiments.bench_stubs import two_controls, whole_numbers

NETWORK = two_controls()
DOMAIN = NETWORK.domain


def test_from_unit_inverts_to_unit():
    for unit, point in (([0.0, 0.0], [0.1, -3]), ([1.0, 1.0], [10.0, 5]), ([0.5, 0.5], [1.0, 1])):
        np.testing.assert_allclose(to_unit(DOMAIN, np.array(point)), unit, atol=1e-12)
        np.testing.assert_allclose(from_unit(DOMAIN, np.array(unit)), point, rtol=1e-12)
    assert from_unit(DOMAIN, np.array([1.0, 0.3])).tolist() == [10.0, -1.0]  # −0.6, rounded


@pytest.mark.parametrize(("name", "kind"), [("optuna-tpe", "tpe"), ("optuna-gp", "gp")])
def test_optuna(monkeypatch, name, kind):
    optuna = fake_peers.Optuna(monkeypatch)
    peer = PEERS[name].make(DOMAIN, 7, 1)
    (study,) = optuna.studies
    assert (study.sampler.kind, study.sampler.seed, study.sampler.n_startup_trials) == (kind, 7, 1)
    assert getattr(study.sampler, "deterministic_objective", True)

    peer.tell(np.array([0.5, 3.0]), 1.25)  # a point of the initial design
    asked = peer.ask()
    peer.tell(asked, 2.5)
    peer.ask()
    peer.tell(np.array([0.7, -2.0]), 3.5)  # another point instead
    assert [(trial.state, trial.value) for trial in study.trials] == [
        *(("complete", 1.25), ("complete", 2.5), ("failed", None), ("complete", 3.5)),
    ]
    assert study.trials[0].params == {"x": 0.5, "n": 3}
    assert list(study.trials[1].params.values()) == asked.tolist()
    assert all(isinstance(trial.params["n"], int) for trial in study.trials)
    x, n = study.trials[1].distributions.values()
    assert (x.low, x.high, x.log, n.low, n.high) == (0.1, 10.0, True, -3, 5)


def test_optuna_gets_the_values_of_choices(monkeypatch):
    optuna = fake_peers.Optuna(monkeypatch)
    domain = Domain({"wood": Choice(["oak", "pine", "elm"]), "x": Real(0, 1)})
    peer = PEERS["optuna-tpe"].make(domain, 7, 1)
    peer.tell(np.array([2.0, 0.5]), 1.0)
    asked = peer.ask()
    peer.tell(asked, 2.0)
    first, second = optuna.studies[0].trials
    assert first.params == {"wood": "elm", "x": 0.5}
    assert (second.value, second.params) == (2.0, domain.named(asked))
    assert second.distributions["wood"].choices == ("oak", "pine", "elm")


@pytest.mark.parametrize("name", ["bayes-opt", "botorch-qlogei"])
def test_peers_of_numbers_refuse_choices(name):
    domain = Domain({"x": Real(0, 1), "wood": Choice(["oak", "pine"])})
    with pytest.raises(ArgumentError, match=f"{name!r} has no controls without an order; the process has the choice"):
        PEERS[name].make(domain, 0, 1)


def test_bayesian_optimization(monkeypatch):
    module = fake_peers.BayesOpt(monkeypatch)
    peer = PEERS["bayes-opt"].make(DOMAIN, 7, 1)
    assert module.made["random_state"] == 7
    assert module.made["acquisition_function"].kind == "ei"
    assert module.made["pbounds"] == {"x": (0.0, 1.0), "n": (0.0, 1.0)}
    peer.tell(np.array([1.0, -3.0]), 1.25)
    asked = peer.ask()
    assert DOMAIN.check(asked[None])[0].tolist() == asked.tolist()
    peer.tell(asked, 2.5)
    (first, value), (second, other) = module.registered
    assert (first, value, other) == ({"x": pytest.approx(0.5), "n": 0.0}, 1.25, 2.5)
    np.testing.assert_allclose(from_unit(DOMAIN, np.array(list(second.values()))), asked, rtol=1e-12)


def test_botorch(monkeypatch):
    modules = fake_peers.BoTorch(monkeypatch)
    peer = PEERS["botorch-qlogei"].make(DOMAIN, 7, 2)
    assert modules.seeds == [7]
    peer.tell(np.array([1.0, -3.0]), 1.25)
    peer.tell(np.array([10.0, 5.0]), -4.0)
    asked = peer.ask()
    assert DOMAIN.check(asked[None])[0].tolist() == asked.tolist()
    (made,) = modules.asked
    np.testing.assert_allclose(made.model.points, [[0.5, 0.0], [1.0, 1.0]], atol=1e-12)
    assert made.model.values.tolist() == [[1.25], [-4.0]]
    assert made.best_f == 1.25


@pytest.mark.parametrize(("mirrored", "expected"), [(False, 5.0), (True, -5.0)])
def test_a_peer_receives_only_the_objective_to_maximise(mirrored, expected):
    class Remembering:
        def __init__(self) -> None:
            self.values: list[float] = []

        def ask(self) -> np.ndarray:
            return np.array([1.0])

        def tell(self, point: np.ndarray, value: float) -> None:  # noqa: ARG002
            self.values.append(value)

    peer = Remembering()
    made = PeerContestant(whole_numbers(mirrored=mirrored).network, peer)
    made.tell(np.array([2.0]), {"f": (5.0,)})
    assert peer.values == [expected]
    assert made.ask() is not None
    assert made.certificate() is None


@pytest.mark.parametrize(
    ("name", "fake"),
    [
        ("optuna-tpe", fake_peers.Optuna),
        ("optuna-gp", fake_peers.Optuna),
        ("bayes-opt", fake_peers.BayesOpt),
        ("botorch-qlogei", fake_peers.BoTorch),
    ],
)
def test_a_whole_run_of_a_peer_succeeds(monkeypatch, name, fake):
    fake(monkeypatch)
    require(name)
    record = work(BenchSettings(3), BenchJob("certified-chain", name, 0))["record"]
    assert (record["status"], record["message"], len(record["values"])) == ("budget", None, 9)
    assert (
        record["values"][:6]
        == work(BenchSettings(3), BenchJob("certified-chain", "random_search", 0))["record"]["values"][:6]
    )
    assert set(PEERS[name].packages.values()) <= set(record["versions"])


def test_a_missing_package_raises_an_argument_error(monkeypatch):
    fake_peers.Optuna(monkeypatch)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ArgumentError, match=r"'optuna-gp' needs the package torch.*Run: pip install torch\."):
        contestant(NETWORK, "optuna-gp", 0, 1, 1)


@pytest.mark.filterwarnings("ignore")  # warnings of the libraries
def test_installed_libraries_run():
    """The libraries are optional; the adapters are tested above."""
    for name in PEERS:
        try:
            require(name)
        except ArgumentError:
            continue
        once, again = (work(BenchSettings(4), BenchJob("certified-chain", name, 1))["record"] for _ in range(2))
        assert (once["status"], once["message"], len(once["values"])) == ("budget", None, 10)
        assert once == again
        assert "unknown" not in once["versions"].values()
