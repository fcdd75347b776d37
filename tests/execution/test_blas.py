"""A study computes on one BLAS thread, and the user's functions run without that limit."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from cascada.algorithms import RandomSearch, Situation, Suggestion
from cascada.execution.blas import on_one_thread
from cascada.kernels import Matern
from cascada.network import Network, Stage
from cascada.space import Real
from cascada.study import Study


def threads() -> set[int]:
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    before = threadpool_limits(2, user_api="blas")
    assert threads() == {2}
    yield
    before.restore_original_limits()


@dataclass(frozen=True)
class Watched(RandomSearch):
    """Algorithm that records the number of BLAS threads."""

    seen: list[set[int]] = field(default_factory=list)

    def suggest(self, situation: Situation, rng: np.random.Generator) -> Suggestion:
        self.seen.append(threads())
        return super().suggest(situation, rng)


def test_algorithms_have_one_blas_thread_and_stages_as_many_as_before() -> None:
    ran: list[set[int]] = []

    def stage(x: float) -> float:
        ran.append(threads())
        return -x * x

    network = Network([Stage("y", {"x": Real(0, 1)}, kernel=Matern(2.5, 0.5), norm_bound=3.0, function=stage)])
    algorithm = Watched()
    study = Study(network, algorithm=algorithm)
    study.optimise(budget=3, progress=False)
    study.certificate(cells=10)
    assert algorithm.seen == [{1}] * 3
    assert ran == [{2}] * 3
    assert threads() == {2}


def test_the_limit_ends_after_an_error() -> None:
    @on_one_thread
    def fails() -> None:
        raise ValueError(threads())

    with pytest.raises(ValueError, match=r"\{1\}"):
        fails()
    assert threads() == {2}


def test_the_limit_ends_after_concurrent_computations() -> None:
    @on_one_thread
    def computes(n: int) -> float:
        return float(np.linalg.norm(np.linalg.inv(np.eye(n) + 1.0)))

    computes(3)  # finds the BLAS libraries once, before the threads start
    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(computes, [40] * 200))) == 1
    assert threads() == {2}
