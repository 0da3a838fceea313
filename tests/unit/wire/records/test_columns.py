from array import array
from contextlib import suppress
from random import Random
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.base.buffers import Buffer
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records import columns, walk
from barnabas.wire.records.batch import BATCH_HEADER_BYTES, BatchHeader, iterate_headers, read_header, seal
from barnabas.wire.records.bodies import Body
from barnabas.wire.records.columns import (
    COLUMNS_COUNT,
    MANY_RECORDS_COUNT,
    RecordColumns,
    read_bodies,
    read_columns,
)
from barnabas.wire.records.compression import Compression
from barnabas.wire.records.record import Record, batch_body, decode_all, encode_batch, recompress
from barnabas.wire.records.varint import read_varint
from support.guarded import guarded
from support.kernels import FORMS, every_form

optional_bytes = st.none() | st.binary(max_size=200)
headers = st.lists(st.tuples(st.text(max_size=5), optional_bytes), max_size=3).map(tuple)
timestamps = st.integers(0, 4_000_000_000_000)
record_lists = st.lists(
    st.builds(Record, st.just(0), timestamps, optional_bytes, optional_bytes, headers),
    min_size=1,
    max_size=20,
)


@st.composite
def buffers(draw: st.DrawFn) -> bytes:
    """Generate consecutive batches with different codecs, some records missing as after compaction."""
    buffer, offset = b"", draw(st.integers(0, 2**50))
    for records in draw(st.lists(record_lists, max_size=4)):
        gaps = draw(st.lists(st.integers(0, 300), min_size=len(records), max_size=len(records)))
        placed = []
        for record, gap in zip(records, gaps, strict=True):
            placed.append(record._replace(offset=offset + gap))
            offset += gap + 1
        buffer += encode_batch(
            placed,
            base_offset=placed[0].offset,
            keep_offsets=True,
            compression=draw(st.sampled_from(Compression)),
            log_append_time=draw(st.booleans()),
        )
    return buffer


def rows_of(found: RecordColumns) -> list[tuple[int, int, bytes | None, bytes | None]]:
    return [
        (offset, timestamp_ms, found.key(row), found.value(row))
        for row, (offset, timestamp_ms) in enumerate(zip(found.offsets, found.timestamps_ms, strict=True))
    ]


@given(buffer=buffers())
def test_the_columns_equal_the_records(buffer: bytes) -> None:
    found = read_columns(buffer)
    assert rows_of(found) == [tuple(record[:4]) for record in decode_all(buffer)]
    assert len(found.first_rows) == len(found.headers) + 1
    assert found.first_rows[-1] == len(found.offsets)


@given(buffer=buffers())
def test_a_batchs_records_are_between_its_rows_starts_and_ends(buffer: bytes) -> None:
    found = read_columns(buffer)
    for batch, header in enumerate(found.headers):
        first, behind = found.first_rows[batch], found.first_rows[batch + 1]
        assert behind - first == header.records_count
        assert list(found.starts[first + 1 : behind]) == list(found.ends[first : behind - 1])


def test_columns_are_arrays_that_support_zero_copy_reads() -> None:
    found = read_columns(bytes(encode_batch([Record(0, 1_000, b"key", None)])))
    for column in found[3:]:
        assert isinstance(column, array)
        assert memoryview(column).format == "q"
    assert (found.key(0), found.value(0)) == (b"key", None)


def test_a_batch_cut_off_at_the_end_is_omitted() -> None:
    whole = bytes(encode_batch([Record(0, 1_000, b"k", b"v")]))
    assert len(read_columns(whole + whole[:-1]).offsets) == 1
    assert read_columns(b"").first_rows == [0]


def test_a_batch_without_records_has_no_rows() -> None:
    batch = encode_batch([Record(0, 1_000, b"k", b"v")])
    del batch[BATCH_HEADER_BYTES:]
    batch[8:12] = (BATCH_HEADER_BYTES - 12).to_bytes(4, "big")
    batch[57:61] = bytes(4)
    seal(batch, 0)
    found = read_columns(bytes(batch))
    assert (found.first_rows, list(found.offsets)) == ([0, 0], [])


def damaged(position: int, *values: int) -> bytes:
    """Return one record (key "k", value "v") with other bytes from `position` of its body on."""
    batch = encode_batch([Record(0, 1_000, b"k", b"v")])
    batch[BATCH_HEADER_BYTES + position : BATCH_HEADER_BYTES + position + len(values)] = bytes(values)
    assert len(batch) == read_header(batch).size_bytes
    return bytes(batch)


