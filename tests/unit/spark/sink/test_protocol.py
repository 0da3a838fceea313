from barnabas.base.ids import ProducerIdAndEpoch
from barnabas.client.admin.group_messages import OffsetAndMetadata
from pyspark_barnabas.sink.protocol import (
    NO_ROWS,
    BatchId,
    CommitDecision,
    Fingerprint,
    Prepared,
    TaskCommit,
    find_mark,
    is_task_name,
    newest_batch,
    task_name,
)

BATCH = BatchId("0b5c", 7)
MARK = TaskCommit(BATCH, Fingerprint(3, (1 << 64) - 1))
FOREIGN = OffsetAndMetadata(7, -1, "somebody's")
#: The default limit of `offset.metadata.max.bytes`.
METADATA_CHARS_MAX = 4_096


def decision(count: int) -> CommitDecision:
    ids = [
        Prepared(task, ProducerIdAndEpoch(1_000_000 + 7919 * task % 10_007, task % 30_000))
        for task in range(count)
    ]
    return CommitDecision(BATCH, tuple(ids))


def test_a_mark_round_trips() -> None:
    assert find_mark([FOREIGN, MARK.to_offset()], BATCH) == MARK
    assert MARK.to_offset().offset == 0


def test_a_mark_of_another_batch_is_ignored() -> None:
    assert find_mark([MARK.to_offset()], BatchId("0b5c", 8)) is None
    assert find_mark([MARK.to_offset()], BatchId("other", 7)) is None
    assert find_mark([FOREIGN], BATCH) is None


def test_a_decision_of_any_size_fits_into_metadata_and_round_trips() -> None:
    for count in (0, 1, 60, 3_000):
        offsets = decision(count).to_offsets()
        assert all(len(each.metadata) <= METADATA_CHARS_MAX for each in offsets)
        assert CommitDecision.find([FOREIGN, *reversed(offsets)], BATCH) == decision(count)
    assert len(decision(200).to_offsets()) == 1


def test_an_incomplete_decision_is_ignored() -> None:
    offsets = decision(3_000).to_offsets()
    assert len(offsets) > 2
    assert CommitDecision.find(offsets[1:], BATCH) is None
    assert CommitDecision.find([], BATCH) is None
    mixed = [*decision(3_000).to_offsets()[:1], *decision(2_900).to_offsets()[1:]]
    assert CommitDecision.find(mixed, BATCH) is None


def test_a_decision_replaces_the_parts_of_a_longer_earlier_one() -> None:
    offsets = [*decision(3).to_offsets(), *decision(3_000).to_offsets()[1:]]
    assert CommitDecision.find(offsets, BATCH) == decision(3)


def test_a_decision_of_another_batch_is_ignored() -> None:
    assert CommitDecision.find(decision(3).to_offsets(), BatchId("0b5c", 8)) is None


def test_the_newest_batch_of_a_query_is_found_in_marks_and_decisions() -> None:
    offsets = [
        MARK.to_offset(),
        *decision(2).to_offsets(),
        TaskCommit(BatchId("x", 99), NO_ROWS).to_offset(),
        FOREIGN,
    ]
    assert newest_batch(offsets, "0b5c") == 7
    assert newest_batch(offsets, "x") == 99
    assert newest_batch(offsets, "y") == -1


def test_tasks_are_named_after_their_sink() -> None:
    assert task_name("s", 3) == "s.3"
    assert task_name("s", 3, 2) == "s.3-2"
    assert is_task_name("s", "s.3")
    assert is_task_name("s", "s.3-2")
    assert not any(
        is_task_name("s", name) for name in ("s", "s.", "s.a", "s.1.2", "s.1.2-3", "s.1-", "ss.3", "t.3")
    )


def test_fingerprints_add_up_in_any_order() -> None:
    one, two = Fingerprint(1, (1 << 64) - 1), Fingerprint(2, 5)
    assert one.plus(two) == two.plus(one) == Fingerprint(3, 4)
