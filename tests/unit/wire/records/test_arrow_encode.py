from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.arrow_encode import ArrowEncoder
from barnabas.wire.records.arrow_rows import Batching, Columns, Longs
from barnabas.wire.records.arrow_types import COLUMN_TYPES, TIMESTAMP_MS_MAX
from barnabas.wire.records.batch import crc_matches, read_header
from barnabas.wire.records.compression import Compression
from barnabas.wire.records.record import Record, decode_records, encode_batch
from support import arrow_encode_reference

HEADERS = COLUMN_TYPES["headers"]

optional_bytes = st.none() | st.binary(max_size=400)
pairs = st.lists(st.tuples(st.text(max_size=5), optional_bytes), max_size=3).map(tuple)
timestamps = st.integers(-4_000_000_000_000, 4_000_000_000_000) | st.sampled_from(
    [-1, TIMESTAMP_MS_MAX, -TIMESTAMP_MS_MAX]
)
record_lists = st.lists(
    st.builds(Record, st.just(0), timestamps, optional_bytes, optional_bytes, pairs), max_size=40
)
batchings = st.builds(
    Batching,
    st.sampled_from([0, 61, 200, 1_000, 100_000]),
    st.sampled_from(Compression),
    level=st.none(),
    producer_id=st.integers(-1, 2**60),
    producer_epoch=st.integers(-1, 2**15 - 1),
    transactional=st.booleans(),
)


def rows_of(records: list[Record]) -> Columns:
    shown = [[{"key": key, "value": value} for key, value in record.headers] or None for record in records]
    return Columns(
        pa.array([record.key for record in records], pa.binary()),
        pa.array([record.value for record in records], pa.binary()),
        pa.array(shown, HEADERS),
        np.array([record.timestamp_ms for record in records], np.int64),
    )


def encoded(rows: Columns, batching: Batching, sequence: int = -1, order: Longs | None = None) -> list[bytes]:
    batches = list(ArrowEncoder(rows).batches(batching, sequence, order))
    for data, records_count in batches:
        assert read_header(data).records_count == records_count
        assert crc_matches(data, 0, read_header(data))
    return [bytes(batch.data) for batch in batches]


def decoded(batches: list[bytes]) -> list[Record]:
    return [record._replace(offset=0) for batch in batches for record in decode_records(batch)]


@given(records=record_lists, batching=batchings, sequence=st.sampled_from([-1, 0, 7, 2**31 - 2]))
def test_the_bytes_are_those_of_the_reference(
    records: list[Record], batching: Batching, sequence: int
) -> None:
    rows = rows_of(records)
    reference = arrow_encode_reference.encoder(rows)(np.arange(len(records)), batching, sequence)
    found = encoded(rows, batching, sequence)
    assert found == [bytes(batch.data) for batch in reference]
    assert decoded(found) == records


@given(records=record_lists.filter(bool))
def test_a_single_batch_equals_that_of_all_records(records: list[Record]) -> None:
    batching = Batching(1 << 30, producer_id=9, producer_epoch=2, transactional=True)
    expected = encode_batch(records, producer_id=9, producer_epoch=2, base_sequence=5, transactional=True)
    assert encoded(rows_of(records), batching, 5) == [bytes(expected)]


@given(records=record_lists.filter(bool), random=st.randoms(use_true_random=False))
def test_rows_are_encoded_in_order_and_from_slices_of_larger_arrays(
    records: list[Record], random: object
) -> None:
    order = [random.randrange(len(records)) for _ in records]  # type: ignore[attr-defined]
    whole = rows_of([Record(0, 0, b"before", b"before", (("a", b"b"),)), *records, *records])
    part = Columns(*(column[1 : 1 + len(records)] for column in whole))  # type: ignore[index]
    batches = encoded(part, Batching(300), order=np.array(order, np.int64))
    assert decoded(batches) == [records[row] for row in order]


@pytest.mark.parametrize("batch_bytes_max", [200, 1_000])
def test_batches_have_the_maximum_size(batch_bytes_max: int) -> None:
    records = [Record(0, 1_000, b"key", b"v" * (index % 90)) for index in range(300)]
    sizes = [len(batch) for batch in encoded(rows_of(records), Batching(batch_bytes_max))]
    assert max(sizes) <= batch_bytes_max
    assert all(before + after > batch_bytes_max for before, after in pairwise(sizes))


def test_a_record_that_is_too_large_has_its_own_batch() -> None:
    records = [Record(0, 0, None, value) for value in (b"small", b"v" * 1_000, b"small")]
    batches = encoded(rows_of(records), Batching(200))
    assert [read_header(batch).records_count for batch in batches] == [1, 1, 1]


def test_sequences_continue_across_batches_and_wrap() -> None:
    records = [Record(0, 0, None, b"v" * 100)] * 4
    batches = encoded(rows_of(records), Batching(320, producer_id=1, producer_epoch=0), 2**31 - 3)
    assert [read_header(batch).base_sequence for batch in batches] == [2**31 - 3, 2**31 - 1]


def test_text_and_large_types_are_written_as_their_bytes() -> None:
    times_ms = np.zeros(2, np.int64)
    expected = [Record(0, 0, "clé".encode(), b"v"), Record(0, 0, None, b"")]
    for keys, values in ((pa.string(), pa.binary()), (pa.large_string(), pa.large_binary())):
        rows = Columns(pa.array(["clé", None], keys), pa.array([b"v", b""], values), None, times_ms)
        assert decoded(encoded(rows, Batching(1_000))) == expected


def test_columns_may_be_missing() -> None:
    rows = Columns(None, None, None, np.zeros(2, np.int64))
    assert decoded(encoded(rows, Batching(1_000))) == [Record(0, 0, None, None)] * 2
    assert encoded(Columns(None, None, None, np.zeros(0, np.int64)), Batching(1_000)) == []


@pytest.mark.parametrize("wrong", [[None], [{"key": None, "value": b"v"}]])
def test_a_header_without_a_key_is_rejected(wrong: list[object]) -> None:
    rows = Columns(None, None, pa.array([None, wrong], HEADERS), np.zeros(2, np.int64))
    with pytest.raises(KafkaError, match="no key") as error:
        encoded(rows, Batching(1_000))
    assert error.value.code is ErrorCode.INVALID_RECORD


def test_a_timestamp_that_does_not_fit_microseconds_is_rejected() -> None:
    rows = Columns(None, None, None, np.array([TIMESTAMP_MS_MAX + 1], np.int64))
    with pytest.raises(KafkaError) as error:
        encoded(rows, Batching(1_000))
    assert error.value.code is ErrorCode.INVALID_TIMESTAMP


def test_more_than_one_buffer_of_batches_is_written() -> None:
    records = [Record(0, index, None, bytes([index]) * 3_000_000) for index in range(4)]
    batches = encoded(rows_of(records), Batching(100_000))
    assert decoded(batches) == records
