"""Reconstructs the state of a resource at a revision from audit events."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from barnabas.metadata.audit.events import AuditEvent, AuditOutcome


class KeyDifference(NamedTuple):
    """One key of a resource at two revisions; None if the key did not exist."""

    key: str
    before: Any
    after: Any


def state_at(events: Iterable[AuditEvent], resource: str, revision: int) -> dict[str, Any]:
    """Return the keys of the resource at a revision, as far as events show them.

    A key that changed only later has the value from before its first later event.

    :param events: All available events, in order; a key that changed only before the first of them is not known.
    """
    state: dict[str, Any] = {}
    later: dict[str, Any] = {}
    for event in events:
        if event.resource != resource or event.outcome is not AuditOutcome.CHANGED or event.key is None:
            continue
        if event.revision <= revision:
            state[event.key] = event.after
        elif event.key not in state:
            later.setdefault(event.key, event.before)
    return {key: value for key, value in (later | state).items() if value is not None}


def compared(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[KeyDifference]:
    """Return the keys in which two states differ, sorted by name."""
    keys = sorted(before.keys() | after.keys())
    return [
        KeyDifference(key, before.get(key), after.get(key))
        for key in keys
        if before.get(key) != after.get(key)
    ]
