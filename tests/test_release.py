"""Files of a release agree with each other: versions, and requirements of the conda recipe."""

import re
import tomllib
from pathlib import Path

import cascada

ROOT = Path(__file__).parents[1]
RECIPE = (ROOT / "recipe.yaml").read_text(encoding="utf-8")


def test_recipe_and_citation_have_the_version_of_the_package():
    assert re.findall(r"^  version: (\S+)$", RECIPE, re.MULTILINE)[0] == cascada.__version__
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.findall(r"^version: (\S+)$", citation, re.MULTILINE) == [cascada.__version__]


def test_the_changelog_begins_with_the_version_of_the_package():
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert cascada.__version__.removesuffix(".dev0") in re.findall(r"^## (.*)$", changes, re.MULTILINE)[0]


def test_the_recipe_requires_what_the_wheel_requires():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    run = RECIPE[RECIPE.index("  run:") : RECIPE.index("tests:")]
    required = [line.strip("- ").replace(" ", "") for line in run.splitlines() if line.startswith("    - ")]
    assert required == [f"python{project['requires-python']}", *project["dependencies"]]
    assert f"summary: {project['description']}" in RECIPE


def test_every_citation_of_the_paper_has_an_entry():
    text = (ROOT / "paper" / "paper.md").read_text(encoding="utf-8")
    cited = set(re.findall(r"@(\w+)", text))
    known = set(re.findall(r"^@\w+\{(\w+),", (ROOT / "paper" / "paper.bib").read_text(encoding="utf-8"), re.MULTILINE))
    assert cited == known
