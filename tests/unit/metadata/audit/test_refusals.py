"""What is recorded of many refused changes."""

import json
import random
from collections.abc import Callable

import pytest

from barnabas.base.clock import ManualClock
from barnabas.base.source_limiter import WINDOW_MS, LeftOut
from barnabas.metadata.audit.auditor import Auditor
from barnabas.metadata.audit.difference import Difference
from barnabas.metadata.audit.events import AuditOutcome, events_of
from barnabas.metadata.audit.records import AUDIT, Actor, AuditRecord, Refusal
from barnabas.metadata.audit.refusals import (
    LEFT_OUT,
    LIMITS,
    REPEATED_MS,
    REQUEST_COUNT_MAX,
    SEVERAL_APIS,
    TEXT_BYTES_MAX,
    RefusalLimiter,
    shortened_text,
)
from barnabas.metadata.writer import MetadataWriter
from support.loop import on_loop
from support.memory_store import MemoryStore

UNAUTHORIZED = "TOPIC_AUTHORIZATION_FAILED"
NOW_MS = 1_700_000_000_000


def actor(principal: str = "User:eve", host: str = "10.0.0.1", client_id: str = "client") -> Actor:
    return Actor(principal, client_id, host, "CreateTopics")


def refusals(count: int, prefix: str = "t") -> list[Refusal]:
    return [Refusal(f"topic/{prefix}{number}", UNAUTHORIZED, "no") for number in range(count)]


def test_of_a_request_the_first_refusals_and_the_number_of_the_others_are_recorded() -> None:
    requested = refusals(REQUEST_COUNT_MAX + 7_950)
    admitted = RefusalLimiter(ManualClock()).admitted(actor(), requested)
    others = Refusal(LEFT_OUT, "", "7950 more changes in the request were refused")
    assert admitted == [*requested[:REQUEST_COUNT_MAX], others]


def test_a_request_within_the_limit_is_recorded_completely() -> None:
    requested = refusals(REQUEST_COUNT_MAX)
    assert RefusalLimiter(ManualClock()).admitted(actor(), requested) == requested


def test_a_repeated_request_is_recorded_once_in_a_while() -> None:
    clock = ManualClock()
    limiter = RefusalLimiter(clock)
    first = limiter.admitted(actor(), refusals(REQUEST_COUNT_MAX + 1))
    assert limiter.admitted(actor(), refusals(REQUEST_COUNT_MAX + 1)) == []
    clock.advance(REPEATED_MS)
    assert limiter.admitted(actor(), refusals(REQUEST_COUNT_MAX + 1)) == first
    assert limiter.take_left_out() == []


@pytest.mark.parametrize(
    ("source", "limit"),
    [
        (lambda number: actor(client_id=f"client{number}"), LIMITS.principal),
        (lambda number: actor(f"User:{number}"), LIMITS.address),
        (lambda number: actor(f"User:{number}", f"10.0.0.{number}"), LIMITS.total),
    ],
)
def test_refusals_with_invented_names_are_limited_within_a_minute(
    source: Callable[[int], Actor], limit: int
) -> None:
    clock = ManualClock()
    limiter = RefusalLimiter(clock)
    requests_count = 1_000
    admitted = [
        refusal
        for number in range(requests_count)
        for refusal in limiter.admitted(source(number), refusals(1, f"{number}-"))
    ]
    assert len(admitted) == limit
    assert limiter.take_left_out() == []
    clock.advance(WINDOW_MS)
    left_out = limiter.take_left_out()
    assert sum(entry.entries_count for entry in left_out) == requests_count - limit
    assert limiter.take_left_out() == []


def test_what_was_left_out_is_kept_until_it_is_taken() -> None:
    clock = ManualClock()
    limiter = RefusalLimiter(clock)
    for window in range(2):
        for number in range(LIMITS.principal + 5):
            limiter.admitted(actor(), refusals(1, f"{window}-{number}-"))
        clock.advance(WINDOW_MS)
    assert limiter.take_left_out() == [LeftOut("User:eve", "10.0.0.1", 5)] * 2


