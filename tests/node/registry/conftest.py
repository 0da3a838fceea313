"""A broker with a registry, for all tests of a file; subjects are those of one test."""

from collections.abc import Iterator

import pytest

from barnabas.registry.serving import RegistryServer
from barnabas.testing import EmbeddedBroker
from support.registries import RestClient, running_registry


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as running:
        yield running


@pytest.fixture(scope="module")
def registry(broker: EmbeddedBroker) -> Iterator[RegistryServer]:
    with running_registry(broker.bootstrap) as running:
        yield running


@pytest.fixture
def rest(registry: RegistryServer) -> Iterator[RestClient]:
    client = RestClient(registry.url)
    yield client
    client.close()
