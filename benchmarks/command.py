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
    require_one_thread()
    text = report(f"python -m {name}")
    print(text)
    if given.write:
        write_section(given.write, name, text)
