"""Costs, reachable and portions of stages: what is accepted, and which stages are run as one step."""

import math
from typing import Any

import pytest

import cascada as cd
from cascada.network import Network
from cascada.store.description import completed, describe, network_from

X = {"x": cd.Real(0, 1)}


def stage(name: str, parents: list[str] | None = None, **more: Any) -> cd.Stage:
    return cd.Stage(name, controls={f"x{name}": cd.Real(0, 1)}, parents=parents or [], **more)


def test_a_stage_without_declarations_costs_one_and_is_run_only_within_a_run() -> None:
    plain = cd.Stage("f", controls=X)
    assert (plain.cost, plain.reachable, plain.portions) == (1.0, "run", 1)
    assert not Network([plain]).stepwise


def test_a_formula_costs_nothing() -> None:
    assert cd.Stage("f", controls=X, known=True, lipschitz=1.0, function=lambda x: x).cost == 0.0


@pytest.mark.parametrize("declared", [{"cost": 2}, {"reachable": "any"}, {"portions": 2}])
def test_a_formula_takes_none_of_them(declared: dict[str, Any]) -> None:
    with pytest.raises(cd.ArgumentError, match="a known stage is a formula"):
        cd.Stage("f", controls=X, known=True, lipschitz=1.0, function=lambda x: x, **declared)


@pytest.mark.parametrize("cost", [0, -1, math.inf, math.nan, True, "2", None])
def test_a_cost_that_is_no_finite_number_above_zero_is_refused(cost: Any) -> None:
    with pytest.raises(cd.ArgumentError, match=r"stage 'f': cost must be a finite number above 0; got .*small one"):
        cd.Stage("f", controls=X, cost=cost)


@pytest.mark.parametrize("reachable", ["never", None, 1, ["run"]])
def test_an_unknown_word_for_reachable_is_refused(reachable: Any) -> None:
    with pytest.raises(cd.ArgumentError, match="stage 'f': reachable must be 'run', 'stock' or 'any'; got"):
        cd.Stage("f", controls=X, reachable=reachable)


@pytest.mark.parametrize("portions", [0, -1, 1.5, 2.0, math.nan, -math.inf, True, "2"])
def test_portions_that_are_no_whole_number_are_refused(portions: Any) -> None:
    with pytest.raises(cd.ArgumentError, match=r"stage 'f': portions must be a whole number, 1 or more, or math\.inf"):
        cd.Stage("f", controls=X, portions=portions)


@pytest.mark.parametrize("portions", [1, 3, math.inf])
def test_a_network_is_recreated_with_them(portions: float) -> None:
    network = Network([stage("a", portions=portions, cost=0.25), stage("b", ["a"], reachable="stock", cost=10)])
    described = describe(network, {})
    again = network_from(described)
    assert [(s.cost, s.reachable, s.portions) for s in again.stages] == [(0.25, "run", portions), (10.0, "stock", 1)]
    assert describe(again, {}) == described


def test_declarations_at_their_defaults_are_not_described() -> None:
    network = Network([stage("a", cost=1, reachable="run", portions=1)])
    assert not {"cost", "reachable", "portions"} & set(describe(network, {})["stages"][0])
    assert completed(describe(network, {}))["stages"][0]["portions"] == 1


def test_a_stage_that_needs_its_parents_is_run_in_one_step_with_them() -> None:
    a, b = stage("a"), stage("b", ["a"])
    c, d = stage("c", ["b"], reachable="stock"), stage("d", ["c"], reachable="any")
    network = Network([a, b, c, d])
    assert network.stepwise
    assert network.step_groups == ((0, 1), (2,), (3,))


def test_without_reachable_stages_a_complete_run_is_one_step() -> None:
    assert Network([stage("a"), stage("b", ["a"]), stage("c", ["a", "b"])]).step_groups == ((0, 1, 2),)


def test_both_parents_of_a_stage_that_needs_them_are_run_with_it() -> None:
    assert Network([stage("a"), stage("b"), stage("c", ["a", "b"])]).step_groups == ((0, 1, 2),)


def test_groups_that_would_feed_each_other_are_one_step() -> None:
    # b is kept between a and c, but c needs a directly before it.
    network = Network([stage("a"), stage("b", ["a"], reachable="stock"), stage("c", ["a"]), stage("d", ["b", "c"])])
    assert network.step_groups == ((0, 1, 2, 3),)
    apart = Network([stage("a"), stage("b", ["a"], reachable="stock"), stage("c", ["a"])], objective="c.c")
    assert apart.step_groups == ((0, 2), (1,))


def test_a_formula_between_two_stages_is_in_no_group_and_hides_neither() -> None:
    double = cd.Stage("twice", parents=["a"], known=True, lipschitz=2.0, function=lambda a: 2 * a)
    network = Network([stage("a"), double, stage("c", ["twice"])])
    assert network.feeders == ((), (0,), (0,))
    assert network.step_groups == ((0, 2),)
