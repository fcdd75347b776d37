"""The documentation site, built by `make docs`.

Warnings are errors: a link to nowhere, a page in no table of contents, a docstring that cannot be read. Pages load
nothing from outside. So formulas are written in plain letters: for TeX, Sphinx would load a script from elsewhere.
"""

import re
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from numpy.typing import ArrayLike
from sphinx import addnodes
from sphinx.util.typing import stringify_annotation

sys.path.insert(0, str(Path(__file__).parent / "site"))

import command_pages
import example_pages

import cascada
from cascada.arrays import Array, BoolArray, IntArray
from cascada.process import Functions
from cascada.space import CandidatesLike

project = "cascada"
author = "The cascada authors"
version = release = cascada.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["figures"]
highlight_language = "none"  # indented blocks: commands and what they print
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4  # the anchors that GitHub gives to headings
smartquotes = False  # --json is no dash

html_theme = "furo"
html_title = f"cascada {release}"
html_copy_source = False
html_show_copyright = False
html_static_path = ["static"]
html_css_files = ["site.css"]

# In docstrings `Stage` is a link where the reference has such a thing, and code where it has not.
default_role = "py:obj"
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 88
toc_object_entries_show_parents = "hide"

#: What an alias stands for → its name, the longest first: what they stand for can fill a page.
ALIASES = {
    stringify_annotation(alias, "smart"): name
    for alias, name in (
        (CandidatesLike, "CandidatesLike"),
        (Functions, "Functions"),
        (ArrayLike, "ArrayLike"),
        (Array, "Array"),
        (IntArray, "IntArray"),
        (BoolArray, "BoolArray"),
    )
}


def by_their_names(text: str | None) -> str | None:
    """Types with aliases in the place of what these stand for, as Sphinx writes them or as it shows them."""
    for long, short in ALIASES.items():
        for shape in (long, re.sub(r"~[\w.]+\.", "", long)):
            text = text and text.replace(shape, short)
    return text


def short_signature(_app: Any, _what: str, _name: str, _obj: Any, _options: Any, *parts: Any) -> tuple[Any, ...]:
    """The arguments of a function, and what it returns."""
    return tuple(map(by_their_names, parts))


def short_properties(_app: Any, tree: nodes.document) -> None:
    """The types of properties, of which Sphinx asks nobody."""
    for node in tree.findall(addnodes.desc_annotation):
        before, after = node.astext(), by_their_names(node.astext())
        if before != after:
            node.children = [nodes.Text(after)]


def plain_bars(_app: Any, _what: str, _name: str, _obj: Any, _options: Any, lines: list[str]) -> None:
    """Docstrings are read as reStructuredText, where |x| would be a macro; in ours it is the size of a number."""
    lines[:] = [line.replace("|", r"\|") for line in lines]


def written_now(_app: Any, page: str, source: list[str]) -> None:
    """The command line is what `cascada … --help` says, an example what its file says."""
    folder, _, name = page.rpartition("/")
    if page == "reference/command-line":
        source[0] = source[0].replace("<!-- commands -->", command_pages.as_markdown())
    elif folder == "examples":
        source[0] = example_pages.shown(name)
    elif page == "decisions/README":
        source[0] += "\n```{toctree}\n:hidden:\n:glob:\n\n0*\n```\n"
    elif not folder:
        source[0] = example_pages.links_to_pages(source[0])


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("autodoc-process-signature", short_signature)
    app.connect("doctree-read", short_properties)
    app.connect("autodoc-process-docstring", plain_bars)
    app.connect("source-read", written_now)
