"""Settings of all tests, the list of slow ones, and fixtures for tests in several folders."""

import gc
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from cascada.study.reader import Reader
from tests.store.servers import Server, drop_database, new_database, postgres_server
from tests.thorough import examples

# The same examples in every run, and no deadline, which would depend on how busy the machine is.
settings.register_profile("deterministic", derandomize=True, deadline=None, database=None, max_examples=examples(100))
settings.load_profile("deterministic")

TESTS = Path(__file__).parent
# New objects between two collections of garbage. Arrays are in no cycles: with Python's 700, a twentieth of the time
# goes into looking for some.
_ALLOCATIONS = 20_000
# Modules and folders that `make check` leaves out but `make test` runs: browsers, servers, kills, databases, whole
# pages and examples, reproduction, and everything else that takes more than a few seconds.
SLOW = (
    "algorithms/test_baselines_metamorphic.py",
    "algorithms/test_conformance.py",
    "algorithms/test_feasible_search.py",
    "algorithms/test_gpn_mixed.py",
    "algorithms/test_steps.py",
    "algorithms/test_steps_estimated.py",
    "calibration/test_believed_sums.py",
    "calibration/test_likelihood.py",
    "calibration/test_noise.py",
    "calibration/test_probation.py",
    "calibration/test_sums.py",
    "cli/test_bench.py",
    "cli/test_commands.py",
    "cli/test_completion.py",
    "cli/test_corrections.py",
    "cli/test_hard.py",
    "cli/test_reproduce.py",
    "cli/test_secrets.py",
    "cli/test_store_commands.py",
    "cli/test_trust.py",
    "cli/test_worker.py",
    "execution/test_process_pool.py",
    "execution/test_workers.py",
    "experiments/test_bench.py",
    "experiments/test_bench_figures.py",
    "experiments/test_bench_suites.py",
    "experiments/test_figures.py",
    "experiments/test_reproduce.py",
    "fuzz",
    "gp/test_reference.py",
    "integrations",
    "kernels/test_metric.py",
    "network/test_scatter_beliefs.py",
    "network/test_unbounded.py",
    "problems/test_hard.py",
    "problems/test_mixed.py",
    "problems/test_practice.py",
    "problems/test_sample_paths.py",
    "problems/test_sampled_chain.py",
    "process/test_command.py",
    "report/test_errors.py",
    "report/test_figures.py",
    "report/test_image.py",
    "report/test_limits.py",
    "report/test_page.py",
    "report/test_serve.py",
    "soundness",
    "specs/test_toml_file.py",
    "store/test_lost_connection.py",
    "store/test_store_errors.py",
    "study/test_calibrated.py",
    "study/test_catalogue.py",
    "study/test_choices.py",
    "study/test_conformance.py",
    "study/test_corrections.py",
    "study/test_errors.py",
    "study/test_estimated_limits.py",
    "study/test_follower.py",
    "study/test_kill.py",
    "study/test_limits.py",
    "study/test_many_processes.py",
    "study/test_noise.py",
    "study/test_noisy_revision.py",
    "study/test_norms.py",
    "study/test_probable.py",
    "study/test_read_choices.py",
    "study/test_recommendation.py",
    "study/test_revision.py",
    "study/test_revision_soundness.py",
    "study/test_robust.py",
    "study/test_safe.py",
    "study/test_scatter_errors.py",
    "study/test_selection.py",
    "study/test_slices.py",
    "study/test_steps.py",
    "study/test_stored.py",
    "study/test_wrong_assumptions.py",
    "test_docs.py",
    "test_examples.py",
    "test_old_stores.py",
    "test_printed_bounds.py",
    "test_whole_file.py",
    "theory/test_bump.py",
    "theory/test_runs.py",
)
# Slow modules of tests that take several seconds each. They begin first: at the end the workers share many short tests.
FIRST = (
    "test_docs.py",
    "soundness",
    "integrations",
    "study/test_kill.py",
    "experiments",
    "test_examples.py",
    "report/test_serve.py",
    "test_old_stores.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark slow tests, and put the longest of them first."""
    slow = [TESTS / name for name in SLOW]
    gone = [path.name for path in slow if not path.exists()]
    if gone:
        raise pytest.UsageError(f"SLOW in tests/conftest.py names missing files: {', '.join(gone)}. Correct it.")
    modules = {item.path for item in items}
    slow_modules = {module for module in modules if any(module.is_relative_to(path) for path in slow)}
    for item in items:
        if item.path in slow_modules:
            item.add_marker(pytest.mark.slow)
    first = [TESTS / name for name in FIRST]
    places = {
        module: next((i for i, one in enumerate(first) if module.is_relative_to(one)), len(first)) for module in modules
    }
    items.sort(key=lambda item: (places[item.path], item.path not in slow_modules))  # otherwise in the same order


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep modules and tests, 700,000 objects that stay until the end, out of garbage collection."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(_ALLOCATIONS)
        gc.enable()


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """Yield a PostgreSQL server, the same for all tests of this process."""
    with postgres_server() as running:
        yield running


@pytest.fixture
def postgres_url(server: Server) -> Iterator[str]:
    """Yield the URL of an empty database."""
    url = new_database(server.url)
    yield url
    drop_database(url)


@pytest.fixture
def no_probable_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Results of processes with unknown norms have no probable gap; it takes as long as several runs."""
    monkeypatch.setattr(Reader, "probable_gap_if_defined", lambda _self: None)
