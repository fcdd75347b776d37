"""`cascada hard` as a user calls it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from cascada.cli.main import app
from cascada.experiments.hard_figure import PANELS, hard_figure
from cascada.kernels import Matern
from cascada.theory.amplifier import Amplifier

CALL = (
    "--structure chain --nu 1.5 --lengthscale 1 --u 0.5 --u-tilde 0.3 --norm-bound 5 --depth 3 --dim 1 --epsilon 0.05"
)


def found(arguments: str) -> dict[str, Any]:
    result = CliRunner().invoke(app, ["hard", *arguments.split(), "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.output)


@pytest.mark.parametrize(("nu", "ratio", "top"), [(1, 0.958, 1.7814), (1.5, 0.939, 1.7482), (2, 0.934, 1.6994)])
def test_ratio_and_height_are_those_of_the_paper(nu, ratio, top):
    content = found(CALL.replace("--nu 1.5", f"--nu {nu}"))
    assert content["ratio"] == pytest.approx(ratio, abs=5e-4)
    assert content["g_tilde"] == pytest.approx(top, abs=5e-5)
    assert content["norm"] == pytest.approx(5, rel=1e-10)
    assert content["norms"] == pytest.approx([5, 5, 5], rel=1e-10)
    assert content["height"] == pytest.approx(0.1, rel=1e-10)
    assert content["members"] == int(0.5 / content["width"])


def test_the_other_numbers_of_the_json_output_are_consistent():
    content = found(CALL)
    assert content["heights"][0] == 2 * content["epsilon_1"]
    assert content["alpha"] <= content["amplification"] <= 1
    assert content["chord_slopes"][1] <= content["lipschitz"] * (1 + 1e-12)
    assert content["horizon"] == content["longest_horizon"] == content["members"] // 2 - 1
    assert content["simple_regret"]["value"] >= content["epsilon"]
    assert content["simple_regret"]["status"] == "proven"
    assert {order["status"] for order in content["orders"]} == {"up to a constant"}
    assert "figure" not in content
    later = found(CALL + " --horizon 40")
    assert later["horizon"] == 40
    assert later["simple_regret"]["value"] < content["simple_regret"]["value"]


@pytest.mark.parametrize(
    ("structure", "extra", "dims"),
    [("chain", "", [2, 1, 1]), ("multi-output", "", [2, 2, 2]), ("feed-forward", " --layer-width 3", [2, 3, 3])],
)
def test_all_three_structures_have_layers_of_the_norm_bound(structure, extra, dims):
    content = found(f"--structure {structure} --dim 2{extra}")
    assert (content["structure"], content["dims"]) == (structure, dims)
    assert content["norms"] == pytest.approx([5, 5, 5], rel=1e-10)
    assert content["members"] == content["cells"] ** 2


def test_the_text_output_contains_the_numbers():
    result = CliRunner().invoke(app, ["hard", *CALL.split()])
    assert result.exit_code == 0
    for part in (
        "g̃(ũ) = 1.7482",
        "r_min/r_max = 0.9388",
        "members     49",
        "After 23 runs",
        "up to a constant",
        "thm:lower_cml",
    ):
        assert part in result.output
    assert "figure" not in result.output


def test_the_documentation_contains_the_text_output():
    page = (Path(__file__).parents[2] / "docs" / "lower-bounds.md").read_text(encoding="utf-8")
    printed = CliRunner().invoke(app, ["hard", *CALL.split()]).output
    block = [f"$ cascada hard {CALL}", *printed.splitlines()]
    assert "\n".join(f"    {line}".rstrip() for line in block) in page


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ("--structure tree", "--structure must be chain, multi-output or feed-forward; got 'tree'"),
        ("--depth 0", "--depth, --dim and --layer-width must be 1 or more; got 0, 1 and none"),
        ("--layer-width 2", "later layers of a chain have one input"),
        ("--nu 0.5", "need nu ≥ 1"),
        ("--nu 0", "nu must be a finite number above 0; got 0"),
        ("--lengthscale -1", "lengthscale must be a finite number above 0"),
        ("--u 0.2", "u_tilde must lie below u"),
        ("--norm-bound 1", "condition 2 of thm:hard_chain"),
        ("--epsilon 2", "Use epsilon ≤ 0.874091"),
        ("--horizon -1", "T must be a whole number ≥ 0"),
        ("--figure picture.bmp", "ends in .pdf, .png or .svg"),
    ],
)
def test_invalid_options_exit_with_code_2_and_one_line(arguments, complaint):
    result = CliRunner().invoke(app, ["hard", *arguments.split()])
    assert result.exit_code == 2
    assert complaint in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_number_that_is_none_exits_with_code_2_and_names_its_option():
    result = CliRunner().invoke(app, ["hard", "--nu", "nan"])
    assert result.exit_code == 2
    assert "Invalid value for '--nu': it must be a number; got 'nan'." in result.stderr


@pytest.mark.parametrize("kind", ["png", "pdf"])
def test_the_figure_file_is_reproducible(tmp_path: Path, kind):
    first, second = (tmp_path / "new" / f"{name}.{kind}" for name in ("a", "b"))
    assert found(f"{CALL} --figure {first}")["figure"] == str(first)
    text = CliRunner().invoke(app, ["hard", *CALL.split(), "--figure", str(second)]).output
    assert f"figure      {second}" in text
    assert first.stat().st_size > 2000
    assert first.read_bytes() == second.read_bytes()


def test_a_figure_that_cannot_be_written_exits_with_code_2(tmp_path: Path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    result = CliRunner().invoke(app, ["hard", "--figure", str(tmp_path / "file" / "a.png")])
    assert result.exit_code == 2
    assert "cannot be written" in result.stderr


def test_the_figure_has_the_panels_and_the_marked_point_of_the_paper():
    """fig:gtil: a panel for ν = 1, 3/2, 2, each with k and g̃_k and the point (ũ, g̃_k(ũ))."""
    amplifier = Amplifier(Matern(1.5), 5.0, 0.5, 0.3)
    panels = hard_figure(amplifier).axes
    assert len(panels) == len(PANELS) == 3
    for axes, ratio, top in zip(panels, (0.958, 0.939, 0.934), (1.7814, 1.7482, 1.6994), strict=True):
        kernel, curve, point = (np.asarray(line.get_xydata(), dtype=float) for line in axes.lines)
        assert kernel[:, 1].max() == pytest.approx(1.0)
        assert curve[:, 1].max() > top > 1
        np.testing.assert_allclose(point, [[0.3, top]], atol=5e-5)
        assert f"{ratio:.3f}" in axes.get_title()
    assert len(hard_figure(Amplifier(Matern(3.0), 5.0, 0.5, 0.3)).axes) == 4  # its own smoothness as well
