"""Checks of Markdown pages: their links and anchors, and their code, which is run.

In a page that is run, each ```python block continues the one before it, a shell runs each ```sh block in the same
folder, and a ```text block is the expected output of the block before it, where ... matches anything. Indented code is
not run.
"""

import contextlib
import doctest
import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[1]
_MARKDOWN = MarkdownIt("commonmark").enable("table")
_ELLIPSIS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def pages() -> list[Path]:
    """Return every Markdown file of the repository, without those of an environment or a build."""
    folders = [ROOT / name for name in ("docs", "examples")]
    return sorted([*ROOT.glob("*.md"), *(page for folder in folders for page in folder.rglob("*.md"))])


# ---- links


class Link(NamedTuple):
    """The target of a link or an image, as written, and the first line of its paragraph."""

    target: str
    line: int


def links(page: Path) -> Iterator[Link]:
    """Yield all links and images of a page."""
    for block in _tokens(page):
        for token in block.children or ():
            target = token.attrs.get("href") or token.attrs.get("src")
            if target is not None:
                yield Link(str(target), (block.map or [0])[0] + 1)


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and the site create them."""
    tokens = _tokens(page)
    seen: dict[str, int] = {}
    found = set()
    for before, token in pairwise(tokens):
        if before.type == "heading_open":
            words = "".join(one.content for one in token.children or () if one.type in ("text", "code_inline"))
            slug = re.sub(r"[^\w\- ]", "", words.strip().lower()).replace(" ", "-")
            found.add(slug if slug not in seen else f"{slug}-{seen[slug]}")
            seen[slug] = seen.get(slug, 0) + 1
    return found


def broken(page: Path) -> Iterator[str]:
    """Yield a sentence for every link of a page whose file or heading does not exist."""
    for target, line in links(page):
        where = f"{page.name}:{line}: {target}"
        path, _, anchor = target.partition("#")
        if re.match(r"[a-z]+:", path):
            if not path.startswith("https://"):
                yield f"{where}: links out of here begin with https://"
            continue
        file = (page.parent / unquote(path)).resolve() if path else page
        if not file.exists():
            yield f"{where}: there is no such file"
        elif anchor and (file.suffix != ".md" or unquote(anchor) not in anchors(file)):
            yield f"{where}: there is no such heading"


def _tokens(page: Path) -> list[Token]:
    return _MARKDOWN.parse(page.read_text(encoding="utf-8"))


# ---- code


class Block(NamedTuple):
    """Code of a page and its expected output, or None."""

    language: str
    code: str
    line: int
    printed: str | None


def blocks(page: Path) -> list[Block]:
    """Return the code blocks of a page that are run."""
    found: list[Block] = []
    before: Token | None = None
    for token in _tokens(page):
        if token.type == "fence" and token.info in ("python", "sh"):
            found.append(Block(token.info, token.content, (token.map or [0])[0] + 2, None))
        elif token.type == "fence" and token.info == "text" and before is not None and before.type == "fence":
            found[-1] = found[-1]._replace(printed=token.content)
        before = token
    return found


def run(page: Path, folder: Path, commands: Path = Path(sys.executable).parent) -> None:
    """Run the code of a page in a folder; raise `AssertionError` with the block whose output is unexpected.

    `commands` is the folder of the commands that shells find first.
    """
    names: dict[str, Any] = {"__name__": "page"}
    exports = ""
    for language, code, line, printed in blocks(page):
        if language == "sh":
            got = _shell(exports + code, folder, commands)
            exports += "".join(f"{one}\n" for one in code.splitlines() if one.startswith("export "))
        else:
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                # Empty lines before the code, so that a traceback has the line number of the page.
                exec(compile("\n" * (line - 1) + code, str(page), "exec"), names)
            got = out.getvalue()
        if printed is not None and not doctest.OutputChecker().check_output(printed, got, _ELLIPSIS):
            raise AssertionError(f"{page.name}:{line} prints\n{got}\nand the page says\n{printed}")


def _shell(code: str, folder: Path, commands: Path) -> str:
    path = f"{commands}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-e"],
        input=code,
        cwd=folder,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{code}\nended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
    return done.stdout
