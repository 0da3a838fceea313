"""Audit events as the summary reads them."""

from typing import Any

import pyarrow as pa
import pytest

from barnabas.metadata.audit.events import AuditEvent, AuditOutcome
from barnabas.reports.audit.events import LoggedEvent, read_acl_events, read_events

WHO = (1, 2, 86_400_000, "User:alice", "client", "10.0.0.1", "CreateAcls", AuditOutcome.CHANGED)


def batch(*events: AuditEvent) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {"offset": range(len(events)), "value": [event.to_json() for event in events]}
    )


def read(**fields: Any) -> LoggedEvent:
    [event] = read_events([batch(AuditEvent(*WHO, "topic/orders", **fields))])
    return event


def test_an_event_is_read_as_it_was_written() -> None:
    event = read(key="retention.ms", before=None, after="ü", error="E", message="why")
    assert event[:3] == (1, 2, 86_400_000)
    assert event[3:8] == ("User:alice", "10.0.0.1", "CreateAcls", "changed", "topic/orders")
    assert event[8:] == ("retention.ms", None, "ü", "E", "why")
    assert (event.sequence, event.is_change, event.kind, event.date) == ((1, 2), True, "topic", "1970-01-02")


@pytest.mark.parametrize(
    ("value", "text"),
    [(3, "3"), (True, "true"), ([1, "ü"], '[1,"ü"]'), ({"a": None}, '{"a":null}'), ("3", "3")],
)
def test_values_that_are_no_text_are_json(value: Any, text: str) -> None:
    assert read(before=value).before == text


def test_only_changes_of_acls_are_acl_events() -> None:
    acl = AuditEvent(*WHO, "topic/orders", key="acl User:bob ALLOW READ from *", after=[1])
    other = AuditEvent(*WHO, "topic/acl orders", key="retention.ms", after="acl ")
    refused = AuditEvent(*WHO[:-1], AuditOutcome.REFUSED, "topic/orders", key="acl User:bob")
    [found] = read_acl_events([batch(other, refused), batch(acl, other)])
    assert (found.key, found.kind) == (acl.key, "acl")
