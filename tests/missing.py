"""Checks for programs and libraries that some tests need: without them a test is skipped, or fails under CI=true."""

import os
import shutil
from importlib.util import find_spec
from typing import NoReturn

import pytest


def missing(what: str, remedy: str) -> NoReturn:
    """Skip the test or the module that is being imported; under CI=true, fail instead."""
    text = f"{what} is not installed ({remedy})"
    if os.environ.get("CI") == "true":
        pytest.fail(text, pytrace=False)
    pytest.skip(text, allow_module_level=True)


def need_module(module: str, extra: str) -> None:
    """Skip or fail if a library is missing; `extra` is the extra of cascada that installs it."""
    if find_spec(module) is None:
        missing(module, f"pip install 'cascada[{extra}]'")


def need_simulator(module: str, extra: str) -> None:
    """Skip the test if a simulator is missing, also under CI=true, because its extra is not part of `make test`.

    `make simulators` sets CASCADA_SIMULATORS to the extras that it installed. Then a missing simulator is a failure.
    """
    if find_spec(module) is not None:
        return
    reason = f"{module} is not installed: the extra {extra!r} is not part of `make test`, see `make {extra}`"
    if extra in os.environ.get("CASCADA_SIMULATORS", "").split(","):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def need_program(*names: str, package: str) -> str:
    """Return the path of the first of these programs that exists; skip or fail if none does, naming its package."""
    found = next(filter(None, map(shutil.which, names)), None)
    return found if found is not None else missing(names[0], f"apt install {package}")
