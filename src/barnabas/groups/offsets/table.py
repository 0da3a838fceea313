"""Where each group stands in each partition: offsets as they stand in the log, by group and by the end of their key."""

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from barnabas.coordinator.shard import RecordPosition
from barnabas.groups.statistics import OffsetStatistics
from barnabas.wire.coordinator_records.committed_offset import split_key
from barnabas.wire.records.batch import NO_PRODUCER_ID

#: Where the record of an offset stands, and its value, which `decode_value` reads.
StoredOffset: TypeAlias = tuple[int, bytes]

_NOTHING: Mapping[bytes, StoredOffset] = {}


class OffsetTable:
    """Only `replay` and `end_transaction` change it.

    Partitions are named by the bytes that their keys end with: `encode_partition`, `decode_partition`.
    """

    def __init__(self) -> None:
        self._committed: dict[str, dict[bytes, StoredOffset]] = {}
        #: producer id -> (group, partition) -> what its open transaction will commit
        self._pending: dict[int, dict[tuple[str, bytes], StoredOffset]] = {}
        #: group -> partition -> producers with an open transaction that commits an offset there
        self._open: dict[str, dict[bytes, set[int]]] = {}

    # Records

    def replay(self, key: bytes, value: bytes | None, position: RecordPosition) -> str:
        """Take over one record; gives its group."""
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
        """What a transaction has committed counts from now on, or never did.

        An offset committed after it by other means stays: the later record wins, as it does once the log is compacted.
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

    # Questions

    def of_group(self, group_id: str) -> Mapping[bytes, StoredOffset]:
        """The committed offsets of a group by partition."""
        return self._committed.get(group_id, _NOTHING)

    def open_partitions(self, group_id: str) -> frozenset[bytes]:
        """The partitions of a group that some open transaction commits an offset for."""
        return frozenset(self._open.get(group_id, ()))

    def has_open(self, group_id: str) -> bool:
        """Whether some open transaction commits offsets of the group."""
        return group_id in self._open

    def is_open(self, group_id: str, partition: bytes) -> bool:
        """Whether some open transaction commits an offset of the group for the partition."""
        return partition in self._open.get(group_id, ())

    def committed_offsets(self) -> Iterator[tuple[str, bytes, StoredOffset]]:
        """Group, partition and offset of all that is committed."""
        for group_id, partitions in self._committed.items():
            for partition, stored in partitions.items():
                yield group_id, partition, stored

    def all_offsets(self) -> Iterator[tuple[str, bytes, StoredOffset]]:
        """The same, and then of what open transactions will commit."""
        yield from self.committed_offsets()
        for pending in self._pending.values():
            for (group_id, partition), stored in pending.items():
                yield group_id, partition, stored

    def validate(self) -> None:
        """Check what must always hold."""
        assert all(self._committed.values()), "a group without offsets"
        assert all(self._pending.values()), "a producer that commits nothing"
        opened = {
            (group_id, partition, producer_id)
            for group_id, partitions in self._open.items()
            for partition, producers in partitions.items()
            for producer_id in producers
        }
        pending = {(*where, producer_id) for producer_id, each in self._pending.items() for where in each}
        assert opened == pending, (opened, pending)

    def statistics(self) -> OffsetStatistics:
        """How much there is."""
        return {
            "offsets_count": sum(map(len, self._committed.values())),
            "pending_offsets_count": sum(map(len, self._pending.values())),
        }
