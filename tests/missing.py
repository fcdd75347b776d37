"""System parts and libraries that some tests need: without them a test is skipped, or fails under CI=true."""

import os
import shutil
from importlib.util import find_spec
from typing import NoReturn

import pytest


def missing(what: str, remedy: str) -> NoReturn:
    """Skip the test, or the module that is being imported; fail instead under CI=true, where nothing is skipped."""
    text = f"{what} is not installed ({remedy})"
    if os.environ.get("CI") == "true":
        pytest.fail(text, pytrace=False)
    pytest.skip(text, allow_module_level=True)


def need_module(module: str, extra: str) -> None:
    """Skip or fail where a library is missing; `extra` is the extra of cascada that installs it."""
    if find_spec(module) is None:
        missing(module, f"pip install 'cascada[{extra}]'")


def need_program(*names: str, package: str) -> str:
    """The path of the first of these programs that is there; skip or fail if none is, naming its Debian package."""
    found = next(filter(None, map(shutil.which, names)), None)
    return found if found is not None else missing(names[0], f"apt install {package}")
