"""Earlier and new audit events on one page."""

import pytest

from barnabas.console.audit_follower import joined
from barnabas.console.audit_reader import COUNT, AuditQuery, Look
from barnabas.metadata.audit.events import AuditEvent, AuditOutcome

ANY = AuditQuery()


def events(*offsets: int) -> list[tuple[int, AuditEvent]]:
    """Return events at these offsets, one second apart."""
    return [(offset, event(offset)) for offset in offsets]


def event(offset: int) -> AuditEvent:
    return AuditEvent(
        offset, 0, offset * 1000, "User:a", None, "h", "CreateTopics", AuditOutcome.CHANGED, "topic/t"
    )


def offsets(look: Look) -> list[int]:
    return [offset for offset, _ in look.events]


def test_new_events_come_before_earlier_ones() -> None:
    look = joined(Look(events(9, 7), None, 10), Look(events(5, 2), 2, 6), ANY, 0)
    assert (offsets(look), look.older, look.end) == ([9, 7, 5, 2], 2, 10)


def test_a_page_is_limited_and_links_to_the_rest() -> None:
    before = Look(events(*range(COUNT, 0, -1)), None, COUNT + 1)
    look = joined(Look(events(COUNT + 1), None, COUNT + 2), before, ANY, 0)
    assert (len(look.events), offsets(look)[0], offsets(look)[-1]) == (COUNT, COUNT + 1, 2)
    assert look.older == 2, "what is older than this is at 1"


def test_a_full_page_of_new_events_contains_no_earlier_ones() -> None:
    fresh = Look(events(*range(200, 200 - COUNT, -1)), 151, 201)
    assert joined(fresh, Look(events(5), None, 6), ANY, 0) == fresh


@pytest.mark.parametrize(
    ("first", "kept", "older"), [(0, [5, 2], 2), (2, [5, 2], None), (3, [5], None), (6, [], None)]
)
def test_deleted_and_old_events_are_removed(first: int, kept: list[int], older: int | None) -> None:
    look = joined(Look([], None, 6), Look(events(5, 2), 2, 6), ANY, first)
    assert (offsets(look), look.older) == (kept, older)
    since = AuditQuery(since_ms=3_000)
    assert offsets(joined(Look([], None, 6), Look(events(5, 2), 2, 6), since, 0)) == [5]
