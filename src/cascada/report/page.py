"""One self-contained HTML file: the page, its style and script, plotly, and what they show."""

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

from cascada.report.payload import payload
from cascada.report.theme import plotly_objects
from cascada.study.reader import Reader


def report_html(study: Reader, name: str, command: str | None = None) -> str:
    """A page that needs nothing else: it can be mailed, printed, and opened in ten years."""
    plotly_objects()  # says how to install it
    import plotly  # type: ignore[import-untyped, unused-ignore]

    library = files(plotly).joinpath("package_data", "plotly.min.js").read_text(encoding="utf-8")
    data = f'<script type="application/json" id="data">{inert(payload(study, name, command))}</script>'
    scripts = [data, *(f"<script>{code}</script>" for code in (library, static("page.js")))]
    page = static("page.html").replace("<!-- style -->", f"<style>{static('page.css')}</style>")
    return page.replace("<!-- scripts -->", "\n".join(scripts))


def write_report(study: Reader, name: str, path: Path, command: str | None = None) -> None:
    """Write the page to a file."""
    path.write_text(report_html(study, name, command), encoding="utf-8")


def inert(data: dict[str, Any]) -> str:
    """JSON that can stand inside of HTML: whatever a study is called, no tag begins or ends in it."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def static(name: str) -> str:
    """A file that is part of the page."""
    return files("cascada.report").joinpath("static", name).read_text(encoding="utf-8")
