"""One server for all tests of object stores; each test has its own bucket."""

from collections.abc import Iterator
from itertools import count

import pytest

from support.object_server import ObjectServer, object_server

_NUMBERS = count(1)


@pytest.fixture(scope="session")
def server() -> Iterator[ObjectServer]:
    with object_server() as running:
        yield running


@pytest.fixture
def bucket(server: ObjectServer) -> str:
    """Return the name of an empty bucket."""
    name = f"bucket-{next(_NUMBERS)}"
    server.create_bucket(name)
    return name
