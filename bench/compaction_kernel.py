"""Records per second on one core when decoding records to columns: ``python -m bench.compaction_kernel``."""

import time
from collections.abc import Callable, Sequence

from barnabas.wire.records.batch import BATCH_HEADER_BYTES, iterate_headers
from barnabas.wire.records.bodies import Body
from barnabas.wire.records.columns import read_bodies
from barnabas.wire.records.columns_numba import read_bodies as read_bodies_by_numba
from barnabas.wire.records.columns_numpy import read_bodies as read_bodies_by_numpy
from barnabas.wire.records.record import Record, decode_all, encode_batch

#: Records in a batch, bytes of a value.
SHAPES = ((1, 100), (10, 100), (500, 100), (500, 1_000))
RECORDS_COUNT = 20_000
ROUNDS_COUNT = 7


def buffer_of(records_per_batch: int, value_bytes: int) -> bytes:
    """Encode records in batches as producers do."""
    records = [
        Record(0, 1_700_000_000_000 + number, b"key-%012d" % number, b"v" * value_bytes)
        for number in range(RECORDS_COUNT)
    ]
    starts = range(0, RECORDS_COUNT, records_per_batch)
    return b"".join(encode_batch(records[start : start + records_per_batch]) for start in starts)


def records_per_s(read: Callable[[], object]) -> float:
    """Return the best of some rounds, in CPU time."""
    times_s = []
    for _ in range(ROUNDS_COUNT):
        started_s = time.process_time()
        read()
        times_s.append(time.process_time() - started_s)
    return RECORDS_COUNT / min(times_s)


def measure(records_per_batch: int, value_bytes: int) -> list[float]:
    """Return records per second: as objects, as columns in plain Python, with numpy and with numba."""
    data = buffer_of(records_per_batch, value_bytes)
    bodies = [
        Body(header, position + BATCH_HEADER_BYTES, position + header.size_bytes)
        for position, header in iterate_headers(data)
    ]
    ways: Sequence[Callable[[], object]] = (
        lambda: decode_all(data),
        lambda: read_bodies(data, bodies),
        lambda: read_bodies_by_numpy(data, bodies),
        lambda: read_bodies_by_numba(data, bodies),
    )
    return [records_per_s(way) for way in ways]


def table() -> str:
    """Format the measurements as a Markdown table."""
    lines = [
        "| records | objects | columns | by numpy | by numba | columns / objects | numpy / columns | numba / numpy |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for records_per_batch, value_bytes in SHAPES:
        objects, plain, by_numpy, by_numba = measure(records_per_batch, value_bytes)
        shown = " | ".join(f"{each / 1e6:.2f}" for each in (objects, plain, by_numpy, by_numba))
        ratios = f"{plain / objects:.1f} | {by_numpy / plain:.1f} | {by_numba / by_numpy:.1f}"
        lines.append(f"| {records_per_batch} to a batch, values of {value_bytes} B | {shown} | {ratios} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
