"""What a resource was like at any revision, out of the events of the audit."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from barnabas.metadata.audit.events import AuditEvent, AuditOutcome


class KeyDifference(NamedTuple):
    """One key of a resource at two revisions; None where there is none."""

    key: str
    before: Any
    after: Any


def state_at(events: Iterable[AuditEvent], resource: str, revision: int) -> dict[str, Any]:
    """The keys that the resource had, as far as events tell; those of later events in the state before them.

    :param events: All that there are, in order: a key that has changed only before the first of them is not known.
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
    """The keys in which two states differ, by name."""
    keys = sorted(before.keys() | after.keys())
    return [
        KeyDifference(key, before.get(key), after.get(key))
        for key in keys
        if before.get(key) != after.get(key)
    ]
