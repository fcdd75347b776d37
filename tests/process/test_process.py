"""Running a process: the sources of functions, valid and invalid results, and the outputs kept after a failure."""

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from cascada.errors import ArgumentError
from cascada.network import Network, Stage, StageError, chain
from cascada.process import Process
from cascada.space import Integer
from tests.network.cases import X, Y, stage

NETWORK = chain(stage("f", controls=X, outputs=["u", "v"]), stage("g", controls=Y))
EXPECTED = {"f": (3.0, 4.0), "g": (14.0,)}  # at x = 1, y = 2
POINT = {"x": 1.0, "y": 2.0}


def f(x: float) -> tuple[float, float]:
    return x + 2, x + 3


def g(u: float, v: float, y: float) -> float:
    return u * v + y


def evaluate(x: float, y: float) -> dict[str, Any]:
    u, v = f(x)
    return {"g": g(u, v, y), "f": {"v": v, "u": u}}


def owned(*names: str) -> Any:
    """Return the network with functions on the stages of these names."""
    functions: dict[str, Callable[..., Any]] = {"f": f, "g": g}
    of = {name: functions[name] if name in names else None for name in functions}
    return chain(stage("f", controls=X, outputs=["u", "v"], function=of["f"]), stage("g", controls=Y, function=of["g"]))


@pytest.mark.parametrize(
    ("own", "functions"),
    [
        ((), [f, g]),
        ((), (f, g)),
        ((), {"g": g, "f": f}),
        ((), evaluate),
        (("f", "g"), None),
        (("f",), [g]),
        (("g",), {"f": f}),
    ],
    ids=["list", "tuple", "dict", "evaluate", "own", "own and list", "own and dict"],
)
def test_functions_may_be_a_list_a_dict_one_callable_or_on_the_stages(own: tuple[str, ...], functions: Any) -> None:
    assert Process(owned(*own), functions)(POINT) == EXPECTED


def test_a_list_of_functions_has_the_order_in_which_the_network_got_its_stages() -> None:
    network = Network([stage("g", parents=["f"]), stage("f", controls=X)])
    assert Process(network, [lambda f: 10 * f, lambda x: x + 1])({"x": 1.0}) == {"f": (2.0,), "g": (20.0,)}


def test_functions_are_called_with_keywords_only_and_integers_stay_integers() -> None:
    seen: list[Mapping[str, Any]] = []

    def spy(**inputs: Any) -> float:
        seen.append(inputs)
        return 0.5

    network = chain(stage("f", controls={"n": Integer(1, 4)}), stage("g", controls=Y))
    Process(network, [spy, spy])({"n": 3, "y": 2.0})
    assert seen == [{"n": 3}, {"f": 0.5, "y": 2.0}]
    assert type(seen[0]["n"]) is int


@pytest.mark.parametrize(
    "result",
    [
        (3, 4),
        [3.0, np.float32(4.0)],
        np.array([3.0, 4.0]),
        np.array([[3.0], [4.0]]),
        np.array([3, 4]),
        {"v": 4.0, "u": 3.0},
        {"u": np.array([3.0]), "v": np.array(4.0)},
        (Fraction(3), np.int64(4)),
    ],
    ids=str,
)
def test_several_outputs_may_be_a_sequence_an_array_or_a_dict(result: Any) -> None:
    outputs = Process(NETWORK, [lambda **_: result, g])(POINT)
    assert outputs == EXPECTED
    assert all(type(value) is float for value in outputs["f"])


@pytest.mark.parametrize(
    "result", [14, 14.0, np.float64(14), np.int32(14), np.array(14.0), np.array([14.0]), [14], {"g": 14}], ids=repr
)
def test_one_output_may_be_a_number_an_array_a_list_or_a_dict(result: Any) -> None:
    outputs = Process(NETWORK, [f, lambda **_: result])(POINT)
    assert outputs == EXPECTED
    assert type(outputs["g"][0]) is float


# ---- functions that do not fit the network


