"""Runs in an executor of the user: same results as in the calling thread, in parallel, and no result is lost."""

import multiprocessing
import pickle
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any

import pytest

from cascada.algorithms import GPNUCB, NonAdaptive, RandomSearch
from cascada.errors import ArgumentError
from cascada.network import StageError
from cascada.process import Process
from cascada.study import Result, Study, Trial, maximise, minimise
from tests.execution.processes import broken, deadly, heat, network, quench, too_hot
from tests.waiting import LONG

NETWORK = network()
FUNCTIONS: list[Callable[..., float]] = [heat, quench]


@pytest.fixture(scope="module")
def workers() -> Iterator[ProcessPoolExecutor]:
    # Fresh interpreters: forking a process that has threads is not safe.
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield pool


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as pool:
        yield pool


class Here(Executor):
    """Executor that runs a call at once, in this thread; calls with a number in `errors` fail with that error."""

    def __init__(self, errors: dict[int, Exception] | None = None) -> None:
        self.errors = errors or {}
        self.count = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            if self.count in self.errors:
                raise self.errors[self.count]
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        self.count += 1
        return future


def states(result: Result) -> list[str]:
    return [trial.state for trial in result.trials]


def same(one: Result, other: Result) -> None:
    assert one.trials == other.trials
    assert (one.status, one.gap, one.recommended) == (other.status, other.gap, other.recommended)


# ---- the same results


@pytest.mark.parametrize("algorithm", [NonAdaptive(), RandomSearch(), GPNUCB()], ids=str)
def test_processes_and_threads_have_the_same_result_as_the_calling_thread(
    algorithm: Any, workers: ProcessPoolExecutor, threads: ThreadPoolExecutor
) -> None:
    for optimise in (maximise, minimise):
        plain = optimise(NETWORK, FUNCTIONS, budget=6, algorithm=algorithm, seed=2)
        for executor in (workers, threads, Here()):
            jobs = 1 if algorithm == GPNUCB() else None  # an adaptive algorithm depends on the order of results
            options: dict[str, Any] = {"algorithm": algorithm, "seed": 2, "executor": executor, "jobs": jobs}
            same(optimise(NETWORK, FUNCTIONS, budget=6, **options), plain)


@pytest.mark.parametrize("functions", [[heat, too_hot], [broken, quench]], ids=["late", "early"])
def test_a_failing_stage_fails_only_its_run(
    functions: Any, workers: ProcessPoolExecutor, threads: ThreadPoolExecutor
) -> None:
    plain = maximise(NETWORK, functions, budget=16, algorithm=NonAdaptive())
    assert "failed" in states(plain)
    for executor in (workers, threads):
        other = maximise(NETWORK, functions, budget=16, algorithm=NonAdaptive(), executor=executor)
        # After too many failures both stop, but the executor has got more trials by then.
        assert other.trials[: len(plain.trials)] == plain.trials
        assert (other.status, other.recommended, other.gap) == (plain.status, plain.recommended, plain.gap)
    failed = next(trial for trial in plain.trials if trial.state == "failed")
    assert failed.reason is not None
    assert ("too hot" in failed.reason and "heat" in failed.outputs) or "broken" in failed.reason


def test_errors_of_stages_can_be_pickled() -> None:
    with pytest.raises(StageError) as caught:
        Process(NETWORK, [heat, too_hot])({"x": 0.4, "y": -0.3})
    error = caught.value
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again)) == (StageError, str(error))
    assert (again.stage, again.controls, again.outputs) == (error.stage, error.controls, error.outputs)


# ---- parallel or sequential


def test_all_runs_of_a_design_run_in_parallel(threads: ThreadPoolExecutor) -> None:
    """Each run waits for three others."""
    barrier = threading.Barrier(4)

    def meets(x: float, y: float) -> float:
        barrier.wait(LONG)
        return heat(x, y)

    for algorithm in (NonAdaptive(), RandomSearch()):
        result = maximise(NETWORK, [meets, quench], budget=8, algorithm=algorithm, executor=threads)
        assert states(result) == ["complete"] * 8


@pytest.mark.parametrize("jobs", [1, 2])
def test_jobs_limits_the_number_of_parallel_runs(threads: ThreadPoolExecutor, jobs: int) -> None:
    """The first runs wait until `jobs` runs are running, and then for another one, which must not start."""
    lock, enough, too_many = threading.Lock(), threading.Event(), threading.Event()
    running = 0

    def counted(x: float, y: float) -> float:
        nonlocal running
        with lock:
            running += 1
            if running >= jobs:
                enough.set()
            if running > jobs:
                too_many.set()
        assert enough.wait(LONG)
        too_many.wait(0.1)
        with lock:
            running -= 1
        return heat(x, y)

    result = maximise(NETWORK, [counted, quench], budget=5, executor=threads, jobs=jobs)
    assert states(result) == ["complete"] * 5
    assert not too_many.is_set()


