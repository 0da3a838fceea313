"""Every record becomes one row."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from barnabas.tables.range_writing import fit
from barnabas.tables.rows import BytesDecoder, DecodedGroup, Decoder, RowMaker, StringDecoder
from barnabas.tables.settings import Decoding, TableFormat, TableSettings
from barnabas.wire.records.arrow_types import COLUMN_TYPES

SCHEMA = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", COLUMN_TYPES["timestamp"]),
        ("headers", COLUMN_TYPES["headers"]),
    ]
)


def records(*pairs: tuple[bytes | None, bytes | None]) -> pa.RecordBatch:
    rows = [
        {"key": key, "value": value, "partition": 1, "offset": index, "timestamp": 0}
        for index, (key, value) in enumerate(pairs)
    ]
    return pa.RecordBatch.from_pylist(rows, schema=SCHEMA)


def settings(key: Decoding = Decoding.BYTES, value: Decoding = Decoding.BYTES) -> TableSettings:
    return TableSettings("t", TableFormat.DELTA, Path("/t"), key_decoding=key, value_decoding=value)


def rows_of(maker: RowMaker, batch: pa.RecordBatch) -> list[dict[str, Any]]:
    return [row for rows in maker.rows(batch) for row in rows.batch().to_pylist()]


class OddAndEven(Decoder):
    """Decodes one-digit numbers to a column `odd` or `even`."""

    def decode(self, values: pa.Array) -> Iterator[DecodedGroup]:
        digits = [None if value is None else int(value) for value in values.to_pylist()]
        for name, rest in (("even", 0), ("odd", 1)):
            positions = [
                index for index, digit in enumerate(digits) if digit is not None and digit % 2 == rest
            ]
            if positions:
                columns = {name: pa.array([digits[index] for index in positions])}
                schema_ids = pa.array([rest] * len(positions), pa.int32())
                yield DecodedGroup(pa.array(positions), columns, None, schema_ids)
        nulls = [index for index, digit in enumerate(digits) if digit is None]
        if nulls:
            yield DecodedGroup(
                pa.array(nulls), {}, pa.array(["null"] * len(nulls)), pa.nulls(len(nulls), pa.int32())
            )


def test_bytes_need_no_columns_for_errors() -> None:
    maker = RowMaker(settings(), BytesDecoder("kafka_key"), BytesDecoder("value"))
    [row] = rows_of(maker, records((b"k", b"v")))
    assert list(row) == [
        "value",
        "kafka_key",
        "kafka_partition",
        "kafka_offset",
        "kafka_timestamp",
        "kafka_headers",
    ]
    assert (row["value"], row["kafka_key"], row["kafka_partition"], row["kafka_offset"]) == (b"v", b"k", 1, 0)


def test_keys_and_values_are_decoded_independently() -> None:
    maker = RowMaker(settings(Decoding.REGISTRY, Decoding.REGISTRY), OddAndEven(), OddAndEven())
    batch = records((b"1", b"2"), (b"2", b"2"), (b"1", b"1"), (None, b"4"), (b"2", None))
    rows = sorted(rows_of(maker, batch), key=lambda row: row["kafka_offset"])
    assert [(row.get("even"), row.get("odd"), row["kafka_error"]) for row in rows[:3]] == [
        (2, 1, None),
        (2, None, None),
        (None, 1, None),
    ]
    assert [row["kafka_schema_id"] for row in rows] == [0, 0, 1, 0, None]
    assert [row["kafka_key_schema_id"] for row in rows] == [1, 0, 1, None, 0]
    assert (rows[3]["kafka_error"], rows[3]["kafka_raw_value"]) == ("key: null", b"4")
    assert (rows[4]["kafka_error"], rows[4]["kafka_raw_key"]) == ("value: null", b"2")


def test_reasons_of_key_and_value_are_joined() -> None:
    maker = RowMaker(
        settings(Decoding.STRING, Decoding.STRING), StringDecoder("kafka_key"), StringDecoder("value")
    )
    rows = rows_of(maker, records((b"\xff", b"\xff"), (b"k", b"v")))
    assert rows[0]["kafka_error"] == "key: it is not UTF-8; value: it is not UTF-8"
    assert (rows[0]["kafka_raw_key"], rows[0]["kafka_raw_value"]) == (b"\xff", b"\xff")
    assert (rows[1]["kafka_key"], rows[1]["value"], rows[1]["kafka_error"]) == ("k", "v", None)


def test_rejected_rows_lose_only_the_side_that_does_not_fit() -> None:
    maker = RowMaker(
        settings(Decoding.STRING, Decoding.STRING), StringDecoder("kafka_key"), StringDecoder("value")
    )
    [rows] = maker.rows(records((b"k", b"v")))
    [row] = rows.rejected({"value": "value is string"}).batch().to_pylist()
    assert "value" not in row
    assert (row["kafka_key"], row["kafka_error"], row["kafka_raw_value"]) == ("k", "value is string", b"v")


def test_rejected_rows_keep_the_schemas_with_which_they_were_written() -> None:
    maker = RowMaker(settings(Decoding.REGISTRY, Decoding.REGISTRY), OddAndEven(), OddAndEven())
    [rows] = maker.rows(records((b"1", b"1")))
    [row] = fit(rows, pa.schema([("odd", pa.string())])).batch.to_pylist()
    assert "odd" not in row
    assert (row["kafka_schema_id"], row["kafka_key_schema_id"], row["kafka_raw_value"]) == (1, 1, b"1")


def test_bytes_are_kept_if_the_columns_of_the_table_have_another_type() -> None:
    """As after a topic's decoding was changed from string to bytes."""
    maker = RowMaker(settings(), BytesDecoder("kafka_key"), BytesDecoder("value"))
    [rows] = maker.rows(records((b"k", b"v")))
    fitted = fit(rows, pa.schema([("value", pa.string()), ("kafka_key", pa.string())]))
    [row] = fitted.batch.to_pylist()
    assert fitted.rejected_count == 1
    assert (row["kafka_raw_key"], row["kafka_raw_value"]) == (b"k", b"v")
    assert "value is binary; the table's column is string" in row["kafka_error"]
    assert {"kafka_error", "kafka_raw_key", "kafka_raw_value"} <= set(fitted.schema.names)


class ShoutedOffset(Decoder):
    """Decodes to a column whose name differs from a reserved one only in case."""

    def decode(self, values: pa.Array) -> Iterator[DecodedGroup]:
        yield DecodedGroup(None, {"KAFKA_OFFSET": pa.array([7] * len(values))})


def test_a_field_cannot_take_the_place_of_a_column_about_records() -> None:
    maker = RowMaker(settings(value=Decoding.STRING), BytesDecoder("kafka_key"), ShoutedOffset())
    [rows] = maker.rows(records((b"k", b"v")))
    fitted = fit(rows, pa.schema([]))
    [row] = fitted.batch.to_pylist()
    assert "kafka_offset" in fitted.schema.names
    assert (row["kafka_offset"], row["kafka_raw_value"]) == (0, b"v")
    assert row["kafka_error"] == "value: its field KAFKA_OFFSET has a name that is reserved"


def test_no_records_are_no_problem() -> None:
    maker = RowMaker(settings(), BytesDecoder("kafka_key"), StringDecoder("value"))
    assert rows_of(maker, records()) == []
