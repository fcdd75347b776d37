"""Figures as files: PNG, SVG and HTML, and clear errors without kaleido or a browser."""

import struct
import sys

import pytest

import cascada as cd
from cascada.errors import ArgumentError, CascadaError
from cascada.report import image, plot_network, save_figure
from tests.missing import need_module, need_program


@pytest.fixture
def figure():
    need_module("plotly", "report")
    stage = cd.Stage("mix", controls={"dose": cd.Real(0, 1)}, kernel=cd.SquaredExponential(1.0), norm_bound=1.0)
    return plot_network(cd.Study(cd.chain(stage)))


def test_png_and_svg_have_the_size_that_was_asked_for(figure, tmp_path):
    need_module("kaleido", "images")
    need_program("chromium", "chromium-browser", package="chromium")
    png, svg = tmp_path / "a.png", tmp_path / "a.SVG"
    save_figure(figure, png, width=300, height=200, scale=2)
    content = png.read_bytes()
    assert content.startswith(b"\x89PNG")
    assert struct.unpack(">II", content[16:24]) == (600, 400)
    save_figure(figure, str(svg))
    text = svg.read_text(encoding="utf-8")
    assert text.startswith("<svg")
    assert 'width="800"' in text
    assert "mix" in text


def test_html_needs_no_browser(figure, tmp_path, monkeypatch):
    monkeypatch.setattr(image, "found_browser", lambda: None)
    save_figure(figure, tmp_path / "a.html")
    assert "<html>" in (tmp_path / "a.html").read_text(encoding="utf-8")[:100]


def test_without_a_browser_the_error_says_what_to_install(figure, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "kaleido", sys)  # whether it is installed or not
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("BROWSER_PATH", raising=False)
    with pytest.raises(CascadaError, match=r"need a browser.*apt install chromium"):
        save_figure(figure, tmp_path / "a.png")
    monkeypatch.setenv("BROWSER_PATH", "/nowhere/chrome")
    with pytest.raises(CascadaError, match="need a browser"):
        save_figure(figure, tmp_path / "a.png")
    assert not list(tmp_path.iterdir())


def test_without_kaleido_the_error_names_the_extra(figure, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "kaleido", None)
    with pytest.raises(CascadaError, match=r"pip install 'cascada\[images\]'"):
        save_figure(figure, tmp_path / "a.pdf")


@pytest.mark.parametrize(("name", "said"), [("a.jpg", "must end with .png"), ("a", "must end"), ("a.sgv", "mean svg")])
def test_another_ending_is_refused(figure, name, said, tmp_path):
    with pytest.raises(ArgumentError, match=said):
        save_figure(figure, tmp_path / name)


def test_a_missing_folder_is_an_error_of_the_library(figure, tmp_path):
    with pytest.raises(CascadaError, match="none"):
        save_figure(figure, tmp_path / "none" / "a.html")
