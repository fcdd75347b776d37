"""The report: one self-contained HTML file with its style, scripts, plotly and data."""

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

from cascada.report.payload import payload
from cascada.report.theme import plotly_objects
from cascada.study.reader import Reader
from cascada.whole_file import write_whole


def report_html(study: Reader, name: str, command: str | None = None) -> str:
    """Return the report of a study as one HTML page that loads nothing; `CascadaError` if plotly is not installed."""
    plotly_objects()  # raises if plotly is missing
    import plotly  # type: ignore[import-untyped, unused-ignore]

    library = files(plotly).joinpath("package_data", "plotly.min.js").read_text(encoding="utf-8")
    data = f'<script type="application/json" id="data">{inert(payload(study, name, command))}</script>'
    scripts = [data, *(f"<script>{code}</script>" for code in (library, static("page.js")))]
    page = static("page.html").replace("<!-- style -->", f"<style>{static('page.css')}</style>")
    return page.replace("<!-- scripts -->", "\n".join(scripts))


def write_report(study: Reader, name: str, path: Path, command: str | None = None) -> None:
    """Write the report of a study to a file."""
    write_whole(path, report_html(study, name, command))


def inert(data: dict[str, Any]) -> str:
    """Return JSON that can be embedded in HTML: names of any kind cannot begin or end a tag."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def static(name: str) -> str:
    """Return the text of a static file of the page."""
    return files("cascada.report").joinpath("static", name).read_text(encoding="utf-8")
