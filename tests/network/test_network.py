"""Wiring of stages, and the errors of wrong wiring."""

from collections.abc import Callable
from itertools import permutations
from typing import Any

import numpy as np
import pytest

from cascada.errors import ArgumentError
from cascada.kernels import BlockKernel, Matern, Separable, SquaredExponential
from cascada.network import Network, Stage, chain, feed_forward, multi_output_chain, prior_beliefs
from cascada.space import Real
from tests.network.cases import SE, X, Y, stage

JOINT = Separable(SE)


# ---- wiring


@pytest.mark.parametrize("make", [chain, feed_forward, multi_output_chain])
def test_each_stage_follows_the_one_before(make: Callable[..., Network]) -> None:
    network = make(stage("f", controls=X), stage("g", controls=Y), stage("h"))
    f, g, h = network.nodes
    assert [node.parents for node in (f, g, h)] == [(), ("f",), ("g",)]
    assert (f.input_names, f.inputs, f.columns) == (("x",), (0,), (2,))
    assert (g.input_names, g.inputs, g.columns) == (("f", "y"), (2, 1), (3,))  # parents' outputs, then controls
    assert (h.input_names, h.inputs, h.columns) == (("g",), (3,), (4,))
    assert (network.controls, network.width) == (("x", "y"), 5)
    assert (network.objective, network.objective_column, network.sign) == (("h", "h"), 4, 1)


def test_a_stage_of_a_chain_may_name_its_parents() -> None:
    network = chain(stage("f", controls=X), stage("g", controls=Y, parents=[]), stage("h", parents=["f", "g"]))
    assert [node.parents for node in network.nodes] == [(), (), ("f", "g")]
    assert network.node("h").input_names == ("f", "g")


def test_a_network_has_only_the_named_parents() -> None:
    network = Network([stage("f", controls=X), stage("g", controls=Y)], objective="g")
    assert [node.parents for node in network.nodes] == [(), ()]


def test_stages_with_several_outputs_pass_on_all_or_the_named_ones() -> None:
    f = stage("f", controls=X, outputs=["u", "v", "w"])
    every, one = stage("g", parents="f"), stage("h", parents=["f.w", "g", "f.u"])
    network = Network([f, every, one])
    assert network.node("g").input_names == ("u", "v", "w")
    assert (network.node("h").input_names, network.node("h").inputs) == (("w", "g", "u"), (3, 4, 1))
    assert network.node("h").parents == ("f", "g")


def test_a_shared_control_is_one_coordinate() -> None:
    network = chain(stage("f", controls=X | Y), stage("g", controls=Y), stage("h", controls=X))
    assert network.controls == ("x", "y")
    assert network.node("g").inputs == (2, 1)
    assert network.node("h").inputs == (3, 0)


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_stages_come_in_any_order(order: tuple[int, ...]) -> None:
    stages = [
        stage("f", controls=X, outputs=["u", "v"]),
        stage("a", parents=["f.u"]),
        stage("b", parents=["f.v"], controls=Y),
        stage("end", parents=["a", "b"]),
    ]
    network = Network([stages[i] for i in order])
    placed: set[str] = set()
    for node in network.nodes:
        assert placed.issuperset(node.parents)
        placed.add(node.stage.name)
    assert [one.name for one in network.stages] == [stages[i].name for i in order]
    columns = [column for node in network.nodes for column in node.columns]
    assert columns == list(range(2, 7))
    end = network.node("end")
    assert end.inputs == network.node("a").columns + network.node("b").columns
    assert network.objective == ("end", "end")


@pytest.mark.parametrize(
    ("objective", "found"), [("f.v", ("f", "v")), ("g", ("g", "g")), ("g.g", ("g", "g")), (None, ("g", "g"))]
)
def test_the_objective_is_the_only_end_or_the_named_output(objective: str | None, found: tuple[str, str]) -> None:
    network = chain(stage("f", controls=X, outputs=["u", "v"]), stage("g"), objective=objective)
    assert network.objective == found
    node = network.node(found[0])
    assert network.objective_column == node.columns[node.stage.outputs.index(found[1])]


def test_mirroring_twice_changes_nothing_and_once_only_the_sign() -> None:
    network = chain(stage("f", controls=X), stage("g"))
    mirror = network.mirrored()
    assert (network.sign, mirror.sign, mirror.mirrored().sign) == (1, -1, 1)
    assert mirror.nodes is network.nodes
    assert (mirror.objective_column, mirror.width) == (network.objective_column, network.width)


