"""The report: one self-contained file, its content and its appearance in a browser."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cascada.cli.main import app
from cascada.outwards import no_better
from cascada.report import report_html, write_report
from cascada.store.address import printable_url
from cascada.study import Study
from tests.report.browser import Browser, recorded_page
from tests.report.cases import (
    ODD,
    estimated,
    finished,
    impossible,
    joint,
    odd,
    proven,
    ran,
    recommending,
    refuted,
    unsatisfied,
)

STUDIES: dict[str, Callable[[], Study]] = {
    "proven": lambda: finished(proven),
    "estimated": lambda: finished(estimated),
    "joint": lambda: finished(joint),
    "odd": lambda: finished(odd),
    "recommending": recommending,
    "unsatisfied": unsatisfied,
    "impossible": impossible,
    "refuted": refuted,
    "empty": lambda: Study(proven()),
}


def best_value(study: Study) -> str:
    best = study.best_trial
    if best is None or best.value is None:
        return "none feasible" if any(trial.value is not None for trial in study.trials) else "none yet"
    return no_better(best.value, 8, study.network.sign > 0)


def embedded(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data


@pytest.mark.parametrize("case", STUDIES)
def test_a_report_contains_the_results_of_the_study(case: str) -> None:
    study = STUDIES[case]()
    page = report_html(study, ODD)
    assert len(page.encode()) < 6e6
    assert ODD not in page.replace(json.dumps(ODD), "")  # no name is markup
    data = embedded(page)
    certificate = study.certificate()
    facts = dict(data["facts"])
    assert facts["best value"] == best_value(study)
    none = "none: no setting satisfies the limits" if certificate.answer == "infeasible" else "none"
    assert facts["gap"] == (none if certificate.shown is None else certificate.shown.gap)
    assert len(data["trials"]["rows"]) == len(study.trials)
    words = " ".join(data["words"])
    assert ("proven that" in words) == (certificate.kind == "proven" and certificate.gap is not None)
    assert ("refute" in words) == (certificate.kind == "refuted")


def test_a_report_shows_corrections() -> None:
    study = ran(proven(), 2)
    study.correct(1, "mix", 0.75, reason=ODD)
    page = report_html(study, "lab")
    assert ODD not in page  # no reason is markup
    rows = embedded(page)["trials"]["rows"]
    assert rows[0][1] == "complete"
    assert rows[1][1].startswith("complete; mix was corrected, before: ")
    assert rows[1][1].endswith(f"({ODD})")


def test_cascada_report_writes_a_report(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/alloy.db"
    Study.open(url, "alloy", proven(), algorithm="random_search").optimise(budget=3, progress=False)
    out = tmp_path / "alloy.html"
    result = CliRunner().invoke(app, ["report", "--storage", url, "--study", "alloy", "-o", str(out)])
    assert result.exit_code == 0, result.output
    assert str(out) in result.output
    assert len(embedded(out.read_text())["trials"]["rows"]) == 3
    result = CliRunner().invoke(app, ["report", "--storage", url, "--study", "alloy", "-o", str(tmp_path / "no" / "x")])
    assert (result.exit_code, "cannot write" in result.stderr) == (1, True)


def test_the_only_study_of_a_store_needs_no_name(tmp_path: Path) -> None:
    url, out = f"sqlite:///{tmp_path}/alloy.db", tmp_path / "alloy.html"
    for name, code in (("alloy", 0), ("another", 2)):
        Study.open(url, name, proven(), algorithm="random_search").optimise(budget=1, progress=False)
        result = CliRunner().invoke(app, ["report", "--storage", url, "-o", str(out)])
        assert result.exit_code == code, result.output
    assert embedded(out.read_text())["name"] == "alloy"
    assert "alloy, another" in result.stderr


def test_the_command_shown_in_a_report_has_no_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert printable_url("postgresql://lab:secret@db/studies") == "postgresql://lab:***@db/studies"
    url = f"sqlite:///{tmp_path}/alloy.db"
    Study.open(url, "an alloy", proven(), algorithm="random_search").optimise(budget=1, progress=False)
    monkeypatch.setenv("CASCADA_STORAGE", url)
    out = tmp_path / "alloy.html"
    result = CliRunner().invoke(app, ["report", "--study", "an alloy", "-o", str(out)])
    assert result.exit_code == 0, result.output
    assert embedded(out.read_text())["command"] == f"cascada report --storage {url} --study 'an alloy' -o {out}"


# ---- in a browser


@contextmanager
def opened(browser: Browser, path: Path, **options: Any) -> Iterator[tuple[Any, list[str], list[str]]]:
    """Show a file in a page; yield the page, its errors and the addresses it requested."""
    with recorded_page(browser, **options) as (page, errors, requested):
        page.goto(path.as_uri())
        page.wait_for_function("document.querySelectorAll('.plot .main-svg').length > 0")
        yield page, errors, requested


@pytest.mark.parametrize(("case", "scheme"), [*((case, "light") for case in STUDIES), ("proven", "dark")])
def test_a_browser_shows_the_whole_report(browser: Browser, report_file: Path, case: str, scheme: str) -> None:
    study = STUDIES[case]()
    write_report(study, ODD, report_file)
    with opened(browser, report_file, color_scheme=scheme) as (page, errors, requested):
        assert page.inner_text("h1") == ODD
        assert page.title() == f"{ODD} · cascada"
        best = study.best_trial
        assert page.inner_text("[data-fact='best value']") == best_value(study)
        assert page.locator("#trials tbody tr").count() == len(study.trials)
        assert page.locator("tr.best").count() == (best is not None)
        figures = page.locator("#figures figure").count()
        assert figures == page.locator(".plot .main-svg").locator("xpath=..").evaluate_all(
            "plots => new Set(plots.map(p => p.closest('figure'))).size"
        )
        assert page.locator(".plot:not([aria-label])").count() == 0
        assert errors == []
        assert [url for url in requested if not url.startswith(("file:", "data:", "blob:"))] == []


def test_a_report_is_never_wider_than_the_window(browser: Browser, report_file: Path) -> None:
    write_report(finished(estimated), "a name that is long " * 8, report_file)
    for width in (360, 1200):
        with opened(browser, report_file, width=width, height=800) as (page, errors, _):
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert errors == []
