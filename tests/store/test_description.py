"""Descriptions of studies as JSON: complete, exact and without functions; and their differences in words."""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cascada.algorithms import (
    CUCB,
    GPNEI,
    GPNUCB,
    GPUCB,
    NAMES,
    NonAdaptive,
    OptimisticImprovement,
    RandomSearch,
)
from cascada.arrays import Array
from cascada.calibration import Calibration
from cascada.errors import ArgumentError
from cascada.experiments.paper_grid import PaperGrid
from cascada.kernels import Additive, BlockKernel, Matern, OperatorKernel, Separable, SquaredExponential
from cascada.network import Network, Stage, chain
from cascada.space import Grid, Integer, Real
from cascada.store.description import SETTINGS as SETTINGS_OF_A_STUDY
from cascada.store.description import amendable, canonical, completed, describe, describe_algorithm, differences
from tests.network.cases import NETWORKS, SE, X, Y, stage

TWO = '{"type":"Matern","nu":2.0,"lengthscale":1.0,"variance":1.0}'
ONES = BlockKernel("ones", lambda U, V: np.ones((len(U), len(V), 2, 2)))
SETTINGS: dict[str, Any] = {"algorithm": "auto", "seed": 0, "tolerance": None}
FINITE = st.floats(-1e100, 1e100)
SCALE = st.floats(1e-40, 1e40)  # of lengthscales
POSITIVE = st.floats(1e-40, 1e40)

every_network = pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)


def described(*stages: Stage, **settings: Any) -> dict[str, Any]:
    return completed(describe(chain(*stages), SETTINGS | settings))


def of_kernel(kernel: Any, **options: Any) -> Any:
    """Return the description of a kernel in a stage of two inputs and two outputs."""
    outputs = ["u", "v"]
    first = stage("f", controls=X | Y, outputs=outputs, kernel=kernel, lipschitz=1.0, **options)
    return completed(describe(chain(first, objective="f.u"), SETTINGS))["stages"][0]["kernel"]


# ---- describing


def test_a_description_contains_the_whole_study_and_omits_defaults() -> None:
    network = chain(
        stage("f", controls=X | {"n": Integer(1, 4)}, outputs=["u", "n"], passes=["n"], offset=0.5),
        stage("g", controls={"t": Real(1, 8, log=True)}, kernel=Matern(2.5, (1, 2, 3)), lipschitz=4),
    ).mirrored()
    f = {
        "name": "f",
        "outputs": ["u", "n"],
        "parents": [],
        "passes": ["n"],
        "known": False,
        "control_order": ["x", "n"],
    }
    f["kernel"] = {"type": "SquaredExponential", "lengthscale": 1.0, "variance": 1.0}
    f["controls"] = {
        "x": {"type": "real", "low": -2.0, "high": 2.0, "log": False},
        "n": {"type": "integer", "low": 1, "high": 4, "log": False},
    }
    g = {"name": "g", "outputs": ["g"], "parents": ["f.u", "f.n"], "passes": [], "known": False, "control_order": ["t"]}
    g["kernel"] = {"type": "Matern", "nu": 2.5, "lengthscale": [1.0, 2.0, 3.0], "variance": 1.0}
    g["controls"] = {"t": {"type": "real", "low": 1.0, "high": 8.0, "log": True}}
    rest: dict[str, Any] = {"limits": {}, "ranges": {}, "failure": "fail", "error": None, "forwards": "value"}
    rest |= {"cost": 1.0, "reachable": "run", "portions": 1}
    expected = {
        "objective": {"stage": "g", "output": "g", "sense": "minimise"},
        "stages": [
            f | {"norm_bound": [2.0], "lipschitz": None, "offset": [0.5]} | rest,
            g | {"norm_bound": [2.0], "lipschitz": [4.0], "offset": [0.0]} | rest,
        ],
        "settings": dict(SETTINGS_OF_A_STUDY)
        | {"algorithm": {"type": "GPNUCB", "search": "auto", "cells": 6000}, "seed": 7},
    }
    description = describe(network, {"algorithm": GPNUCB(), "seed": 7})
    assert canonical(completed(description)) == canonical(completed(expected)) == canonical(expected)
    assert canonical(description) == canonical(
        {
            "objective": {"stage": "g", "output": "g", "sense": "minimise"},
            "stages": [
                {
                    "name": "f",
                    "outputs": ["u", "n"],
                    "passes": ["n"],
                    "control_order": ["x", "n"],
                    "kernel": {"type": "SquaredExponential"},
                    "controls": {"x": {"low": -2.0, "high": 2.0}, "n": {"type": "integer", "low": 1, "high": 4}},
                    "norm_bound": [2.0],
                    "offset": [0.5],
                },
                {
                    "name": "g",
                    "outputs": ["g"],
                    "parents": ["f.u", "f.n"],
                    "control_order": ["t"],
                    "kernel": {"type": "Matern", "nu": 2.5, "lengthscale": [1.0, 2.0, 3.0]},
                    "controls": {"t": {"low": 1.0, "high": 8.0, "log": True}},
                    "norm_bound": [2.0],
                    "lipschitz": [4.0],
                },
            ],
            "settings": {"algorithm": {"type": "GPNUCB"}, "seed": 7},
        }
    )


