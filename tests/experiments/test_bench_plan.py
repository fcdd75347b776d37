"""Tests of the plan of a benchmark: its runs and the validation before the first run."""

import sys

import pytest

from cascada import __version__
from cascada.algorithms import NAMES
from cascada.errors import ArgumentError
from cascada.experiments.bench_plan import BenchJob, BenchSettings, Plan, work
from cascada.experiments.peers import PEERS
from cascada.problems import PROBLEMS, by_name
from tests.experiments.bench_stubs import PLACE

CHAIN = ("certified-chain",)


def test_checkpoints_end_with_the_budget():
    assert BenchSettings(7).checkpoints == (7,)
    assert BenchSettings(30).checkpoints == (10, 20, 30)
    assert BenchSettings(200).checkpoints == (10, 20, 30, 50, 100, 200)


def test_the_initial_design_grows_with_the_dimension():
    assert BenchSettings(7).initial_of(by_name("certified-controls")) == 8
    assert BenchSettings(7, initial=3).initial_of(by_name("certified-controls")) == 3


def test_jobs_are_sorted_for_any_order_of_names():
    plan = Plan(("certified-join", "certified-chain"), ("ei", "auto"), 11, BenchSettings(5))
    jobs = plan.jobs
    assert len(jobs) == 44
    assert jobs[:2] == [BenchJob("certified-chain", "auto", 0), BenchJob("certified-chain", "auto", 1)]
    assert [job.name for job in jobs] == sorted(job.name for job in jobs)


def test_job_names_are_distinct_valid_file_names():
    algorithms = [*NAMES, *PEERS, "a.b:C", "a.b:c", "a.b-c", "A.b:C", "a/b:C"]
    names = [BenchJob(problem, algorithm, 3).name for problem in PROBLEMS for algorithm in algorithms]
    assert len({name.lower() for name in names}) == len(names)
    assert not any(set(name) & set('/\\:*?"<>| ') for name in names)
    assert BenchJob("certified-chain", "gp_ucb", 3).name == "certified-chain--gp_ucb--0003"


def test_problems_of_users_have_file_names_of_their_own():
    names = [BenchJob(problem, "auto", 0).name for problem in ("a.b:c", "a.b-c", "a/b:c", "A.b:c")]
    assert len({name.lower() for name in names}) == len(names)
    assert not any(set(name) & set('/\\:*?"<>| ') for name in names)


def test_longer_runs_have_a_higher_cost():
    assert BenchJob("certified-chain", "auto", 0).cost > BenchJob("certified-chain", "random_search", 0).cost


def test_valid_names_are_accepted():
    Plan(tuple(PROBLEMS), (*NAMES, f"{PLACE}:Failing"), 1, BenchSettings(1)).check()


@pytest.mark.parametrize(
    ("problems", "algorithms", "message"),
    [
        (("nowhere",), ("auto",), "there is no problem 'nowhere'; the built-in ones are certified-chain"),
        (CHAIN, ("atuo",), r"got 'atuo' \(did you mean auto\?\)"),
        (CHAIN, ("best",), r"must be one of auto, .*, a peer \(optuna-tpe, .*\), or 'module:Class'; got 'best'"),
        (("no_such_module:tank",), ("auto",), "problem 'no_such_module:tank' could not be imported"),
        ((f"{PLACE}:PLACE",), ("auto",), "must be a cascada.problems.Problem, or a function .*; got str"),
        (CHAIN, ("no_such_module:Best",), "'no_such_module:Best' could not be imported"),
    ],
)
def test_unknown_names_raise_an_argument_error(problems, algorithms, message):
    with pytest.raises(ArgumentError, match=message):
        Plan(problems, algorithms, 1, BenchSettings(1)).check()


@pytest.mark.parametrize(("peer", "module"), [("optuna-tpe", "optuna"), ("bayes-opt", "bayes_opt")])
def test_a_missing_package_of_a_peer_is_named(monkeypatch, peer, module):
    monkeypatch.setitem(sys.modules, module, None)
    package = PEERS[peer].packages[module]
    with pytest.raises(ArgumentError, match=rf"'{peer}' needs the package {package}, .*Run: pip install {package}\."):
        Plan(CHAIN, (peer,), 1, BenchSettings(1)).check()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: BenchSettings(0), "budget must be a whole number ≥ 1; got 0"),
        (lambda: BenchSettings(True), "budget must be a whole number ≥ 1; got True"),
        (lambda: BenchSettings(5, initial=0), "initial must be a whole number ≥ 1; got 0"),
        (lambda: Plan(CHAIN, ("auto",), 0, BenchSettings(5)), "seeds must be a whole number ≥ 1; got 0"),
        (
            lambda: Plan((), ("auto",), 1, BenchSettings(5)),
            "problems must be at least one name, each given once; got none",
        ),
        (lambda: Plan(CHAIN, ("ei", "ei"), 1, BenchSettings(5)), "algorithms must be .* got ei twice"),
    ],
)
def test_invalid_numbers_raise_an_argument_error(make, message):
    with pytest.raises(ArgumentError, match=message):
        make()


def test_a_record_has_all_fields():
    result = work(BenchSettings(3, gaps=True), BenchJob("certified-chain", "random_search", 2))
    record, cpu = result["record"], result["cpu"]
    problem = by_name("certified-chain")
    assert list(record) == [
        *("problem", "algorithm", "seed", "status", "message", "initial", "budget", "optimum", "cost", "values"),
        *("regret", "replaced", "gaps", "versions"),
    ]
    assert (record["problem"], record["algorithm"], record["seed"]) == ("certified-chain", "random_search", 2)
    assert (record["initial"], record["budget"], record["optimum"]) == (6, 3, problem.optimum[1])
    best = [max(record["values"][: i + 1]) for i in range(9)]
    assert record["regret"] == pytest.approx([problem.optimum[1] - each for each in best], abs=1e-15)
    assert [gap["evaluations"] for gap in record["gaps"]] == [3]
    assert record["versions"]["cascada"] == __version__
    assert set(record["versions"]) == {"cascada", "python", "numpy", "scipy"}
    assert list(cpu) == ["problem", "algorithm", "seed", "ask", "tell"]
    assert (len(cpu["ask"]), len(cpu["tell"])) == (3, 9)
    assert "gaps" not in work(BenchSettings(1), BenchJob("certified-chain", "random_search", 2))["record"]


def test_algorithms_with_the_same_seed_share_the_initial_design():
    settings = BenchSettings(1)
    one, other, failed = (
        work(settings, BenchJob("certified-chain", name, 4))["record"]
        for name in ("random_search", "ei", f"{PLACE}:Failing")
    )
    assert one["values"][:6] == other["values"][:6] == failed["values"][:6]
    assert one["values"][6] != other["values"][6]
