"""Earlier states of resources, computed from events."""

from typing import Any

from barnabas.metadata.audit.event_history import KeyDifference, compared, state_at
from barnabas.metadata.audit.events import AuditEvent, AuditOutcome


def event(revision: int, key: str, before: Any, after: Any, resource: str = "topic/a") -> AuditEvent:
    return AuditEvent(
        revision,
        0,
        1,
        "User:a",
        None,
        "::1",
        "AlterConfigs",
        AuditOutcome.CHANGED,
        resource,
        key,
        before,
        after,
    )


EVENTS = [
    event(3, "x", None, "1"),
    event(4, "x", None, "9", resource="topic/b"),
    event(5, "x", "1", "2"),
    event(7, "y", "old", None),
    event(9, "x", "2", None),
]


def test_a_state_results_from_the_last_changes_before_it() -> None:
    assert state_at(EVENTS, "topic/a", 4) == {"x": "1", "y": "old"}
    assert state_at(EVENTS, "topic/a", 5) == {"x": "2", "y": "old"}
    assert state_at(EVENTS, "topic/a", 7) == {"x": "2"}
    assert state_at(EVENTS, "topic/a", 9) == {}


def test_before_its_first_change_a_key_had_that_changes_old_value() -> None:
    assert state_at(EVENTS, "topic/a", 0) == {"y": "old"}


def test_rejected_requests_have_changed_nothing() -> None:
    refused = AuditEvent(
        1,
        0,
        1,
        "User:a",
        None,
        "::1",
        "DeleteTopics",
        AuditOutcome.REFUSED,
        "topic/a",
        error="POLICY_VIOLATION",
    )
    assert state_at([refused], "topic/a", 5) == {}


def test_states_are_compared_by_key() -> None:
    assert compared({"a": 1, "b": 2}, {"b": 3, "c": 4}) == [
        KeyDifference("a", 1, None),
        KeyDifference("b", 2, 3),
        KeyDifference("c", None, 4),
    ]
    assert compared({"a": [1]}, {"a": [1]}) == []
