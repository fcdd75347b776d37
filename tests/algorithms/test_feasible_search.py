"""The search among feasible settings: the tightened run after an infeasible one, candidates, pending runs."""

from unittest import mock

import numpy as np
import pytest

from cascada.algorithms import GPNUCB, GPNMixed, feasible_search
from cascada.algorithms.feasible_search import candidate_bounds
from cascada.kernels import Matern
from cascada.network import Network, Stage
from cascada.network.limits import margins, satisfied
from cascada.problems.limited_problem import LimitKind, limited
from cascada.search.feasible import margin_scales
from cascada.space import Real
from cascada.study import Study
from tests.soundness.safe import outputs

_LIMIT = 0.7  # the largest feasible control of `rough`


def load(x: float) -> float:
    """Flat where it satisfies the limit, and steep beyond."""
    return 0.02 * (x - _LIMIT) - 0.002 if x <= _LIMIT else 1.5 * (x - _LIMIT) ** 0.6 - 0.002


def rough() -> Network:
    """A process whose optimum lies on the limit, and whose limited output can hardly be proven from nearby runs."""
    limited_stage = Stage(
        "load",
        controls={"x": Real(0, 1)},
        kernel=Matern(0.5),
        norm_bound=2.5,
        lipschitz=1e4,
        limits={"load": (None, 0.0)},
        function=load,
    )
    value = Stage("value", controls={"x": Real(0, 1)}, known=True, function=lambda x: x, interval=lambda x: x)
    return Network([limited_stage, value], objective="value")


def gap_after(runs: int) -> float:
    study = Study(rough(), algorithm=GPNUCB(cells=600))
    for _ in range(runs):
        trial = study.ask()
        assert trial is not None
        study.tell(trial, {"load": load(float(trial.controls["x"])), "value": trial.controls["x"]})
    gap = study.certificate().gap
    assert gap is not None
    return gap


def test_runs_inside_the_limits_end_a_stall() -> None:
    """Without them, all runs miss the limit by a hair on the wrong side, and the best feasible run stays as it is."""
    with mock.patch.object(feasible_search, "_inside", return_value=None):
        assert gap_after(30) > 0.19
    assert gap_after(30) < 0.05


@pytest.mark.parametrize("kind", ["cut", "band", "none"])
def test_candidates_are_bounded_one_by_one(kind: LimitKind) -> None:
    problem = limited("join", 2, kind)
    network, domain = problem.network, problem.network.domain
    candidates = np.random.default_rng(1).uniform(domain.lower, domain.upper, (150, domain.dimension))
    values = problem.problem.values(candidates)
    study = Study(network, candidates=candidates, tolerance=0.0)
    feasible = satisfied(network.limits, values)
    for _ in range(12):
        trial = study.ask()
        if trial is None:
            break
        study.tell(trial, outputs(problem, dict(trial.controls)))
        upper, margin = candidate_bounds(study.beliefs, candidates, margin_scales(study.beliefs))
        assert (upper[feasible] >= values[feasible, network.objective_column]).all()
        assert (margin >= margins(network.limits, values)[:, 0]).all()
    certificate = study.certificate()
    if kind == "none":
        assert certificate.answer == "infeasible"
    else:
        best = float(values[feasible, network.objective_column].max())
        assert certificate.bound is not None
        assert certificate.reached is not None
        assert certificate.gap is not None
        assert certificate.bound >= best
        assert certificate.gap >= best - certificate.reached


@pytest.mark.parametrize("algorithm", [GPNUCB(cells=500), GPNMixed(cells=500)])
def test_pending_runs_have_no_part_in_a_proof(algorithm: GPNUCB | GPNMixed) -> None:
    """Trials that were asked for at the same time differ, and the certificate is that without them."""
    problem = limited("chain", 0, "cut")
    study = Study(problem.network, algorithm=algorithm)
    for _ in range(3):
        trial = study.ask()
        assert trial is not None
        study.tell(trial, outputs(problem, dict(trial.controls)))
    before = study.certificate()
    asked = study.ask(3)
    assert len({tuple(trial.controls.values()) for trial in asked}) == 3
    after = study.certificate()
    assert (after.bound, after.gap, after.margin) == (before.bound, before.gap, before.margin)
