"""Figures as files: PNG, SVG and PDF through a browser without a window, and HTML."""

import os
import shutil
from pathlib import Path
from typing import Any

from cascada.errors import ArgumentError, CascadaError
from cascada.near_names import did_you_mean
from cascada.report.theme import plotly_objects
from cascada.whole_file import unwritten, whole_file

_IMAGES = ("png", "svg", "pdf")
_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge")
_WIDTH, _HEIGHT = 800, 480  # pixels, if neither the call nor the figure gives them


def save_figure(
    figure: Any, path: str | Path, *, width: int | None = None, height: int | None = None, scale: float = 2.0
) -> None:
    """Save a figure to a file; the ending of its name decides: `.png`, `.svg`, `.pdf` or `.html`.

    `width` and `height` are in pixels, by default 800 and that of the figure. `scale` is the number of pixels of a PNG
    per pixel. Images need the extra `images` and a browser, Chromium or Chrome; `CascadaError` says which one is
    missing. The background is white.
    """
    path = Path(path)
    kind = path.suffix.lower().removeprefix(".")
    if kind not in (*_IMAGES, "html"):
        hint = did_you_mean(kind, (*_IMAGES, "html"))
        raise ArgumentError(f"the name of the file must end with .png, .svg, .pdf or .html; got {path.name!r}{hint}.")
    go = plotly_objects()
    white = go.Figure(figure).update_layout(paper_bgcolor="#ffffff", plot_bgcolor="#ffffff")
    if kind == "html":
        content = white.to_html(include_plotlyjs=True).encode("utf-8")
    else:
        size = {"width": width or _WIDTH, "height": height or white.layout.height or _HEIGHT}
        content = _image(white, kind, size | {"scale": scale})
    try:
        with whole_file(path) as file:
            file.write(content)
    except OSError as error:
        raise CascadaError(unwritten(path, error)) from None


def _image(figure: Any, kind: str, size: dict[str, float]) -> bytes:
    """The figure as the content of an image file."""
    try:
        import kaleido
    except ImportError:
        raise CascadaError("images of figures need kaleido: pip install 'cascada[images]'.") from None
    browser = found_browser()
    if browser is None:
        raise CascadaError(
            "images of figures need a browser, and neither Chromium nor Chrome was found. Install one (on Debian and "
            "Ubuntu: apt install chromium), or set BROWSER_PATH to its program. Without one, save an .html file."
        )
    image: bytes = kaleido.calc_fig_sync(
        figure, opts={"format": kind} | size, kopts={"path": browser, "n": 1, "timeout": 600}
    )
    return image


def found_browser() -> str | None:
    """The program of a browser that kaleido can use: that of BROWSER_PATH, else the first one that is installed."""
    given = os.environ.get("BROWSER_PATH")
    if given:
        return shutil.which(given)
    return next((path for path in map(shutil.which, _BROWSERS) if path is not None), None)
