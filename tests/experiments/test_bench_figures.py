"""Tests of the figures of a benchmark: one per problem, the same bytes for the same records."""

import sys

import numpy as np
import pytest

from cascada.errors import ArgumentError
from cascada.experiments.bench_figures import _figure, draw
from cascada.experiments.bench_plan import BenchSettings, Plan, plain_name
from tests.experiments.bench_stubs import record
from tests.missing import need_module

NAMES = tuple(f"algorithm-{i}" for i in range(9))
PLAN = Plan(("here", "there", "nowhere"), NAMES, 3, BenchSettings(3))


@pytest.fixture(scope="module")
def records():
    rng = np.random.default_rng(0)
    made = []
    for problem in ("here", "there"):
        for name in NAMES:
            for seed in range(3):
                regret = np.minimum.accumulate(rng.uniform(size=5)).tolist()
                made.append(record(problem, name, seed, [*regret[:-1], 0.0]))
    made[0] |= {"status": "failed", "regret": [1.0]}
    return [*made, record("nowhere", NAMES[0], 0, [1.0], status="failed")]


def test_every_problem_with_runs_has_a_figure(records, tmp_path):
    need_module("matplotlib", "paper")
    written = draw(PLAN, records, tmp_path)
    names = [f"regret-{plain_name(problem)}.{kind}" for problem in ("here", "there") for kind in ("pdf", "png")]
    assert [path.name for path in written] == names
    before = [path.read_bytes() for path in written]
    assert [path.read_bytes() for path in draw(PLAN, records, tmp_path)] == before


def test_curves_are_medians_with_a_floor(records):
    need_module("matplotlib", "paper")
    found = [r for r in records if r["problem"] == "here"]
    axes = _figure(PLAN, "here", found).axes[0]
    assert axes.get_yscale() == "log"
    lines = axes.get_lines()
    assert [line.get_label() for line in lines] == [f"{NAMES[0]} (2 of 3 runs)", *NAMES[1:]]
    assert len({(line.get_color(), line.get_linestyle()) for line in lines}) == 9
    regrets = np.array([r["regret"][1:] for r in found if r["algorithm"] == NAMES[1]])
    drawn = np.asarray(lines[1].get_ydata())
    np.testing.assert_allclose(drawn[:-1], np.median(regrets, axis=0)[:-1])
    assert 0 < drawn[-1] < 1e-8
    np.testing.assert_array_equal(lines[1].get_xdata(), [0, 1, 2, 3])


def test_without_matplotlib(records, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ArgumentError, match=r"pip install 'cascada\[paper\]', or leave them out: --no-plots"):
        draw(PLAN, records, tmp_path)
