"""Near names: what is suggested for a mistyped name, in Python and for a SPEC."""

import inspect
from pathlib import Path
from typing import Any

import pytest

import cascada
from cascada.errors import ArgumentError
from cascada.near_names import did_you_mean, near_name, with_near_names

NAMES = ["norm_bound", "kernel", "lipschitz", "gpn_ei", "gpn_ucb", "dose"]


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("norm", "norm_bound"),
        ("gpn-ei", "gpn_ei"),
        ("GPN EI", "gpn_ei"),
        ("kernal", "kernel"),
        ("bound", "norm_bound"),
        ("dosis", "dose"),
        ("no", None),
        ("", None),
        ("pressure", None),
        (3, None),
    ],
)
def test_the_near_name_of_a_mistyped_one(name, near):
    assert near_name(name, NAMES) == near
    assert did_you_mean(name, NAMES) == ("" if near is None else f" (did you mean {near}?)")


def test_a_checked_function_keeps_its_signature_and_refuses_unknown_arguments():
    def area(width: float, height: float = 1.0) -> float:
        """Return the area."""
        return width * height

    checked: Any = with_near_names(area)
    assert inspect.signature(checked) == inspect.signature(area)
    assert checked.__doc__ == "Return the area."
    assert checked(2.0, height=3.0) == 6.0
    with pytest.raises(ArgumentError, match=r"area\(\) has no argument 'heigth' \(did you mean height\?\)\.$"):
        checked(2.0, heigth=3.0)
    with pytest.raises(ArgumentError, match=r"has no argument 'colour'; its arguments are width, height\.$"):
        checked(2.0, colour=3.0)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'width'"):
        checked()


cd: Any = cascada  # wrong calls are not for the type checker
STAGE = cd.Stage("mix", controls={"dose": cd.Real(0, 1)}, kernel=cd.SquaredExponential(1.0), norm_bound=1.0)
NETWORK = cd.chain(STAGE)


@pytest.mark.parametrize(
    ("call", "meant"),
    [
        (lambda: cd.Stage("mix", norm=2), "norm_bound"),
        (lambda: cd.maximise(NETWORK, [abs], budgets=3), "budget"),
        (lambda: cd.minimise(NETWORK, [abs], budget=3, toleranse=1), "tolerance"),
        (lambda: cd.Study(NETWORK, algoritm="ei"), "algorithm"),
        (lambda: cd.Study.open("sqlite:///none.db", "mix", netwrok=NETWORK), "network"),
        (lambda: cd.Study(NETWORK).optimise([abs], budget=3, job=2), "jobs"),
        (lambda: cd.Study(NETWORK, algorithm="gpn-ei"), "gpn_ei"),
        (lambda: cd.chain(STAGE, objective="mixx"), "mix.mix"),
        (lambda: cd.chain(STAGE, cd.Stage("cure", parents=["mixx"])), "mix"),
        (lambda: (study := cd.Study(NETWORK)).tell_stage(study.ask() or 0, "mixx", 1.0), "mix"),
        (lambda: cd.Study(NETWORK).begin_trial({"dos": 0.5}), "dose"),
        (lambda: cd.load("certifed-chain"), "certified-chain"),
    ],
)
def test_a_mistyped_name_in_python_is_an_error_with_the_near_one(call, meant, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ArgumentError, match=rf"\(did you mean {meant}\?\)"):
        call()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("name", "meant"), [("maximize", "maximise"), ("Realy", "Real"), ("matern", "Matern")])
def test_a_mistyped_name_of_the_package_is_an_error_with_the_near_one(name, meant):
    with pytest.raises(AttributeError, match=rf"no attribute '{name}' \(did you mean {meant}\?\)$"):
        getattr(cd, name)


# ---- SPEC

FILE = """
import cascada as cd

mix = cd.Stage("mix", controls={"dose": cd.Real(0, 1)}, function=abs)
process = cd.chain(mix)
"""


@pytest.fixture
def chem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "chem_near.py").write_text(FILE)
    return tmp_path / "chem_near.py"


def test_a_spec_with_a_mistyped_object_names_the_near_one(chem):
    with pytest.raises(ArgumentError, match=r"has no object 'proces' \(did you mean process\?\)"):
        cd.load(f"{chem.name}:proces")
    with pytest.raises(ArgumentError, match=r"has no object 'plant'; it has process\."):
        cd.load(f"{chem.name}:plant")


def test_a_file_without_an_object_names_its_only_network_and_is_not_run(chem):
    chem.write_text(FILE + "\nraise RuntimeError('this file was run')\n")
    with pytest.raises(ArgumentError, match=r"got 'chem_near.py' \(did you mean chem_near.py:process\?\)"):
        cd.load("chem_near.py")
    chem.write_text(FILE + "\nother = cd.chain(mix)\n")
    with pytest.raises(ArgumentError, match=r"name an object, as in chem_near.py:network"):
        cd.load("chem_near.py")
    with pytest.raises(ArgumentError, match=r"there is no file other.py"):
        cd.load("other.py")
