"""HTML cards: a title, labelled values and a picture, as notebooks show objects. All text is escaped.

Colours come from the notebook, so that a card is readable on light and dark pages.
"""

from collections.abc import Mapping, Sequence
from typing import Any

_CARD = (
    "display:inline-block;max-width:44rem;padding:.6em .9em;border:1px solid rgba(128,128,128,.45);border-radius:.5em;"
    "font:14px/1.45 system-ui,sans-serif"
)
_LABEL = "opacity:.7;padding-right:1em;vertical-align:top;white-space:nowrap;text-align:left"
_VALUE = "text-align:left;overflow-wrap:anywhere"


def card(title: str, rows: Sequence[tuple[str, str]], note: str = "", picture: str = "") -> str:
    """A card as HTML: labels and values below a title, then a note in small letters. `picture` is HTML already."""
    lines = "".join(
        f'<tr style="background:none"><td style="{_LABEL}">{escape(label)}</td>'
        f'<td style="{_VALUE}">{escape(value)}</td></tr>'
        for label, value in rows
    )
    table = f'<table style="border:0;margin:.3em 0;border-collapse:collapse">{lines}</table>' if rows else ""
    below = f'<div style="font-size:12px;opacity:.75;white-space:pre-line">{escape(note)}</div>' if note else ""
    return f'<div style="{_CARD}"><strong>{escape(title)}</strong>{table}{picture}{below}</div>'


def escape(text: str) -> str:
    """A text in which no character means something in HTML; `html.escape`, without the time of its import."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def in_short(controls: Mapping[str, Any]) -> str:
    """Named values in one line, numbers with six digits."""
    return ", ".join(
        f"{name} = {value:.6g}" if isinstance(value, float) else f"{name} = {value}" for name, value in controls.items()
    )
