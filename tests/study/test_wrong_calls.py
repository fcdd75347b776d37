"""Wrong calls of the public functions: clear errors, which say what to write instead."""

import pickle
from typing import Any

import pytest

import cascada
from cascada.errors import ArgumentError

cd: Any = cascada  # wrong calls are not for the type checker
STAGE = cd.Stage("mix", controls={"dose": cd.Real(0, 1)}, kernel=cd.SquaredExponential(1.0), norm_bound=1.0)
NETWORK = cd.chain(STAGE)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda: cd.maximise(STAGE, budget=3),
            r"must be a Network; got a Stage\. Make a network of it: chain\(stage\)",
        ),
        (lambda: cd.maximise([STAGE], budget=3), r"got a list of stages\. Make a network of it: chain\(\*stages\)"),
        (lambda: cd.minimise(STAGE, budget=3), r"must be a Network; got a Stage"),
        (lambda: cd.maximise(3, budget=3), r"must be a Network; got 3\. Make one of stages"),
        (lambda: cd.Study("alloy"), r"must be a Network; got 'alloy'\..*Study\.open\(url, name\)"),
        (lambda: cd.Study.open("sqlite:///none.db", "alloy", "alloy"), r"must be a Network; got 'alloy'"),
        (lambda: cd.Network(STAGE), r"needs a list of stages, Network\(\[a, b\]\); got .*Stage"),
        (lambda: cd.Network("mix"), r"needs a list of stages"),
        (lambda: cd.chain([STAGE, STAGE]), r"made of Stage objects; got \[.*one by one: chain\(a, b\)"),
        (lambda: cd.maximise(NETWORK, [abs], budget=3, callbacks=print), r"Write callbacks=\[function\]"),
        (lambda: cd.Study(NETWORK).optimise([abs], budget=3, callbacks=3), r"callbacks must be a list.*got 3"),
        (lambda: cd.Stage("mix", function=3), r"stage 'mix': function must be a function .* got 3"),
        (lambda: cd.Stage("mix", known=True, function=abs, interval=3), r"interval must be a function"),
    ],
)
def test_a_wrong_call_is_an_error_that_says_what_to_write(call, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ArgumentError, match=said):
        call()
    assert not list(tmp_path.iterdir())


def test_a_stage_may_fail_with_a_stage_error_of_its_own_words():
    def mix(**_):
        raise cd.StageError("the oven tripped")

    result = cd.maximise(NETWORK, [mix], budget=6, progress=False)
    assert result.status == "failing"
    assert "failed: the oven tripped at dose=" in str(result)


def test_a_stage_error_with_a_message_keeps_it_when_pickled():
    error = pickle.loads(pickle.dumps(cd.StageError("the oven tripped")))
    assert (str(error), error.reason, error.stage) == ("the oven tripped", "the oven tripped", "")
    full = pickle.loads(pickle.dumps(cd.StageError("mix", {"dose": 0.5}, "raised", {"melt": (1.0,)})))
    assert (full.stage, full.controls, full.reason, full.outputs) == ("mix", {"dose": 0.5}, "raised", {"melt": (1.0,)})