@every_network
def test_the_text_of_a_description_round_trips(network: Network) -> None:
    description = describe(network, SETTINGS)
    text = canonical(description)
    assert json.loads(text) == description
    assert text.isascii()
    assert canonical(json.loads(text)) == text
    assert differences(json.loads(text), description) == []
    assert amendable(json.loads(text), description)
    assert [entry["name"] for entry in description["stages"]] == [stage.name for stage in network.stages]


@every_network
def test_maximising_and_minimising_are_different_studies(network: Network) -> None:
    one, other = describe(network, SETTINGS), describe(network.mirrored(), SETTINGS)
    assert differences(one, other) == ['objective.sense: stored "maximise", given "minimise"']
    assert not amendable(one, other)


def test_different_networks_have_different_descriptions() -> None:
    texts = {canonical(describe(network, SETTINGS)) for network in NETWORKS.values()}
    assert len(texts) == len(NETWORKS)


def test_parents_are_described_as_outputs_however_they_were_named() -> None:
    stages = {entry["name"]: entry for entry in completed(describe(NETWORKS["graph"], SETTINGS))["stages"]}
    assert {name: entry["parents"] for name, entry in stages.items()} == {
        "end": ["g.g", "sum.sum"],
        "sum": ["f.u", "g.g"],
        "f": [],
        "g": ["f.v"],
    }
    first = stage("f", controls=X, outputs=["u", "v"])
    ways: list[Any] = [None, "f", ["f"], ["f.u", "f.v"]]
    assert len({canonical(described(first, stage("g", parents=way))) for way in ways}) == 1
    assert described(first, stage("g", parents=["f.v", "f.u"]))["stages"][1]["parents"] == ["f.v", "f.u"]


def test_a_stage_without_a_kernel_has_none_in_its_description() -> None:
    (entry,) = described(Stage("f", controls=X))["stages"]
    assert (entry["kernel"], entry["norm_bound"], entry["lipschitz"], entry["offset"]) == (None, None, None, [0.0])


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (SquaredExponential(2), '{"type":"SquaredExponential","lengthscale":2.0,"variance":1.0}'),
        (Matern(1.5, (1, 2), 3), '{"type":"Matern","nu":1.5,"lengthscale":[1.0,2.0],"variance":3.0}'),
        (
            Separable(Matern(2), [[2, 1], [1, 2]]),
            f'{{"type":"Separable","kernel":{TWO},"matrix":[[2.0,1.0],[1.0,2.0]]}}',
        ),
        (Separable(Matern(2)), f'{{"type":"Separable","kernel":{TWO},"matrix":null}}'),
        (Additive(Matern(2)), f'{{"type":"Additive","kernel":{TWO}}}'),
        (ONES, '{"type":"BlockKernel","name":"ones"}'),
    ],
    ids=["SE", "Matern", "Separable", "identity", "additive", "block"],
)
def test_every_kernel_is_described_by_type_and_parameters(kernel: Any, expected: str) -> None:
    assert canonical(of_kernel(kernel)) == canonical(json.loads(expected))  # as text, because 2 == 2.0


class Nameless(OperatorKernel):
    """A kernel without fields that describe it."""

    def blocks(self, X: Array, Z: Array, outputs: int) -> Array:
        return SE(X, Z)[:, :, None, None] * np.eye(outputs)

    def check_dimension(self, dimension: int) -> None:
        """Accept any dimension."""


