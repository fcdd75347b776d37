"""The examples as pages: `examples/lab.py` is shown as `docs/examples/lab.md`, its cells as text and code."""

import re
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"

#: A link to an example: a script, or a folder with a README.md.
_FILE = r"([\w-]+)(?:\.py|/README\.md)(?=[)#])"


def shown(name: str) -> str:
    """The page of an example, or the list of all, `index`."""
    if name == "index":
        text = _pages(r"\]\(", "](", (EXAMPLES / "README.md").read_text(encoding="utf-8"))
        others = sorted(path.stem for path in (EXAMPLES.parent / "docs" / "examples").glob("*.md") if path.stem != name)
        listed = sorted(others, key=lambda other: text.find(f"]({other}.md"))  # in the order of the list
        contents = "\n".join(["```{toctree}", ":hidden:", "", *listed, "```"])
        return f"{text}\n{contents}\n".replace("](../docs/", "](../")
    script = EXAMPLES / f"{name}.py"
    if script.exists():
        cells = re.split(r"^# %%", script.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
        return "\n\n".join(filter(None, map(_cell, cells))).replace("](../docs/", "](../")
    return (EXAMPLES / name / "README.md").read_text(encoding="utf-8").replace("](../../docs/", "](../")


def links_to_pages(text: str) -> str:
    """Links of a page in docs/ to an example lead to its page."""
    text = text.replace("](../examples/README.md", "](examples/index.md")
    return _pages(r"\]\(\.\./examples/", "](examples/", text)


def _pages(before: str, after: str, text: str) -> str:
    return re.sub(before + _FILE, rf"{after}\1.md", text)


def _cell(cell: str) -> str:
    kind, _, body = cell.partition("\n")
    body = body.strip("\n")
    if "[markdown]" in kind:
        return "\n".join(line.removeprefix("#").removeprefix(" ") for line in body.splitlines())
    return f"```python\n{body}\n```" if body else ""
