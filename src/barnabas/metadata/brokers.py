"""Brokers: who is in the cluster, and how clients reach them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from barnabas.metadata.audit.difference import Difference, compare
from barnabas.metadata.decision import Decision
from barnabas.metadata.record_type import RecordType, Table

if TYPE_CHECKING:
    from barnabas.metadata.image import MetadataImage


class Endpoint(NamedTuple):
    """Where one listener of a broker is reached from outside."""

    listener: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class BrokerRegistration:
    """A broker as it registered itself."""

    broker_id: int
    endpoints: tuple[Endpoint, ...]
    rack: str | None = None
    log_dirs: tuple[bytes, ...] = ()  #: the ids of its log directories
    fenced: bool = False
    cordoned: bool = False  #: all its log directories are: it gets no new replicas unless by hand (KIP-1066)

    def endpoint(self, listener: str) -> Endpoint | None:
        """Where a client that came in by `listener` finds this broker; None when it has no such listener."""
        return next((endpoint for endpoint in self.endpoints if endpoint.listener == listener), None)


def _to_plain(broker: BrokerRegistration) -> Any:
    return {
        "id": broker.broker_id,
        "endpoints": [list(endpoint) for endpoint in broker.endpoints],
        "rack": broker.rack,
        "log_dirs": [directory.hex() for directory in broker.log_dirs],
        "fenced": broker.fenced,
        "cordoned": broker.cordoned,
    }


def _from_plain(plain: Any) -> BrokerRegistration:
    return BrokerRegistration(
        broker_id=plain["id"],
        endpoints=tuple(Endpoint(*endpoint) for endpoint in plain["endpoints"]),
        rack=plain["rack"],
        log_dirs=tuple(bytes.fromhex(directory) for directory in plain["log_dirs"]),
        fenced=plain["fenced"],
        cordoned=plain.get("cordoned", False),
    )


def _audit(
    _image: "MetadataImage", key: str, before: BrokerRegistration | None, after: BrokerRegistration | None
) -> Iterator[Difference]:
    def view(broker: BrokerRegistration | None) -> dict[str, Any]:
        if broker is None:
            return {}
        endpoints = [
            f"{endpoint.listener}://{endpoint.host}:{endpoint.port}" for endpoint in broker.endpoints
        ]
        state = {"fenced": broker.fenced, "cordoned": broker.cordoned}
        return {"endpoints": endpoints, "rack": broker.rack, **state}

    return compare(f"broker/{key}", view(before), view(after))


BROKERS: RecordType[BrokerRegistration] = RecordType("brokers", _to_plain, _from_plain, _audit)


def decide_register(table: Table[BrokerRegistration], broker: BrokerRegistration) -> Decision[None]:
    """Write down how a broker is reached now; a broker that comes back replaces what it said before."""
    key = str(broker.broker_id)
    if table.get(key) == broker:
        return Decision(None)
    return Decision(None, (BROKERS.put(key, broker),), {BROKERS.key(key): table.revision(key)})
