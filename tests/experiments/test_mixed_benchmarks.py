"""Tests of the benchmarks of choices and contexts: short runs, and tables of made-up records."""

import numpy as np
import pytest

from benchmarks import contexts, mixed
from cascada.problems import MIXED


def test_a_run_of_cascada_records_the_regret_after_every_run() -> None:
    record = mixed.run("func2c", mixed.OURS, 0, 12)
    assert len(record.regrets) == 12
    assert all(a >= b >= 0 for a, b in zip(record.regrets, record.regrets[1:], strict=False))


def test_the_table_of_mixed_problems_pairs_seeds() -> None:
    def made(contestant: str, seed: int, last: float) -> mixed.Record:
        return mixed.Record("func2c", contestant, seed, 2, [1.0, last], 3.0)

    records = [
        *(made(mixed.OURS, seed, 0.1) for seed in range(3)),
        *(made("optuna-tpe", seed, 0.2) for seed in (1, 2)),
    ]
    ours, other = mixed.rows_of(records)
    assert ours[:7] == ["func2c", "cascada", "3", "1", "0.1", "–", "–"]
    assert other[:6] == ["func2c", "optuna-tpe", "2", "1", "0.2", "2 : 0"]
    assert other[6].startswith("0.5 [")
    assert "| func2c |" in mixed.report("the command", records).replace("  ", " ").replace("  ", " ")
    assert set(MIXED) == {"func2c", "func3c", "paint-line", "fermenter"}


@pytest.mark.parametrize("contestant", ["context", "fixed", "fresh-1"])
def test_a_stream_of_contexts_has_a_regret_at_each(contestant: str) -> None:
    record = contexts.run("certified-controls", contestant, 0, 3)
    assert len(record.regrets) == 3
    assert min(record.regrets) > -1e-6
    assert record.runs == 3


def test_the_best_value_at_a_context_is_that_of_a_dense_grid() -> None:
    truth, values, best = contexts.truth_of("certified-controls", 0)
    axis = np.linspace(-2, 2, 81)
    x, z = (part.ravel() for part in np.meshgrid(axis, axis))
    for value, top in zip(values[:3], best, strict=False):
        points = np.column_stack([x, np.full_like(x, value), z])
        dense = float(truth.problem.objective(points).max())
        assert dense - 1e-9 <= top <= dense + 0.02
