from array import array
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records import columns, columns_numba, columns_numpy
from barnabas.wire.records.batch import BATCH_HEADER_BYTES, iterate_headers, read_header, seal
from barnabas.wire.records.bodies import Body
from barnabas.wire.records.columns import MANY_RECORDS_COUNT, RecordColumns, read_bodies, read_columns
from barnabas.wire.records.compression import Compression
from barnabas.wire.records.record import Record, batch_body, decode_all, encode_batch, recompress

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
        (0, [0x7E], "a record of 63 bytes where 8 are left"),
        (0, [0x01], "a record of -1 bytes"),
        (0, [0x0C], "the fields of a record are longer"),
        (0, [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80], "variable-length|cut off"),
        (3, [0x02], "offset delta 1 is outside"),
        (3, [0x01], "offset delta -1 is outside"),
        (4, [0x7E], "cut off|longer than the record"),
        (6, [0x7E], "the fields of a record are longer"),
    ],
)
def test_an_invalid_record_is_corrupt(position: int, values: list[int], what: str) -> None:
    with pytest.raises(KafkaError, match=what) as error:
        read_columns(damaged(position, *values))
    assert error.value.code is ErrorCode.CORRUPT_MESSAGE


def test_bytes_after_the_last_record_are_corrupt() -> None:
    batch = bytearray(encode_batch([Record(0, 1_000, b"k", b"v"), Record(0, 1_000, b"k", b"v")]))
    batch[57:61] = (1).to_bytes(4, "big")
    with pytest.raises(KafkaError, match="9 bytes follow the last of 1 records"):
        read_columns(bytes(batch))


def test_a_timestamp_of_more_than_64_bits_is_corrupt() -> None:
    batch = bytearray(encode_batch([Record(0, 1_000, b"k", b"v"), Record(0, 1_001, b"k", b"v")]))
    batch[27:35] = ((1 << 63) - 1).to_bytes(8, "big")
    with pytest.raises(KafkaError, match="more than 64 bits"):
        read_columns(bytes(batch))


def by_all(buffer: bytes) -> list[list[list[int]] | None]:
    """Return the results of plain Python, numpy and numba; None for corrupt records."""
    bodies = [
        Body(header, position + BATCH_HEADER_BYTES, position + header.size_bytes)
        for position, header in iterate_headers(buffer)
    ]
    found: list[list[list[int]] | None] = []
    for read in (read_bodies, columns_numpy.read_bodies, columns_numba.read_bodies):
        try:
            found.append([list(column) for column in read(buffer, bodies)])
        except KafkaError as error:
            assert error.code is ErrorCode.CORRUPT_MESSAGE  # noqa: PT017 - each may refuse
            found.append(None)
    return found


@given(buffer=buffers())
def test_numpy_and_numba_return_the_same_as_plain_python(buffer: bytes) -> None:
    plain = b"".join(
        recompress(header, batch_body(buffer, position, header), Compression.NONE)
        for position, header in iterate_headers(buffer)
    )
    by_python, by_numpy, by_numba = by_all(plain)
    assert by_python is not None
    assert by_numpy == by_python
    assert by_numba == by_python


@given(
    damage=st.lists(
        st.tuples(st.integers(0, 10_000), st.sampled_from([0, 1, 2, 0x7F, 0x80, 0xFF])), max_size=12
    )
)
def test_numpy_and_numba_reject_the_same_as_plain_python(damage: list[tuple[int, int]]) -> None:
    records = [Record(0, 1_000 + 100 * number, b"key", b"v" * 80) for number in range(4)]
    buffer = bytearray(encode_batch(records) + encode_batch(records, log_append_time=True))
    for position, value in damage:
        body = position % (len(buffer) // 2 - BATCH_HEADER_BYTES) + BATCH_HEADER_BYTES
        buffer[body + position % 2 * len(buffer) // 2] = value
    by_python, by_numpy, by_numba = by_all(bytes(buffer))
    assert by_numpy == by_python
    assert by_numba == by_python


def test_many_records_are_decoded_by_numpy_and_few_without() -> None:
    few = bytes(encode_batch([Record(0, 1_000, b"k", b"v")]))
    many = bytes(encode_batch([Record(0, 1_000, b"k", b"v")] * MANY_RECORDS_COUNT))
    with pytest.MonkeyPatch.context() as patch:
        used: list[int] = []

        def read(data: bytes, bodies: list[Body]) -> list[object]:
            used.append(len(data))
            return [array("q")] * 8

        patch.setattr(columns, "_select_backend", lambda: read)
        read_columns(few)
        read_columns(many)
    assert used == [len(many)]
    assert rows_of(read_columns(many))[-1] == (MANY_RECORDS_COUNT - 1, 1_000, b"k", b"v")


@given(position=st.integers(0, 200), value=st.integers(0, 255))
def test_any_damage_results_in_columns_or_a_kafka_error(position: int, value: int) -> None:
    records = [Record(0, 1_000 + number, b"key", b"v" * 20) for number in range(5)]
    buffer = bytearray(encode_batch(records))
    buffer[position % len(buffer)] = value
    with suppress(KafkaError):
        read_columns(bytes(buffer))
