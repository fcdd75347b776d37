"""Studies of every kind, and the clock by which their leases run out."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cascada.study import Study


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Study]:
    """Creates a study of a network, with options; in a store the same study again when it is called again."""
    if request.param == "memory":
        return Study
    server = request.param == "postgresql"  # without one the test is skipped
    url: str = request.getfixturevalue("postgres_url") if server else f"sqlite:///{tmp_path}/studies.db"
    return lambda network, **options: Study.open(url, "alloy", network, **options)


class Clock:
    """A clock that stands still until it is moved on."""

    def __init__(self) -> None:
        self.now = 1e9

    def __call__(self, _: object = None) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock that leases are judged by, that of a database server too."""
    made = Clock()
    monkeypatch.setattr(time, "time", made)
    monkeypatch.setattr("cascada.store.transaction.now", made)
    return made
