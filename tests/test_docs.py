"""Tests of the documentation: its links, its code, and the build of the site without warnings."""

import gc
import re
import subprocess
import sys
import zlib
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path

import pytest

from tests import pages
from tests.forked import commands
from tests.missing import need_module
from tests.pages import ROOT

#: Pages whose code is run, from the first block to the last; they are in docs/, except the README.
RUN = (
    "README",
    "tutorial",
    "norms",
    "limits",
    "errors",
    "choices",
    "contexts",
    "robust",
    "costs",
    "stopping",
    "labs",
    "studies",
    "describing-your-process",
    "writing-an-algorithm",
    "problems",
)

#: Packages whose public names the reference must contain.
PACKAGES = (
    "",
    ".algorithms",
    ".calibration",
    ".confidence",
    ".errors",
    ".gp",
    ".kernels",
    ".network",
    ".problems",
    ".report",
    ".search",
    ".study",
    ".theory",
)


# ---- links


def test_every_link_has_a_target():
    found = [complaint for page in pages.pages() for complaint in pages.broken(page)]
    assert not found, "\n".join(found)


def test_the_check_of_links_detects_broken_ones(tmp_path):
    (tmp_path / "other.md").write_text("# `Other` things: A, B\n\n## Twice\n\n## Twice\n")
    page = tmp_path / "page.md"
    good = "[a](other.md) [b](other.md#other-things-a-b) [c](#here) [d](other.md#twice-1) <https://a.org> ![e](page.md)"
    page.write_text(f"# Here\n\n{good}\n\n`[code](nowhere.md)`\n\n    [code](nowhere.md)\n")
    assert list(pages.broken(page)) == []
    page.write_text(
        "# Here\n\n[a](no.md)\n\n| |\n|---|\n| [b](other.md#no) ![c](no.png) [d](#no) [e](http://a.org) |\n"
    )
    assert [complaint.partition(": ")[2] for complaint in pages.broken(page)] == [
        "no.md: there is no such file",
        "other.md#no: there is no such heading",
        "no.png: there is no such file",
        "#no: there is no such heading",
        "http://a.org: links out of here begin with https://",
    ]


def test_every_example_has_a_page():
    examples = ROOT / "examples"
    names = {path.stem for path in examples.glob("*.py")} | {path.parent.name for path in examples.glob("*/README.md")}
    assert {path.stem for path in (ROOT / "docs" / "examples").glob("*.md")} - {"index"} == names


# ---- code


@pytest.fixture(scope="module")
def forks(tmp_path_factory):
    """Return a folder with a `cascada` that starts quickly."""
    return commands(tmp_path_factory.mktemp("forks"))


@pytest.mark.parametrize("name", RUN)
def test_the_code_of_a_page_prints_what_the_page_shows(name, tmp_path, monkeypatch, request):
    need_module("plotly", "report")
    page = (ROOT if name == "README" else ROOT / "docs") / f"{name}.md"
    assert pages.blocks(page), f"{page} has no code"
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delenv("CASCADA_STORAGE", raising=False)
    forget_modules_in(tmp_path.parent)
    # The README runs the command as installed.
    first = [] if name == "README" else [request.getfixturevalue("forks")]
    try:
        pages.run(page, tmp_path, *first)
    finally:
        forget_modules_in(tmp_path)
        gc.collect()


def forget_modules_in(folder):
    """Unload modules that a page or another test wrote: another module may have the same name."""
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", "")).startswith(str(folder)):
            del sys.modules[name]


def test_the_check_of_code_detects_wrong_output_and_errors(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```python\nx = 2.5\n```\n\n```python\nprint(x, 1 / 3)\n```\n\n```text\n2.5 0.33...\n```\n")
    pages.run(page, tmp_path)
    page.write_text(page.read_text().replace("0.33", "0.34"))
    with pytest.raises(AssertionError, match=r"page.md:6 prints\n2.5 0.333"):
        pages.run(page, tmp_path)
    page.write_text("```sh\nexport A=b\n```\n\n```sh\necho $A\n```\n\n```text\nb\n```\n\n```sh\nfalse\ntrue\n```\n")
    with pytest.raises(AssertionError, match="false\ntrue\n\nended with 1"):
        pages.run(page, tmp_path)


# ---- the site

#: A build without what gives no warnings and loads nothing: words of the search index are not stemmed, and objects are
#: in no table of contents (an option below). Nor is garbage collected, because the trees of all pages stay until the
#: end. All of this would take half of the time.
BUILD = """
import gc, sys
from sphinx.cmd.build import main
from sphinx.search.en import SearchEnglish

SearchEnglish.stem = lambda _, word: word
gc.disable()
sys.exit(main(sys.argv[1:]))
"""


def test_the_site_builds_without_a_warning(tmp_path):
    for module in ("sphinx", "myst_parser", "furo"):
        need_module(module, "docs")
    # One test for all checks, because several workers would build the site several times.
    options = ["-q", "-E", "-W", "--keep-going", "-D", "toc_object_entries=0", "docs", str(tmp_path)]
    command = [sys.executable, "-c", BUILD, *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    loaded = {f"{file.name}: {url}" for file in sorted(tmp_path.rglob("*")) for url in outside(file)}
    assert not loaded, f"pages load something from outside: {loaded}"
    missing = undescribed(described(tmp_path / "objects.inv"))
    assert not missing, f"the reference lacks {', '.join(missing)}: add them to a page of docs/reference"


class _Loads(HTMLParser):
    """Parser that collects what a page loads: scripts, styles, icons, images, frames; not links."""

    def __init__(self) -> None:
        super().__init__()
        self.urls: list[str] = []

    def handle_starttag(self, tag, attrs):
        if tag not in ("a", "base"):
            self.urls += [
                value for name, value in attrs if name in ("src", "href", "srcset", "data", "poster") and value
            ]


def outside(file: Path) -> list[str]:
    """Return the addresses on other servers that a file of the site loads."""
    if file.suffix == ".html":
        parser = _Loads()
        parser.feed(file.read_text(encoding="utf-8"))
        urls = parser.urls
    elif file.suffix == ".css":
        urls = re.findall(r"(?:url\(|@import)\s*[\"']?([^\"')]*)", file.read_text(encoding="utf-8"))
    else:
        return []
    return [url for url in urls if re.match(r"(\w+:)?//", url)]


def test_the_check_of_loaded_addresses_detects_other_servers(tmp_path):
    page = tmp_path / "page.html"
    page.write_text('<a href="https://a.org">a</a> <img src="a.png"> <script async src="https://cdn.org/mathjax.js">')
    assert outside(page) == ["https://cdn.org/mathjax.js"]
    style = tmp_path / "page.css"
    style.write_text('@import "//fonts.org/a.css"; a {background: url(a.png), url("http://a.org/b.png")}')
    assert outside(style) == ["//fonts.org/a.css", "http://a.org/b.png"]


def described(inventory: Path) -> set[str]:
    """Return the names that the reference contains."""
    header, _, packed = inventory.read_bytes().partition(b"zlib.\n")
    assert header.startswith(b"# Sphinx inventory version 2")
    return {line.split(" ")[0] for line in zlib.decompress(packed).decode().splitlines()}


def undescribed(names: set[str]) -> list[str]:
    """Return the public names in `__all__` that the reference contains under none of their names."""
    found: dict[int, set[str]] = {}
    for package in PACKAGES:
        module = import_module(f"cascada{package}")
        for name in set(module.__all__) - {"__version__"}:
            found.setdefault(id(getattr(module, name)), set()).add(f"{module.__name__}.{name}")
    return sorted(min(known) for known in found.values() if not known & names)
