"""What compaction takes on one core: ``python -m bench.compaction_kernel``.

The kernels are those of `wire/records/walk.py` and `key_table.py`, each in all its forms, which are the same source.
"""

import tempfile
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from types import ModuleType
from typing import NamedTuple
from unittest import mock

from tests.support.kernels import BY_NUMBA, INTERPRETED, TABLE_BY_NUMBA

from barnabas.base.clock import ManualClock
from barnabas.base.ids import TopicPartition
from barnabas.log.compaction.cleaner import cleanable_of, plan_pass
from barnabas.log.compaction.cleaning_pass import Cleaner, discard
from barnabas.log.compaction.log_to_clean import group_segments
from barnabas.log.compaction.offset_map import OffsetMap, PlainOffsetMap, TableOffsetMap
from barnabas.log.log_config import LogConfig
from barnabas.log.open_log import open_log
from barnabas.log.partition_log import PartitionLog
from barnabas.log.segments.open_files import OpenFiles
from barnabas.log.segments.segment import Segment
from barnabas.wire.records import columns, key_table, walk
from barnabas.wire.records.batch import BATCH_HEADER_BYTES, iterate_headers
from barnabas.wire.records.bodies import Body
from barnabas.wire.records.columns import read_bodies
from barnabas.wire.records.record import Record, decode_all, encode_batch

#: Records in a batch, bytes of a value.
SHAPES = ((1, 100), (10, 100), (500, 100), (500, 1_000))
RECORDS_COUNT = 20_000
ROUNDS_COUNT = 7
#: Of the log that is compacted.
LOG_RECORDS_COUNT, KEYS_COUNT = 100_000, 50_000
#: Bytes that a step reads: enough of the largest records for the fastest form to be looked for.
STEP_BYTES = 1024 * 1024
PASSES_COUNT = 3


class Form(NamedTuple):
    """How the kernels run."""

    kernels: ModuleType
    make_map: Callable[[], OffsetMap]


def _table(kernels: ModuleType) -> Callable[[], OffsetMap]:
    return lambda: TableOffsetMap.of_size(128 << 20, 0.9, LOG_RECORDS_COUNT, kernels)


FORMS = (
    Form(INTERPRETED, lambda: PlainOffsetMap(LOG_RECORDS_COUNT)),
    Form(walk, _table(key_table)),
    Form(BY_NUMBA, _table(TABLE_BY_NUMBA)),
)


def records(count: int, value_bytes: int) -> list[Record]:
    rng = Random(0)
    return [
        Record(0, 1_700_000_000_000 + number, b"key-%012d" % rng.randrange(KEYS_COUNT), b"v" * value_bytes)
        for number in range(count)
    ]


def batches(count: int, records_per_batch: int, value_bytes: int) -> Iterator[bytearray]:
    """So many records as producers would batch them."""
    written = records(count, value_bytes)
    for start in range(0, count, records_per_batch):
        yield encode_batch(written[start : start + records_per_batch])


def best_s(work: Callable[[], object], rounds_count: int) -> float:
    """Return the best of some rounds, in CPU time."""
    times_s = []
    for _ in range(rounds_count):
        started_s = time.process_time()
        work()
        times_s.append(time.process_time() - started_s)
    return min(times_s)


def measure_reading(records_per_batch: int, value_bytes: int) -> list[float]:
    """Million records a second: as objects, and as columns by each form."""
    data = b"".join(batches(RECORDS_COUNT, records_per_batch, value_bytes))
    bodies = [
        Body(header, position + BATCH_HEADER_BYTES, position + header.size_bytes)
        for position, header in iterate_headers(data)
    ]
    ways: Sequence[Callable[[], object]] = (
        lambda: decode_all(data),
        *(lambda form=form: read_bodies(data, bodies, form.kernels) for form in FORMS),
    )
    return [RECORDS_COUNT / best_s(way, ROUNDS_COUNT) / 1e6 for way in ways]


@contextmanager
def dirty_log(records_per_batch: int, value_bytes: int) -> Iterator[PartitionLog]:
    """A log with two records of each key, most of them."""
    with tempfile.TemporaryDirectory() as home:
        log = open_log(
            Path(home) / "topic-0",
            TopicPartition("topic", 0),
            config=LogConfig(cleanup_policy=frozenset({"compact"})),
            clock=ManualClock(),
            clean_shutdown=True,
            random=Random(0),
            open_files=OpenFiles(2),
        )
        try:
            for batch in batches(LOG_RECORDS_COUNT, records_per_batch, value_bytes):
                log.append_as_leader(memoryview(batch), 0)
            log.roll()
            log.update_high_watermark(log.log_end_offset)
            yield log
        finally:
            log.local.abandon()


def run_pass(log: PartitionLog, form: Form) -> None:
    """Do everything but replace the segments."""
    plan = plan_pass(log, cleanable_of(log, 0), 0)
    with mock.patch.object(columns, "find_kernels", return_value=form.kernels):
        cleaning = Cleaner(plan, form.make_map(), STEP_BYTES)
        for _ in cleaning.build_offset_map():
            pass
        for group in group_segments(cleaning.sources, plan.config):
            discard(result_of(cleaning.clean_segments(group)))


def result_of(steps: Generator[int, None, Segment]) -> Segment:
    while True:
        try:
            next(steps)
        except StopIteration as end:
            segment: Segment = end.value
            return segment


def measure_pass(records_per_batch: int, value_bytes: int) -> list[float]:
    """Microseconds for a record, by each form."""
    with dirty_log(records_per_batch, value_bytes) as log:
        return [
            best_s(lambda form=form: run_pass(log, form), PASSES_COUNT) / LOG_RECORDS_COUNT * 1e6
            for form in FORMS
        ]


def table() -> str:
    """Format the measurements as a Markdown table."""
    assert walk.COMPILED, "the package was built without a C compiler"
    lines = [
        "| records | objects | columns, plain Python | compiled | by numba | pass, plain Python | compiled | numba |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for shape in SHAPES:
        cells = [*measure_reading(*shape), *measure_pass(*shape)]
        shown = " | ".join(f"{each:.2f}" for each in cells)
        lines.append(f"| {shape[0]} to a batch, values of {shape[1]} B | {shown} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
