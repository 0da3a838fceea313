"""Cost of validating the records of produced batches: ``python -m bench.validation``."""

import time
from collections.abc import Callable
from random import Random
from types import ModuleType
from typing import NamedTuple

from tests.support.kernels import INTERPRETED

from barnabas.log.log_config import LogConfig
from barnabas.log.validation import validate_inline
from barnabas.wire.records import walk as installed
from barnabas.wire.records.batch import BATCH_HEADER_BYTES, BatchHeader, read_header
from barnabas.wire.records.compression import Compression, decompress_into
from barnabas.wire.records.record import (
    RECORD_HEADERS_COUNT_MAX,
    Record,
    RecordHeaders,
    batch_body,
    encode_batch,
)

BATCH_BYTES = 64 * 1024
NOW_MS = 1_700_000_000_000
INT64_MAX = (1 << 63) - 1
ROUNDS_COUNT = 7
#: Minimum CPU time of a round.
ROUND_S = 0.05
CONFIG = LogConfig()
WORDS = [f"word{number * number % 9973}" for number in range(1000)]


class Shape(NamedTuple):
    """The records of a batch."""

    name: str
    value_bytes: int
    batch_bytes: int = BATCH_BYTES
    headers: RecordHeaders = ()
    compression: Compression = Compression.NONE

    def batch(self) -> bytearray:
        rng = Random(0)
        count = max(1, self.batch_bytes // (self.value_bytes + 8))
        values = [" ".join(rng.choices(WORDS, k=1 + self.value_bytes // 4)).encode() for _ in range(count)]
        records = [
            Record(index, NOW_MS + index, None, value[: self.value_bytes], self.headers)
            for index, value in enumerate(values)
        ]
        return encode_batch(records, compression=self.compression)


SHAPES = [
    Shape("20 B", 20),
    Shape("100 B", 100),
    Shape("1 KiB", 1024),
    Shape("100 B, three headers", 100, headers=(("trace", b"12345678"), ("type", b"a"), ("from", b"b"))),
    Shape("100 B, lz4", 100, compression=Compression.LZ4),
    Shape("100 B, zstd", 100, compression=Compression.ZSTD),
    Shape("1 KiB, lz4", 1024, compression=Compression.LZ4),
    Shape("1 KiB, zstd", 1024, compression=Compression.ZSTD),
    Shape("100 B, one to a batch", 100, batch_bytes=100),
]


def measure(work: Callable[[], object], records_count: int) -> float:
    """Return microseconds of CPU time per record in the best round."""
    times_count, elapsed_s = 1, 0.0
    while elapsed_s < ROUND_S:
        times_count *= 2
        elapsed_s = _elapsed_s(work, times_count)
    best_s = min(_elapsed_s(work, times_count) for _ in range(ROUNDS_COUNT))
    return best_s / times_count / records_count * 1e6


def _elapsed_s(work: Callable[[], object], times_count: int) -> float:
    started_s = time.process_time()
    for _ in range(times_count):
        work()
    return time.process_time() - started_s


def walking(module: ModuleType, body: bytes, header: BatchHeader) -> Callable[[], object]:
    """Return a function that walks the records once."""
    limits = (header.base_timestamp, -INT64_MAX, INT64_MAX, False, RECORD_HEADERS_COUNT_MAX)
    return lambda: module.walk(body, 0, 0, header.records_count, *limits)


def row(shape: Shape, plain: ModuleType) -> str:
    batch = memoryview(shape.batch())
    header = read_header(batch)
    body, count = batch_body(batch, 0, header), header.records_count
    packed, scratch = batch[BATCH_HEADER_BYTES:], bytearray(len(body))
    assert validate_inline(batch, CONFIG, NOW_MS) is not None
    unpack_us = 0.0
    if header.compression is not Compression.NONE:
        unpack_us = measure(lambda: decompress_into(header.compression, packed, scratch), count)
    compiled_us = measure(walking(installed, body, header), count)
    plain_us = measure(walking(plain, body, header), count)
    whole_us = measure(lambda: validate_inline(batch, CONFIG, NOW_MS), count)
    cells = (shape.name, count, *(f"{us:.3f}" for us in (unpack_us, compiled_us, plain_us, whole_us)))
    return f"| {' | '.join(map(str, cells))} |"


def table() -> str:
    """Format microseconds per record as Markdown."""
    assert installed.COMPILED, "the package was built without a C compiler"
    head = "| records | in a batch | unpacked | walked, compiled | walked, plain Python | the whole check |"
    return "\n".join([head, "|---|---|---|---|---|---|", *(row(shape, INTERPRETED) for shape in SHAPES)])


if __name__ == "__main__":
    print(table())
