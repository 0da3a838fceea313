"""Reads the audit topic backwards from its end, because the newest changes matter most."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from barnabas.base.ids import TopicPartition
from barnabas.base.topic_names import AUDIT_TOPIC
from barnabas.client.admin.offsets import EARLIEST, LATEST, OffsetSpec, find_offsets
from barnabas.client.consumer.consumer import Consumer
from barnabas.client.core.cluster import ClusterClient
from barnabas.metadata.audit.events import AuditEvent, AuditOutcome
from barnabas.wire.errors import ErrorCode, KafkaError

AUDIT_PARTITION = TopicPartition(AUDIT_TOPIC, 0)
#: Records per read: few at first, because the newest are usually enough, then more.
_CHUNK, _CHUNK_MAX = 200, 5_000
COUNT = 50  #: events per page
LOOK_MAX = 50_000  #: records that one page reads at most
HISTORY_LOOK_MAX = 500_000


@dataclass(frozen=True)
class AuditQuery:
    """Which events to show; an empty text matches any. Times in ms since the epoch."""

    resource: str = ""
    principal: str = ""
    outcome: str = ""
    since_ms: int | None = None
    until_ms: int | None = None

    def matches(self, event: AuditEvent) -> bool:
        """Whether an event matches; a resource ending with a star is a prefix."""
        return (
            _is_named(event.resource, self.resource)
            and _is_named(event.principal, self.principal)
            and self.outcome in ("", event.outcome)
            and (self.since_ms is None or event.time >= self.since_ms)
            and (self.until_ms is None or event.time < self.until_ms)
        )


def _is_named(name: str, wanted: str) -> bool:
    return wanted in ("", name) or (wanted.endswith("*") and name.startswith(wanted[:-1]))


class AuditPage(NamedTuple):
    """Events, the newest first, and the offset before which to look for older ones; None if there are none."""

    events: list[AuditEvent]
    older: int | None
    exists: bool = True  #: whether there is an audit topic


class Look(NamedTuple):
    """The result of a read: events with their offsets, the newest first."""

    events: list[tuple[int, AuditEvent]]
    older: int | None  #: as in `AuditPage`
    end: int  #: records before this offset were read

    @property
    def found(self) -> AuditPage:
        """The events without offsets."""
        return AuditPage([event for _, event in self.events], self.older)


NO_AUDIT = AuditPage([], None, exists=False)


async def read_back(
    cluster: ClusterClient,
    query: AuditQuery,
    *,
    before: int | None = None,
    count: int = COUNT,
    look_max: int = LOOK_MAX,
) -> AuditPage:
    """The newest matching events before an offset, or of all.

    :raises KafkaError: TOPIC_AUTHORIZATION_FAILED.
    """
    bounds = await bounds_of(cluster, query)
    if bounds is None:
        return NO_AUDIT
    first, last = bounds
    last = last if before is None else min(last, before)
    return (await look_back(cluster, query, first, last, count=count, look_max=look_max)).found


async def look_back(
    cluster: ClusterClient,
    query: AuditQuery,
    first: int,
    last: int,
    *,
    count: int = COUNT,
    look_max: int = LOOK_MAX,
) -> Look:
    """The newest matching events between two offsets; stops at the limit of events or of records."""
    needle = (
        json.dumps(query.resource).encode() if query.resource and not query.resource.endswith("*") else b""
    )
    found: list[tuple[int, AuditEvent]] = []
    looked_from, step = last, _CHUNK
    async with Consumer(cluster) as consumer:
        while looked_from > first and last - looked_from < look_max:
            begin, end = max(first, looked_from - step), looked_from
            step = min(2 * step, _CHUNK_MAX)
            chunk = await _read(consumer, begin, end, lambda value: needle in value)
            looked_from = begin
            for offset, event in reversed(chunk):
                if not query.matches(event):
                    continue
                if len(found) == count:
                    return Look(found, offset + 1, last)
                found.append((offset, event))
    return Look(found, looked_from if looked_from > first else None, last)


async def bounds_of(cluster: ClusterClient, query: AuditQuery) -> tuple[int, int] | None:
    """The first and the end offset of the audit topic; None if there is none.

    :raises KafkaError: TOPIC_AUTHORIZATION_FAILED.
    """
    try:
        first = (await find_offsets(cluster, {AUDIT_PARTITION: EARLIEST}))[AUDIT_PARTITION]
        last = (await find_offsets(cluster, {AUDIT_PARTITION: LATEST}))[AUDIT_PARTITION]
        if query.since_ms is None:
            return first, last
        since = (await find_offsets(cluster, {AUDIT_PARTITION: OffsetSpec.at(query.since_ms)}))[
            AUDIT_PARTITION
        ]
    except KafkaError as error:
        if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise
        return None
    return last if since < 0 else max(first, since), last


async def _read(
    consumer: Consumer, begin: int, end: int, wanted: Callable[[bytes], bool]
) -> list[tuple[int, AuditEvent]]:
    await consumer.assign({AUDIT_PARTITION: begin})
    position = consumer.positions[AUDIT_PARTITION]
    position.end = end
    found: list[tuple[int, AuditEvent]] = []
    while not consumer.finished:
        for record in await consumer.poll():
            if record.value is not None and wanted(record.value):
                found += ((record.offset, event) for event in _parsed(record.value))
    return found


def _parsed(value: bytes) -> Iterator[AuditEvent]:
    """The event of a record; None for a record that is not an audit event."""
    try:
        yield AuditEvent.from_json(value)
    except ValueError:
        return


def outcomes() -> list[str]:
    """The outcomes of changes, in words."""
    return [str(each) for each in AuditOutcome]
