"""Turns records into rows of a table. No IO, except that the schema registry may be asked.

Every record becomes one row: what cannot be decoded keeps its bytes, and says why.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.codecs.registered import RegisteredValues
from barnabas.registry.client import RegistryClient
from barnabas.tables.settings import Decoding, TableSettings

#: The columns of records that rows are made of.
RECORD_COLUMNS = ("key", "value", "partition", "offset", "timestamp", "headers")

KEY, SCHEMA_ID, KEY_SCHEMA_ID, ERROR = "kafka_key", "kafka_schema_id", "kafka_key_schema_id", "kafka_error"
RAW_KEY, RAW_VALUE = "kafka_raw_key", "kafka_raw_value"
#: Columns about records.
ABOUT_RECORDS = frozenset(
    {KEY, SCHEMA_ID, KEY_SCHEMA_ID, ERROR, RAW_KEY, RAW_VALUE}
    | {f"kafka_{name}" for name in ("partition", "offset", "timestamp", "headers")}
)
#: Names that Iceberg and Delta's change feed have for their own columns; Spark reads no table with one of them.
RESERVED_BY_FORMATS = frozenset(
    {"_file", "_pos", "_deleted", "_spec_id", "_partition", "_row_id", "_last_updated_sequence_number"}
    | {"_change_type", "_change_ordinal", "_commit_snapshot_id", "_commit_version", "_commit_timestamp"}
)
VALUE = "value"


class DecodedGroup(NamedTuple):
    """Keys or values of some records as columns."""

    indices: pa.Array | None  #: positions of these records; None for all
    columns: Mapping[str, pa.Array]
    reasons: pa.Array | None = None  #: why a value could not be decoded, null for others; None if all could
    schema_ids: pa.Array | None = None  #: with a schema registry; null for values that name no schema


class Decoder(Protocol):
    """Makes columns of keys or values."""

    def decode(self, values: pa.Array) -> Iterator[DecodedGroup]:
        """Yield all values once, in groups of the same columns."""
        ...


@dataclass(frozen=True)
class BytesDecoder:
    """Keeps bytes in one column."""

    column: str

    def decode(self, values: pa.Array) -> Iterator[DecodedGroup]:
        yield DecodedGroup(None, {self.column: values})


@dataclass(frozen=True)
class StringDecoder:
    """Makes strings of UTF-8; other bytes get a reason."""

    column: str

    def decode(self, values: pa.Array) -> Iterator[DecodedGroup]:
        try:
            yield DecodedGroup(None, {self.column: values.cast(pa.string())})
        except pa.ArrowInvalid:
            texts = [None if value is None else _text(value) for value in values.to_pylist()]
            is_wrong = [
                value is not None and text is None
                for value, text in zip(values.to_pylist(), texts, strict=True)
            ]
            reasons = pa.array(["it is not UTF-8" if wrong else None for wrong in is_wrong], pa.string())
            yield DecodedGroup(None, {self.column: pa.array(texts, pa.string())}, reasons)


class RegistryDecoder:
    """Decodes with the schemas of a registry, each value with the schema with which it was written."""

    def __init__(self, client: RegistryClient, column: str | None) -> None:
        """:param column: Of the structs; None for a column for each of their fields."""
        self._registered = RegisteredValues(client)
        self._column = column

    def decode(self, values: pa.Array) -> Iterator[DecodedGroup]:
        decoded = self._registered.decoded(values)
        rest = np.ones(len(values), bool)
        for group in decoded.rows:
            columns = self._columns(group.rows)
            yield DecodedGroup(group.positions, columns, None, decoded.schema_ids.take(group.positions))
            rest[group.positions.to_numpy()] = False
        if rest.any():
            others = pa.array(np.flatnonzero(rest))
            yield DecodedGroup(others, {}, decoded.reasons.take(others), decoded.schema_ids.take(others))

    def _columns(self, rows: pa.StructArray) -> dict[str, pa.Array]:
        if self._column is not None:
            return {self._column: rows}
        return dict(zip(rows.type.names, rows.flatten(), strict=True))


def _text(value: bytes) -> str | None:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None


@dataclass(frozen=True)
class RecordRows:
    """Rows of the same columns."""

    records: pa.RecordBatch
    keys: Mapping[str, pa.Array]
    values: Mapping[str, pa.Array]
    errors: pa.Array  #: strings; null for rows that were decoded
    settings: TableSettings

    def __len__(self) -> int:
        return int(self.records.num_rows)

    def batch(self) -> pa.RecordBatch:
        records, settings = self.records, self.settings
        columns = {**self.values, **self.keys}
        for name in ("partition", "offset", "timestamp", "headers"):
            columns[f"kafka_{name}"] = records.column(name)
        is_wrong = pc.is_valid(self.errors)
        has_errors = self.errors.null_count < len(self)  # bytes, too, if the table's column has another type
        if has_errors or not settings.keeps_bytes:
            columns[ERROR] = self.errors
        for decoding, name, raw in (
            (settings.key_decoding, "key", RAW_KEY),
            (settings.value_decoding, "value", RAW_VALUE),
        ):
            if has_errors or decoding is not Decoding.BYTES:
                columns[raw] = pc.if_else(is_wrong, records.column(name), pa.scalar(None, pa.binary()))
        return pa.RecordBatch.from_arrays(list(columns.values()), list(columns))

    def rejected(self, mismatches: Mapping[str, str]) -> "RecordRows":
        """Return the rows without the columns that the table cannot take.

        :param mismatches: Such columns, with the reason.
        """
        reason = "; ".join(mismatches.values())
        keys = _taken(self.keys, mismatches, KEY_SCHEMA_ID)
        values = _taken(self.values, mismatches, SCHEMA_ID)
        return replace(self, keys=keys, values=values, errors=pc.fill_null(self.errors, reason))


def _taken(
    columns: Mapping[str, pa.Array], mismatches: Mapping[str, str], schema_id: str
) -> Mapping[str, pa.Array]:
    """Return all columns if the table can take them, else only the one with the schema."""
    if not mismatches.keys() & columns.keys():
        return columns
    return {name: column for name, column in columns.items() if name == schema_id and name not in mismatches}


class RowMaker:
    """Makes rows as the settings say."""

    def __init__(self, settings: TableSettings, keys: Decoder, values: Decoder) -> None:
        self._settings = settings
        self._keys = keys
        self._values = values

    def rows(self, records: pa.RecordBatch) -> Iterator[RecordRows]:
        """Yield the rows of records with the columns `RECORD_COLUMNS`.

        :raises RegistryUnavailable: If a schema is needed, and the registry does not respond.
        """
        for values in self._values.decode(records.column("value")):
            chosen = records if values.indices is None else records.take(values.indices)
            for keys in self._keys.decode(chosen.column("key")):
                yield self._combined(chosen, keys, values)

    def _combined(self, records: pa.RecordBatch, keys: DecodedGroup, values: DecodedGroup) -> RecordRows:
        value_columns, value_errors = dict(values.columns), values.reasons
        if self._settings.value_decoding is Decoding.REGISTRY:
            value_columns[SCHEMA_ID] = values.schema_ids
        if keys.indices is not None:
            records = records.take(keys.indices)
            value_columns = {name: column.take(keys.indices) for name, column in value_columns.items()}
            value_errors = None if value_errors is None else value_errors.take(keys.indices)
        key_columns = dict(keys.columns)
        if self._settings.key_decoding is Decoding.REGISTRY:
            key_columns[KEY_SCHEMA_ID] = keys.schema_ids
        reasons = (("key", keys.reasons), ("value", value_errors), ("timestamp", _time_reasons(records)))
        errors = _joined_errors(records.num_rows, reasons)
        rows = RecordRows(records, key_columns, value_columns, errors, self._settings)
        hidden = {
            name: f"value: its field {name} has a name that is reserved"
            for name in values.columns
            if name.lower() in ABOUT_RECORDS | RESERVED_BY_FORMATS
        }
        return rows.rejected(hidden) if hidden else rows


def _time_reasons(records: pa.RecordBatch) -> pa.Array | None:
    times = records.column("timestamp")
    if not times.null_count:
        return None
    return pc.if_else(pc.is_null(times), "microseconds cannot hold it", pa.scalar(None, pa.string()))


def _joined_errors(count: int, parts: Iterable[tuple[str, pa.Array | None]]) -> pa.Array:
    """Return the reasons of keys and values as one column."""
    errors = pa.nulls(count, pa.string())
    for name, reasons in parts:
        if reasons is not None:
            named = pc.binary_join_element_wise(f"{name}: ", reasons, "")
            both = pc.binary_join_element_wise(errors, named, "; ")
            errors = pc.coalesce(both, errors, named)
    return errors
