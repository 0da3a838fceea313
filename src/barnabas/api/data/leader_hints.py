"""The leader of a partition, for the errors of clients that asked another broker or with an old epoch (KIP-951)."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from barnabas.api.context import RequestContext
from barnabas.metadata.topics import NO_LEADER
from barnabas.wire.primitives import (
    write_compact_nullable_string,
    write_compact_size,
    write_compact_string,
    write_uvarint,
)


class LeaderHint(NamedTuple):
    """The leader of a partition according to this broker's image; `NO_LEADER` if there is none."""

    leader_id: int
    leader_epoch: int


class NodeEndpoint(NamedTuple):
    """Where clients reach a broker on the listener that they use."""

    node_id: int
    host: str
    port: int
    rack: str | None


def find_leader(context: RequestContext, topic: str | bytes, index: int) -> LeaderHint | None:
    """Return the leader of a partition, by name or id of its topic; None if there is no such partition."""
    image = context.broker.image
    found = image.topic_by_id(topic) if isinstance(topic, bytes) else image.topics.get(topic)
    if found is None or not 0 <= index < found.partition_count:
        return None
    state = image.partition(found, index)
    return LeaderHint(state.leader, state.leader_epoch)


def endpoints_of(context: RequestContext, leaders: Iterable[LeaderHint]) -> list[NodeEndpoint]:
    """Return the endpoints of the leaders, by broker id."""
    brokers, listener = context.broker.image.brokers, context.connection.listener
    endpoints = []
    for broker_id in sorted({leader.leader_id for leader in leaders} - {NO_LEADER}):
        broker = brokers.get(str(broker_id))
        endpoint = broker.endpoint(listener) if broker is not None else None
        if broker is not None and endpoint is not None:
            endpoints.append(NodeEndpoint(broker_id, endpoint.host, endpoint.port, broker.rack))
    return endpoints


def write_endpoints(out: bytearray, endpoints: Sequence[NodeEndpoint]) -> None:
    """Append the tagged fields of a Produce or Fetch response: the endpoints, with tag 0, or none."""
    if not endpoints:
        out.append(0)
        return
    field = bytearray()
    write_compact_size(field, len(endpoints))
    for endpoint in endpoints:
        field += endpoint.node_id.to_bytes(4)
        write_compact_string(field, endpoint.host)
        field += endpoint.port.to_bytes(4)
        write_compact_nullable_string(field, endpoint.rack)
        field.append(0)  # no tagged fields
    out += b"\x01\x00"
    write_uvarint(out, len(field))
    out += field
