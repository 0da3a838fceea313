"""Random pairs of schemas: what is compatible can be read, and canonical forms stay as they are."""

import json
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from barnabas.registry.avro.model import AvroType
from barnabas.registry.avro.schema import AvroSchema
from barnabas.registry.codecs.avro_reader import read_avro
from barnabas.registry.codecs.avro_resolution import translate_avro
from barnabas.registry.codecs.avro_writer import write_avro
from barnabas.registry.schemas import InvalidSchema
from support.avro_schemas import SCHEMAS

SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "null": st.none(),
    "boolean": st.booleans(),
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32, allow_nan=False, allow_infinity=False),
    "double": st.floats(allow_nan=False, allow_infinity=False),
    "bytes": st.text(st.characters(max_codepoint=127), max_size=3),
    "string": st.text(max_size=3),
}


def values_of(schema: AvroType) -> st.SearchStrategy[Any]:
    """Return values in Avro's JSON encoding."""
    if schema.kind == "enum":
        return st.sampled_from(schema.symbols)
    if schema.kind == "union":
        branches = (
            values_of(branch).map(
                lambda value, name=branch.full_name: None if name == "null" else {name: value}
            )
            for branch in schema.branches
        )
        return st.one_of(*branches)
    if schema.items is not None:
        items = values_of(schema.items)
        return (
            st.lists(items, max_size=2)
            if schema.kind == "array"
            else st.dictionaries(st.text(max_size=2), items, max_size=2)
        )
    if schema.kind == "record":
        return st.fixed_dictionaries({field.name: values_of(field.type) for field in schema.fields})
    return SCALARS[schema.kind]


def parsed(schema: Any) -> AvroSchema:
    try:
        return AvroSchema.parse(json.dumps(schema), {}, is_new=True)
    except InvalidSchema:
        assume(False)
        raise


@settings(max_examples=200)
@given(SCHEMAS, SCHEMAS, st.data())
def test_a_compatible_reader_reads_every_value(reader: Any, writer: Any, data: st.DataObject) -> None:
    schemas = parsed(reader), parsed(writer)
    value = data.draw(values_of(schemas[1].root))
    encoded = write_avro(schemas[1].root, value)
    assert read_avro(schemas[1].root, encoded) == value
    if not schemas[0].problems_with(schemas[1]):
        read_avro(schemas[0].root, translate_avro(schemas[0].root, schemas[1].root, encoded))


@settings(max_examples=100)
@given(SCHEMAS)
def test_a_schema_reads_its_own_values_and_keeps_its_canonical_form(schema: Any) -> None:
    first = parsed(schema)
    again = parsed(json.loads(first.canonical))
    assert again.canonical == first.canonical
    assert first.problems_with(again) == []
