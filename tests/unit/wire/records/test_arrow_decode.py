from collections.abc import Callable, Iterator
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records import arrow_decode_numba
from barnabas.wire.records.arrow_decode import decode_arrow
from barnabas.wire.records.arrow_decode_numba import PART_BYTES, UNPACKED_BYTES
from barnabas.wire.records.arrow_types import COLUMN_TYPES, TIMESTAMP_MS_MAX, Decoded, RecordSelection
from barnabas.wire.records.batch import BATCH_HEADER_BYTES, seal
from barnabas.wire.records.compression import Buffer, Compression
from barnabas.wire.records.kernels import find_kernels
from barnabas.wire.records.record import Record, decode_all, encode_batch
from support import arrow_reference
from support.guarded import guarded
from support.kernels import BY_NUMBA

#: Of the kernels that find the fields; those that copy them are always numba's.
FORMS = (find_kernels(), BY_NUMBA)
ALL = list(COLUMN_TYPES)
SCHEMA = pa.schema(list(COLUMN_TYPES.items()))

optional_bytes = st.none() | st.binary(max_size=400)
headers = st.lists(st.tuples(st.text(max_size=5), optional_bytes), max_size=3).map(tuple)
timestamps = st.integers(-4_000_000_000_000, 4_000_000_000_000) | st.sampled_from(
    [-1, TIMESTAMP_MS_MAX, -TIMESTAMP_MS_MAX]
)
record_lists = st.lists(
    st.builds(Record, st.just(0), timestamps, optional_bytes, optional_bytes, headers),
    min_size=1,
    max_size=20,
)
codecs = st.sampled_from(Compression)


@st.composite
def buffers(draw: st.DrawFn) -> bytes:
    """Generate consecutive batches with different codecs, some records missing as after compaction."""
    buffer, offset = b"", draw(st.integers(0, 2**50))
    for records in draw(st.lists(record_lists, max_size=4)):
        placed = []
        for record in records:
            offset += draw(st.sampled_from([1, 1, 1, 70, 20_000]))
            placed.append(record._replace(offset=offset))
        buffer += encode_batch(
            placed,
            base_offset=placed[0].offset,
            keep_offsets=True,
            compression=draw(codecs),
            log_append_time=draw(st.booleans()),
        )
    return buffer


def rows(buffer: Buffer, selection: RecordSelection) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    for decoded in decode_arrow(buffer, selection):
        batch = pa.RecordBatch.from_arrays(list(decoded.columns.values()), list(decoded.columns))
        batch.validate(full=True)
        assert batch.num_rows == decoded.rows_count > 0
        assert {field.name: field.type for field in batch.schema} == {
            name: COLUMN_TYPES[name] for name in selection.columns
        }
        if "timestamp" in selection.columns:  # Python's own datetimes do not reach so far
            at = batch.schema.get_field_index("timestamp")
            batch = batch.set_column(at, "timestamp", batch["timestamp"].cast(pa.int64()))
        found += batch.to_pylist()
    return found


def shown(record: Record) -> dict[str, object]:
    return {
        "key": record.key,
        "value": record.value,
        "offset": record.offset,
        "timestamp": record.timestamp_ms * 1_000,
        "headers": [{"key": key, "value": value} for key, value in record.headers] or None,
    }


@given(buffer=buffers())
def test_the_columns_equal_the_records(buffer: bytes) -> None:
    names = ["key", "value", "offset", "timestamp", "headers"]
    assert rows(buffer, RecordSelection(names)) == [shown(record) for record in decode_all(buffer)]


