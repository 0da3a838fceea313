"""Audit events in their topic."""

import json

import pytest

from barnabas.metadata.audit.events import AuditEvent, AuditOutcome

EVENT = AuditEvent(
    7, 0, 1_000, "User:alice", "c", "127.0.0.1", "CREATE_TOPICS", AuditOutcome.CHANGED, "topic/orders"
)


def test_an_event_round_trips() -> None:
    assert AuditEvent.from_json(EVENT.to_json()) == EVENT


@pytest.mark.parametrize("value", [b"", b"[]", b"1", b"{}", b"[" * 100_000, b"\xff"])
def test_an_invalid_event_is_rejected(value: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        AuditEvent.from_json(value)


@pytest.mark.parametrize(
    "field", ["revision", "number", "time", "principal", "client_host", "api", "resource"]
)
@pytest.mark.parametrize("wrong", [None, [1], 1.5])
def test_an_event_with_a_field_of_the_wrong_type_is_rejected(field: str, wrong: object) -> None:
    fields = json.loads(EVENT.to_json())
    with pytest.raises(ValueError, match="not an audit event"):
        AuditEvent.from_json(json.dumps({**fields, field: wrong}).encode())
