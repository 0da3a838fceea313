"""Confluent's serializers for Java."""

from collections.abc import Iterator

import pytest
from interop.clients import Client

from barnabas.registry.serving import RegistryServer
from barnabas.testing import EmbeddedBroker
from interop import java_serializers
from support.registries import running_registry


@pytest.fixture(scope="module")
def registry() -> Iterator[RegistryServer]:
    with EmbeddedBroker() as broker, running_registry(broker.bootstrap) as running:
        yield running


@pytest.fixture(scope="module")
def java(registry: RegistryServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    running = java_serializers.start(registry.url, tmp_path_factory.mktemp("java") / "log")
    yield running
    running.close()