def test_one_number_applies_to_every_modelled_output() -> None:
    one = stage("f", controls=X, outputs=["u", "x", "v"], passes=["x"], norm_bound=3.0, lipschitz=[1, 2], offset=0.5)
    assert one.modelled == ("u", "v")
    assert one.modelled_positions == [0, 2]
    np.testing.assert_array_equal(one.norm_bound, [3.0, 3.0])
    np.testing.assert_array_equal(one.lipschitz, [1.0, 2.0])
    np.testing.assert_array_equal(one.offset, [0.5, 0.5])
    assert not one.joint
    assert chain(one, objective="f.u").nodes[0].modelled_columns == [1, 3]


def test_the_objective_of_a_run_is_found_among_its_outputs() -> None:
    network = chain(stage("f", controls=X, outputs=["u", "v"]), stage("g"), objective="f.v").mirrored()
    assert network.objective_of({"f": (1.0, 2.0), "g": (3.0,)}) == 2.0
    assert network.objective_of({"g": (3.0,)}) is None


def test_a_joint_norm_is_one_number() -> None:
    one = stage("f", controls=X, outputs=["u", "v"], kernel=JOINT)
    assert one.joint
    assert one.norm_bound is not None
    assert one.norm_bound.shape == ()


def test_a_single_name_means_one_parent_or_one_output() -> None:
    one = stage("f", parents="g", outputs="u")
    assert (one.parents, one.outputs) == (("g",), ("u",))


def test_stages_that_need_no_kernel() -> None:
    """A formula, and a stage that only passes on its inputs."""
    known = Stage("known", known=True, lipschitz=1.0, function=lambda f: f)
    network = chain(stage("f", controls=X), Stage("hand on", outputs=["f"], passes=["f"]), known)
    assert [node.stage.modelled for node in network.nodes] == [("f",), (), ()]


def test_a_rough_kernel_with_a_lipschitz_constant_is_accepted() -> None:
    chain(stage("f", controls=X, kernel=Matern(0.5), lipschitz=2.0))


@pytest.mark.parametrize("missing", [{"norm_bound": None}, {"kernel": None, "norm_bound": None}], ids=str)
def test_missing_kernels_and_norm_bounds_are_estimated(missing: dict[str, None]) -> None:
    """Only a study estimates them: such a network has no prior beliefs."""
    network = chain(stage("f", controls=X), stage("g", **missing))
    assert (network.estimated, network.mirrored().estimated) == (True, True)
    assert [one.estimated for one in network.stages] == [False, True]
    with pytest.raises(ArgumentError, match=r"stage 'g' has no kernel or no norm_bound: give both\. Only a study"):
        prior_beliefs(network)


def test_declared_known_and_passed_outputs_are_not_estimated() -> None:
    known = Stage("known", known=True, lipschitz=1.0, function=lambda f: f)
    network = chain(stage("f", controls=X), Stage("hand on", outputs=["f"], passes=["f"]), known)
    assert not network.estimated


def test_a_part_of_a_stage_is_the_stage_of_one_output() -> None:
    whole = Stage("f", controls=X, outputs=["u", "x", "v"], passes=["x"], lipschitz=[1.0, 2.0], offset=[3.0, 4.0])
    u, x, v = (whole.part(output) for output in whole.outputs)
    assert [part.name for part in (u, x, v)] == ["f.u", "f.x", "f.v"]
    assert [part.outputs for part in (u, x, v)] == [("u",), ("x",), ("v",)]
    assert [part.modelled for part in (u, x, v)] == [("u",), (), ("v",)]
    assert [part.estimated for part in (u, x, v)] == [True, False, True]
    assert u.lipschitz is not None
    assert v.lipschitz is not None
    assert [*u.lipschitz, *v.lipschitz, *u.offset, *x.offset, *v.offset] == [1.0, 2.0, 3.0, 4.0]
    assert Stage("g", controls=X).part("g").name == "g"
    fitted = v.fitted(SE, 7.0)
    assert (fitted.kernel, *fitted.offset) == (SE, 7.0)
    assert fitted.estimated  # its norm is still to be estimated
    assert (whole.kernel, v.kernel, *v.offset) == (None, None, 4.0)


# ---- errors, one each


def _known(**options: Any) -> Stage:
    defaults: dict[str, Any] = {"known": True, "controls": X, "lipschitz": 1.0, "function": lambda x: x}
    return Stage("k", **(defaults | options))


def _wide(**options: Any) -> Stage:
    return stage("f", **({"controls": X, "outputs": ["u", "v"]} | options))


