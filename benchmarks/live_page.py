"""Latency of the live page in a real browser: start, first paint, and display of a new run.

    python -m benchmarks.live_page [--runs 1000] [--updates 20] [--write FILE.md]

It starts a server for a store in a temporary folder. *Up* is the time from the start of the command to the first
response; *painted* is the first paint reported by the browser. An update is one run reported by another process: the
time from the commit to the row on the page, and the part spent by the browser on scripts, styles and layout. Both are
medians, with many runs and, as the baseline, with few. Needs chromium and playwright.
"""

import argparse
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any
from urllib.request import urlopen

import cascada as cd
from benchmarks.environment import description, require_one_thread
from benchmarks.markdown import NONE, duration, table, times, write_section
from cascada.report import report_html

NAME = "benchmarks.live_page"
FEW = 10
UP, PAINTED, SHOWN, SIZE = 2.0, 1.0, 0.2, 6e6  # limits in seconds, and in bytes of a report
STARTS, REPORTED = 5, 1000
PAUSE = 1300  # milliseconds between two updates, so that figures of one are not drawn during the next
# The time at which a row was added; and the time until the history is drawn, in the following frame.
NOTE = """() => { window.noted = 0; new MutationObserver(() => { window.noted = Date.now(); }).observe(
    document.querySelector("#trials tbody"), { childList: true }); }"""
DRAWN = "() => new Promise((done) => requestAnimationFrame(() => setTimeout(() => setTimeout(done))))"


def network() -> cd.Network:
    """Two stages of three controls."""
    kernel = cd.SquaredExponential(1.0)
    controls = {"dose": cd.Real(-2, 2), "heat": cd.Real(0.1, 10, log=True)}
    mix = cd.Stage("mix", controls, kernel=kernel, norm_bound=50.0)
    return cd.chain(mix, cd.Stage("cure", {"hours": cd.Real(0, 5)}, kernel=kernel, norm_bound=50.0))


def tell(study: Any, first: int, runs: int) -> None:
    """Past runs, numbered from the given number on."""
    added = []
    for i in range(first, first + runs):
        controls = {"dose": 2 * math.sin(i), "heat": math.exp(2 * math.cos(i)), "hours": 2.5 + 2.5 * math.sin(1.7 * i)}
        mix = math.sin(controls["dose"])
        added.append((controls, {"mix": mix, "cure": mix * math.cos(controls["hours"])}, f"run {i}"))
    study.add_trials(added)


@contextmanager
def server(url: str) -> Iterator[tuple[str, float]]:
    """The address of a server and its time to the first response."""
    started = time.perf_counter()
    code = "from cascada.cli.main import app; app()"
    command = [sys.executable, "-c", code, "serve", "--storage", url, "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        address = next(word for word in process.stdout.readline().split() if word.startswith("http"))
        with urlopen(address) as answer:
            answer.read()
        yield address, time.perf_counter() - started
    finally:
        process.terminate()
        process.communicate()


def busy(page: Any) -> float:
    """Seconds spent by the page on scripts, styles and layout so far."""
    found = {one["name"]: one["value"] for one in page.send("Performance.getMetrics")["metrics"]}
    return float(found["ScriptDuration"] + found["RecalcStyleDuration"] + found["LayoutDuration"])


def updates(browser: Any, url: str, runs: int, wanted: int) -> tuple[float, float, float]:
    """Seconds until the first paint, from a commit to the row, and of browser work for the row."""
    study = cd.Study.open(url, f"{runs} runs", network(), algorithm="random_search")
    tell(study, 0, runs)
    with server(url) as (address, _):
        page = browser.new_page()
        page.goto(f"{address}?study={runs}+runs")
        page.locator("figure[data-id=history] .main-svg").first.wait_for()
        page.wait_for_timeout(1500)
        painted = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime") / 1e3
        metrics = page.context.new_cdp_session(page)
        metrics.send("Performance.enable")
        page.evaluate(NOTE)
        shown, work = [], []
        for i in range(wanted):
            before = busy(metrics)
            tell(study, runs + i, 1)
            committed = time.time()
            page.locator("#trials tbody tr").nth(runs + i).wait_for(state="attached")
            page.evaluate(DRAWN)
            work.append(busy(metrics) - before)
            shown.append(page.evaluate("noted") / 1e3 - committed)
            page.wait_for_timeout(PAUSE)
        page.close()
    study.close()
    return painted, median(shown), median(work)


def report(runs: int, wanted: int) -> str:
    """The table as Markdown."""
    from playwright.sync_api import sync_playwright

    path = shutil.which("chromium") or shutil.which("chromium-browser")
    arguments = ["--no-sandbox"] if hasattr(os, "getuid") and os.getuid() == 0 else []
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        url = f"sqlite:///{folder}/live.db"
        cd.Study.open(url, "empty", network(), algorithm="random_search").close()
        up = median(_up(url) for _ in range(STARTS))
        browser = playwright.chromium.launch(executable_path=path, args=arguments)
        few, many = (updates(browser, url, n, wanted) for n in (FEW, runs))
        browser.close()
        small = cd.Study.open(url, "report", network(), algorithm="random_search")
        tell(small, 0, REPORTED)
        bytes_ = len(report_html(small, "report").encode())
    rows = [
        ["the page is up", duration(up), NONE, NONE, _verdict(up, UP)],
        ["first paint", duration(many[0]), duration(few[0]), times(many[0] / few[0]), _verdict(many[0], PAINTED)],
        [
            "from a run to its row",
            duration(many[1]),
            duration(few[1]),
            times(many[1] / few[1]),
            _verdict(many[1], SHOWN),
        ],
        [
            "the browser's work for it",
            duration(many[2]),
            duration(few[2]),
            times(many[2] / few[2]),
            _verdict(many[2], SHOWN),
        ],
    ]
    head = ["", f"{runs:,} runs", f"{FEW} runs", "ratio", "limit"]
    size = f"{bytes_ / 1e6:.2f} MB (at most {SIZE / 1e6:g} MB: {'yes' if bytes_ <= SIZE else '**no**'})"
    said = f"Medians of {wanted} updates. {description(['plotly', 'starlette', 'uvicorn'])}"
    command = f"python -m {NAME} --runs {runs} --updates {wanted}"
    return f"    {command}\n\n{said}\n\n{table(head, rows)}\n\nA report of {REPORTED:,} runs has {size}."


def _up(url: str) -> float:
    with server(url) as (_, seconds):
        return seconds


def _verdict(seconds: float, limit: float) -> str:
    return f"at most {duration(limit)}: {'yes' if seconds <= limit else '**no**'}"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog=f"python -m {NAME}", description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--updates", type=int, default=20)
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    require_one_thread()
    text = report(given.runs, given.updates)
    print(text)
    if given.write:
        write_section(given.write, NAME, text)


if __name__ == "__main__":
    main()
