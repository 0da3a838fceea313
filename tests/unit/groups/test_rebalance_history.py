"""The history of rebalances: what belongs to one, and its bounds."""

import pytest

from barnabas.groups import rebalance_history
from barnabas.groups.classic.subscriptions import assigned_topics
from barnabas.groups.rebalance_history import (
    EVENTS_MAX,
    MEMBERS_MAX,
    PARTITIONS_MAX,
    REBALANCES_MAX,
    EventKind,
    GroupMember,
    RebalanceHistory,
    RebalanceStatus,
)
from barnabas.wire.consumer_protocol.assignment import ConsumerProtocolAssignment, TopicPartition
from barnabas.wire.consumer_protocol.versioned import write


def member(number: int) -> GroupMember:
    return GroupMember(f"member-{number}", None, "client", "/127.0.0.1")


def rebalance(history: RebalanceHistory, group_id: str, epoch: int, events_count: int = 1) -> None:
    for number in range(events_count):
        history.record(group_id, "consumer", 1_000, EventKind.JOINED, member(number), f"event {number}")
    history.set_epoch(group_id, epoch)
    history.complete(group_id, 1_500)


def test_the_latest_rebalances_of_a_group_are_kept() -> None:
    history = RebalanceHistory()
    for epoch in range(REBALANCES_MAX + 20):
        rebalance(history, "g", epoch)
    epochs = [each.epoch for each in history.of_group("g")]
    assert epochs == list(reversed(range(20, REBALANCES_MAX + 20)))
    assert (
        history.started["consumer", EventKind.JOINED] == history.completed["consumer"] == REBALANCES_MAX + 20
    )
    assert history.completed_ms["consumer"] == 500 * (REBALANCES_MAX + 20)


def test_the_first_and_the_last_events_of_a_long_rebalance_are_kept() -> None:
    history = RebalanceHistory()
    rebalance(history, "g", 1, events_count=1_000)
    [kept] = history.of_group("g")
    assert (len(kept.events), kept.events_count) == (EVENTS_MAX, 1_000)
    assert (kept.events[0].reason, kept.events[-1].reason) == ("event 0", "event 999")


def test_long_reasons_of_clients_are_cut() -> None:
    history = RebalanceHistory()
    history.record("g", "classic", 0, EventKind.LEFT, member(1), "x" * 30_000)
    assert len(history.of_group("g")[0].events[0].reason) == 255


@pytest.mark.parametrize(
    ("members_count", "partitions_count", "kept_count"),
    [(3, 4, 3), (500, 1, MEMBERS_MAX), (3, PARTITIONS_MAX // 2, 2), (1, PARTITIONS_MAX + 1, 0)],
)
def test_assignments_beyond_the_limits_are_left_out(
    members_count: int, partitions_count: int, kept_count: int
) -> None:
    history = RebalanceHistory()
    history.record("g", "consumer", 0, EventKind.JOINED)
    partitions = tuple(range(partitions_count))
    assignments = ((member(number), {"t": partitions}) for number in range(members_count))
    history.set_assignments("g", assignments, members_count)
    [kept] = history.of_group("g")
    assert (len(kept.assignments), kept.members_count) == (kept_count, members_count)


def test_the_groups_that_rebalanced_last_stay_within_the_size_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rebalance_history, "SIZE_BYTES_MAX", 20_000)
    history = RebalanceHistory()
    for number in range(1_000):
        rebalance(history, f"g{number}", 1, events_count=3)
    assert history.statistics()["size_bytes"] <= 20_000
    assert history.of_group("g0") == []
    assert len(history.of_group("g999")) == 1
    for number in range(1_000):
        history.remove_group(f"g{number}")
    assert history.statistics() == {"groups_count": 0, "size_bytes": 0}


def test_a_rebalance_is_superseded_when_the_group_changes_its_protocol() -> None:
    history = RebalanceHistory()
    history.record("g", "consumer", 0, EventKind.LEFT, member(1))
    history.record("g", "classic", 5, EventKind.PROTOCOL_CHANGED)
    assert [(each.group_type, each.status) for each in history.of_group("g")] == [
        ("classic", RebalanceStatus.IN_PROGRESS),
        ("consumer", RebalanceStatus.SUPERSEDED),
    ]


def test_the_assignment_of_a_classic_consumer_is_decoded_if_it_can_be_read() -> None:
    topics = [TopicPartition(topic="orders", partitions=[2, 0])]
    assignment = write(ConsumerProtocolAssignment(assigned_partitions=topics), 0)
    assert assigned_topics(assignment) == {"orders": (0, 2)}
    assert assigned_topics(b"") == {}
    assert assigned_topics(b"\xff" * 9) is None
    assert assigned_topics(assignment + bytes(100_000)) is None
