"""The examples as Jupyter notebooks: `examples/lab.py` becomes `examples/notebooks/lab.ipynb`, without outputs.

    python docs/site/example_notebooks.py

writes them again after an example was changed.
"""

import json
import re
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parents[2] / "examples"
NOTEBOOKS = EXAMPLES / "notebooks"

#: The folder above that of the notebook, for links.
_LINK = re.compile(r"\]\((?!https?:|#)([^)]+)\)")


def notebook(script: Path) -> str:
    """A script that consists of cells, as a notebook."""
    text = script.read_text(encoding="utf-8")
    cells = [_cell(cell, i) for i, cell in enumerate(re.split(r"^# %%", text, flags=re.MULTILINE)[1:])]
    content = {
        "cells": [cell for cell in cells if cell["source"]],
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(content, ensure_ascii=False, indent=1) + "\n"


def _cell(text: str, number: int) -> dict[str, Any]:
    kind, _, body = text.partition("\n")
    lines = body.strip("\n").splitlines()
    if "[markdown]" in kind:
        lines = [_LINK.sub(r"](../\1)", line.removeprefix("#").removeprefix(" ")) for line in lines]
        return {"cell_type": "markdown", "id": f"cell-{number}", "metadata": {}, "source": _ended(lines)}
    return {
        "cell_type": "code",
        "execution_count": None,
        "id": f"cell-{number}",
        "metadata": {},
        "outputs": [],
        "source": _ended(lines),
    }


def _ended(lines: list[str]) -> list[str]:
    """The lines with line breaks, except the last."""
    return [*(f"{line}\n" for line in lines[:-1]), *lines[-1:]]


if __name__ == "__main__":
    NOTEBOOKS.mkdir(exist_ok=True)
    for path in sorted(EXAMPLES.glob("*.py")):
        (NOTEBOOKS / f"{path.stem}.ipynb").write_text(notebook(path), encoding="utf-8")
