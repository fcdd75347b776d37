"""Declared measurement errors: valid and invalid ones, in stages, stores, files and studies."""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cascada as cd
from cascada.store.description import amendable, describe, differences, network_from
from tests.network.cases import SE, X

TWO: dict[str, Any] = {"controls": X, "outputs": ["u", "v"], "kernel": SE, "norm_bound": 1.0}


def described(**options: Any) -> dict[str, Any]:
    return describe(cd.chain(cd.Stage("f", **(TWO | options)), objective="f.u"), {})


@pytest.mark.parametrize(
    ("error", "sizes"),
    [
        (None, [0, 0]),
        (0, [0, 0]),
        (0.01, [0.01, 0.01]),
        (cd.Bounded(0.01), [0.01, 0.01]),
        ([0.0, 0.02], [0, 0.02]),
        (cd.Bounded((0.0, 0.02)), [0, 0.02]),
        (np.array([0.1, 0.2]), [0.1, 0.2]),
        (cd.Bounded(0.0), [0, 0]),
    ],
)
def test_an_error_is_one_number_or_one_per_output(error: Any, sizes: list[float]) -> None:
    stage = cd.Stage("f", error=error, **TWO)
    assert stage.error_bound.tolist() == sizes
    assert (stage.error is None) == (not any(sizes))
    assert cd.chain(stage, objective="f.u").read_with_errors == any(sizes)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"error": -0.1}, r"stage 'f': the size of a bounded error must be between 0 and .*; got -0.1"),
        ({"error": np.nan}, "must be finite numbers, one or one per output; got nan"),
        ({"error": True}, "must be finite numbers, one or one per output; got True"),
        ({"error": "small"}, "must be a number, one per modelled output, or 'estimate'; got 'small'"),
        ({"error": [0.1, 0.1, 0.1]}, r"one number or one per modelled output \(2\); got 3 numbers"),
        ({"error": [[0.1]]}, "must be finite numbers, one or one per output"),
        ({"error": 1e120}, "must be between 0 and"),
        ({"forwards": "both"}, "forwards must be 'value' or 'reading'; got 'both'"),
        (
            {"error": 0.1, "kernel": cd.BlockKernel("own", lambda x, z: x + z), "norm_bound": 1.0},
            r"error= is not supported with the kernel .*; use Separable",
        ),
    ],
)
def test_an_invalid_error_raises_a_message_with_the_remedy(options: dict[str, Any], message: str) -> None:
    with pytest.raises(cd.ArgumentError, match=message):
        cd.Stage("f", **(TWO | options))


def test_a_formula_has_no_readings() -> None:
    with pytest.raises(cd.ArgumentError, match=r"this stage has none .* Leave it out"):
        cd.Stage("f", controls=X, known=True, function=lambda x: x, lipschitz=1.0, error=0.1)


def test_a_stage_of_one_output_keeps_the_error_of_that_output() -> None:
    stage = cd.Stage("f", error=[0.0, 0.02], **TWO)
    assert [stage.part(output).error_bound.tolist() for output in ("u", "v")] == [[0], [0.02]]


@pytest.mark.parametrize(
    ("error", "sizes", "scales"),
    [
        (cd.SubGaussian(0.05), [0, 0], [0.05, 0.05]),
        (cd.SubGaussian([0.0, 0.05]), [0, 0], [0, 0.05]),
        (cd.Bounded(0.01) + cd.SubGaussian(0.05), [0.01, 0.01], [0.05, 0.05]),
        (cd.SubGaussian((0.05, 0.0)) + cd.Bounded(0.01), [0.01, 0.01], [0.05, 0]),
        (cd.Bounded(0.5) + cd.SubGaussian(0.05) + cd.Bounded((0.0, 0.25)), [0.5, 0.75], [0.05, 0.05]),
        (cd.Bounded(0.0) + cd.SubGaussian(0.05), [0, 0], [0.05, 0.05]),
        (cd.Bounded(0.01) + cd.SubGaussian(0.0), [0.01, 0.01], [0, 0]),
        (cd.Bounded(0.0) + cd.SubGaussian(0.0), [0, 0], [0, 0]),
        (cd.Bounded(0.5) + cd.Bounded(0.25), [0.75, 0.75], [0, 0]),
    ],
)
def test_scatter_and_bounded_errors_are_added(error: Any, sizes: list[float], scales: list[float]) -> None:
    stage = cd.Stage("f", error=error, **TWO)
    assert stage.error_bound.tolist() == pytest.approx(sizes, rel=1e-15)
    assert stage.error_scale.tolist() == scales
    assert (stage.bounded_error is None) == (not any(sizes))
    assert (stage.sub_gaussian is None) == (not any(scales))
    network = cd.chain(stage, objective="f.u")
    assert (network.read_with_errors, network.scattered) == (any(sizes + scales), any(scales))
    for j, output in enumerate(("u", "v")):
        part = stage.part(output)
        assert part.error_bound.tolist() == pytest.approx(sizes[j : j + 1], rel=1e-15)
        assert part.error_scale.tolist() == scales[j : j + 1]
    assert network_from(described(error=error)).stages[0].error == stage.error


def test_the_sum_of_bounded_errors_is_rounded_up() -> None:
    total = cd.Bounded(0.1) + cd.Bounded(0.2)
    assert isinstance(total, cd.Bounded)
    assert isinstance(total.size, float)
    assert Fraction(total.size) >= Fraction(0.1) + Fraction(0.2)


