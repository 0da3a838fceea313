"""Audit events as the summary reads them from the topic, one at a time."""

import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from barnabas.reports.audit.analysis import ACL_KEY, ACL_KIND

_DAY_MS = 86_400_000
_TIME_MS_MAX = 253_402_300_799_999  #: the end of year 9999


class AuditError(ValueError):
    """The audit topic does not exist or cannot be read."""


class LoggedEvent(NamedTuple):
    """An event as `barnabas.metadata.audit.events` writes it; values that are not strings are JSON here."""

    revision: int
    number: int
    time: int
    principal: str
    client_host: str
    api: str
    outcome: str
    resource: str
    key: str | None
    before: str | None
    after: str | None
    error: str | None
    message: str | None

    @property
    def sequence(self) -> tuple[int, int]:
        """Position among all events."""
        return self.revision, self.number

    @property
    def is_change(self) -> bool:
        return self.outcome == "changed"

    @property
    def kind(self) -> str:
        """Kind of the resource, or `ACL_KIND`."""
        is_acl = self.key is not None and self.key.startswith(ACL_KEY)
        return ACL_KIND if is_acl else self.resource.partition("/")[0]

    @property
    def date(self) -> str:
        """Day of the event (UTC)."""
        return _date(self.time // _DAY_MS)


def read_events(batches: Iterable[pa.RecordBatch]) -> Iterator[LoggedEvent]:
    """Yield all events.

    :param batches: Records of the topic, with the columns `offset` and `value`.
    :raises AuditError: A record is not an event.
    """
    for batch in batches:
        for offset, value in zip(batch["offset"].to_pylist(), batch["value"].to_pylist(), strict=True):
            yield _event(offset, value)


def read_acl_events(batches: Iterable[pa.RecordBatch]) -> Iterator[LoggedEvent]:
    """Yield the changes of ACLs; other events are not parsed.

    :raises AuditError: As `read_events`.
    """
    for event in read_events(_containing(batches, ACL_KEY.encode())):
        if event.is_change and event.kind == ACL_KIND:
            yield event


def _containing(batches: Iterable[pa.RecordBatch], text: bytes) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch.filter(pc.match_substring(batch["value"], text))


def _event(offset: int, value: bytes | None) -> LoggedEvent:
    try:
        fields = json.loads(value or b"")
        event = LoggedEvent(
            fields["revision"],
            fields["number"],
            fields["time"],
            fields["principal"],
            fields["client_host"],
            fields["api"],
            fields["outcome"],
            fields["resource"],
            _text(fields.get("key")),
            _text(fields.get("before")),
            _text(fields.get("after")),
            _text(fields.get("error")),
            _text(fields.get("message")),
        )
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise _not_an_event(offset) from error
    if not _is_well_formed(event):
        raise _not_an_event(offset)
    return event


def _is_well_formed(event: LoggedEvent) -> bool:
    """Whether the fields have the right types: a client with WRITE on the topic can write anything."""
    names = event[3:8]
    has_numbers = all(type(field) is int for field in event[:3])
    return has_numbers and 0 <= event.time <= _TIME_MS_MAX and all(isinstance(name, str) for name in names)


def _not_an_event(offset: int) -> AuditError:
    return AuditError(f"the record at offset {offset} of the audit topic is not an audit event")


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


@lru_cache(maxsize=1_000)
def _date(day: int) -> str:
    return datetime.fromtimestamp(day * _DAY_MS / 1_000, UTC).date().isoformat()