@dataclass(frozen=True)
class Weighted(Nameless):
    """A general kernel with plain fields."""

    weights: tuple[float, ...]


@dataclass(frozen=True)
class Computed(Nameless):
    """A general kernel with a field that cannot be written as JSON."""

    weight: Callable[[float], float]


class Wider(Matern):
    """Not a dataclass itself, so its fields may not describe it completely."""


def test_a_general_kernel_is_described_by_its_fields() -> None:
    assert of_kernel(Weighted((1.0, 0.5))) == {"type": "Weighted", "weights": [1.0, 0.5]}


@pytest.mark.parametrize("kernel", [Nameless(), Computed(abs), Weighted((math.nan,)), Wider(2.5)], ids=type)
def test_a_kernel_that_cannot_be_described_raises(kernel: Any) -> None:
    with pytest.raises(ArgumentError, match=r"stage 'f': kernel.* got .*Separable\(Matern\(2.5\)\).*BlockKernel"):
        of_kernel(kernel)


# ---- algorithms and settings


@pytest.mark.parametrize("name", [*NAMES, "package.module:Class"])
def test_an_algorithm_given_by_name_is_described_by_that_name(name: str) -> None:
    assert describe_algorithm(name) == name


@pytest.mark.parametrize(
    ("algorithm", "expected"),
    [
        (RandomSearch(), {"type": "RandomSearch"}),
        (CUCB(), {"type": "CUCB"}),
        (GPNEI(), {"type": "GPNEI", "widths": [1, 3], "samples": 128, "period": 3}),
        (GPNUCB(cells=np.int64(10)), {"type": "GPNUCB", "search": "auto", "cells": 10}),  # type: ignore[arg-type]
        (NonAdaptive(9, {"f": (0.0, 0.5)}), {"type": "NonAdaptive", "runs": 9, "ranges": {"f": [0, 0.5]}}),
        (GPUCB(Matern(2.0), 2.0), {"type": "GPUCB", "kernel": json.loads(TWO.replace(".0", "")), "norm_bound": 2}),
    ],
    ids=lambda value: value["type"] if isinstance(value, dict) else "",
)
def test_an_algorithm_is_described_by_class_and_fields(algorithm: Any, expected: Any) -> None:
    found = describe_algorithm(algorithm)
    assert canonical(found) == canonical(expected)
    both = [completed(describe(NETWORKS["chain"], {"algorithm": a})) for a in (algorithm, found)]
    assert [description["settings"]["algorithm"] for description in both] == [expected] * 2


@pytest.mark.parametrize(
    ("one", "other"),
    [(OptimisticImprovement(1), OptimisticImprovement(1.0)), (PaperGrid(), PaperGrid(-5, 5, 100, np.float64(1)))],
)
def test_equal_algorithms_have_the_same_description(one: Any, other: Any) -> None:
    assert canonical(describe_algorithm(one)) == canonical(describe_algorithm(other))


class Plain:
    """An algorithm that is not a dataclass, so its state is unknown."""

    def suggest(self, situation: Any, rng: Any) -> Any:
        raise NotImplementedError

    def recommend(self, situation: Any) -> None:
        raise NotImplementedError


@dataclass(frozen=True)
class Guided(Plain):
    """An algorithm with a field of any kind."""

    guide: Any


class Hidden(GPNUCB):
    """A subclass that is not a dataclass itself."""


