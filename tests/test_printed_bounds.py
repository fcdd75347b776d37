"""Tests that printed gaps and bounds are true in all units: in certificates, on the command line and in reports."""

import base64
import json
import math
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from cascada.cli.main import app
from cascada.kernels import SquaredExponential
from cascada.network import Network, Stage, chain
from cascada.outwards import no_better
from cascada.report.page import report_html
from cascada.space import Real
from cascada.study import Study, maximise, minimise
from cascada.study.certificate import Certificate

UNITS = [
    (1e-6, 0.0),
    (1e-6, 3.0),
    (1.0, 0.0),
    (1.0, -40.0),
    (1.0, 1e6),
    (1e6, 0.0),
    (1e6, -2e9),
    (1e-90, 0.0),
    (1e90, 1e91),
]
PROCESS = """
import math
import cascada as cd

kernel = cd.SquaredExponential(1.0)
f = cd.Stage("f", controls={"x": cd.Real(-2, 2)}, kernel=kernel, norm_bound=2.0,
             function=lambda x: 1.5 * math.exp(-0.5 * (x - 0.4) ** 2))
g = cd.Stage("g", kernel=cd.SquaredExponential(1.0, variance=UNIT**2), norm_bound=2.0, offset=OFFSET,
             function=lambda f: OFFSET + UNIT * 1.8 * math.exp(-0.5 * (f - 0.9) ** 2))
network = cd.chain(f, g)
"""


def process(unit: float, offset: float) -> Network:
    """Return two stages whose objective has this unit and offset."""
    wide = SquaredExponential(1.0, variance=unit**2)
    return chain(
        Stage("f", {"x": Real(-2, 2)}, kernel=SquaredExponential(1.0), norm_bound=2.0, function=_bump),
        Stage("g", kernel=wide, norm_bound=2.0, offset=offset, function=lambda f: offset + unit * _hill(f)),
    )


def _bump(x: float) -> float:
    return 1.5 * math.exp(-0.5 * (x - 0.4) ** 2)


def _hill(f: float) -> float:
    return 1.8 * math.exp(-0.5 * (f - 0.9) ** 2)


def numbers(pattern: str, text: str) -> list[str]:
    """Return the groups of the only match."""
    found = re.findall(pattern, text)
    assert len(found) == 1, f"{pattern!r} in {text}"
    return [found[0]] if isinstance(found[0], str) else list(found[0])


def check(best: str, bound: str, gap: str, certificate: Certificate | dict[str, Any]) -> None:
    """Check that printed numbers are no tighter than those of full precision, close to them, and consistent."""
    full = certificate if isinstance(certificate, dict) else vars(certificate)
    sign = 1 if full["maximised"] else -1
    exact = Fraction(full["bound"]) - Fraction(full["best"])
    assert sign * Fraction(bound) >= sign * Fraction(full["bound"])
    assert sign * float(best) <= sign * full["best"]
    assert Fraction(bound) - Fraction(best) == sign * Fraction(gap)
    assert sign * exact <= Fraction(full["gap"]), "the gap of full precision is rounded up, too"
    assert sign * exact <= Fraction(gap) <= sign * exact * Fraction(1002, 1000) + 3 * Fraction(math.ulp(full["bound"]))


@pytest.mark.parametrize("optimise", [maximise, minimise])
@pytest.mark.parametrize(("unit", "offset"), UNITS)
def test_a_certificate_and_a_recommendation_print_true_numbers(optimise: Any, unit: float, offset: float) -> None:
    for budget in (1, 6):
        result = optimise(process(unit, offset), budget=budget, algorithm="non_adaptive")
        text = str(result)
        word = "higher" if result.certificate.maximised else "lower"
        pattern = rf"Proven: no setting in .* gives a value {word} than (\S+)\.\nSo .*, (\S+), is within (\S+) of"
        bound, best, gap = numbers(pattern, text)
        check(best, bound, gap, result.certificate)
        assert numbers(r"Best value (\S+) at", text) == [best]
        found = result.recommendation
        assert found is not None
        least = "at least" if found.maximised else "at most"
        pattern = rf"it gives {least} (\S+), and no setting in .* {word} than (\S+): it is within (\S+) of"
        best, bound, gap = numbers(pattern, text)
        check(best, bound, gap, vars(found) | {"best": found.worst})


@pytest.mark.parametrize(("unit", "offset"), UNITS)
def test_the_command_line_prints_true_numbers(tmp_path: Path, unit: float, offset: float) -> None:
    spec = tmp_path / "my_process.py"
    spec.write_text(PROCESS.replace("UNIT", repr(unit)).replace("OFFSET", repr(offset)), encoding="utf-8")
    stored = ["--storage", f"sqlite:///{tmp_path / 'my.db'}"]
    run = ["run", f"{spec}:network", "--budget", "5"]
    status = ["status", "--study", "mine", *stored, "--spec", f"{spec}:network"]
    CliRunner().invoke(app, [*run, *stored, "--study", "mine"])
    for command in (run, status):
        content = json.loads(CliRunner().invoke(app, [*command, "--json"]).output)
        text = CliRunner().invoke(app, command).output
        bound, best, within = numbers(r"higher than (\S+)\.\nSo .*, (\S+), is within (\S+) of", text)
        check(best, bound, within, content["certificate"])
        assert numbers(r"\ngap +(\S+) \(proven\)", text) == [within]
        assert float(*numbers(r"\nbest value +(\S+)", text)) == content["best"]["value"]


@pytest.mark.parametrize("maximised", [True, False])
@pytest.mark.parametrize(("unit", "offset"), UNITS)
def test_a_report_prints_true_numbers(maximised: bool, unit: float, offset: float) -> None:
    pytest.importorskip("plotly")
    network = process(unit, offset)
    study = Study(network if maximised else network.mirrored())
    study.optimise(budget=5, progress=False)
    page = report_html(study, "mine")
    data = json.loads(page.split('id="data">')[1].split("</script>")[0])
    words, facts, certificate = " ".join(data["words"]), dict(data["facts"]), study.certificate()
    bound, gap = numbers(r"gives (?:more|less) than (\S+): the best run is within (\S+) of", words)
    (best,) = numbers(r"gave g = (\S+), at", words)
    check(best, bound, gap, certificate)
    assert facts["gap"] == gap
    assert facts["best value"] == no_better(certificate.best or 0.0, 8, maximised)
    figures = {figure["id"]: figure["figure"] for figure in data["figures"]}
    sign = 1 if maximised else -1
    for shown in (figures["history"]["data"][2], figures["acquisition"]["data"][1]):
        bounds = _floats(shown["y"])
        assert len(bounds) == len(shown["text"]) > 0
        assert all(sign * Fraction(text) >= sign * Fraction(y) for text, y in zip(shown["text"], bounds, strict=True))
        assert "%{text}" in shown["hovertemplate"]
        assert "%{y" not in shown["hovertemplate"]


def _floats(values: Any) -> list[float]:
    """Return the numbers of a figure, which plotly writes as a list or in base 64."""
    if isinstance(values, dict):
        return list(np.frombuffer(base64.b64decode(values["bdata"]), dtype=values["dtype"]).astype(float))
    return [float(value) for value in values]
