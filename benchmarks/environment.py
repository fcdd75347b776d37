"""The environment of a measurement: versions, processor, threads."""

import os
import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from benchmarks import THREAD_VARIABLES


def require_one_thread() -> None:
    """Exit unless BLAS uses one thread; otherwise a ratio depends on the number of idle cores."""
    wrong = {name: os.environ.get(name) for name in THREAD_VARIABLES if os.environ.get(name) != "1"}
    if wrong:
        got = ", ".join(f"{name}={value}" for name, value in wrong.items())
        raise SystemExit(f"benchmarks run on one BLAS thread; got {got}. Unset it, or set it to 1.")


def description(packages: Sequence[str]) -> str:
    """Interpreter, package versions and processor in one line."""
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    return f"Python {platform.python_version()}, {versions}; {_processor()}; one BLAS thread."


def _processor() -> str:
    """The model name of the processor on Linux, else its architecture."""
    cpuinfo = Path("/proc/cpuinfo")
    for line in cpuinfo.read_text().splitlines() if cpuinfo.exists() else ():
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            return value.strip()
    return platform.machine()