@pytest.mark.parametrize("text", ["x" * 30_000, "\N{GRINNING FACE}" * 30_000, "\0" * TEXT_BYTES_MAX])
def test_a_long_text_is_cut_to_a_size_in_json(text: str) -> None:
    shortened = shortened_text(text)
    kept, _, length = shortened.partition("...")
    assert kept
    assert text.startswith(kept)
    assert length == f" ({len(text)} characters)"
    assert len(json.dumps(kept)) <= TEXT_BYTES_MAX


def test_a_text_as_long_as_the_longest_topic_name_is_not_cut() -> None:
    assert shortened_text("topic/" + "x" * 249) == "topic/" + "x" * 249


def test_an_event_of_a_refusal_is_small_whatever_names_the_client_has_chosen() -> None:
    long_name = "\N{GRINNING FACE}" * 30_000
    eve = actor(f"User:{long_name}", client_id=long_name)
    auditor = Auditor(ManualClock(), random.Random(1))
    admitted = auditor.admitted(eve, [Refusal(f"topic/{long_name}", UNAUTHORIZED, long_name)])
    [change] = auditor.audit_events(eve, admitted).changes
    assert len(change.value or b"") < 2_000
    [event] = events_of(1, AUDIT.decode(change.value or b""))
    assert len(event.to_json()) < 2_000


def test_only_the_refused_events_of_a_record_are_shortened() -> None:
    long_name = "x" * 10_000
    difference = Difference(f"group/{long_name}", "state", "Empty", None)
    warning = Refusal(f"topic/{long_name}", "POLICY_VIOLATION", long_name)
    record = AuditRecord(1, actor(client_id=long_name), (difference,), refusals(1), (warning,))
    by_outcome = {event.outcome: event for event in events_of(1, record)}
    assert by_outcome[AuditOutcome.CHANGED].client_id == long_name
    assert by_outcome[AuditOutcome.CHANGED].resource == difference.resource
    assert by_outcome[AuditOutcome.WARNED].client_id == long_name
    assert by_outcome[AuditOutcome.WARNED].message == long_name
    assert len(by_outcome[AuditOutcome.REFUSED].client_id or "") < 400


@on_loop
async def test_changes_and_warnings_are_recorded_after_the_limit_of_refusals_is_reached() -> None:
    clock = ManualClock(NOW_MS)
    writer = MetadataWriter(MemoryStore(), Auditor(clock, random.Random(1)))
    await writer.start()
    for number in range(LIMITS.principal + 2):
        await writer.record_events(actor(), refusals(1, f"{number}-"))
    assert len(writer.image.audit) == LIMITS.principal
    differences = [Difference(f"group/g{number}", "state", "Empty", None) for number in range(500)]
    warnings = [Refusal(f"topic/w{number}", "POLICY_VIOLATION", "no") for number in range(500)]
    await writer.record_events(actor(), refusals(1, "last-"), warnings, differences)
    record = max(writer.image.audit.items(), key=lambda row: writer.image.audit.revision(row[0]))[1]
    assert (record.differences, record.warnings) == (tuple(differences), tuple(warnings))
    assert record.refusals == ()
    await writer.stop()


@on_loop
async def test_the_number_of_refusals_that_were_left_out_is_recorded_after_the_minute() -> None:
    clock = ManualClock(NOW_MS)
    writer = MetadataWriter(MemoryStore(), Auditor(clock, random.Random(1)))
    await writer.start()
    for number in range(LIMITS.principal + 2):
        await writer.record_events(actor(), refusals(1, f"{number}-"))
    await writer.record_left_out()
    assert len(writer.image.audit) == LIMITS.principal
    clock.advance(WINDOW_MS)
    for _ in range(2):
        await writer.record_left_out()
    [record] = [row for row in writer.image.audit.values() if row.time_ms == clock.wall_ms()]
    assert record.actor == Actor("User:eve", None, "10.0.0.1", SEVERAL_APIS)
    message = "2 more refused changes within a minute: the limit of events was reached"
    assert record.refusals == (Refusal(LEFT_OUT, "", message),)
    await writer.stop()
