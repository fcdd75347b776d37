"""The command line of a benchmark that writes one section of a page."""

import argparse
from collections.abc import Callable
from pathlib import Path

from benchmarks.environment import require_one_thread
from benchmarks.markdown import write_section


def print_or_write(name: str, description: str | None, report: Callable[[str], str]) -> None:
    """Print the report with its command and write it to the file given by --write."""
    parser = argparse.ArgumentParser(prog=f"python -m {name}", description=description)
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    _finish(name, report, given.write)


def print_or_write_seeds(name: str, description: str | None, report: Callable[[str, int], str], seeds: int) -> None:
    """The same for a report about as many seeds as --seeds says; `seeds` is its default."""
    parser = argparse.ArgumentParser(prog=f"python -m {name}", description=description)
    parser.add_argument("--seeds", type=int, default=seeds)
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    _finish(name, lambda command: report(f"{command} --seeds {given.seeds}", given.seeds), given.write)


def _finish(name: str, report: Callable[[str], str], page: Path | None) -> None:
    require_one_thread()
    text = report(f"python -m {name}")
    print(text)
    if page:
        write_section(page, name, text)