@given(buffer=buffers(), name=st.sampled_from(ALL), ends=st.tuples(st.integers(0, 60), st.integers(0, 60)))
def test_a_single_column_equals_that_of_all_columns(buffer: bytes, name: str, ends: tuple[int, int]) -> None:
    everything = rows(buffer, RecordSelection(ALL))
    offsets = [row["offset"] for row in everything]
    bounds = sorted([0, *offsets, 1 << 62])  # type: ignore[type-var]
    low, high = sorted(bounds[min(end, len(bounds) - 1)] for end in ends)  # type: ignore[type-var]
    found = rows(buffer, RecordSelection([name], low, high))  # type: ignore[arg-type]
    assert found == [{name: row[name]} for row in everything if low <= row["offset"] < high]  # type: ignore[operator]


def by_all(buffer: Buffer) -> list[pa.Table | None]:
    """What the reference makes of the same bytes, and the decoder with each form of the kernels; None if refused."""
    found = [table_of(arrow_reference.decode, buffer)]
    for kernels in FORMS:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(arrow_decode_numba, "find_kernels", lambda kernels=kernels: kernels)
            found.append(table_of(decode_arrow, buffer))
    return found


def table_of(
    decode: Callable[[memoryview, RecordSelection], Iterator[Decoded]], buffer: Buffer
) -> pa.Table | None:
    try:
        parts = list(decode(memoryview(buffer).toreadonly(), RecordSelection(ALL, check_crcs=False)))
    except KafkaError as error:
        assert error.code in (ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_TIMESTAMP)  # noqa: PT017
        return None
    batches = [pa.RecordBatch.from_pydict(part.columns) for part in parts]
    return pa.Table.from_batches(batches, SCHEMA).combine_chunks()


@given(buffer=buffers())
def test_the_arrays_are_those_of_the_reference(buffer: bytes) -> None:
    expected, *found = by_all(buffer)
    assert isinstance(expected, pa.Table)
    assert found == [expected] * len(FORMS)


def damaged(random: Random) -> bytes:
    """Return two batches with some bytes of their records, and sometimes headers, changed."""
    records = [
        Record(0, 1_000 + 100 * number, b"key", b"v" * 80, (("name", b"value"), ("n", None)) * (number % 3))
        for number in range(4)
    ]
    buffer = bytearray(encode_batch(records) + encode_batch(records, log_append_time=True))
    half = len(buffer) // 2
    for _ in range(random.randrange(1, 6)):
        first = 0 if random.random() < 0.1 else BATCH_HEADER_BYTES
        position = random.randrange(first, half) + random.randrange(2) * half
        buffer[position] = random.choice([0, 1, 2, 3, 0x0F, 0x7F, 0x80, 0xFF, random.randrange(256)])
    return bytes(buffer)


@settings(max_examples=300)
@given(random=st.randoms(use_true_random=False))
def test_what_the_reference_refuses_is_refused(random: Random) -> None:
    expected, *found = by_all(damaged(random))
    assert found == [expected] * len(FORMS)


def test_nothing_is_read_after_the_data() -> None:
    random = Random(7)
    with guarded(4_096) as memory:
        for _ in range(1_000):
            buffer = damaged(random)
            tp = memory[len(memory) - len(buffer) :]
            tp[:] = buffer
            expected, *found = by_all(tp)
            assert found == [expected] * len(FORMS)


def test_header_names_that_are_not_utf_8_are_decoded_as_far_as_possible() -> None:
    batch = encode_batch([Record(0, 0, None, b"v", (("na", b"1"), ("me", b"2")))])
    batch[batch.index(b"na")] = 0xFF
    [row] = rows(seal_of(batch), RecordSelection(["headers"]))
    assert row == {"headers": [{"key": "\ufffda", "value": b"1"}, {"key": "me", "value": b"2"}]}


def seal_of(batch: bytearray) -> bytes:
    seal(batch, 0)
    return bytes(batch)


