"""Which partition each row goes to: as it says, else by its key as Java's clients do, else anywhere, in runs. No IO."""

from random import Random
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_barnabas.sink.errors import SinkError

Longs: TypeAlias = npt.NDArray[np.int64]
Words: TypeAlias = npt.NDArray[np.uint32]

_SEED = np.uint32(0x9747B28C)
_MULTIPLIER = np.uint32(0x5BD1E995)
_POSITIVE = np.uint32(0x7FFFFFFF)
_WORD_BYTES = 4


def murmur2(keys: pa.Array) -> Words:
    """`barnabas.client.partitioner.murmur2` of all keys at once; that of a null is that of no bytes."""
    starts, sizes, data = byte_spans(keys)
    digest = _SEED ^ sizes.astype(np.uint32)
    rows = np.arange(len(sizes))
    for word in range(int(sizes.max(initial=0)) // _WORD_BYTES):
        rows = rows[sizes[rows] >= (word + 1) * _WORD_BYTES]
        part = _word(data, starts[rows] + word * _WORD_BYTES, _WORD_BYTES) * _MULTIPLIER
        part = (part ^ part >> np.uint32(24)) * _MULTIPLIER
        digest[rows] = digest[rows] * _MULTIPLIER ^ part
    for tail in range(1, _WORD_BYTES):
        rows = np.flatnonzero(sizes % _WORD_BYTES == tail)
        if len(rows):
            last = _word(data, starts[rows] + sizes[rows] - tail, tail)
            digest[rows] = (digest[rows] ^ last) * _MULTIPLIER
    digest = (digest ^ digest >> np.uint32(13)) * _MULTIPLIER
    return digest ^ digest >> np.uint32(15)


def _word(data: npt.NDArray[np.uint8], positions: Longs, count: int) -> Words:
    word = np.zeros(len(positions), np.uint32)
    for byte in range(count):
        word |= data[positions + byte].astype(np.uint32) << np.uint32(8 * byte)
    return word


def byte_spans(values: pa.Array) -> tuple[Longs, Longs, npt.NDArray[np.uint8]]:
    """Where each value of a binary array begins, how long it is (0 for null), and the bytes."""
    _, offsets_buffer, data_buffer = values.buffers()
    width = np.int64 if pa.types.is_large_binary(values.type) else np.int32
    offsets: Any = np.frombuffer(offsets_buffer, width)[values.offset : values.offset + len(values) + 1]
    starts = offsets[:-1].astype(np.int64)
    sizes = offsets[1:].astype(np.int64) - starts
    if values.null_count:
        sizes[values.is_null().to_numpy(zero_copy_only=False)] = 0
    data = np.frombuffer(data_buffer, np.uint8) if data_buffer is not None else np.zeros(0, np.uint8)
    return starts, sizes, data


class Partitioner:
    """Chooses for one topic after the other; keeps rows without a key together until they fill a batch."""

    def __init__(self, batch_bytes: int, random: Random) -> None:
        self._batch_bytes = batch_bytes
        self._random = random
        self._current: dict[str, tuple[int, int]] = {}  #: topic -> (partition, bytes left for it)

    def choose(
        self, topic: str, partitions_count: int, asked: pa.Array | None, keys: pa.Array | None, sizes: Longs
    ) -> Longs:
        """A partition for each row.

        :param asked: int32, what the rows say; null where they say nothing.
        :param sizes: What each row takes in a batch, in bytes.
        :raises SinkError: For a partition that the topic does not have.
        """
        count = len(sizes)
        chosen = np.full(count, -1, np.int64)
        if keys is not None and keys.null_count < count:
            keyed = keys.is_valid().to_numpy(zero_copy_only=False)
            hashed = (murmur2(keys) & _POSITIVE).astype(np.int64) % partitions_count
            chosen[keyed] = hashed[keyed]
        if asked is not None and asked.null_count < count:
            self._take_asked(topic, partitions_count, asked, chosen)
        free = np.flatnonzero(chosen < 0)
        if len(free):
            chosen[free] = self._spread(topic, partitions_count, sizes[free])
        return chosen

    def _take_asked(self, topic: str, partitions_count: int, asked: pa.Array, chosen: Longs) -> None:
        said = asked.is_valid().to_numpy(zero_copy_only=False)
        wanted = pc.fill_null(asked, 0).to_numpy(zero_copy_only=False).astype(np.int64)
        wrong = said & ((wanted < 0) | (wanted >= partitions_count))
        if wrong.any():
            message = (
                f"column partition: {wanted[wrong][0]} is out of range; topic '{topic}' has partitions "
                f"0 to {partitions_count - 1}"
            )
            raise SinkError(message)
        chosen[said] = wanted[said]

    def _spread(self, topic: str, partitions_count: int, sizes: Longs) -> Longs:
        """Runs of about a batch's bytes, each to a partition drawn by lot."""
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