def test_an_adaptive_algorithm_has_a_run_for_every_worker(threads: ThreadPoolExecutor) -> None:
    barrier = threading.Barrier(4)

    def meets(x: float, y: float) -> float:
        barrier.wait(LONG)
        return heat(x, y)

    result = maximise(NETWORK, [meets, quench], budget=8, executor=threads)
    assert states(result) == ["complete"] * 8
    assert len({tuple(trial.controls.values()) for trial in result.trials}) == 8


def test_a_free_worker_gets_a_new_point_at_once(threads: ThreadPoolExecutor) -> None:
    """The first run ends only after three others, two of which are chosen after it has begun."""
    others = threading.Semaphore(0)
    calls: list[float] = []

    def first_is_slow(x: float, y: float) -> float:
        calls.append(x)
        if len(calls) == 1:
            assert all(others.acquire(timeout=LONG) for _ in range(3))
        else:
            others.release()
        return heat(x, y)

    result = maximise(NETWORK, [first_is_slow, quench], budget=4, executor=threads, jobs=2)
    assert states(result) == ["complete"] * 4


def test_an_executor_of_unknown_size_needs_the_number_of_runs() -> None:
    with pytest.raises(ArgumentError, match=r"the number of workers of Here is unknown; .* jobs="):
        maximise(NETWORK, FUNCTIONS, budget=3, executor=Here())
    assert states(maximise(NETWORK, FUNCTIONS, budget=3, executor=Here(), jobs=2)) == ["complete"] * 3


@pytest.mark.parametrize("jobs", [0, -1, 1.5, True, "2"])
def test_jobs_must_be_a_whole_number_above_0(jobs: Any) -> None:
    with pytest.raises(ArgumentError, match="jobs must be a whole number ≥ 1; got"):
        maximise(NETWORK, FUNCTIONS, budget=3, jobs=jobs)


def test_results_of_a_design_are_recorded_in_the_order_of_trial_numbers(threads: ThreadPoolExecutor) -> None:
    """The first run is the last to finish."""
    others = threading.Semaphore(0)
    asked = Study(NETWORK, algorithm=NonAdaptive(runs=4)).ask()
    assert asked is not None
    first = asked.controls

    def reversed_order(x: float, y: float) -> float:
        if {"x": x, "y": y} == first:
            assert all(others.acquire(timeout=LONG) for _ in range(3))
        else:
            others.release()
        return heat(x, y)

    seen: list[list[int]] = []

    def watch(study: Study) -> None:
        seen.append([trial.number for trial in study.trials if trial.state == "complete"])

    result = maximise(
        NETWORK, [reversed_order, quench], budget=4, algorithm=NonAdaptive(), executor=threads, callbacks=[watch]
    )
    assert seen == [[0], [0, 1], [0, 1, 2], [0, 1, 2, 3]]
    same(result, maximise(NETWORK, FUNCTIONS, budget=4, algorithm=NonAdaptive()))


# ---- early end


@pytest.mark.parametrize(
    ("options", "status"),
    [({"tolerance": 100.0}, "tolerance"), ({"callbacks": [lambda study: len(ended(study)) == 1]}, "stopped")],
    ids=["tolerance", "callback"],
)
def test_runs_that_have_not_started_are_cancelled(options: dict[str, Any], status: str) -> None:
    gate, calls = threading.Event(), []

    def gated(x: float, y: float) -> float:
        calls.append((x, y))
        if len(calls) > 1:
            gate.wait(LONG)
        return heat(x, y)

    with ThreadPoolExecutor(1) as pool:
        result = maximise(NETWORK, [gated, quench], budget=20, algorithm=NonAdaptive(), executor=pool, **options)
        gate.set()
    assert (result.status, states(result)) == (status, ["complete"] + ["waiting"] * 19)
    assert len(calls) <= 2


def ended(study: Study) -> list[Trial]:
    return [trial for trial in study.trials if trial.state != "running"]


