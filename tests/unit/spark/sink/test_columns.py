import time

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from barnabas.base.ids import ProducerIdAndEpoch
from barnabas.wire.records.arrow_rows import EncodedBatch
from barnabas.wire.records.batch import iterate_headers
from barnabas.wire.records.compression import Compression
from barnabas.wire.records.record import decode_all
from pyspark_barnabas.sink.columns import Rows, grouped, read_rows
from pyspark_barnabas.sink.encoding import Encoder
from pyspark_barnabas.sink.errors import SinkError
from pyspark_barnabas.sink.options import SinkOptions, batch_options
from pyspark_barnabas.sink.schema import check_schema

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def options(**given: str) -> SinkOptions:
    return batch_options({"kafka.bootstrap.servers": "127.0.0.1:9092", **given})


def batch(**columns: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns)


def batches(encoder: Encoder, rows: Rows, sequence: int = 0) -> list[EncodedBatch]:
    every = np.arange(len(rows.sizes), dtype=np.int64)
    return list(encoder.of(rows.columns).batches(every, sequence))


def test_rows_become_batches_of_their_records() -> None:
    rows = read_rows(
        batch(
            key=pa.array(["k", None, ""]),
            value=pa.array([b"v", b"", None]),
            timestamp=pa.array([1_000, 2_000, 3_999], pa.timestamp("us", "UTC")),
            headers=pa.array([[{"key": "h", "value": b"x"}, {"key": "h", "value": None}], None, []], HEADERS),
        ),
        options(topic="t", includeTimestamp="true"),
    )
    encoder = Encoder(ProducerIdAndEpoch(7, 1), True, Compression.NONE, 1_000_000)
    [(encoded, count)] = batches(encoder, rows, 5)
    [(_, header)] = iterate_headers(encoded)
    assert (count, header.producer_id, header.producer_epoch, header.base_sequence) == (3, 7, 1, 5)
    assert header.is_transactional
    assert [record[1:] for record in decode_all(encoded)] == [
        (1, b"k", b"v", (("h", b"x"), ("h", None))),
        (2, None, b"", ()),
        (3, b"", None, ()),
    ]


def test_batches_have_the_maximum_size_and_consecutive_sequences() -> None:
    values = pa.array([bytes(100)] * 50)
    rows = read_rows(batch(value=values), options(topic="t"))
    encoder = Encoder(ProducerIdAndEpoch(7, 1), False, Compression.LZ4, 1_000)
    found = list(batches(encoder, rows, (1 << 31) - 4))
    assert [count for _, count in found] == [8] * 6 + [2]
    sequences = [header.base_sequence for encoded, _ in found for _, header in iterate_headers(encoded)]
    assert sequences[:3] == [(1 << 31) - 4, 4, 12]
    assert [record.value for encoded, _ in found for record in decode_all(encoded)] == values.to_pylist()


def test_a_row_larger_than_a_batch_has_its_own() -> None:
    rows = read_rows(batch(value=pa.array([b"a", bytes(5_000), b"b"])), options(topic="t"))
    encoder = Encoder(None, False, Compression.NONE, 1_000)
    assert [count for _, count in batches(encoder, rows)] == [1, 1, 1]


def test_without_a_producer_id_a_batch_has_none() -> None:
    rows = read_rows(batch(value=pa.array([b"a"])), options(topic="t"))
    [(encoded, _)] = batches(Encoder(None, False, Compression.NONE, 1_000), rows)
    [(_, header)] = iterate_headers(encoded)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (-1, -1, -1)


def test_rows_without_a_timestamp_have_the_present_time() -> None:
    before_ms = time.time_ns() // 1_000_000
    stamps = pa.array([1_000_000, None], pa.timestamp("us", "UTC"))
    rows = read_rows(batch(value=pa.array([b"a", b"b"]), timestamp=stamps), options(topic="t"))
    assert rows.columns.timestamps_ms.min() >= before_ms
    requested = read_rows(
        batch(value=pa.array([b"a", b"b"]), timestamp=stamps), options(topic="t", includeTimestamp="true")
    )
    assert requested.columns.timestamps_ms[0] == 1_000
    assert requested.columns.timestamps_ms[1] >= before_ms


def test_rows_are_split_by_topic() -> None:
    rows = read_rows(batch(value=pa.array([b"1", b"2", b"3"]), topic=pa.array(["a", "b", "a"])), options())
    assert [(topic, chosen.tolist()) for topic, chosen in rows.topics if chosen is not None] == [
        ("a", [0, 2]),
        ("b", [1]),
    ]
    assert read_rows(batch(value=pa.array([b"1"])), options(topic="t")).topics == (("t", None),)


def test_a_row_without_a_topic_is_rejected() -> None:
    with pytest.raises(SinkError, match="column topic is null in a row"):
        read_rows(batch(value=pa.array([b"1"]), topic=pa.array([None], pa.string())), options())


def test_a_header_without_a_key_is_rejected() -> None:
    headers = pa.array([[{"key": None, "value": b"x"}]], HEADERS)
    rows = read_rows(batch(value=pa.array([b"1"]), headers=headers), options(topic="t"))
    encoder = Encoder(None, False, Compression.NONE, 1_000)
    with pytest.raises(SinkError, match="a header of a record has no key"):
        batches(encoder, rows)


def test_small_batches_are_merged_and_empty_ones_skipped() -> None:
    parts = [batch(value=pa.array([bytes(1 << 20)] * count)) for count in (1, 0, 2, 1, 3)]
    assert [each.num_rows for each in grouped(parts)] == [4, 3]
    assert list(grouped([])) == []


def header_type(name: str = "key") -> ArrayType:
    return ArrayType(StructType().add(name, StringType()).add("value", BinaryType()))


def schema(**columns: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in columns.items()])


@pytest.mark.parametrize(
    ("columns", "given", "message"),
    [
        (schema(key=StringType()), {"topic": "t"}, "a column named value is required; the columns are key"),
        (schema(value=IntegerType()), {"topic": "t"}, "value is of type int: string or binary is expected"),
        (schema(value=StringType(), key=LongType()), {"topic": "t"}, "column key is of type bigint"),
        (
            schema(value=StringType(), partition=LongType()),
            {"topic": "t"},
            "partition is of type bigint: int is",
        ),
        (schema(value=StringType()), {}, "the rows have no topic: set option topic"),
        (schema(value=StringType(), topic=LongType()), {}, "topic is of type bigint: string is expected"),
        (
            schema(value=StringType(), headers=header_type("name")),
            {"topic": "t"},
            "column headers is of type array",
        ),
        (
            schema(value=StringType(), headers=StringType()),
            {"topic": "t"},
            "column headers is of type string",
        ),
        (
            schema(value=StringType()),
            {"topic": "t", "includeTimestamp": "true"},
            "named timestamp, which is missing",
        ),
    ],
)
def test_invalid_columns_are_reported(columns: StructType, given: dict[str, str], message: str) -> None:
    with pytest.raises(SinkError, match=message):
        check_schema(columns, options(**given))


def test_all_columns_of_the_source_can_be_written() -> None:
    source = schema(
        key=BinaryType(),
        value=BinaryType(),
        topic=StringType(),
        partition=IntegerType(),
        offset=LongType(),
        timestamp=TimestampType(),
        timestampType=IntegerType(),
        headers=header_type(),
    )
    check_schema(source, options(includeTimestamp="true"))
