from collections.abc import Sequence

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from barnabas.reading.rows import (
    ARROW_TYPES,
    NONE_ABORTED,
    AbortedRange,
    AbortedRanges,
    arrow_schema_of,
    read_arrow,
)
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.batch import read_header
from barnabas.wire.records.compression import Compression
from barnabas.wire.records.control import EndTransactionMarker, encode_end_marker
from barnabas.wire.records.record import Record, encode_batch

SPARK_SCHEMA = StructType(
    [
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
        StructField("timestampType", IntegerType()),
        StructField(
            "headers",
            ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())])),
        ),
    ]
)
END = (1 << 63) - 1


def batch(first: int, *values: bytes | None, **how: object) -> bytes:
    records = [Record(0, 1_000 + first + index, b"k", value) for index, value in enumerate(values)]
    return bytes(encode_batch(records, base_offset=first, **how))  # type: ignore[arg-type]


def marker(offset: int, producer_id: int, *, commit: bool) -> bytes:
    written = encode_end_marker(EndTransactionMarker(producer_id, 0, 0, commit, 5_000))
    written[0:8] = offset.to_bytes(8, "big")
    return bytes(written)


def rows(
    buffer: bytes,
    columns: Sequence[str],
    low: int = 0,
    high: int = END,
    aborted: AbortedRanges = NONE_ABORTED,
) -> list[dict[str, object]]:
    batches = list(read_arrow(buffer, "orders", 3, low, high, columns, aborted))
    return pa.Table.from_batches(batches, arrow_schema_of(columns)).to_pylist()


def values(buffer: bytes, aborted: AbortedRanges = NONE_ABORTED) -> list[object]:
    return [row["value"] for row in rows(buffer, ["value"], aborted=aborted)]


def test_the_schema_is_the_connectors() -> None:
    assert arrow_schema_of(list(ARROW_TYPES)).equals(to_arrow_schema(SPARK_SCHEMA, timezone="UTC"))
    for read in read_arrow(batch(0, b"v"), "orders", 3, 0, END, list(ARROW_TYPES)):
        assert read.schema.equals(to_arrow_schema(SPARK_SCHEMA, timezone="UTC"))
        read.validate(full=True)


def test_rows_have_the_positions_of_their_records() -> None:
    headers = (("trace", b"1"), ("empty", None))
    written = encode_batch([Record(0, 1_500, None, b"v", headers), Record(0, -1, b"k", None)], base_offset=7)
    first, second = rows(bytes(written), list(ARROW_TYPES))
    assert first["timestamp"].isoformat() == "1970-01-01T00:00:01.500000+00:00"  # type: ignore[attr-defined]
    assert second["timestamp"].isoformat() == "1969-12-31T23:59:59.999000+00:00"  # type: ignore[attr-defined]
    del first["timestamp"], second["timestamp"]
    tp = {"topic": "orders", "partition": 3, "timestampType": 0}
    shown = [{"key": "trace", "value": b"1"}, {"key": "empty", "value": None}]
    assert first == {"key": None, "value": b"v", "offset": 7, "headers": shown, **tp}
    assert second == {"key": b"k", "value": None, "offset": 8, "headers": None, **tp}


def test_columns_are_in_the_requested_order() -> None:
    assert rows(batch(0, b"v"), ["offset", "topic", "value"]) == [
        {"offset": 0, "topic": "orders", "value": b"v"}
    ]


def test_rows_may_consist_of_metadata_columns_only() -> None:
    assert rows(batch(0, b"a", b"b"), ["partition", "topic"]) == [{"partition": 3, "topic": "orders"}] * 2


@pytest.mark.parametrize("codec", Compression)
def test_rows_are_counted_within_the_range_only(codec: Compression) -> None:
    buffer = b"".join(batch(2 * each, b"a", b"b", compression=codec) for each in range(4))
    shown = [{"partition": 3}]
    assert rows(buffer, ["partition"]) == shown * 8
    assert rows(buffer, ["partition"], 1, 6) == shown * 5
    assert rows(buffer, ["partition"], 3, 4) == shown


@pytest.mark.parametrize(
    ("low", "high", "offsets"),
    [(0, END, [0, 1, 2, 3]), (1, 3, [1, 2]), (2, END, [2, 3]), (0, 0, []), (4, 9, []), (3, 4, [3])],
)
def test_offsets_are_clamped(low: int, high: int, offsets: list[int]) -> None:
    buffer = batch(0, b"a", b"b") + batch(2, b"c", b"d")
    assert [row["offset"] for row in rows(buffer, ["offset"], low, high)] == offsets


