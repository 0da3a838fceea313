"""Values of a schema registry as columns, each read by the schema with which it was written.

So the rows depend on values and their schemas alone, not on versions that are registered later.
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from barnabas.codecs import ValueDecoder
from barnabas.codecs.columns import decoded
from barnabas.codecs.errors import SchemaError, described
from barnabas.codecs.framing import Frame
from barnabas.codecs.registered.framed_column import FramedColumn, Integers
from barnabas.codecs.registry_schemas import RegisteredSchema, RegistrySchemas, unusable
from barnabas.registry.client import RegistryClient
from barnabas.registry.codecs.errors import MalformedValue
from barnabas.registry.codecs.framing import read_message_indexes, unframed
from barnabas.registry.schemas import SchemaType
from barnabas.registry.standalone import standalone_schema

_FIRST_MESSAGE = (0,)
_UNFRAMED = (
    "the value does not begin with a byte 0 and a schema id, as serializers of a schema registry write it"
)


class WriterSchema(NamedTuple):
    """The schema with which a value was written."""

    id: int
    message_indexes: tuple[int, ...] = ()  #: of the message of Protobuf in its file; empty for other schemas


class DecodedRows(NamedTuple):
    """The rows of one schema in a column of values."""

    schema: WriterSchema
    columns: pa.Schema  #: a field that cannot be null in a value is not nullable
    positions: pa.Array  #: of the values in their column, ascending; int64
    rows: pa.StructArray  #: without nulls; all fields are nullable in its type


class DecodedValues(NamedTuple):
    """A decoded column. A value has a row or a reason; a null value has neither."""

    rows: tuple[DecodedRows, ...]  #: by the schema, in the order of ids
    schema_ids: pa.Array  #: int32, null for values that are null or not framed
    reasons: pa.Array  #: why a value has no row


class RegisteredValues:
    """Decodes columns of values in Confluent's framing; asks the registry once for each schema."""

    def __init__(self, client: RegistryClient) -> None:
        self._schemas = RegistrySchemas(client)
        self._decoders: dict[WriterSchema, ValueDecoder] = {}
        self._decoded_count = 0
        self._failed_count = 0

    def columns_of(self, schema: WriterSchema) -> pa.Schema:
        """Return the columns of a schema; of Protobuf without indexes, those of the first message.

        :raises SchemaError: There is no such schema, or its values cannot be decoded.
        :raises RegistryUnavailable: The registry does not respond.
        """
        self._schemas.expire_unknown()
        found = self._schemas.schema(schema.id)
        if isinstance(found, RegisteredSchema) and found.type is SchemaType.PROTOBUF:
            schema = schema._replace(message_indexes=schema.message_indexes or _FIRST_MESSAGE)
        decoder = self._decoder(schema)
        if isinstance(decoder, str):
            raise SchemaError(decoder)
        return decoder.columns

    def decoded(self, values: pa.Array) -> DecodedValues:
        """Decode a column of binary values.

        :raises RegistryUnavailable: The registry does not respond.
        """
        self._schemas.expire_unknown()
        column = FramedColumn(values)
        reasons: dict[int, str] = dict.fromkeys(column.unframed.tolist(), _UNFRAMED)
        rows = [
            group
            for schema_id, positions in column.by_id()
            for schema, selected in self._by_schema(schema_id, column, values, positions, reasons)
            if (group := self._rows(schema, values, selected, reasons)) is not None
        ]
        self._failed_count += len(reasons)
        self._decoded_count += sum(len(group.positions) for group in rows)
        texts = map(reasons.get, range(len(values)))
        return DecodedValues(tuple(rows), column.schema_ids(), pa.array(texts, pa.string(), size=len(values)))

    def statistics(self) -> dict[str, int]:
        counts = {"decoded": self._decoded_count, "failed": self._failed_count}
        return {**self._schemas.statistics(), **counts}

    def _by_schema(
        self,
        schema_id: int,
        column: FramedColumn,
        values: pa.Array,
        positions: Integers,
        reasons: dict[int, str],
    ) -> Iterator[tuple[WriterSchema, Integers]]:
        """Yield the writers' schemas of values with one id, and their positions."""
        schema = self._schemas.schema(schema_id)
        if isinstance(schema, str) or schema.type is not SchemaType.PROTOBUF:
            yield WriterSchema(schema_id), positions
            return
        is_first = column.begins_with_zero(positions)
        messages = _by_message(values, positions[~is_first], reasons)
        if is_first.any():
            others = messages.get(_FIRST_MESSAGE, positions[:0])  # which have the indexes in full
            messages[_FIRST_MESSAGE] = np.union1d(positions[is_first], others)
        for indexes in sorted(messages):
            yield WriterSchema(schema_id, indexes), messages[indexes]

    def _rows(
        self, schema: WriterSchema, values: pa.Array, positions: Integers, reasons: dict[int, str]
    ) -> DecodedRows | None:
        """Decode values of one schema; add the reasons of those that cannot be decoded."""
        decoder = self._decoder(schema)
        if isinstance(decoder, str):
            reasons.update(dict.fromkeys(positions.tolist(), f"the value cannot be decoded: {decoder}"))
            return None
        selected = values if len(positions) == len(values) else values.take(pa.array(positions))
        rows, why = decoded(decoder, selected)
        is_row = why.is_null().to_numpy(zero_copy_only=False)
        if not is_row.all():
            failed = np.flatnonzero(~is_row)
            reasons.update(
                zip(positions[failed].tolist(), why.take(pa.array(failed)).to_pylist(), strict=True)
            )
            rows, positions = rows.filter(pa.array(is_row)), positions[is_row]
        if not len(positions):
            return None
        return DecodedRows(schema, decoder.columns, pa.array(positions), rows)

    def _decoder(self, schema: WriterSchema) -> ValueDecoder | str:
        """Return the decoder of a schema, or the reason why its values cannot be decoded."""
        known = self._decoders.get(schema)
        if known is not None:
            return known
        found = self._schemas.schema(schema.id)
        if isinstance(found, str):
            return found
        try:
            self._decoders[schema] = decoder = _decoder(found, schema)
        except ImportError:  # not the schema's fault
            raise
        except Exception as error:  # libraries document no error types for schemas that they cannot use
            return unusable(schema.id, described(error))
        return decoder