@pytest.mark.parametrize("timestamp_ms", [TIMESTAMP_MS_MAX + 1, -TIMESTAMP_MS_MAX - 1])
def test_a_timestamp_that_does_not_fit_microseconds_is_rejected_if_timestamps_are_requested(
    timestamp_ms: int,
) -> None:
    batch = bytes(encode_batch([Record(0, timestamp_ms, b"k", b"v")], base_offset=5))
    assert rows(batch, RecordSelection(["value"])) == [{"value": b"v"}]
    with pytest.raises(KafkaError, match="batch at offset 5: a timestamp") as error:
        rows(batch, RecordSelection(["timestamp"]))
    assert error.value.code is ErrorCode.INVALID_TIMESTAMP


def test_such_a_timestamp_may_be_null() -> None:
    times_ms = (7, TIMESTAMP_MS_MAX + 1, -TIMESTAMP_MS_MAX - 1)
    batch = bytes(encode_batch([Record(0, time_ms, b"k", b"v") for time_ms in times_ms]))
    [decoded] = decode_arrow(batch, RecordSelection(["timestamp"], null_times=True))
    assert decoded.columns["timestamp"].cast(pa.int64()).to_pylist() == [7_000, None, None]
    assert decoded.columns["timestamp"].type == COLUMN_TYPES["timestamp"]


@pytest.mark.parametrize("count", [-1, 2, 1_000_000, (1 << 31) - 1])
def test_a_record_count_that_exceeds_the_bytes_is_corrupt(count: int) -> None:
    batch = encode_batch([Record(0, 0, b"k", b"v")], base_offset=5)
    batch[57:61] = count.to_bytes(4, "big", signed=True)
    with pytest.raises(KafkaError, match="batch at offset 5") as error:
        rows(seal_of(batch), RecordSelection(["value"]))
    assert error.value.code is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("codec", [codec for codec in Compression if codec])
def test_records_that_cannot_be_decompressed_are_corrupt(codec: Compression) -> None:
    batch = encode_batch([Record(0, 0, b"k", b"v" * 100)], base_offset=5, compression=codec)
    batch[-12:-4] = bytes(8)
    batch[BATCH_HEADER_BYTES + 2] ^= 0xFF
    with pytest.raises(KafkaError, match="batch at offset 5") as error:
        rows(seal_of(batch), RecordSelection(["value"]))
    assert error.value.code is ErrorCode.CORRUPT_MESSAGE


def test_a_batch_without_remaining_records_has_no_rows() -> None:
    batch = encode_batch([Record(0, 0, b"k", b"v")])[:BATCH_HEADER_BYTES]
    batch[8:12] = (BATCH_HEADER_BYTES - 12).to_bytes(4, "big")
    batch[57:61] = bytes(4)
    rest = encode_batch([Record(0, 0, b"k", b"v")], base_offset=1)
    assert rows(seal_of(batch), RecordSelection(ALL)) == []
    assert [row["offset"] for row in rows(seal_of(batch) + rest, RecordSelection(ALL))] == [1]


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.LZ4])
def test_long_data_is_returned_in_slices_of_whole_batches(codec: Compression) -> None:
    value = bytes(PART_BYTES // 3)
    buffer = b"".join(
        encode_batch([Record(0, 0, None, value)] * 2, base_offset=2 * number, compression=codec)
        for number in range(3)
    )
    buffer += encode_batch([Record(0, 0, None, value)] * 7, base_offset=6, compression=codec)
    parts = list(decode_arrow(buffer, RecordSelection(["offset"])))
    assert len(parts) >= 2
    assert [offset for part in parts for offset in part.columns["offset"].to_pylist()] == list(range(13))
    assert parts[-1].rows_count >= 7


def test_slices_do_not_change_when_the_next_is_read() -> None:
    batches = [
        encode_batch(
            [Record(0, 0, bytes([number]), bytes([number]) * UNPACKED_BYTES)], compression=Compression.LZ4
        )
        for number in range(3)
    ]
    parts = list(decode_arrow(b"".join(batches), RecordSelection(["key", "value"])))
    assert [part.columns["value"][0].as_py()[:2] for part in parts] == [b"\0\0", b"\1\1", b"\2\2"]
