"""Settings shared by all tests, and the servers that several modules use."""

from collections.abc import Iterator
from uuid import uuid4

import pytest
from hypothesis import settings

from tests.study.servers import postgres

# The same examples in every run, and no verdict that depends on how busy the machine is.
settings.register_profile("deterministic", derandomize=True, deadline=None, database=None)
settings.load_profile("deterministic")


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The URL of a PostgreSQL server, the same for all tests of this process."""
    with postgres() as url:
        yield url


@pytest.fixture
def postgres_url(postgres_server: str) -> str:
    """The URL of an empty database."""
    import psycopg  # type: ignore[import-not-found, unused-ignore]

    name = f"test_{uuid4().hex}"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return postgres_server.removesuffix("postgres") + name
