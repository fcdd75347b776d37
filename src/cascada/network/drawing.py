"""A network as an SVG picture: stages from left to right, with their controls and outputs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cascada.card import card, escape

if TYPE_CHECKING:
    from cascada.network.network import Network
    from cascada.network.node import Node

# In pixels.
_WIDTH, _ACROSS, _DOWN, _MARGIN = 150, 46, 22, 6  # a box, the gaps between columns and rows, and around all
_LINE, _PADDING = 16, 8  # from line to line, and around the text of a box
_LONGEST = 20  # characters of a line
_MOST = 6  # lines of controls, or of outputs


class Drawn:
    """What makes notebooks show a network as a picture."""

    def _repr_html_(self: "Network") -> str:  # type: ignore[misc]
        what = "maximised" if self.sign > 0 else "minimised"
        title = f"Network of {len(self.stages)} stage{'s' if len(self.stages) > 1 else ''}"
        return card(title, [(what, ".".join(dict.fromkeys(self.objective)))], picture=network_svg(self))


def network_svg(network: "Network") -> str:
    """The picture of a network as SVG text."""
    columns = _columns(network.nodes)
    heights = {node.stage.name: _PADDING * 2 + _LINE * (1 + len(_text(node))) for node in network.nodes}
    tall = max(sum(heights[n.stage.name] for n in column) + _DOWN * (len(column) - 1) for column in columns)
    places: dict[str, tuple[float, float]] = {}  # the left upper corner of every box
    for i, column in enumerate(columns):
        y = _MARGIN + (tall - sum(heights[n.stage.name] for n in column) - _DOWN * (len(column) - 1)) / 2
        for node in column:
            places[node.stage.name] = _MARGIN + i * (_WIDTH + _ACROSS), y
            y += heights[node.stage.name] + _DOWN
    depth = {node.stage.name: i for i, column in enumerate(columns) for node in column}
    skips = any(depth[node.stage.name] - depth[parent] > 1 for node in network.nodes for parent in node.parents)
    below = _DOWN if skips else 0  # arrows that pass other columns run below the boxes
    wide, high = 2 * _MARGIN + len(columns) * (_WIDTH + _ACROSS) - _ACROSS, tall + 2 * _MARGIN + below
    arrows = [
        _arrow(places[parent], places[node.stage.name], heights[parent], heights[node.stage.name], tall + _MARGIN)
        for node in network.nodes
        for parent in node.parents
    ]
    boxes = [_box(node, *places[node.stage.name], heights[node.stage.name], network) for node in network.nodes]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide:g} {high:g}" width="{wide:g}" height="{high:g}" '
        f'style="max-width:100%;height:auto" role="img" aria-label="{escape(str(network))}" '
        f'font-family="system-ui, sans-serif" font-size="12" fill="currentColor">{"".join(arrows + boxes)}</svg>'
    )


def _columns(nodes: Sequence["Node"]) -> list[list["Node"]]:
    """The stages by column: the column of a stage is the length of the longest path to it."""
    depth: dict[str, int] = {}
    for node in nodes:  # parents come first
        depth[node.stage.name] = 1 + max((depth[parent] for parent in node.parents), default=-1)
    return [[node for node in nodes if depth[node.stage.name] == i] for i in range(1 + max(depth.values()))]


def _text(node: "Node") -> list[tuple[str, str]]:
    """The lines of a box below its name, each with the class of what it names."""
    outputs = () if node.stage.outputs == (node.stage.name,) else node.stage.outputs
    return [("control", text) for text in _some([f"▸ {name}" for name in node.stage.controls])] + [
        ("output", text) for text in _some([f"{name} ▸" for name in outputs])
    ]


def _some(lines: list[str]) -> list[str]:
    """The lines, each of limited length; of too many of them the first and how many more there are."""
    shown = lines if len(lines) <= _MOST else [*lines[: _MOST - 1], f"… {len(lines) - _MOST + 1} more"]
    return [line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…" for line in shown]


def _box(node: "Node", x: float, y: float, height: float, network: "Network") -> str:
    name = node.stage.name if len(node.stage.name) <= _LONGEST else f"{node.stage.name[: _LONGEST - 1]}…"
    dash = ' stroke-dasharray="4 3"' if node.stage.known else ""
    thick = 2.5 if node.stage.name == network.objective[0] else 1.2
    parts = [
        f'<rect x="{x:g}" y="{y:g}" width="{_WIDTH}" height="{height:g}" rx="6" fill="#0072B2" fill-opacity="0.12" '
        f'stroke="#0072B2" stroke-width="{thick}"{dash}/>',
        f'<text x="{x + _WIDTH / 2:g}" y="{y + _PADDING + _LINE - 4:g}" text-anchor="middle" font-weight="bold">'
        f"{escape(name)}</text>",
    ]
    for i, (kind, line) in enumerate(_text(node)):
        side, anchor = (x + _PADDING, "start") if kind == "control" else (x + _WIDTH - _PADDING, "end")
        base = y + _PADDING + _LINE * (i + 2) - 4
        parts.append(f'<text x="{side:g}" y="{base:g}" text-anchor="{anchor}">{escape(line)}</text>')
    return "".join(parts)


def _arrow(start: tuple[float, float], end: tuple[float, float], tall: float, high: float, lowest: float) -> str:
    """An arrow from the right side of a box to the left side of a later one; below all boxes that lie between them."""
    x0, y0, x1, y1 = start[0] + _WIDTH, start[1] + tall / 2, end[0], end[1] + high / 2
    middle = _ACROSS / 2
    if x1 - x0 <= _ACROSS:
        path = f"M{x0:g} {y0:g}C{x0 + middle:g} {y0:g} {x1 - middle:g} {y1:g} {x1:g} {y1:g}"
    else:
        floor = lowest + _DOWN / 2
        path = (
            f"M{x0:g} {y0:g}C{x0 + middle:g} {y0:g} {x0:g} {floor:g} {x0 + _ACROSS:g} {floor:g}"
            f"H{x1 - _ACROSS:g}C{x1:g} {floor:g} {x1 - middle:g} {y1:g} {x1:g} {y1:g}"
        )
    head = f"M{x1 - 7:g} {y1 - 4:g}L{x1:g} {y1:g}L{x1 - 7:g} {y1 + 4:g}"
    return f'<path d="{path}{head}" fill="none" stroke="#7F7F7F" stroke-width="1.5"/>'
