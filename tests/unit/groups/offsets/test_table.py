"""The result of any sequence of commits, transactions and tombstones."""

from random import Random

import pytest

from barnabas.coordinator.shard import RecordPosition
from barnabas.groups.offsets.table import OffsetTable
from barnabas.wire.coordinator_records.committed_offset import encode_group, encode_partition

PARTITION = encode_partition("t", 0)
KEY = encode_group("g") + PARTITION


def table_of(*events: tuple[int, bytes | None] | tuple[int, bool, str]) -> OffsetTable:
    """Build a table: (producer or -1, value) is a record, (producer, committed, "end") a marker."""
    table = OffsetTable()
    for offset, event in enumerate(events):
        if len(event) == 3:
            table.end_transaction(event[0], commit=event[1])
        else:
            table.replay(KEY, event[1], RecordPosition(offset, 0, event[0]))
        table.validate()
    return table


def value_of(table: OffsetTable) -> bytes | None:
    stored = table.of_group("g").get(PARTITION)
    return None if stored is None else stored[1]


def test_a_transactional_commit_is_visible_after_the_commit() -> None:
    table = table_of((-1, b"a"), (7, b"b"))
    assert value_of(table) == b"a"
    assert table.is_open("g", PARTITION)
    table.end_transaction(7, commit=True)
    assert value_of(table) == b"b"
    assert not table.has_open("g")


def test_a_transactional_commit_vanishes_after_the_abort() -> None:
    assert value_of(table_of((-1, b"a"), (7, b"b"), (7, False, "end"))) == b"a"


def test_the_later_record_wins_whichever_transaction_ends_first() -> None:
    assert value_of(table_of((7, b"old"), (-1, b"new"), (7, True, "end"))) == b"new"
    assert value_of(table_of((7, b"old"), (8, b"new"), (8, True, "end"), (7, True, "end"))) == b"new"
    assert value_of(table_of((7, b"old"), (8, b"new"), (7, True, "end"), (8, True, "end"))) == b"new"


def test_a_tombstone_removes_pending_commits_too() -> None:
    table = table_of((-1, b"a"), (7, b"b"), (8, b"c"), (-1, None), (7, True, "end"))
    assert value_of(table) is None
    assert table.statistics() == {"offsets_count": 0, "pending_offsets_count": 0}


def test_a_partition_is_pending_until_its_last_transaction_ends() -> None:
    table = table_of((7, b"a"), (8, b"b"), (7, False, "end"))
    assert table.open_partitions("g") == {PARTITION}
    table.end_transaction(8, commit=False)
    assert table.open_partitions("g") == frozenset()


def test_a_marker_of_a_producer_without_commits_changes_nothing() -> None:
    assert value_of(table_of((-1, b"a"), (7, True, "end"))) == b"a"


@pytest.mark.parametrize("seed", range(30))
def test_any_sequence_results_in_the_latest_records(seed: int) -> None:
    """Compared with a model that scans the whole history of each partition."""
    rng = Random(seed)
    table = OffsetTable()
    committed: dict[bytes, tuple[int, bytes]] = {}
    pending: dict[tuple[int, bytes], tuple[int, bytes]] = {}
    keys = [encode_group(g) + encode_partition("t", i) for g in "ab" for i in range(3)]
    for offset in range(400):
        key, producer = rng.choice(keys), rng.choice([-1, -1, 1, 2, 3])
        what = rng.random()
        if what < 0.15 and producer >= 0:
            commit = rng.random() < 0.6
            table.end_transaction(producer, commit=commit)
            for each in [each for each in pending if each[0] == producer]:
                stored = pending.pop(each)
                if commit and committed.get(each[1], (-1, b""))[0] < stored[0]:
                    committed[each[1]] = stored
        elif what < 0.3:
            table.replay(key, None, RecordPosition(offset, 0))
            committed.pop(key, None)
            pending = {where: stored for where, stored in pending.items() if where[1] != key}
        else:
            value = str(offset).encode()
            table.replay(key, value, RecordPosition(offset, 0, producer))
            if producer < 0:
                committed[key] = (offset, value)
            else:
                pending[producer, key] = (offset, value)
        table.validate()
    expected = {*committed.items(), *((where[1], stored) for where, stored in pending.items())}
    found = {(encode_group(g) + p, stored) for g, p in table.partitions() for stored in table.stored(g, p)}
    assert found == expected
