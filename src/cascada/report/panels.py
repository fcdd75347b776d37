"""Small panels side by side in one figure, with axes of their own and the same scale upwards."""

from typing import Any

_COLUMNS = 2
_HEIGHT = 190  # pixels of a row of panels, with its title
_AROUND = 90  # pixels above and below all rows
_BETWEEN = 0.12  # between two columns, as a part of the width


def panel_axes(shown: Any, i: int, count: int) -> dict[str, str]:
    """Add the axes of panel `i` of `count` to a figure, and return the options of its traces."""
    rows, columns = -(-count // _COLUMNS), min(count, _COLUMNS)
    row, column = divmod(i, columns)
    wide, high = (1 - _BETWEEN * (columns - 1)) / columns, 1 / rows
    gap = 70 / (_HEIGHT * rows) if rows > 1 else 0.0  # room for the title of the axis below
    left, top = column * (wide + _BETWEEN), 1 - row * high
    x, y = panel_names(i)
    upwards = {"domain": [top - high + gap, top], "anchor": x, "zeroline": False, "automargin": True, "nticks": 5}
    if i:
        upwards["matches"] = "y"
    across = {"domain": [left, left + wide], "anchor": y, "zeroline": False, "automargin": True, "nticks": 5}
    shown.update_layout({axis_key(x): across, axis_key(y): upwards, "height": _HEIGHT * rows + _AROUND})
    return {"xaxis": x, "yaxis": y}


def panel_names(i: int) -> tuple[str, str]:
    """Return the names of the axes of panel `i`, as traces and shapes give them."""
    number = "" if i == 0 else str(i + 1)
    return f"x{number}", f"y{number}"


def axis_key(name: str) -> str:
    """Return the key of an axis in the layout, from its name."""
    return f"{name[0]}axis{name[1:]}"
