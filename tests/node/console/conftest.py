"""Visitors of consoles of a sample cluster: one for all tests of a file."""

from collections.abc import Iterator

import pytest

from barnabas.console.serving import ConsoleServer
from barnabas.testing import EmbeddedBroker
from support.consoles import Visitor, running_console, visitor
from support.sample_cluster import USERS, sample_cluster


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    with sample_cluster(tmp_path_factory.mktemp("cluster")) as broker:
        yield broker


@pytest.fixture(scope="module")
def server(cluster: EmbeddedBroker) -> Iterator[ConsoleServer]:
    with running_console(cluster.bootstrap) as running:
        yield running


@pytest.fixture(scope="module")
def admin(server: ConsoleServer) -> Iterator[Visitor]:
    """Log in a visitor with all permissions."""
    with visitor(server) as person:
        person.log_in("admin", USERS["admin"])
        yield person


@pytest.fixture(scope="module")
def alice(server: ConsoleServer) -> Iterator[Visitor]:
    """Log in a visitor who reads orders, and may describe the group that bills them."""
    with visitor(server) as person:
        person.log_in("alice", USERS["alice"])
        yield person
