"""Pictures of the networks of built-in problems: stages from left to right, with controls above and outputs below.

    python -m benchmarks.network_pictures

It writes `docs/pictures/network-PROBLEM.svg` for the problems of the suite `real`; nothing is evaluated.
"""

from pathlib import Path
from xml.sax.saxutils import escape

from cascada.experiments.bench_suites import SUITES
from cascada.network import Network
from cascada.problems import by_name

FOLDER = Path(__file__).parents[1] / "docs" / "pictures"
WIDTH, HEIGHT, GAP, LINE, TOP = 122, 34, 46, 14, 14
STYLE = "font-family='sans-serif' font-size='11'"


def picture(network: Network) -> str:
    """The SVG of a network: a column for every distance from the first stages."""
    columns: dict[str, int] = {}
    for node in network.nodes:
        columns[node.stage.name] = 1 + max((columns[parent] for parent in node.parents), default=-1)
    rows: dict[str, int] = {}
    for name, column in columns.items():
        rows[name] = sum(columns[other] == column for other in rows)
    controls, outputs = (
        max(len(lines_of(getattr(node.stage, what))) for node in network.nodes) for what in ("controls", "outputs")
    )
    tall = TOP + LINE * controls + HEIGHT + LINE * outputs + 16
    places = {
        name: (10 + columns[name] * (WIDTH + GAP), 8 + LINE * controls + TOP + rows[name] * tall) for name in columns
    }
    parts = []
    for node in network.nodes:
        x, y = places[node.stage.name]
        for parent in node.parents:
            a, b = places[parent]
            line = f"M{a + WIDTH},{b + HEIGHT / 2} L{x - 3},{y + HEIGHT / 2}"
            parts.append(f"<path d='{line}' stroke='#777' marker-end='url(#tip)'/>")
        dashes = " stroke-dasharray='4 3'" if node.stage.known else ""
        parts.append(
            f"<rect x='{x}' y='{y}' width='{WIDTH}' height='{HEIGHT}' rx='5' fill='#eef4fb' stroke='#0072B2'{dashes}/>"
        )
        parts.append(text(x + WIDTH / 2, y + 21, node.stage.name, "#000", bold=True))
        above = lines_of(node.stage.controls)
        for i, line in enumerate(above):
            parts.append(text(x + WIDTH / 2, y - 8 - LINE * (len(above) - 1 - i), line, "#009E73"))
        for i, line in enumerate(lines_of(node.stage.outputs)):
            parts.append(text(x + WIDTH / 2, y + HEIGHT + 14 + LINE * i, line, "#555"))
    wide = 20 + (1 + max(columns.values())) * (WIDTH + GAP) - GAP
    high = (1 + max(rows.values())) * tall + 8
    tip = "<defs><marker id='tip' markerWidth='7' markerHeight='7' refX='5' refY='3' orient='auto'>"
    tip += "<path d='M0,0 L6,3 L0,6 z' fill='#777'/></marker></defs>"
    head = (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {wide} {high}' width='{wide}' height='{high}' {STYLE}>"
    )
    paper = f"<rect width='{wide}' height='{high}' fill='#fff'/>"
    return "\n".join([head, paper, tip, *parts, "</svg>", ""])


def text(x: float, y: float, words: str, colour: str, bold: bool = False) -> str:
    """A centred line of text."""
    weight = " font-weight='bold'" if bold else ""
    return f"<text x='{x}' y='{y}' text-anchor='middle' fill='{colour}'{weight}>{escape(words)}</text>"


def lines_of(names: object) -> list[str]:
    """Names in as few lines as fit the width of a stage; five and more are given by the first and the last."""
    found = [str(name) for name in names]  # type: ignore[attr-defined]
    if len(found) > 4:
        return [f"{found[0]} … {found[-1]}"]
    lines: list[str] = []
    for name in found:
        if lines and len(lines[-1]) + len(name) < 18:
            lines[-1] += f", {name}"
        else:
            lines.append(name)
    return lines


def main() -> None:
    for name in SUITES["real"]:
        (FOLDER / f"network-{name}.svg").write_text(picture(by_name(name).network), encoding="utf-8")
        print(FOLDER / f"network-{name}.svg")


if __name__ == "__main__":
    main()
