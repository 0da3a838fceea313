"""Throughput of one core between records and Arrow columns: ``python -m bench.record_kernels``.

Each figure is the best of some rounds in CPU time, beside the machine's rate of copying memory.
"""

import random
import time
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from barnabas.reading.rows import ARROW_TYPES, read_arrow
from barnabas.wire.records.arrow_encode import ArrowEncoder
from barnabas.wire.records.arrow_rows import Batching, Columns
from barnabas.wire.records.arrow_types import COLUMN_TYPES
from barnabas.wire.records.compression import Compression

#: Bytes of records in a buffer, more than the caches of a core hold, and in a batch.
BUFFER_BYTES = 32 * 1024 * 1024
BATCH_BYTES = 64 * 1024
#: Rows that are encoded at a time.
GROUP_BYTES = 4 * 1024 * 1024
ROUNDS_COUNT = 7
CODECS = (Compression.NONE, Compression.LZ4, Compression.ZSTD)
OFFSET_END = (1 << 63) - 1
NOW_MS = 1_700_000_000_000


class Shape(NamedTuple):
    """A kind of records."""

    name: str
    record: Callable[[random.Random, int], tuple[bytes, bytes]]  #: key and value
    headers: list[dict[str, str | bytes]] | None = None


def json_event(rng: random.Random, number: int) -> tuple[bytes, bytes]:
    page = rng.choice(("home", "search", "basket", "product"))
    value = (
        f'{{"event_id":{number},"user":"user-{rng.randrange(100_000)}","page":"{page}",'
        f'"amount":{rng.random() * 100:.2f},"time":"2026-01-02T03:04:{number % 60:02d}Z"}}'
    )
    return b"user-%d" % (number % 100_000), value.encode()


def text(size_bytes: int) -> Callable[[random.Random, int], tuple[bytes, bytes]]:
    """Return values that compress about like logs: words of a small vocabulary."""
    words = [random.Random(seed).randbytes(6).hex().encode()[: 4 + seed % 8] for seed in range(4_000)]

    def record(rng: random.Random, number: int) -> tuple[bytes, bytes]:
        value = b" ".join(rng.choices(words, k=size_bytes // 5))
        return b"key-%08d" % number, value[: size_bytes - 12]

    return record


TRACE: list[dict[str, str | bytes]] = [
    {"key": "trace-id", "value": bytes(range(16))},
    {"key": "source", "value": b"web"},
]
SHAPES = (
    Shape("100 B", text(100)),
    Shape("1 KiB", text(1_024)),
    Shape("JSON, two headers", json_event, TRACE),
)


def columns_of(shape: Shape) -> list[Columns]:
    """Return rows of that shape in groups, `BUFFER_BYTES` in all."""
    rng = random.Random(shape.name)
    groups, number, total_bytes = [], 0, 0
    while total_bytes < BUFFER_BYTES:
        keys, values, size_bytes = [], [], 0
        while size_bytes < GROUP_BYTES:
            key, value = shape.record(rng, number)
            keys.append(key)
            values.append(value)
            size_bytes += len(key) + len(value)
            number += 1
        headers = None
        if shape.headers is not None:
            headers = pa.array([shape.headers] * len(keys), COLUMN_TYPES["headers"])
        times_ms = NOW_MS + number + np.arange(len(keys))
        groups.append(Columns(pa.array(keys), pa.array(values), headers, times_ms))
        total_bytes += size_bytes
    return groups


def encode(groups: Iterable[Columns], batching: Batching) -> Iterator[bytes | bytearray | memoryview]:
    for group in groups:
        for batch in ArrowEncoder(group).batches(batching):
            yield batch.data


def best_s(work: Callable[[], object]) -> float:
    """Return the CPU time of the best of some rounds, after a warm-up."""
    times_s = []
    for _ in range(1 + ROUNDS_COUNT):
        started_s = time.process_time()
        work()
        times_s.append(time.process_time() - started_s)
    return min(times_s[1:])


def drain(parts: Iterable[object]) -> None:
    for _ in parts:
        pass


def copy_bytes_per_s() -> float:
    """Return how fast this machine copies memory, in slices that are decoded together."""
    source = np.ones(GROUP_BYTES, np.uint8)
    target = np.ones(GROUP_BYTES, np.uint8)
    count = BUFFER_BYTES // GROUP_BYTES
    return count * GROUP_BYTES / best_s(lambda: drain(np.copyto(target, source) for _ in range(count)))


def measure(shape: Shape, codec: Compression, groups: list[Columns]) -> str:
    """Return a row of the table."""
    records_count = sum(len(group.timestamps_ms) for group in groups)
    plain_bytes = sum(len(batch) for batch in encode(groups, Batching(BATCH_BYTES)))
    batching = Batching(BATCH_BYTES, codec)
    buffer = b"".join(encode(groups, batching))
    every = [name for name in ARROW_TYPES if name != "headers" or shape.headers is not None]

    def read(columns: list[str], *, check_crcs: bool = True) -> Callable[[], None]:
        return lambda: drain(read_arrow(buffer, "topic", 0, 0, OFFSET_END, columns, check_crcs=check_crcs))

    times_s = [
        best_s(read(every)),
        best_s(read(every, check_crcs=False)),
        best_s(read(["value"])),
        best_s(lambda: drain(encode(groups, batching))),
    ]
    cells = [
        f"{records_count / each / 1e6:.1f} M/s, {plain_bytes / each / 1e6:,.0f} MB/s" for each in times_s
    ]
    return " | ".join([f"| {shape.name}, {codec.name.lower()}", *cells]) + " |"


def table() -> str:
    """Format the measurements as a Markdown table."""
    lines = [
        f"A copy in memory, {GROUP_BYTES // 1024**2} MiB at a time: {copy_bytes_per_s() / 1e6:,.0f} MB/s.",
        "",
        "| records | decode, all columns | without CRC check | decode, value only | encode |",
        "|---|---|---|---|---|",
    ]
    for shape in SHAPES:
        groups = columns_of(shape)
        lines += [measure(shape, codec, groups) for codec in CODECS]
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
