"""Faulty algorithms, small problems and quick jobs for tests of the benchmark, importable by worker processes."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

import cascada as cd
from cascada.algorithms import RandomSearch, Situation, Suggestion
from cascada.arrays import Array
from cascada.experiments import bench_plan
from cascada.experiments.bench_plan import BenchJob, BenchSettings
from cascada.network import Network
from cascada.problems import Problem

PLACE = "tests.experiments.bench_stubs"


class _Stub:
    def recommend(self, situation: Situation) -> Array | None:  # noqa: ARG002
        return None


class Failing(_Stub):
    """Random search that raises after 8 runs, which is its second one on a chain of two controls."""

    def suggest(self, situation: Situation, rng: np.random.Generator) -> Suggestion:
        if situation.trial >= 7:
            raise ZeroDivisionError("a fault\nof this algorithm")
        return RandomSearch().suggest(situation, rng)


class Sometimes(_Stub):
    """An algorithm that raises unless a file exists."""

    def suggest(self, situation: Situation, rng: np.random.Generator) -> Suggestion:
        if not Path(os.environ["CASCADA_TEST_MAY_GO_ON"]).exists():
            raise ZeroDivisionError("not yet")
        return RandomSearch().suggest(situation, rng)


class Repeating(_Stub):
    """An algorithm that always suggests the first evaluated point."""

    def suggest(self, situation: Situation, rng: np.random.Generator) -> Suggestion:  # noqa: ARG002
        return Suggestion(situation.data[0, : situation.domain.dimension])


class Ending(_Stub):
    """An algorithm that suggests one point and then none."""

    def suggest(self, situation: Situation, rng: np.random.Generator) -> Suggestion:
        return Suggestion(None) if situation.trial > 6 else RandomSearch().suggest(situation, rng)


def logged(log: str, settings: BenchSettings, job: BenchJob) -> dict[str, Any]:
    """The real work, which also writes a line to a file for every job."""
    with Path(log).open("a", encoding="utf-8") as file:
        file.write(f"{job.name}\n")
    return bench_plan.work(settings, job)


@dataclass(frozen=True)
class Small:
    """The parts of a problem that a run uses."""

    name: str
    network: Network
    optimum: tuple[Array, float]


def whole_numbers(high: int = 4, mirrored: bool = False) -> Problem:
    """f(n) = n (4 − n) + 1 for n = 0, …, `high`; if mirrored, it is minimised."""

    def function(n: float) -> float:
        return n * (4 - n) + 1

    kernel = cd.SquaredExponential(2.0)
    stage = cd.Stage("f", controls={"n": cd.Integer(0, high)}, kernel=kernel, norm_bound=50.0, function=function)
    network = cd.chain(stage).mirrored() if mirrored else cd.chain(stage)
    best = float(high) if mirrored else 2.0
    return cast(Problem, Small("whole numbers", network, (np.array([best]), function(best))))


def two_controls() -> Network:
    """A logarithmic control and a whole number, for points of peers."""
    kernel = cd.SquaredExponential(1.0)
    controls: dict[str, Any] = {"x": cd.Real(0.1, 10.0, log=True), "n": cd.Integer(-3, 5)}
    return cd.chain(cd.Stage("f", controls=controls, kernel=kernel, norm_bound=1.0))


def record(problem: str, algorithm: str, seed: int, regret: list[float], **changes: Any) -> dict[str, Any]:
    """A record with these simple regrets for the optimum 1; the first two belong to the initial design."""
    made: dict[str, Any] = {
        "problem": problem,
        "algorithm": algorithm,
        "seed": seed,
        "status": "budget",
        "message": None,
        "initial": 2,
        "budget": len(regret) - 2,
        "optimum": 1.0,
        "values": [1.0 - each for each in regret],
        "regret": regret,
        "cost": 3.0,
        "replaced": 0,
        "versions": {"cascada": "0"},
    }
    return made | changes


def cpu(of: dict[str, Any], ask: list[float], tell: list[float]) -> dict[str, Any]:
    """CPU seconds of a record; `tell` excludes the initial design."""
    names = {name: of[name] for name in ("problem", "algorithm", "seed")}
    return names | {"ask": ask, "tell": [9.0] * of["initial"] + tell}