def _by_message(
    values: pa.Array, positions: Integers, reasons: dict[int, str]
) -> dict[tuple[int, ...], Integers]:
    """Return the positions of Protobuf values by their messages, which are not the first one as a rule."""
    messages: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for position in positions.tolist():
        value = unframed(values[position].as_py())
        assert value is not None, "it has a schema id"
        try:
            messages[tuple(read_message_indexes(value.body)[0])].append(position)
        except MalformedValue as error:
            reasons[position] = f"the value is not Protobuf: {error}"
    return {indexes: np.array(selected) for indexes, selected in messages.items()}


def _decoder(found: RegisteredSchema, schema: WriterSchema) -> ValueDecoder:
    """:raises SchemaError: The schema has a type that no column can have, or no such message."""
    frame = Frame(True, schema.id)
    # only schemas of a type need its library
    match found.type:
        case SchemaType.AVRO:
            from barnabas.codecs.avro import AvroCodec

            return AvroCodec(standalone_schema(found.parsed).decode(), frame)
        case SchemaType.JSON:
            from barnabas.codecs.json_schema import JsonSchemaDecoder
            from barnabas.registry.json_schema.schema import JsonSchema

            assert isinstance(found.parsed, JsonSchema)
            return JsonSchemaDecoder(found.parsed, frame)
        case SchemaType.PROTOBUF:
            from barnabas.codecs.protobuf import ProtobufCodec, message_name
            from barnabas.registry.protobuf.schema import ProtobufSchema

            assert isinstance(found.parsed, ProtobufSchema)
            name = message_name(found.parsed.descriptor, schema.message_indexes)
            if name is None:
                indexes = ".".join(map(str, schema.message_indexes))
                raise SchemaError(f"it has no message {indexes}")
            return ProtobufCodec(standalone_schema(found.parsed), name, frame)
