"""The two pictures of the README: a gap that closes, and the report of a study.

    python -m benchmarks.readme_pictures [--out docs/pictures]

Both show the process of `make demo`: three stages in a row, each with a control. `gap.svg` is drawn by matplotlib;
`report.png` is a screenshot of the HTML report in chromium. Needs the extras `dev`, `paper` and `report`, and chromium.
"""

import argparse
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cascada as cd
from cascada.problems import certified
from cascada.report import write_report

BUDGET, TOLERANCE, SEED = 40, 0.01, 0  # the defaults of `cascada demo`
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#7F7F7F"
LOOK = {
    "font.size": 10.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "svg.hashsalt": "cascada",  # the same bytes for the same picture
}
WIDTH = 1000  # of the screenshot, in pixels
COLOURS = 128  # of its palette
LARGEST = 150_000  # bytes of a picture


@dataclass(frozen=True)
class Step:
    """State after one run: the value of the run, the best value so far, and the proven bound of all values."""

    value: float
    best: float
    bound: float


def optimised(store: Path) -> tuple[Any, list[Step]]:
    """The study of the demo in a new store, and the state after each of its runs."""
    steps: list[Step] = []

    def record(study: Any) -> None:
        steps.append(Step(study.trials[-1].value, study.best_trial.value, study.certificate().bound))

    network = certified("controls", SEED).network
    study = cd.Study.open(f"sqlite:///{store}", "demo", network, seed=SEED, tolerance=TOLERANCE)
    study.optimise(budget=BUDGET, callbacks=[record], progress=False)
    return study, steps


def draw_gap(steps: list[Step], optimum: float, path: Path) -> None:
    """Values and bounds on the left, the gap and the true distance to the optimum on the right."""
    from matplotlib import style
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    runs = range(1, len(steps) + 1)
    best, bound = [step.best for step in steps], [step.bound for step in steps]
    with style.context(["default", LOOK]):
        figure = Figure(figsize=(9.0, 3.3), layout="constrained")
        left, right = figure.subplots(1, 2)
        left.fill_between(runs, best, bound, step="post", color=ORANGE, alpha=0.15, linewidth=0)
        left.step(runs, bound, where="post", color=ORANGE, label="no setting gives more (proven)")
        left.step(runs, best, where="post", color=BLUE, label="best run so far")
        left.plot(runs, [step.value for step in steps], "o", color=GREY, markersize=4, label="runs")
        left.set(xlabel="runs", title="Values of the process")
        left.legend(loc="lower right", bbox_to_anchor=(1.0, 0.12), fontsize=8.5)

        gaps = [step.bound - step.best for step in steps]
        right.step(runs, gaps, where="post", color=ORANGE, label="proven gap", marker="o", markersize=4)
        distances = [optimum - step.best for step in steps]
        right.plot(runs, distances, "o", color=BLUE, markersize=4, label="true distance, unknown to cascada")
        right.axhline(TOLERANCE, color=GREY, linestyle=":", linewidth=1)
        right.annotate("tolerance", (1, TOLERANCE), (0, -12), textcoords="offset points", color=GREY, fontsize=8.5)
        right.set(xlabel="runs", yscale="log", ylim=(1e-3, 2), title="Distance to the best possible value")
        right.legend(loc="center left", bbox_to_anchor=(0.0, 0.6), fontsize=8.5)
        for axes in (left, right):
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        figure.savefig(path, metadata={"Date": None})


def draw_report(study: Any, folder: Path, path: Path) -> None:
    """The top of the report of a study, down to the first figure, as a browser shows it."""
    from PIL import Image
    from playwright.sync_api import sync_playwright

    page_file = folder / "report.html"
    write_report(study, "cascada demo", page_file, "cascada demo")
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    arguments = ["--no-sandbox"] if hasattr(os, "getuid") and os.getuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=arguments)
        page = browser.new_page(viewport={"width": WIDTH, "height": 1400}, color_scheme="light")
        page.goto(page_file.as_uri())
        page.wait_for_function("document.querySelectorAll('.plot .main-svg').length > 0")
        page.wait_for_timeout(1000)
        box = page.locator("#figures figure").first.bounding_box()
        assert box is not None, "the report has no figure"
        height = box["y"] + box["height"] + 16
        page.screenshot(path=path, clip={"x": 0, "y": 0, "width": WIDTH, "height": height})
        browser.close()
    with Image.open(path) as picture:
        picture.convert("RGB").quantize(COLOURS).save(path, optimize=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.readme_pictures", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/pictures"))
    out: Path = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        study, steps = optimised(Path(folder) / "demo.db")
        draw_gap(steps, certified("controls", SEED).optimum[1], out / "gap.svg")
        draw_report(study, Path(folder), out / "report.png")
        study.close()
    for path in (out / "gap.svg", out / "report.png"):
        size = path.stat().st_size
        assert size < LARGEST, f"{path} has {size:,} bytes; at most {LARGEST:,} are allowed"
        print(f"{path}: {size:,} bytes")


if __name__ == "__main__":
    main()
