"""Libraries that cascada works inside of: without one its tests are skipped; but not under CI=true, where they fail."""

import os
from importlib.util import find_spec

import pytest


def require(module: str, extra: str | None = None) -> None:
    """Skip the file that calls this, or fail, where a library is not installed; `extra`: what brings it."""
    if find_spec(module) is not None:
        return
    text = f"{module} is not installed (pip install 'cascada[{extra or module}]')"
    if os.environ.get("CI") == "true":
        raise ImportError(text)
    pytest.skip(text, allow_module_level=True)