A = stage("a", controls=X)
STAGE_ERRORS: dict[str, tuple[Callable[[], Any], str]] = {
    "a name with a dot": (lambda: stage("a.b"), "word without a dot; got 'a.b'"),
    "an empty name": (lambda: stage(" "), "word without a dot"),
    "a name that is not text": (lambda: stage(3), "word without a dot; got 3"),  # type: ignore[arg-type]
    "a categorical control": (
        lambda: stage("f", controls={"metal": ["iron", "zinc"]}),
        "stage 'f': control 'metal' must be Real.* or Choice",
    ),
    "controls without ranges": (lambda: stage("f", controls=["x"]), "stage 'f'.*controls"),
    "an empty range": (lambda: stage("f", controls={"x": Real(2, 1)}), "must not be empty"),
    "no outputs": (lambda: _wide(outputs=[]), "stage 'f': outputs must be one or more names"),
    "an output with a dot": (lambda: _wide(outputs=["u.v"]), "names without a dot"),
    "two outputs of one name": (lambda: _wide(outputs=["u", "u"]), "stage 'f': output names must differ; got u, u"),
    "B = 0": (lambda: stage("f", norm_bound=0.0), "stage 'f': norm_bound must be finite and above 0; got 0.0"),
    "B < 0": (lambda: _wide(norm_bound=[1.0, -1.0]), "norm_bound must be finite and above 0"),
    "B not a number": (lambda: stage("f", norm_bound=float("nan")), "norm_bound must be finite and above 0; got nan"),
    "B infinite": (lambda: stage("f", norm_bound=float("inf")), "norm_bound must be finite"),
    "B as text": (lambda: stage("f", norm_bound="large"), "stage 'f': norm_bound must be .*; got 'large'"),
    "L = 0": (lambda: stage("f", lipschitz=0.0), "stage 'f': lipschitz must be finite and above 0; got 0.0"),
    "L < 0": (lambda: stage("f", lipschitz=-1.0), "lipschitz must be finite and above 0"),
    "L not a number": (lambda: stage("f", lipschitz=float("nan")), "lipschitz must be finite and above 0; got nan"),
    "too many norm bounds": (
        lambda: _wide(norm_bound=[1, 1, 1]),
        r"norm_bound must be .* one per modelled output \(2\)",
    ),
    "too few norm bounds": (lambda: _wide(norm_bound=[1.0]), r"one per modelled output \(2\)"),
    "a matrix of norm bounds": (lambda: _wide(norm_bound=[[1.0, 1.0]]), r"one per modelled output \(2\)"),
    "too many Lipschitz constants": (lambda: _wide(lipschitz=[1, 1, 1]), "lipschitz must be one number or one per"),
    "a norm per output of a joint kernel": (
        lambda: _wide(kernel=JOINT, norm_bound=[1.0, 1.0]),
        "norm_bound is one number for a kernel with a joint norm",
    ),
    "too many offsets": (lambda: _wide(offset=[0, 0, 0]), r"offset must be .* one per modelled output \(2\)"),
    "an offset that is not finite": (lambda: stage("f", offset=float("nan")), "offset must be one finite number"),
    "a matrix of the wrong size": (
        lambda: _wide(kernel=Separable(SE, np.eye(3))),
        "matrix is 3×3 but there are 2 outputs",
    ),
    "something else as kernel": (lambda: stage("f", kernel="SE"), r"kernel must be a kernel such as Matern\(2.5\)"),
    "passes naming no output": (lambda: _wide(passes=["w"]), "passes must name outputs of the stage; got 'w'"),
    "an output passed twice": (lambda: _wide(passes=["u", "u"]), "passes"),
    "known with a kernel": (lambda: _known(kernel=SE), "stage 'k': a known stage is never modelled"),
    "known with a norm": (lambda: _known(norm_bound=1.0), "give it no kernel and no norm_bound"),
    "known without bounds": (lambda: Network([_known(lipschitz=None)]), "needs lipschitz= or interval="),
    "interval of an unknown stage": (lambda: stage("f", interval=lambda x: x), "interval= is for known stages"),
}
NETWORK_ERRORS: dict[str, tuple[Callable[[], Any], str]] = {
    "no stages": (lambda: Network([]), "at least one stage"),
    "no stages in a chain": (chain, "at least one stage"),
    "two stages of one name": (lambda: chain(A, A), "stage names must differ; 'a' is used twice"),
    "a cycle": (
        lambda: Network([A, stage("b", parents=["a", "d"]), stage("c", parents=["b"]), stage("d", parents=["c"])]),
        "form a cycle: b ← d ← c ← b. A network must not feed back",
    ),
    "a stage that is its own parent": (lambda: Network([stage("b", parents=["b"], controls=X)]), "cycle: b ← b"),
    "a cycle below a stage": (
        lambda: Network([stage("e", parents=["b"]), stage("b", parents=["c"]), stage("c", parents=["b"])]),
        "form a cycle: b ← c ← b",
    ),
    "an unknown parent": (
        lambda: Network([A, stage("b", parents=["z"])]),
        "stage 'b' has the unknown parent 'z'; the stages are 'a', 'b'",
    ),
    "a parent that is an object": (lambda: Network([A, stage("b", parents=[A])]), "parent"),
    "an unknown output of a parent": (
        lambda: Network([_wide(), stage("b", parents=["f.w"])]),
        "stage 'b' has the parent 'f.w', but 'f' has the outputs u, v",
    ),
    "a mistyped output of a parent": (
        lambda: Network([stage("f", controls=X, outputs=["fineness"]), stage("b", parents=["f.finess"])]),
        r"but 'f' has the outputs fineness \(did you mean fineness\?\)",
    ),
    "two parents sharing a name": (
        lambda: Network([_wide(), stage("g", controls=Y, outputs=["v"]), stage("h", parents=["f", "g"])]),
        "stage 'h' gets 'v' from two parents; rename",
    ),
    "a control and an output of one name": (
        lambda: chain(stage("f", controls=X, outputs=["y"]), stage("g", controls=Y)),
        "stage 'g' has 'y' both as a control and as a parent's output; rename",
    ),
    "a shared control of two ranges": (
        lambda: chain(A, stage("b", controls={"x": Real(0, 1)})),
        r"control 'x' is Real\(low=-2.* in one stage and Real\(low=0.* in 'b'; a shared control is one coordinate",
    ),
    "no control at all": (lambda: chain(stage("f"), stage("g")), "at least one control; give one to a stage"),
    "a stage without input": (lambda: Network([stage("f"), A], objective="f"), "stage 'f' has no input"),
    "two ends": (
        lambda: Network([A, stage("b", controls=Y)]),
        "say which output to maximise: objective= one of a.a, b.b",
    ),
    "an end with two outputs": (lambda: chain(A, stage("f", outputs=["u", "v"])), "objective= one of f.u, f.v"),
    "an objective that is not a stage": (lambda: chain(A, objective="z"), "one of a.a; got 'z'"),
    "an objective that is not an output": (lambda: chain(_wide(), objective="f.w"), "one of f.u, f.v; got 'f.w'"),
    "an objective with two outputs": (lambda: chain(_wide(), objective="f"), "one of f.u, f.v; got 'f'"),
    "a rough kernel and no L": (
        lambda: chain(stage("f", controls=X, kernel=Matern(1.0))),
        "stage 'f': functions of Matern.* have no Lipschitz constant of their own; give lipschitz=",
    ),
    "a rough joint kernel and no L": (
        lambda: chain(stage("f", controls=X, kernel=Separable(Matern(0.5)))),
        "have no Lipschitz constant of their own",
    ),
    "a general kernel and no L": (
        lambda: chain(stage("f", controls=X, kernel=BlockKernel("b", lambda U, V: SE(U, V)[:, :, None, None]))),
        "a general operator-valued kernel needs lipschitz=",
    ),
    "too many lengthscales": (
        lambda: chain(stage("f", controls=X, kernel=SquaredExponential((1.0, 2.0)))),
        "stage 'f' with inputs x: the kernel has 2 lengthscales but its inputs have 1",
    ),
    "too few lengthscales": (
        lambda: chain(A, stage("g", controls=X | Y, kernel=Separable(SquaredExponential((1.0, 2.0))))),
        "stage 'g' with inputs a, x, y: the kernel has 2 lengthscales but its inputs have 3",
    ),
    "passes naming no input": (
        lambda: chain(A, stage("f", outputs=["u", "x"], passes=["x"])),
        "stage 'f' passes on 'x', which is not among its inputs: a",
    ),
    "known without a function": (lambda: chain(_known(function=None)), "the known stage 'k' needs its formula"),
    "a joint kernel in feed_forward": (
        lambda: feed_forward(_wide(kernel=JOINT), stage("g")),
        "stage 'f' of a feed-forward network needs a scalar kernel.*Use multi_output_chain",
    ),
    "a scalar kernel in multi_output_chain": (
        lambda: multi_output_chain(_wide(), stage("g")),
        r"stage 'f' of a multi-output chain needs a kernel with a joint norm, such as Separable\(",
    ),
    "no such stage": (lambda: chain(A).node("z"), "there is no stage 'z'; the stages are 'a'"),
}


@pytest.mark.parametrize("case", STAGE_ERRORS)
def test_stage_errors(case: str) -> None:
    make, message = STAGE_ERRORS[case]
    with pytest.raises(ArgumentError, match=message):
        make()


@pytest.mark.parametrize("case", NETWORK_ERRORS)
def test_network_errors(case: str) -> None:
    make, message = NETWORK_ERRORS[case]
    with pytest.raises(ArgumentError, match=message):
        make()


@pytest.mark.parametrize("make", [chain, feed_forward, multi_output_chain, lambda *stages: Network(stages)])
def test_a_network_is_made_of_stages(make: Callable[..., Network]) -> None:
    with pytest.raises(ArgumentError, match="made of Stage objects; got 'f'"):
        make(A, "f")