def test_an_interrupt_cancels_runs_that_have_not_started_and_keeps_results() -> None:
    """The third of ten runs is interrupted; another worker has finished the fourth, and the fifth is running."""
    gate, fourth, calls = threading.Event(), threading.Event(), []
    points = [trial.controls for trial in maximise(NETWORK, FUNCTIONS, budget=10, algorithm=NonAdaptive()).trials]

    def interrupted(x: float, y: float) -> float:
        number = points.index({"x": x, "y": y})
        calls.append(number)
        if number == 2:
            fourth.wait(LONG)
            raise KeyboardInterrupt
        if number > 3:
            fourth.set()  # only one worker is left for runs 3, 4, …, so run 3 has ended
            gate.wait(LONG)
        return heat(x, y)

    with ThreadPoolExecutor(2) as pool:
        result = maximise(NETWORK, [interrupted, quench], budget=10, algorithm=NonAdaptive(), executor=pool)
        gate.set()
    assert result.status == "interrupted"
    assert states(result) == ["complete", "complete", "waiting", "complete"] + ["waiting"] * 6
    assert len(calls) <= 6
    assert result.gap_kind == "proven"
    assert result.recommendation is not None


def test_a_study_stops_after_five_failures_in_a_row(threads: ThreadPoolExecutor) -> None:
    result = maximise(NETWORK, [broken, quench], budget=30, algorithm=NonAdaptive(), executor=threads)
    assert (result.status, states(result)[:5]) == ("failing", ["failed"] * 5)


@pytest.mark.parametrize("algorithm", [NonAdaptive(), RandomSearch(), GPNUCB()], ids=str)
def test_a_broken_pool_keeps_earlier_results(algorithm: Any) -> None:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        result = maximise(NETWORK, [deadly, quench], budget=9, algorithm=algorithm, seed=5, executor=pool)
    assert result.status == "broken"
    plain = maximise(NETWORK, FUNCTIONS, budget=9, algorithm=algorithm, seed=5)
    before = states(result).index("failed")
    assert result.trials[:before] == plain.trials[:before]
    assert set(states(result)[before:]) == {"failed"}
    assert all("the executor broke: " in (trial.reason or "") for trial in result.trials[before:])
    assert "The executor broke; what was found so far is kept." in str(result)


def test_a_run_that_the_executor_loses_has_failed() -> None:
    """As with Dask, where a worker that dies loses only its own run."""
    executor = Here({2: OSError("the worker is gone")})
    result = maximise(NETWORK, FUNCTIONS, budget=5, algorithm=NonAdaptive(), executor=executor)
    assert (result.status, states(result)) == ("budget", ["complete", "complete", "failed", "complete", "complete"])
    assert result.trials[2].reason == "the executor lost it: OSError: the worker is gone"


# ---- invalid arguments


def test_functions_that_cannot_be_pickled_raise_an_argument_error(workers: ProcessPoolExecutor) -> None:
    local: list[Callable[..., float]] = [heat, lambda heat: 2 * heat]
    with pytest.raises(ArgumentError, match=r"could not be sent to the executor: .*top level of a module"):
        maximise(NETWORK, local, budget=3, algorithm=NonAdaptive(), executor=workers)


def test_an_executor_that_is_shut_down_raises_an_argument_error() -> None:
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    with pytest.raises(ArgumentError, match=r"executor must take work, but it raised: .*not shut down"):
        maximise(NETWORK, FUNCTIONS, budget=3, executor=pool)


@pytest.mark.parametrize("optimise", [maximise, minimise])
def test_an_executor_of_another_type_raises_an_argument_error(optimise: Any) -> None:
    with pytest.raises(ArgumentError, match=r"executor must be a concurrent.futures.Executor, or None; got 4"):
        optimise(NETWORK, FUNCTIONS, budget=3, executor=4)


@pytest.mark.parametrize("stop", ["callback", "tolerance"])
def test_finished_runs_are_recorded_when_the_study_stops(stop: str) -> None:
    """All ten runs have ended before the first result is recorded."""
    options: dict[str, Any] = {"tolerance": 1e9} if stop == "tolerance" else {"callbacks": [lambda _: True]}

    class AtOnce(Executor):
        def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
            future: Future[Any] = Future()
            future.set_result(fn(*args, **kwargs))
            return future

    result = maximise(
        NETWORK, FUNCTIONS, budget=10, algorithm=NonAdaptive(), executor=AtOnce(), progress=False, **options
    )
    assert result.status == ("tolerance" if stop == "tolerance" else "stopped")
    assert states(result) == ["complete"] * 10


def test_an_error_that_only_mentions_pickles_is_not_a_pickling_error() -> None:
    class Odd(Executor):
        def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:  # noqa: ARG002
            future: Future[Any] = Future()
            future.set_exception(OSError("pickled cucumbers are out of stock"))
            return future

    result = maximise(NETWORK, FUNCTIONS, budget=2, algorithm=NonAdaptive(), executor=Odd(), progress=False)
    assert states(result) == ["failed"] * 2
