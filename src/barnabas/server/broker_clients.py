"""Connections to the other brokers, separate where some requests would hold up others."""

from typing import NamedTuple

from barnabas.base.clock import Clock
from barnabas.config.keys.barnabas import FAILURE_DETECTION_KEY
from barnabas.metadata.dynamic_config import DynamicConfig
from barnabas.metadata.writer import MetadataWriter
from barnabas.replication.broker_client import BrokerClient
from barnabas.server.inter_broker import InterBrokerSecurity
from barnabas.server.shutdown import Shutdown


class BrokerClients(NamedTuple):
    """Each has its own connection to a broker, which handles the requests of a connection in order."""

    requests: BrokerClient
    fetches: BrokerClient  #: they wait for records
    markers: BrokerClient  #: those of transactions, which wait for replicas
    offsets: BrokerClient  #: those of topics in the trash, which wait for replicas, too
    probes: BrokerClient  #: those of the failure detector, which have a time limit of their own


def open_broker_clients(
    dynamic_config: DynamicConfig, metadata: MetadataWriter, clock: Clock, shutdown: Shutdown
) -> BrokerClients:
    config = dynamic_config.static
    security = InterBrokerSecurity(dynamic_config, clock.monotonic_ms)

    def client(request_timeout_ms: int = config.integer("request.timeout.ms")) -> BrokerClient:
        opened = BrokerClient(
            config.node_id,
            lambda: metadata.image,
            config.inter_broker_listener_name,
            security=security,
            request_timeout_ms=request_timeout_ms,
        )
        shutdown.add_async(opened.close)
        return opened

    return BrokerClients(
        requests=client(),
        fetches=client(),
        markers=client(),
        offsets=client(),
        probes=client(config.integer(FAILURE_DETECTION_KEY)),
    )