@pytest.mark.parametrize(
    ("own", "functions", "message"),
    [
        ((), None, "no function for 'f', 'g': give functions= or Stage"),
        ((), {"f": f}, "no function for 'g'"),
        ((), [f], "one function for each of the stages f, g; got 1"),
        ((), [f, g, g], "one function for each of the stages f, g; got 3"),
        ((), {"f": f, "g": g, "z": g}, "names of stages as keys; got 'z'. The stages are f, g"),
        ((), [f, 3.0], "the function of stage 'g' must be callable; got 3.0"),
        ((), 3.0, "must be a list, a dict or one callable; got 3.0"),
        (("f",), [f, g], "stage 'f' has a function of its own and another in functions; give one"),
        (("f", "g"), {"g": g}, "stage 'g' has a function of its own"),
    ],
)
def test_functions_that_do_not_fit_the_network_raise(own: tuple[str, ...], functions: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        Process(owned(*own), functions)


# ---- stages that fail


def _raises(u: float, v: float, y: float) -> float:
    raise RuntimeError(f"no convergence for {u:g}, {v:g}, {y:g}")


BAD: dict[str, tuple[Any, str]] = {
    "NaN": (float("nan"), "returned nan for 'g', which is not finite"),
    "inf": (np.inf, "returned inf for 'g', which is not finite"),
    "too many": ([1.0, 2.0], r"must return 1 output \(g\); got 2"),
    "none at all": ([], r"must return 1 output \(g\); got 0"),
    "text": ("14", "returned '14' for 'g', which is not a number"),
    "None": (None, "returned None for 'g', which is not a number"),
    "complex": (1j, "returned 1j for 'g', which is not a number"),
    "a complex array": (np.array([1j]), "returned 1j for 'g', which is not a number"),
    "bool": (True, "returned True for 'g', which is not a number"),
    "NumPy's bool": (np.bool_(True), "returned True for 'g', which is not a number"),
    "wrong keys": ({"h": 1.0}, "must return the output g; got h"),
    "a key too many": ({"g": 1.0, "h": 1.0}, "must return the output g; got g, h"),
    "a matrix": (np.ones((1, 2)), "which is not a number"),
    "beyond floats": (10**400, "(not finite|too large)"),
}


@pytest.mark.parametrize("whole", [False, True], ids=["by stage", "evaluate"])
@pytest.mark.parametrize("case", BAD)
def test_the_error_of_an_invalid_result_has_stage_controls_and_earlier_outputs(case: str, whole: bool) -> None:
    result, message = BAD[case]
    functions: Any = (lambda x, **_: {"f": f(x), "g": result}) if whole else [f, lambda **_: result]
    with pytest.raises(StageError, match=f"stage 'g' .*{message}.* at x=1, y=2") as caught:
        Process(NETWORK, functions)(POINT)
    assert caught.value.stage == "g"
    assert caught.value.controls == POINT
    assert caught.value.outputs == {"f": (3.0, 4.0)}


def test_an_exception_of_a_function_is_the_cause_of_a_stage_error() -> None:
    with pytest.raises(StageError, match="stage 'g' raised RuntimeError: no convergence for 3, 4, 2 at x=1, y=2") as e:
        Process(NETWORK, [f, _raises])(POINT)
    assert isinstance(e.value.__cause__, RuntimeError)
    assert e.value.outputs == {"f": (3.0, 4.0)}


def test_a_wrong_signature_is_reported_before_anything_is_run() -> None:
    with pytest.raises(ArgumentError, match=r"stage 'f' is called with x by name; it takes \(z\)"):
        Process(NETWORK, [lambda z: (z, z), g])


@pytest.mark.parametrize(
    ("result", "message", "kept"),
    [
        ({"f": (3, 4)}, "stage 'g' has no entry in what evaluate", {"f": (3.0, 4.0)}),
        ({"g": 14}, "stage 'f' has no entry in what evaluate", {}),
        (14.0, "stage 'f' must return a dict of stages to outputs; got float", {}),
        ({"f": (3, np.nan), "g": 14}, "stage 'f' returned nan for 'v'", {}),
    ],
)
def test_an_incomplete_result_of_evaluate_raises_and_keeps_earlier_stages(
    result: Any, message: str, kept: dict[str, Any]
) -> None:
    with pytest.raises(StageError, match=message) as caught:
        Process(NETWORK, lambda **_: result)(POINT)
    assert caught.value.outputs == kept


def test_an_exception_of_evaluate_becomes_a_stage_error() -> None:
    def broken(**_: float) -> dict[str, Any]:
        raise KeyError("furnace")

    with pytest.raises(StageError, match="raised KeyError: 'furnace' at x=1, y=2"):
        Process(NETWORK, broken)(POINT)


def test_a_keyboard_interrupt_does_not_become_a_stage_error() -> None:
    def interrupted(**_: float) -> float:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Process(NETWORK, [interrupted, g])(POINT)


def test_a_known_stage_runs_its_own_formula() -> None:
    network = chain(stage("f", controls=X), Stage("sum", known=True, lipschitz=1.0, function=lambda f: 2 * f))
    assert Process(network, [lambda x: x])({"x": 1.5}) == {"f": (1.5,), "sum": (3.0,)}