@pytest.mark.parametrize(
    ("position", "values", "what"),
    [
        (0, [0x7E], "a record is cut off"),
        (0, [0x01], "a record is cut off"),
        (0, [0x0A], "a record is cut off"),
        (0, [0x0C], "a record is cut off|the fields of a record are longer"),
        (0, [0x80] * 9, "a record is cut off"),
        (3, [0x02], "an offset delta is outside"),
        (3, [0x01], "an offset delta is outside"),
        (4, [0x7E], "the fields of a record are longer"),
        (6, [0x7E], "the fields of a record are longer"),
    ],
)
@every_form
def test_an_invalid_record_is_corrupt(
    kernels: ModuleType, position: int, values: list[int], what: str
) -> None:
    with pytest.raises(KafkaError, match=f"batch at offset 0: ({what})") as error:
        read(damaged(position, *values), kernels)
    assert error.value.code is ErrorCode.CORRUPT_MESSAGE


def with_count(count: int) -> bytes:
    batch = encode_batch([Record(0, 1_000, b"k", b"v"), Record(0, 1_000, b"k", b"v")], base_offset=5)
    batch[57:61] = count.to_bytes(4, "big", signed=True)
    return bytes(batch)


@every_form
def test_bytes_behind_the_last_record_are_corrupt(kernels: ModuleType) -> None:
    for count in (0, 1):
        with pytest.raises(KafkaError, match="batch at offset 5: bytes follow the last record"):
            read(with_count(count), kernels)


@every_form
def test_a_batch_with_fewer_records_than_it_says_is_corrupt(kernels: ModuleType) -> None:
    good = bytes(encode_batch([Record(0, 1_000, b"k", b"v" * 100)]))
    with pytest.raises(KafkaError, match="batch at offset 5: a record is cut off"):
        read(good + with_count(3), kernels)


@pytest.mark.parametrize("count", [-1, -(1 << 31), 1_000_000, (1 << 31) - 1])
@every_form
def test_a_count_that_the_bytes_cannot_hold_is_refused_before_there_are_rows(
    kernels: ModuleType, count: int
) -> None:
    good = bytes(encode_batch([Record(0, 1_000, b"k", b"v" * 100)]))
    with pytest.raises(KafkaError, match=f"batch at offset 5: its bytes cannot hold {count} records"):
        read(good + with_count(count), kernels)


@every_form
def test_a_timestamp_of_more_than_64_bits_is_corrupt(kernels: ModuleType) -> None:
    for base_ms, step_ms in (((1 << 63) - 1, 1), (-1 << 63, -1)):
        batch = bytearray(
            encode_batch([Record(0, 1_000, b"k", b"v"), Record(0, 1_000 + step_ms, b"k", b"v")])
        )
        batch[27:35] = base_ms.to_bytes(8, "big", signed=True)
        with pytest.raises(KafkaError, match="a timestamp of more than 64 bits"):
            read(bytes(batch), kernels)


@every_form
def test_an_offset_of_more_than_64_bits_is_corrupt(kernels: ModuleType) -> None:
    batch = bytearray(encode_batch([Record(0, 1_000, b"k", b"v"), Record(0, 1_000, b"k", b"v")]))
    batch[0:8] = ((1 << 63) - 1).to_bytes(8, "big")
    with pytest.raises(KafkaError, match="offsets of more than 64 bits"):
        read(bytes(batch), kernels)


def bodies_of(buffer: Buffer) -> list[Body]:
    return [
        Body(header, position + BATCH_HEADER_BYTES, position + header.size_bytes)
        for position, header in iterate_headers(buffer)
    ]


def read(buffer: Buffer, kernels: ModuleType) -> list[list[int]]:
    return [list(column) for column in read_bodies(buffer, bodies_of(buffer), kernels)]  # type: ignore[arg-type]


def read_slowly(buffer: Buffer) -> list[list[int]] | None:
    """The same with Python's integers, whose size nothing bounds, and checks only at the end; None if corrupt."""
    rows: list[tuple[int, ...]] = []
    for header, position, end in bodies_of(buffer):
        for _ in range(header.records_count):
            try:
                row = read_row(bytes(buffer[:end]), position, header)
            except (IndexError, KafkaError):
                return None
            delta, value_end = row[2] - header.base_offset, row[6] + max(row[7], 0)
            is_sound = 0 <= delta <= header.last_offset_delta and value_end < row[1] <= end
            if not is_sound or row[2] >= 1 << 63 or not -1 << 63 <= row[3] < 1 << 63:
                return None
            rows.append(row)
            position = row[1]
        if position != end or header.records_count < 0:
            return None
    return [list(column) for column in zip(*rows, strict=True)] or [[]] * COLUMNS_COUNT


