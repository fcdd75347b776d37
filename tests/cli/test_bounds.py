"""`cascada bounds` as a user calls it."""

import json

import pytest
from typer.testing import CliRunner

from cascada.cli.main import app
from cascada.theory.layers import Layers
from cascada.theory.regret import theorem_bound

OPTIONS = ["--structure", "chain", "--dims", "2,1,1", "--norm-bound", "2", "--lipschitz", "2", "--nu", "1.5"]


def run(*arguments: str):
    return CliRunner().invoke(app, ["bounds", *arguments])


def test_the_json_output_names_every_constant():
    result = run(*OPTIONS, "--horizon", "50", "--points", "200", "--json")
    assert result.exit_code == 0
    content = json.loads(result.output)
    assert (content["structure"], content["dims"]) == ("chain", [2, 1, 1])
    assert (content["horizon"], content["nu"]) == (50, 1.5)
    theorem = content["bounds"][-1]
    largest = max(one["upper"] for one in content["sigma"])
    assert theorem["label"] == "thm:ucb_chain"
    assert theorem["value"] == pytest.approx(theorem_bound(Layers("chain", [2, 1, 1], 2.0, 2.0), largest).value)
    assert theorem["constants"] == {"m": 3, "B": 2, "L": 2, "Σ_T": largest}
    assert [row["order"]["label"] for row in content["tab:summary"]][:1] == ["thm:lower_cml"]
    assert {one["name"] for one in content["comparison"]} == {"cUCB", "MCBO", "OI"}


def test_text_and_markdown_have_the_same_content_for_a_problem():
    text, markdown = (run("certified-feed-forward", "--points", "200", *extra) for extra in ([], ["--markdown"]))
    assert (text.exit_code, markdown.exit_code) == (0, 0)
    for output in (text.output, markdown.output):
        assert "2^(m+1) √D_{2,m} B L^(m−1) Σ_T" in output
        assert "thm:ucb_net" in output
        assert "no rates" in output
    assert "| bound | value | from |" in markdown.output


def test_constants_may_differ_from_layer_to_layer():
    options = list(OPTIONS)
    options[5] = "1,2,3"
    content = json.loads(run(*options, "--points", "100", "--json").output)
    assert content["norm_bounds"] == [1, 2, 3]
    assert content["trivial"]["constants"]["B"] == 3


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "--structure, --dims, --norm-bound, --lipschitz, --nu missing"),
        (OPTIONS[:-2], "--nu missing"),
        (["drop-wave"], "missing for the stages 'h' (kernel and norm_bound)"),
        (["certified-join"], "breaks the chain of layers"),
        (["certified-chain", "--nu", "2.5"], "leave out --nu"),
        (["nonsense"], "SPEC must be a built-in problem"),
        ([*OPTIONS, "--horizon", "0"], "horizon T must be a whole number ≥ 1; got 0"),
        ([*OPTIONS, "--points", "0"], "points must be a whole number"),
        ([*OPTIONS, "--dims", "2,2"], "every layer of a chain but the first has one input"),
        ([*OPTIONS, "--dims", "2,1.5"], "--dims must be whole numbers"),
        ([*OPTIONS, "--dims", "2,inf"], "whole numbers ≥ 1"),
        ([*OPTIONS, "--norm-bound", "two"], "--norm-bound must be numbers separated by commas"),
        ([*OPTIONS, "--norm-bound", "1,2"], "one for each of the 3 layers; got 2"),
        ([*OPTIONS, "--lipschitz", "-1"], "lipschitz must be a finite number above 0"),
        ([*OPTIONS, "--lipschitz", "1e200"], "exceeds the largest floating-point number"),
        ([*OPTIONS, "--lipschitz", "1e201"], "lipschitz must lie between 1e-200 and 1e+200"),
        ([*OPTIONS, "--lengthscale", "0"], "lengthscale must be a finite number above 0"),
        ([*OPTIONS, "--structure", "ring"], "structure must be one of chain, multi-output, feed-forward"),
        ([*OPTIONS, "--json", "--markdown"], "give one of them"),
    ],
)
def test_invalid_options_exit_with_code_2_and_advice(arguments, complaint):
    result = run(*arguments)
    assert result.exit_code == 2
    assert complaint in result.output
