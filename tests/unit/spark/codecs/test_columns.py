"""Column types of values and rows: compatibility, and the work of tasks on batches."""

import json

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    ArrayType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from barnabas.codecs import BinaryFormat, CodecSpec
from barnabas.codecs.framing import Frame
from pyspark_barnabas.codecs.columns import column_types, decoded_type, decoder, differences, encoder

RECORD = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}
SPEC = CodecSpec(BinaryFormat.AVRO, json.dumps(RECORD).encode(), "", Frame())


def a_column(kind: DataType, *, nullable: bool = True) -> StructType:
    return StructType([StructField("a", kind, nullable)])


@pytest.mark.parametrize(
    ("given", "target"),
    [
        (LongType(), LongType()),
        (ByteType(), IntegerType()),
        (ShortType(), IntegerType()),
        (IntegerType(), LongType()),
        (FloatType(), DoubleType()),
        (NullType(), StringType()),
        (DecimalType(5, 2), DecimalType(7, 3)),
        (ArrayType(IntegerType()), ArrayType(LongType(), False)),
        (MapType(StringType(), a_column(IntegerType())), MapType(StringType(), a_column(LongType()))),
    ],
)
def test_lossless_conversions_are_allowed(given: DataType, target: DataType) -> None:
    assert list(differences(a_column(given), a_column(target))) == []


@pytest.mark.parametrize(
    ("given", "target", "says"),
    [
        (
            LongType(),
            IntegerType(),
            "column a is bigint, the schema requires int; CAST(a AS INT) would be right",
        ),
        (TimestampNTZType(), TimestampType(), "CAST(a AS TIMESTAMP) would be right"),
        (DoubleType(), FloatType(), "column a is double, the schema requires float; CAST(a AS FLOAT)"),
        (DecimalType(5, 2), DecimalType(5, 3), "column a is decimal(5,2), the schema requires decimal(5,3)"),
        (DecimalType(5, 4), DecimalType(9, 3), "column a is decimal(5,4), the schema requires decimal(9,3)"),
        (StringType(), ArrayType(StringType()), "column a is string, the schema requires array<string>"),
        (ArrayType(LongType()), ArrayType(IntegerType()), "column a[] is bigint, the schema requires int"),
        (
            MapType(IntegerType(), LongType()),
            MapType(StringType(), LongType()),
            "column a (keys) is int, the schema requires string",
        ),
        (a_column(LongType()), a_column(IntegerType()), "column a.a is bigint, the schema requires int"),
    ],
)
def test_lossy_conversions_are_rejected_with_field_and_valid_type(
    given: DataType, target: DataType, says: str
) -> None:
    [message] = differences(a_column(given), a_column(target))
    assert says in message


def test_missing_required_columns_are_reported() -> None:
    other = StructType([StructField("b", IntegerType())])
    assert list(differences(other, a_column(LongType(), nullable=False))) == [
        "column b is not in the schema, which has a bigint; leave it out",
        "column a is missing; the schema requires it as bigint",
    ]
    assert list(differences(StructType([]), a_column(LongType()))) == [], "what may be null may be left out"


ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "here", "type": {"type": "long", "logicalType": "local-timestamp-micros"}},
        {"name": "day", "type": ["null", {"type": "int", "logicalType": "date"}]},
        {"name": "items", "type": {"type": "array", "items": {**RECORD, "name": "Item"}}},
    ],
}


def test_columns_of_a_codec_are_types_of_spark_and_fields_keep_whether_they_are_nullable() -> None:
    codec = CodecSpec(BinaryFormat.AVRO, json.dumps(ORDER).encode(), "", Frame()).codec()
    assert column_types(codec) == StructType(
        [
            StructField("at", TimestampType(), False),
            StructField("here", TimestampNTZType(), False),
            StructField("day", DateType(), True),
            StructField("items", ArrayType(a_column(IntegerType(), nullable=False), False), False),
        ]
    )
    assert decoded_type(codec) == StructType(
        [
            StructField("at", TimestampType()),
            StructField("here", TimestampNTZType()),
            StructField("day", DateType()),
            StructField("items", ArrayType(a_column(IntegerType()))),
        ]
    ), "a value that cannot be decoded makes them null"


def test_a_task_decodes_values_to_rows_and_errors() -> None:
    found = decoder(SPEC)(pa.array([b"\x02", b"", None]))
    assert found.to_pylist() == [
        {"row": {"a": 1}, "error": None},
        {"row": None, "error": "the value is not Avro of R: it ends too early, after 0 bytes"},
        {"row": None, "error": "the value is null"},
    ]


def test_a_task_appends_values_to_expected_rows_and_rejects_others() -> None:
    batch = pa.RecordBatch.from_pydict(
        {
            "row": [{"a": 1}, {"a": None}, {"a": 2}, None],
            "action": pa.array([None, None, "drop", "fail"]),
            "reason": pa.array([None, None, "why", "broken"]),
        }
    )
    [found] = encoder(SPEC, "dead_letter")([batch])
    assert found.to_pydict() == {
        "row": [{"a": 1}, {"a": None}, {"a": 2}, None],
        "action": [None, "dead_letter", "drop", "fail"],
        "reason": [
            None,
            "the row cannot be Avro of R: a is null, which the schema does not allow",
            "why",
            "broken",
        ],
        "value": [b"\x02", None, None, None],
    }
