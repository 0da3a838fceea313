"""Registries, and clients of other languages that use them."""

from collections.abc import Callable, Iterator

import pytest
from interop.clients import Client

from barnabas.registry.serving import RegistryServer
from barnabas.testing import EmbeddedBroker
from interop import java_serializers, registry_clients
from support.registries import running_registry


@pytest.fixture(scope="module")
def kafka_broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker({"group.initial.rebalance.delay.ms": "0"}) as broker:
        yield broker


@pytest.fixture(scope="module")
def registry(kafka_broker: EmbeddedBroker) -> Iterator[RegistryServer]:
    with running_registry(kafka_broker.bootstrap) as running:
        yield running


@pytest.fixture(scope="module")
def java(registry: RegistryServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    running = java_serializers.start(registry.url, tmp_path_factory.mktemp("java") / "log")
    yield running
    running.close()


@pytest.fixture(scope="module")
def client_named(
    kafka_broker: EmbeddedBroker, registry: RegistryServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], Client]]:
    """Return the clients of `registry_clients`, each started on first use."""
    running: dict[str, Client] = {}

    def named(name: str) -> Client:
        if name not in running:
            log = tmp_path_factory.mktemp(name) / "log"
            running[name] = registry_clients.start(name, registry.url, kafka_broker.bootstrap, log)
        return running[name]

    yield named
    for client in running.values():
        client.close()