def test_an_error_with_scatter_is_described_by_its_parts() -> None:
    both = described(error=cd.Bounded(0.01) + cd.SubGaussian((0.05, 0.1)))
    assert both["stages"][0]["error"] == {"bounded": [0.01, 0.01], "sub_gaussian": [0.05, 0.1]}
    assert described(error=cd.SubGaussian(0.05))["stages"][0]["error"] == {"sub_gaussian": [0.05, 0.05]}
    assert repr(cd.SubGaussian(0.05)) == "SubGaussian(scale=0.05)"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: cd.SubGaussian(-0.1), r"the scale of a sub-Gaussian error must be between 0 and .*; got -0.1"),
        (lambda: cd.SubGaussian(np.nan), "the scale of a sub-Gaussian error must be finite numbers"),
        (lambda: cd.SubGaussian("small"), "the scale of a sub-Gaussian error must be a number; got 'small'"),  # type: ignore[arg-type]
        (lambda: cd.SubGaussian(0.1) + cd.SubGaussian(0.2), r"the sum of two sub-Gaussian errors .*R1² \+ R2²"),
        (lambda: cd.SubGaussian(0.1) + cd.Bounded(0.1) + cd.SubGaussian(0.2), "the sum of two sub-Gaussian errors"),
        (lambda: cd.Bounded((0.1, 0.2)) + cd.Bounded((0.1, 0.2, 0.3)), "errors can be added for the same outputs only"),
        (lambda: cd.Stage("f", error=cd.SubGaussian((0.1, 0.2, 0.3)), **TWO), "got 3 numbers"),
        (
            lambda: cd.Stage("f", error=cd.SubGaussian(0.1), **(TWO | {"kernel": cd.Separable(SE)})),
            r"stage 'f': error=SubGaussian\(...\) is not supported with the joint norm of the kernel .*error=Bounded",
        ),
        (
            lambda: cd.Stage(
                "f",
                error=cd.SubGaussian(0.1),
                **(TWO | {"kernel": cd.BlockKernel("own", lambda x, z: x + z), "norm_bound": 1.0}),
            ),
            "error= is not supported with the kernel",
        ),
    ],
)
def test_invalid_scatter_raises_a_message_with_the_remedy(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(cd.ArgumentError, match=message):
        make()


def test_numbers_are_not_added_to_errors() -> None:
    with pytest.raises(TypeError):
        cd.SubGaussian(0.1) + 0.1


def test_an_error_at_its_default_is_not_written_into_a_description() -> None:
    assert described() == described(error=0, forwards="value")
    assert not {"error", "forwards"} & set(described()["stages"][0])


def test_an_error_is_stored_and_may_be_amended_but_forwards_may_not() -> None:
    old, new = described(error=0.01), described(error=cd.Bounded((0.01, 0.02)), forwards="reading")
    assert new["stages"][0]["error"] == {"bounded": [0.01, 0.02]}
    stage = network_from(new).stages[0]
    assert (stage.error_bound.tolist(), stage.forwards) == ([0.01, 0.02], "reading")
    assert differences(old, new) == [
        "stages.f.error.bounded: stored [0.01, 0.01], given [0.01, 0.02]",
        'stages.f.forwards: stored "value", given "reading"',
    ]
    assert amendable(old, described(error=0.3))
    assert not amendable(old, new)


@pytest.mark.parametrize("error", ["0.01", "{ bounded = 0.01 }", "{ bounded = [0.01] }"])
def test_a_file_declares_an_error_as_a_number_or_a_table(tmp_path: Path, error: str) -> None:
    file = tmp_path / "process.toml"
    text = f'[[stage]]\nname = "f"\ncommand = ["f"]\nerror = {error}\nforwards = "reading"\n[stage.controls]\n'
    file.write_text(text + "x = { low = 0, high = 1 }\n")
    stage = cd.load(str(file)).stages[0]
    assert (stage.error_bound.tolist(), stage.forwards) == ([0.01], "reading")


def test_a_file_declares_scatter_in_a_table(tmp_path: Path) -> None:
    file = tmp_path / "process.toml"
    text = (
        '[[stage]]\nname = "f"\ncommand = ["f"]\nerror = { bounded = 0.01, sub_gaussian = [0.05] }\n[stage.controls]\n'
    )
    file.write_text(text + "x = { low = 0, high = 1 }\n")
    stage = cd.load(str(file)).stages[0]
    assert (stage.error_bound.tolist(), stage.error_scale.tolist()) == ([0.01], [0.05])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('error = "small"', r"error \(stage 'f'\) must be a number, a list with one for every output, a table"),
        ("error = { bound = 0.1 }", r"error.bound \(stage 'f'\) is not known \(did you mean bounded\?\)"),
        ("error = { sub_gaussian = -1 }", "the scale of a sub-Gaussian error must be between"),
        ("error = {}", "error .*needs bounded or sub_gaussian"),
        ("error = -1", "the size of a bounded error must be between"),
        ('forwards = "both"', r'forwards \(stage \'f\'\) must be "value" or "reading"; got "both"'),
    ],
)
def test_a_mistake_in_a_file_is_named(tmp_path: Path, line: str, message: str) -> None:
    file = tmp_path / "process.toml"
    text = f'[[stage]]\nname = "f"\ncommand = ["f"]\n{line}\n[stage.controls]\nx = {{ low = 0, high = 1 }}\n'
    file.write_text(text)
    with pytest.raises(cd.ArgumentError, match=message):
        cd.load(str(file))