def read_row(data: bytes, start: int, header: BatchHeader) -> tuple[int, ...]:
    size, position = read_varint(data, start)
    end = position + size
    data = data[: max(end, 0)]
    delta_ms, position = read_varint(data, position + 1)
    offset_delta, position = read_varint(data, position)
    key_size, key_position = read_varint(data, position)
    value_size, value_position = read_varint(data, key_position + max(key_size, 0))
    timestamp_ms = header.max_timestamp if header.is_log_append_time else header.base_timestamp + delta_ms
    positions = (key_position, key_size, value_position, value_size)
    return start, end, header.base_offset + offset_delta, timestamp_ms, *positions


def by_every_form(buffer: Buffer) -> list[list[list[int]] | None]:
    """What each form of the kernels makes of the same records; None for corrupt ones."""
    found: list[list[list[int]] | None] = []
    for kernels in FORMS.values():
        try:
            found.append(read(buffer, kernels))
        except KafkaError as error:
            assert error.code is ErrorCode.CORRUPT_MESSAGE  # noqa: PT017 - each may refuse
            found.append(None)
    return found


@given(buffer=buffers())
def test_every_form_reads_what_is_there(buffer: bytes) -> None:
    plain = b"".join(
        recompress(header, batch_body(buffer, position, header), Compression.NONE)
        for position, header in iterate_headers(buffer)
    )
    expected = read_slowly(plain)
    assert expected is not None
    assert by_every_form(plain) == [expected] * len(FORMS)


def two_batches() -> bytearray:
    records = [Record(0, 1_000 + 100 * number, b"key", b"v" * 80) for number in range(4)]
    return bytearray(encode_batch(records) + encode_batch(records, log_append_time=True))


damages = st.lists(
    st.tuples(st.integers(0, 10_000), st.sampled_from([0, 1, 2, 0x7F, 0x80, 0xFF])), max_size=12
)


@given(damage=damages)
def test_every_form_refuses_what_is_damaged(damage: list[tuple[int, int]]) -> None:
    buffer = two_batches()
    for position, value in damage:
        body = position % (len(buffer) // 2 - BATCH_HEADER_BYTES) + BATCH_HEADER_BYTES
        buffer[body + position % 2 * len(buffer) // 2] = value
    assert by_every_form(bytes(buffer)) == [read_slowly(buffer)] * len(FORMS)


def test_nothing_is_read_behind_the_data() -> None:
    random = Random(7)
    values = [0, 1, 2, 3, 6, 12, 0x0F, 0x7F, 0x80, 0x81, 0xFF]
    with guarded(4_096) as memory:
        for _ in range(3_000):
            buffer = encode_batch(
                [Record(0, 1_000 + number, None, None) for number in range(random.randrange(1, 4))]
            )
            cut = random.randrange(len(buffer) - BATCH_HEADER_BYTES + 1)
            buffer = buffer[
                : len(buffer) - cut
            ]  # the rest is damaged, too: it may have lost its last records
            buffer[8:12] = (len(buffer) - 12).to_bytes(4, "big")
            for _ in range(random.randrange(4)):
                if len(buffer) > BATCH_HEADER_BYTES:
                    buffer[random.randrange(BATCH_HEADER_BYTES, len(buffer))] = random.choice(values)
            at_the_edge = memory[len(memory) - len(buffer) :]
            at_the_edge[:] = buffer
            assert by_every_form(at_the_edge) == [read_slowly(buffer)] * len(FORMS)


def test_the_fastest_form_is_looked_for_only_for_many_records(monkeypatch: pytest.MonkeyPatch) -> None:
    few = bytes(encode_batch([Record(0, 1_000, b"k", b"v")]))
    many = bytes(encode_batch([Record(0, 1_000, b"k", b"v")] * MANY_RECORDS_COUNT))
    sought: list[bool] = []
    monkeypatch.setattr(columns, "find_kernels", lambda: sought.append(True) or walk)
    assert rows_of(read_columns(few)) == [(0, 1_000, b"k", b"v")]
    assert not sought
    assert rows_of(read_columns(many))[-1] == (MANY_RECORDS_COUNT - 1, 1_000, b"k", b"v")
    assert sought


@given(position=st.integers(0, 200), value=st.integers(0, 255))
def test_any_damage_results_in_columns_or_a_kafka_error(position: int, value: int) -> None:
    records = [Record(0, 1_000 + number, b"key", b"v" * 20) for number in range(5)]
    buffer = bytearray(encode_batch(records))
    buffer[position % len(buffer)] = value
    with suppress(KafkaError):
        read_columns(bytes(buffer))
