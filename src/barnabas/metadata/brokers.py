"""Brokers of the cluster, and their endpoints."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from barnabas.metadata.audit.difference import Difference, compare
from barnabas.metadata.decision import Decision
from barnabas.metadata.record_type import RecordType, Table

if TYPE_CHECKING:
    from barnabas.metadata.image import MetadataImage


#: A log directory that a broker has had, and has no more (KIP-858, `DirectoryId.LOST`).
LOST_LOG_DIR = bytes(15) + b"\x01"


class Endpoint(NamedTuple):
    """The advertised address of one listener of a broker."""

    listener: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class BrokerRegistration:
    """The registration of a broker."""

    broker_id: int
    endpoints: tuple[Endpoint, ...]
    rack: str | None = None
    log_dirs: tuple[bytes, ...] = ()  #: ids of its log directories
    fenced: bool = False
    cordoned: bool = (
        False  #: all its log directories are cordoned: it gets no new replicas automatically (KIP-1066)
    )
    epoch: int = 0  #: broker epoch, larger at each start and after each lost session (KIP-631, KIP-903)
    #: revision of its first start after an unclean stop since a topic with its replicas went to the trash; 0 if none
    unclean_epoch: int = 0

    def endpoint(self, listener: str) -> Endpoint | None:
        """Return the endpoint of `listener`; None if the broker does not have it."""
        return next((endpoint for endpoint in self.endpoints if endpoint.listener == listener), None)


def _to_plain(broker: BrokerRegistration) -> Any:
    return {
        "id": broker.broker_id,
        "endpoints": [list(endpoint) for endpoint in broker.endpoints],
        "rack": broker.rack,
        "log_dirs": [directory.hex() for directory in broker.log_dirs],
        "fenced": broker.fenced,
        "cordoned": broker.cordoned,
        "epoch": broker.epoch,
        "unclean_epoch": broker.unclean_epoch,
    }


def _from_plain(plain: Any) -> BrokerRegistration:
    return BrokerRegistration(
        broker_id=plain["id"],
        endpoints=tuple(Endpoint(*endpoint) for endpoint in plain["endpoints"]),
        rack=plain["rack"],
        log_dirs=tuple(bytes.fromhex(directory) for directory in plain["log_dirs"]),
        fenced=plain["fenced"],
        cordoned=plain.get("cordoned", False),
        epoch=plain.get("epoch", 0),
        unclean_epoch=plain.get("unclean_epoch", 0),
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

#: broker id -> broker epoch before the session; the store removes the record when the broker dies
SESSIONS: RecordType[int] = RecordType("sessions", int, int)


def decide_register(table: Table[BrokerRegistration], broker: BrokerRegistration) -> Decision[None]:
    """Register a broker; this replaces its previous registration."""
    key = str(broker.broker_id)
    if table.get(key) == broker:
        return Decision(None)
    return Decision(None, (BROKERS.put(key, broker),), {BROKERS.key(key): table.revision(key)})
