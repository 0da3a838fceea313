"""Chooses each row's partition: its own, else by key as Java's clients do, else any, in runs. No IO."""

from random import Random
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.wire.records.arrow_fields import fields_of
from barnabas.wire.records.arrow_hashes import murmur2
from pyspark_barnabas.sink.errors import SinkError

Longs: TypeAlias = npt.NDArray[np.int64]

_POSITIVE = np.uint32(0x7FFFFFFF)


def byte_spans(values: pa.Array) -> tuple[Longs, Longs, npt.NDArray[np.uint8]]:
    """Start and length of each value of a binary array (0 for null), and the bytes."""
    fields = fields_of(values)
    return fields.positions, np.maximum(fields.sizes, 0), fields.data


class Partitioner:
    """Chooses partitions topic by topic; keeps rows without a key together until they fill a batch."""

    def __init__(self, batch_bytes: int, random: Random) -> None:
        self._batch_bytes = batch_bytes
        self._random = random
        self._current: dict[str, tuple[int, int]] = {}  #: topic -> (partition, bytes left in its batch)

    def choose(
        self,
        topic: str,
        partitions_count: int,
        requested: pa.Array | None,
        keys: pa.Array | None,
        sizes: Longs,
    ) -> Longs:
        """Choose a partition for each row.

        :param requested: int32, the partition that the row requests; null for none.
        :param sizes: Size of each row in a batch, in bytes.
        :raises SinkError: For a partition that the topic does not have.
        """
        count = len(sizes)
        chosen = np.full(count, -1, np.int64)
        if keys is not None and keys.null_count < count:
            keyed = keys.is_valid().to_numpy(zero_copy_only=False)
            hashed = (murmur2(keys) & _POSITIVE).astype(np.int64) % partitions_count
            chosen[keyed] = hashed[keyed]
        if requested is not None and requested.null_count < count:
            self._take_asked(topic, partitions_count, requested, chosen)
        free = np.flatnonzero(chosen < 0)
        if len(free):
            chosen[free] = self._spread(topic, partitions_count, sizes[free])
        return chosen

    def _take_asked(self, topic: str, partitions_count: int, requested: pa.Array, chosen: Longs) -> None:
        has_partition = requested.is_valid().to_numpy(zero_copy_only=False)
        partitions = pc.fill_null(requested, 0).to_numpy(zero_copy_only=False).astype(np.int64)
        wrong = has_partition & ((partitions < 0) | (partitions >= partitions_count))
        if wrong.any():
            message = (
                f"column partition: {partitions[wrong][0]} is out of range; topic '{topic}' has partitions "
                f"0 to {partitions_count - 1}"
            )
            raise SinkError(message)
        chosen[has_partition] = partitions[has_partition]

    def _spread(self, topic: str, partitions_count: int, sizes: Longs) -> Longs:
        """Yield runs of about one batch each, to randomly chosen partitions."""
        partition, left_bytes = self._current.get(
            topic, (self._random.randrange(partitions_count), self._batch_bytes)
        )
        ends = np.cumsum(sizes) + (self._batch_bytes - left_bytes)
        runs = (ends - sizes) // self._batch_bytes
        drawn = [partition % partitions_count]
        drawn += [self._random.randrange(partitions_count) for _ in range(int(runs[-1]))]
        used = int(ends[-1]) - int(runs[-1]) * self._batch_bytes
        self._current[topic] = drawn[-1], max(0, self._batch_bytes - used)
        lots: Longs = np.array(drawn, np.int64)[runs]
        return lots
