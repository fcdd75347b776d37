"""What all figures share: colours that everybody can tell apart, on light and on dark paper, and plotly itself."""

from typing import Any

from cascada.errors import CascadaError

# Okabe and Ito's colours, which the colour-blind can tell apart.
BLUE, ORANGE, GREEN, PURPLE, SKY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9"
GREY = "#7F7F7F"
SCALE = "Viridis"
BAND = "rgba(0, 114, 178, 0.18)"


def plotly_objects() -> Any:
    """`plotly.graph_objects`, imported where a figure is made."""
    try:
        from plotly import graph_objects  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        raise CascadaError("figures need plotly: pip install 'cascada[report]'.") from None
    return graph_objects


def figure(title: str, x: str = "", y: str = "", **layout: Any) -> Any:
    """An empty figure; its colours are those of the page that it stands in."""
    go = plotly_objects()
    return go.Figure(
        layout={
            "title": {"text": escaped(title), "x": 0.0, "xref": "paper", "font": {"size": 15}},
            "xaxis": {"title": {"text": escaped(x)}, "zeroline": False, "automargin": True},
            "yaxis": {"title": {"text": escaped(y)}, "zeroline": False, "automargin": True},
            "template": "none",
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "font": {"family": "system-ui, sans-serif", "size": 12, "color": "#444444"},
            "margin": {"l": 60, "r": 20, "t": 50, "b": 50},
            "legend": {"orientation": "h", "y": -0.2},
            "height": 420,
            "colorway": [BLUE, ORANGE, GREEN, PURPLE, SKY],
            **layout,
        }
    )


def escaped(text: object) -> str:
    """A text as plotly shows it, which takes some of HTML for markup."""
    return str(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def number(value: float) -> str:
    """A number with as many digits as a reader wants."""
    return f"{value:.5g}"
