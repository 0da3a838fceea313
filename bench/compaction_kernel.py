"""Records per second on one core when decoding records to columns: ``python -m bench.compaction_kernel``.

The kernels are those of `wire/records/walk.py`, in each of their forms; they are the same source.
"""

import time
from collections.abc import Callable, Sequence

from tests.support.kernels import BY_NUMBA, INTERPRETED

from barnabas.wire.records import walk
from barnabas.wire.records.batch import BATCH_HEADER_BYTES, iterate_headers
from barnabas.wire.records.bodies import Body
from barnabas.wire.records.columns import read_bodies
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
    """Records a second: as objects, as columns by plain Python, by machine code, and by numba."""
    data = buffer_of(records_per_batch, value_bytes)
    bodies = [
        Body(header, position + BATCH_HEADER_BYTES, position + header.size_bytes)
        for position, header in iterate_headers(data)
    ]
    ways: Sequence[Callable[[], object]] = (
        lambda: decode_all(data),
        lambda: read_bodies(data, bodies, INTERPRETED),
        lambda: read_bodies(data, bodies, walk),
        lambda: read_bodies(data, bodies, BY_NUMBA),
    )
    return [records_per_s(way) for way in ways]


def table() -> str:
    """Format the measurements as a Markdown table."""
    assert walk.COMPILED, "the package was built without a C compiler"
    lines = [
        "| records | objects | columns, plain Python | columns, compiled | columns, by numba | compiled / plain |",
        "|---|---|---|---|---|---|",
    ]
    for records_per_batch, value_bytes in SHAPES:
        objects, plain, compiled, by_numba = measure(records_per_batch, value_bytes)
        shown = " | ".join(f"{each / 1e6:.2f}" for each in (objects, plain, compiled, by_numba))
        name = f"{records_per_batch} to a batch, values of {value_bytes} B"
        lines.append(f"| {name} | {shown} | {compiled / plain:.0f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