@pytest.mark.parametrize(
    ("algorithm", "message"),
    [
        (Plain(), "algorithm of a stored study must be finite numbers.*got <.*Plain"),
        (Hidden(), "algorithm of a stored study .*dataclass.*got Hidden"),
        (Guided(abs), "algorithm.guide of a stored study .*got <built-in function abs>"),
        (Guided([1, {"at": math.inf}]), "algorithm.guide.1.at of a stored study .*got inf"),
        (Guided({1: 2}), r"algorithm.guide of a stored study .*got \{1: 2\}"),
        (GPNUCB, "algorithm of a stored study .*got <class"),
        (3, "algorithm must be a name or have the methods suggest and recommend; got 3"),
    ],
)
def test_an_algorithm_that_cannot_be_described_raises(algorithm: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        describe_algorithm(algorithm)


def test_settings_of_all_types_are_described_as_json() -> None:
    settings = {
        "seed": np.int64(3),
        "tolerance": 0.1,
        "candidates": np.array([[0.0, -0.0], [0.1, 0.2]]),
        "grid": Grid({"x": 3, "y": (0.0, 0.5)}),
        "calibration": Calibration(),
        "stop_on_estimated": np.bool_(True),
    }
    whole = completed(describe(NETWORKS["chain"], settings))["settings"]
    found = {key: whole[key] for key in settings}
    calibration = {"family": "auto", "nu": 2.5, "width": 1, "safety": 1.05, "initial": None}
    assert json.loads(canonical(found)) == {
        "seed": 3,
        "tolerance": 0.1,
        "candidates": [[0, 0], [0.1, 0.2]],
        "grid": {"type": "Grid", "values": {"x": 3, "y": [0, 0.5]}},
        "calibration": {"type": "Calibration", **calibration},
        "stop_on_estimated": True,
    }
    with pytest.raises(
        ArgumentError, match=r"settings.callback of a stored study must be .*got <built-in function print>"
    ):
        describe(NETWORKS["chain"], {"callback": print})


# ---- exact numbers, and parts that are ignored


@given(low=FINITE, high=FINITE, bound=POSITIVE, scale=SCALE, other=SCALE, offset=FINITE, tolerance=FINITE)
def test_floats_round_trip_exactly(
    low: float, high: float, bound: float, scale: float, other: float, offset: float, tolerance: float
) -> None:
    low, high = (low, high) if low < high else (high, math.nextafter(low, math.inf))
    if not (high - low >= 1e-100 and high <= 1e100):
        return
    kernel = Matern(scale, (scale, other), variance=bound)
    first = Stage("f", {"x": Real(low, high)}, kernel=SE, norm_bound=bound, lipschitz=scale, offset=offset)
    second = Stage("g", Y, kernel=kernel, norm_bound=scale, lipschitz=bound)
    description = describe(chain(first, second), {"tolerance": tolerance})
    back = completed(json.loads(canonical(description)))
    f, g = back["stages"]
    assert (f["controls"]["x"]["low"], f["controls"]["x"]["high"]) == (low, high)
    assert (f["norm_bound"], f["lipschitz"], f["offset"]) == ([bound], [scale], [offset])
    assert g["kernel"] == {"type": "Matern", "nu": scale, "lengthscale": [scale, other], "variance": bound}
    assert back["settings"]["tolerance"] == tolerance
    assert canonical(back) == canonical(completed(description))


@given(value=POSITIVE)
def test_neighbouring_floats_are_different_studies(value: float) -> None:
    other = math.nextafter(value, math.inf)
    one, two = (described(stage("f", controls=X, norm_bound=bound)) for bound in (value, other))
    assert differences(one, two) == [f"stages.f.norm_bound: stored {value!r}, given {other!r}"]


def test_equal_numbers_of_different_types_are_the_same_study() -> None:
    pairs = [
        (described(stage("f", controls={"x": Real(*ends)}, offset=offset), tolerance=tolerance))
        for ends, offset, tolerance in [((0, 1), 0, 1), ((-0.0, np.float64(1)), -0.0, 1.0)]
    ]
    assert canonical(pairs[0]) == canonical(pairs[1])
    assert canonical(described(stage("f", controls=X), seed=True)) != canonical(
        described(stage("f", controls=X), seed=1)
    )


def test_large_whole_numbers_round_trip() -> None:
    control = {"n": Integer(2**51 - 9, 2**51)}
    found = json.loads(canonical(described(stage("f", controls=control), seed=2**70 + 1)))
    assert (found["stages"][0]["controls"]["n"]["high"], found["settings"]["seed"]) == (2**51, 2**70 + 1)


def test_functions_are_not_part_of_a_description() -> None:
    def network(function: Callable[..., float], blocks: Callable[[Array, Array], Array]) -> Network:
        return chain(
            stage(
                "f", controls=X, outputs=["u", "v"], kernel=BlockKernel("Γ", blocks), lipschitz=1.0, function=function
            ),
            Stage("g", known=True, function=function, interval=function),
        )

    one = describe(network(lambda **_: 0.0, lambda U, V: np.ones((len(U), len(V), 2, 2))), SETTINGS)
    other = describe(network(lambda **_: 1.0, lambda U, V: np.zeros((len(U), len(V), 2, 2))), SETTINGS)
    assert canonical(one) == canonical(other)
    assert "function" not in canonical(one)


def test_the_order_of_keys_does_not_matter() -> None:
    def backwards(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: backwards(value[key]) for key in reversed(value)}
        return [backwards(entry) for entry in value] if isinstance(value, list) else value

    for network in NETWORKS.values():
        description = describe(network, SETTINGS)
        assert canonical(backwards(description)) == canonical(description)
        assert differences(backwards(description), description) == []


def test_names_may_have_characters_of_any_script() -> None:
    one = described(stage("Härten 1", controls={"température": Real(0, 1)}, outputs=["σ", "硬度"]), stage("ende"))
    other = described(stage("Härten 1", controls={"température": Real(0, 2)}, outputs=["σ", "硬さ"]), stage("ende"))
    assert canonical(one).isascii()
    assert json.loads(canonical(one)) == one
    assert differences(one, other) == [
        "stages.Härten 1.controls.température.high: stored 1.0, given 2.0",
        'stages.Härten 1.outputs: stored ["σ", "硬度"], given ["σ", "硬さ"]',
        'stages.ende.parents: stored ["Härten 1.σ", "Härten 1.硬度"], given ["Härten 1.σ", "Härten 1.硬さ"]',
    ]


# ---- every change is found and named

F: dict[str, Any] = {"controls": X | Y, "outputs": ["u", "v"], "norm_bound": [1.0, 2.0]}
G: dict[str, Any] = {"controls": {"n": Integer(1, 4)}, "kernel": Matern(2.5), "norm_bound": 2.0}


def two(f: dict[str, Any] | None = None, g: dict[str, Any] | None = None, **settings: Any) -> dict[str, Any]:
    return described(stage("f", **(F | (f or {}))), stage("age 1", **(G | (g or {}))), **settings)


MATERN = '{"type": "Matern", "nu": 2.5, "lengthscale": 1.0, "variance": 1.0}'
AGE, CONTROL = "stages.age 1", '{"type": "real", "low": -2.0, "high": 2.0, "log": false}'

AMENDMENTS = {
    f"{AGE}.norm_bound: stored 2.0, given 3.0": two(g={"norm_bound": 3.0}),
    "stages.f.norm_bound: stored [1.0, 2.0], given [1.0, 3.0]": two({"norm_bound": [1.0, 3.0]}),
    f"{AGE}.lipschitz: stored none, given [3.0]": two(g={"lipschitz": 3.0}),
    f"{AGE}.offset: stored 0.0, given 0.5": two(g={"offset": 0.5}),
    "stages.f.limits.u: not stored, given [null, 3.0]": two({"limits": {"u": (None, 3)}}),
    "stages.f.ranges.v: not stored, given [0.0, 100.0]": two({"ranges": {"v": (0, 100)}}),
    "stages.f.cost: stored 1.0, given 2.5": two({"cost": 2.5}),
    "stages.f.portions: stored 1, given 3": two({"portions": 3}),
    "stages.f.portions: stored 1, given none": two({"portions": np.inf}),
    f"{AGE}.kernel.nu: stored 2.5, given 1.5": two(g={"kernel": Matern(1.5)}),
    f"{AGE}.kernel.lengthscale: stored 1.0, given 2.0": two(g={"kernel": Matern(2.5, 2.0)}),
    f"{AGE}.kernel.lengthscale: stored 1.0, given [1.0, 1.0, 2.0]": two(g={"kernel": Matern(2.5, (1, 1, 2))}),
    f"{AGE}.kernel.variance: stored 1.0, given 4.0": two(g={"kernel": Matern(2.5, variance=4)}),
    f"""{AGE}.kernel.type: stored "Matern", given "SquaredExponential"
        {AGE}.kernel.nu: stored 2.5, not given""": two(g={"kernel": SE}),
    f"""{AGE}.kernel.type: stored "Matern", given "Separable"
        {AGE}.kernel.nu: stored 2.5, not given
        {AGE}.kernel.lengthscale: stored 1.0, not given
        {AGE}.kernel.variance: stored 1.0, not given
        {AGE}.kernel.kernel: not stored, given {MATERN}
        {AGE}.kernel.matrix: not stored, given none""": two(g={"kernel": Separable(Matern(2.5))}),
    f"""{AGE}.kernel: stored {MATERN}, given none
        {AGE}.norm_bound: stored [2.0], given none""": two(g={"kernel": None, "norm_bound": None}),
}
OTHER_STUDIES = {
    "stages.f.controls.y.high: stored 2.0, given 3.0": two({"controls": X | {"y": Real(-2, 3)}}),
    "stages.f.controls.y.low: stored -2.0, given -3.0": two({"controls": X | {"y": Real(-3, 2)}}),
    f"{AGE}.controls.n.high: stored 4, given 5": two(g={"controls": {"n": Integer(1, 5)}}),
    f"""{AGE}.controls.n.type: stored "integer", given "real"
        {AGE}.controls.n.low: stored 1, given 1.0
        {AGE}.controls.n.high: stored 4, given 4.0
        {AGE}.controls.n.log: stored false, given true""": two(g={"controls": {"n": Real(1, 4, log=True)}}),
    f"""stages.f.controls.y: stored {CONTROL}, not given
        stages.f.control_order: stored ["x", "y"], given ["x"]""": two({"controls": X}),
    'stages.f.failure: stored "fail", given "infeasible"': two({"failure": "infeasible"}),
    f'{AGE}.reachable: stored "run", given "stock"': two(g={"reachable": "stock"}),
    'stages.f.control_order: stored ["x", "y"], given ["y", "x"]': two({"controls": Y | X}),
    f"""stages.f.outputs: stored ["u", "v"], given ["v", "u"]
        {AGE}.parents: stored ["f.u", "f.v"], given ["f.v", "f.u"]""": two({"outputs": ["v", "u"]}),
    f"""objective.output: stored "age 1", given "w"
        {AGE}.outputs: stored "age 1", given "w\"""": two(g={"outputs": ["w"]}),
    f'{AGE}.parents: stored ["f.u", "f.v"], given ["f.u"]': two(g={"parents": ["f.u"]}),
    "settings.seed: stored 0, given 1": two(seed=1),
    "settings.tolerance: stored none, given 0.5": two(tolerance=0.5),
    'settings.algorithm: stored "auto", given "cucb"': two(algorithm="cucb"),
    'settings.algorithm: stored "auto", given {"type": "CUCB"}': two(algorithm=CUCB()),
    "settings.horizon: stored none, given 9": two(horizon=9),
}


@pytest.mark.parametrize("sentences", [*AMENDMENTS, *OTHER_STUDIES])
def test_every_change_is_found_and_named(sentences: str) -> None:
    original, changed = two(), (AMENDMENTS | OTHER_STUDIES)[sentences]
    assert canonical(changed) != canonical(original)
    assert differences(original, changed) == [line.strip() for line in sentences.splitlines()]
    assert len(differences(changed, original)) == len(sentences.splitlines())
    assert amendable(original, changed) == amendable(changed, original) == (sentences in AMENDMENTS)


def test_intervals_are_described_with_null_where_there_is_no_limit() -> None:
    one = two({"limits": {"v": (None, 3), "u": (0.5, None)}, "ranges": {"v": (-1, 9)}})
    (f, other) = one["stages"]
    assert (f["limits"], f["ranges"]) == ({"u": [0.5, None], "v": [None, 3.0]}, {"v": [-1.0, 9.0]})
    assert (other["limits"], other["ranges"]) == ({}, {})
    assert differences(one, two({"limits": {"v": (None, 4), "u": (0.5, None)}, "ranges": {"v": (-1, 9)}})) == [
        "stages.f.limits.v: stored [null, 3.0], given [null, 4.0]"
    ]
    same = two({"limits": {"u": (np.float64(0.5), np.inf), "v": (-np.inf, 3)}, "ranges": {"v": (-1, 9.0)}})
    assert canonical(one) == canonical(same)


@every_network
def test_a_change_of_any_value_is_named_by_its_path(network: Network) -> None:
    original = completed(describe(network, SETTINGS | {"algorithm": NonAdaptive(4, {"f": (0.0, 1.0)})}))
    changed = list(_changed(original))
    assert len(changed) > 15
    for path, other in changed:
        assert canonical(other) != canonical(original)
        (sentence,) = differences(original, other)
        where = ["stages", original["stages"][path[1]]["name"], *path[2:]] if path[0] == "stages" else path
        named = sentence.split(": stored")[0]
        assert ".".join(map(str, where)).startswith(named)
        assert named.count(".") >= min(len(path) - 1, 2 if path[0] == "stages" else 1)
        assert amendable(original, other) == (
            path[0] == "stages"
            and path[2]
            in ("kernel", "norm_bound", "lipschitz", "offset", "limits", "ranges", "error", "cost", "portions")
        )


def _changed(value: Any, path: tuple[Any, ...] = ()) -> Any:
    """Yield the path of every value, except stage names, and a copy of the whole with that value replaced."""
    if isinstance(value, dict | list):
        for key, entry in list(value.items() if isinstance(value, dict) else enumerate(value)):
            for where, other in _changed(entry, (*path, key)):
                copy: Any = value.copy()
                copy[key] = other
                yield where, copy
    elif path[-1] != "name" or path[2:] != ("name",):
        yield path, not value if isinstance(value, bool) else "else" if isinstance(value, str) else 12345


def test_known_and_passes_are_part_of_a_study() -> None:
    x = stage("f", controls=X, outputs=["x", "u"], lipschitz=[1.0, 1.0], offset=[0.0, 0.0])
    passing = stage("f", controls=X, outputs=["x", "u"], passes=["x"], lipschitz=1.0)
    sentences = differences(described(x, stage("g")), described(passing, stage("g")))
    assert 'stages.f.passes: stored [], given ["x"]' in sentences
    formula = Stage("g", known=True, lipschitz=1.0, function=lambda f: f)
    one, other = described(stage("f", controls=X), stage("g")), described(stage("f", controls=X), formula)
    assert "stages.g.known: stored false, given true" in differences(one, other)
    assert not amendable(one, other)


def test_added_and_removed_stages_are_named() -> None:
    f, g, h = stage("f", controls=X), stage("g", controls=Y, parents="f"), stage("h", controls=Y, parents="f")
    one, other = described(f, g), described(f, h)
    assert differences(one, other) == [
        'objective.stage: stored "g", given "h"',
        'objective.output: stored "g", given "h"',
        "stages.g: a stored stage that is not given",
        "stages.h: a stage that is not stored",
    ]
    assert not amendable(one, other)


def test_the_order_of_stages_matters() -> None:
    f, g = stage("f", controls=X), stage("g", parents="f", controls=Y)
    one, other = describe(Network([f, g]), SETTINGS), describe(Network([g, f]), SETTINGS)
    assert differences(one, other) == [
        "stages: stored in the order f, g, given as g, f"
    ]  # it determines the columns of candidates
    assert not amendable(one, other)
    between = stage("e", controls=X)
    three = describe(Network([f, between, g], objective="g"), SETTINGS)
    assert differences(one, three) == ["stages.e: a stage that is not stored"]


def test_only_the_first_difference_of_long_lists_is_named() -> None:
    f = stage("f", controls=X)
    points = np.linspace(-1.5, 1.5, 1000)[:, None]
    moved = points.copy()
    moved[700:] += 0.25
    one, other, fewer = (described(f, candidates=c) for c in (points, moved, points[:900]))
    (sentence,) = differences(one, other)
    was, now = points.tolist()[700][0], moved.tolist()[700][0]
    assert sentence == f"settings.candidates.700: stored {was!r}, given {now!r}"
    assert differences(one, fewer) == ["settings.candidates: stored 1000 entries, given 900 entries"]


def test_numbers_that_are_not_finite_raise() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical({"a": math.nan})


def test_a_number_and_a_list_of_one_number_differ() -> None:
    one, other = (described(stage("f", controls=X, kernel=Matern(2.5, ell))) for ell in (1.0, (1.0,)))
    assert differences(one, other) == ["stages.f.kernel.lengthscale: stored 1.0, given [1.0]"]


def test_a_changed_algorithm_is_named_by_its_field() -> None:
    one, other = (two(algorithm=replace(GPNUCB(), cells=cells)) for cells in (10, 20))
    assert differences(one, other) == ["settings.algorithm.cells: stored 10, given 20"]
    assert amendable(two(), two({"kernel": ONES, "lipschitz": 1.0, "norm_bound": 1.0}))