def test_log_append_time_is_marked_as_such() -> None:
    [row] = rows(batch(0, b"v", log_append_time=True), ["timestampType"])
    assert row == {"timestampType": 1}


def test_markers_are_not_rows() -> None:
    buffer = batch(0, b"a") + marker(1, 9, commit=True) + batch(2, b"b")
    assert values(buffer) == [b"a", b"b"]


def in_transaction(first: int, value: bytes, producer_id: int) -> bytes:
    return batch(first, value, transactional=True, producer_id=producer_id, producer_epoch=0, base_sequence=0)


def test_aborted_batches_are_not_rows() -> None:
    buffer = (
        in_transaction(0, b"aborted", 9)
        + in_transaction(1, b"of another", 10)
        + batch(2, b"of none", producer_id=9, producer_epoch=0, base_sequence=1)
        + marker(3, 9, commit=False)
        + in_transaction(4, b"committed", 9)
    )
    expected = [b"of another", b"of none", b"committed"]
    assert values(buffer, AbortedRanges([AbortedRange(9, 0, 3)])) == expected
    assert values(buffer, AbortedRanges.fetched(buffer, [(9, 0)])) == expected
    assert values(buffer) == [b"aborted", *expected]


def test_non_transactional_batches_are_never_aborted() -> None:
    aborted = AbortedRanges([AbortedRange(9, 0, 3)])
    assert not aborted.admits(read_header(in_transaction(0, b"v", 9)))
    assert aborted.admits(read_header(batch(0, b"v", producer_id=9, producer_epoch=0, base_sequence=0)))


def test_an_aborted_transaction_without_a_marker_continues_to_the_end() -> None:
    buffer = in_transaction(0, b"a", 9) + in_transaction(1, b"b", 9)
    assert values(buffer, AbortedRanges.fetched(buffer, [(9, 0)])) == []


def test_each_aborted_transaction_ends_with_its_own_marker() -> None:
    buffer = b"".join(
        in_transaction(4 * each, b"aborted", 9)
        + marker(4 * each + 1, 9, commit=False)
        + in_transaction(4 * each + 2, b"committed", 9)
        + marker(4 * each + 3, 9, commit=True)
        for each in range(3)
    )
    aborted = AbortedRanges.fetched(buffer, [(9, 0), (9, 4), (9, 8)])
    assert values(buffer, aborted) == [b"committed"] * 3


@pytest.mark.parametrize("codec", Compression)
def test_all_codecs_are_read(codec: Compression) -> None:
    assert values(batch(0, b"a" * 500, b"b", compression=codec)) == [b"a" * 500, b"b"]


def test_a_damaged_batch_is_reported() -> None:
    damaged = bytearray(batch(40, b"value"))
    damaged[-2] ^= 1
    with pytest.raises(KafkaError, match="batch at offset 40: its checksum") as error:
        rows(bytes(damaged), ["value"])
    assert error.value.code is ErrorCode.CORRUPT_MESSAGE


def test_crc_checks_can_be_disabled() -> None:
    damaged = bytearray(batch(40, b"value"))
    damaged[-2] ^= 1
    [read] = read_arrow(bytes(damaged), "orders", 3, 0, END, ["value"], check_crcs=False)
    assert read["value"].to_pylist() == [b"valud"]


def test_a_batch_cut_off_at_the_end_has_no_rows() -> None:
    assert values(batch(0, b"a") + batch(1, b"b")[:-1]) == [b"a"]
    assert values(b"") == []


def test_no_rows_are_no_record_batch() -> None:
    assert list(read_arrow(marker(0, 9, commit=True), "orders", 3, 0, END, ["value"])) == []


def test_many_rows_are_split_into_record_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("barnabas.reading.rows._ROWS_MAX", 3)
    buffer = batch(0, b"a", None, b"c", b"d", b"e")
    batches = list(read_arrow(buffer, "orders", 3, 0, END, ["value", "topic"]))
    assert [each.num_rows for each in batches] == [3, 2]
    assert pa.Table.from_batches(batches)["value"].to_pylist() == [b"a", None, b"c", b"d", b"e"]
