"""Stored offsets, by group and by the end of their record key."""

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from barnabas.coordinator.shard import RecordPosition
from barnabas.groups.statistics import OffsetStatistics
from barnabas.wire.coordinator_records.committed_offset import split_key
from barnabas.wire.records.batch import NO_PRODUCER_ID

#: The position of an offset's record, and its value, which `decode_value` reads.
StoredOffset: TypeAlias = tuple[int, bytes]

_NOTHING: Mapping[bytes, StoredOffset] = {}


class OffsetTable:
    """Offsets, which only `replay` and `end_transaction` change.

    Partitions are identified by the last bytes of their keys: `encode_partition`, `decode_partition`.
    """

    def __init__(self) -> None:
        self._committed: dict[str, dict[bytes, StoredOffset]] = {}
        #: producer id -> (group, partition) -> offset of its pending transaction
        self._pending: dict[int, dict[tuple[str, bytes], StoredOffset]] = {}
        #: group -> partition -> producers with a pending transaction that commits its offset
        self._open: dict[str, dict[bytes, set[int]]] = {}

    # Records

    def replay(self, key: bytes, value: bytes | None, position: RecordPosition) -> str:
        """Apply one record; return its group."""
        group_id, partition = split_key(key)
        if value is None:
            self._remove(group_id, partition)
        elif position.producer_id == NO_PRODUCER_ID:
            self._commit(group_id, partition, (position.offset, value))
        else:
            pending = self._pending.setdefault(position.producer_id, {})
            pending[group_id, partition] = (position.offset, value)
            self._open.setdefault(group_id, {}).setdefault(partition, set()).add(position.producer_id)
        return group_id

    def end_transaction(self, producer_id: int, *, commit: bool) -> None:
        """Apply or drop the offsets of a transaction.

        An offset that was committed later without a transaction stays: the later record counts, as after compaction of
        the log.
        """
        for (group_id, partition), stored in self._pending.pop(producer_id, {}).items():
            self._close(group_id, partition, producer_id)
            if commit:
                before = self._committed.get(group_id, _NOTHING).get(partition)
                if before is None or before[0] < stored[0]:
                    self._commit(group_id, partition, stored)

    def _commit(self, group_id: str, partition: bytes, stored: StoredOffset) -> None:
        partitions = self._committed.get(group_id)
        if partitions is None:
            partitions = self._committed[group_id] = {}
        partitions[partition] = stored

    def _remove(self, group_id: str, partition: bytes) -> None:
        partitions = self._committed.get(group_id)
        if partitions is not None:
            partitions.pop(partition, None)
            if not partitions:
                del self._committed[group_id]
        for producer_id in tuple(self._open.get(group_id, {}).get(partition, ())):
            pending = self._pending[producer_id]
            del pending[group_id, partition]
            if not pending:
                del self._pending[producer_id]
            self._close(group_id, partition, producer_id)

    def _close(self, group_id: str, partition: bytes, producer_id: int) -> None:
        partitions = self._open[group_id]
        producers = partitions[partition]
        producers.remove(producer_id)
        if not producers:
            del partitions[partition]
        if not partitions:
            del self._open[group_id]

    # Queries

    def of_group(self, group_id: str) -> Mapping[bytes, StoredOffset]:
        """Return the committed offsets of a group by partition."""
        return self._committed.get(group_id, _NOTHING)

    def open_partitions(self, group_id: str) -> frozenset[bytes]:
        """Return the partitions of a group for which a pending transaction commits an offset."""
        return frozenset(self._open.get(group_id, ()))

    def has_open(self, group_id: str) -> bool:
        """Return whether a pending transaction commits offsets of the group."""
        return group_id in self._open

    def is_open(self, group_id: str, partition: bytes) -> bool:
        """Return whether a pending transaction commits the group's offset of the partition."""
        return partition in self._open.get(group_id, ())

    def committed_offsets(self) -> Iterator[tuple[str, bytes, StoredOffset]]:
        """Yield group, partition and offset of all committed offsets."""
        for group_id, partitions in self._committed.items():
            for partition, stored in partitions.items():
                yield group_id, partition, stored

    def partitions(self) -> Iterator[tuple[str, bytes]]:
        """Yield group and partition of all offsets, also of pending transactions; some twice.

        Offsets may change in between.
        """
        for table in (self._committed, self._open):
            for group_id in tuple(table):
                for partition in tuple(table.get(group_id, ())):
                    yield group_id, partition

    def stored(self, group_id: str, partition: bytes) -> list[StoredOffset]:
        """Return the committed offset of a partition, and those of pending transactions."""
        committed = self.of_group(group_id).get(partition)
        producers = self._open.get(group_id, {}).get(partition, ())
        pending = [self._pending[producer_id][group_id, partition] for producer_id in producers]
        return pending if committed is None else [committed, *pending]

    def validate(self) -> None:
        assert all(self._committed.values()), "a group without offsets"
        assert all(self._pending.values()), "a producer without pending offsets"
        opened = {
            (group_id, partition, producer_id)
            for group_id, partitions in self._open.items()
            for partition, producers in partitions.items()
            for producer_id in producers
        }
        pending = {
            (*partition, producer_id)
            for producer_id, partitions in self._pending.items()
            for partition in partitions
        }
        assert opened == pending, (opened, pending)

    def statistics(self) -> OffsetStatistics:
        return {
            "offsets_count": sum(map(len, self._committed.values())),
            "pending_offsets_count": sum(map(len, self._pending.values())),
        }
