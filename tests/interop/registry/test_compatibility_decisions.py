"""Decisions on compatibility beside those of Confluent's library, on random pairs of schemas."""

import json
from typing import Any

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from interop.clients import Client

from barnabas.registry.avro.schema import AvroSchema
from barnabas.registry.protobuf.schema import ProtobufSchema
from barnabas.registry.schemas import InvalidSchema
from support.avro_schemas import SCHEMAS
from support.protobuf_files import protobuf_files, slightly_changed

#: What only Barnabas refuses. The library does not compare fields that move into a oneof or out of it, nor labels of
#: fixed numbers; its version is older than its checks of required fields and packages.
STRICTER = {
    "FIELD_KIND_CHANGED",
    "FIELD_NAMED_TYPE_CHANGED",
    "FIELD_NUMERIC_LABEL_CHANGED",
    "FIELD_SCALAR_KIND_CHANGED",
    "PACKAGE_CHANGED",
    "REQUIRED_FIELD_ADDED",
    "REQUIRED_FIELD_REMOVED",
}
FUNCTION_FIXTURES = [HealthCheck.function_scoped_fixture]


def refusals(java: Client, kind: str, reader: str, writer: str) -> list[str]:
    """Return what keeps the reader from reading, as Confluent's library sees it."""
    schema, earlier = ({"type": kind, "text": text} for text in (reader, writer))
    found: list[str] = java.do("decide", level="BACKWARD", schema=schema, earlier=[earlier])
    return found


@settings(max_examples=400, deadline=None, suppress_health_check=FUNCTION_FIXTURES)
@given(SCHEMAS, SCHEMAS)
def test_avro_is_decided_as_by_confluent(java: Client, reader: Any, writer: Any) -> None:
    texts = json.dumps(reader), json.dumps(writer)
    try:
        schemas = [AvroSchema.parse(text, {}, is_new=True) for text in texts]
    except InvalidSchema:
        assume(False)
    problems = schemas[0].problems_with(schemas[1])
    assert bool(problems) == bool(refusals(java, "AVRO", *texts)), problems


@settings(max_examples=400, deadline=None, suppress_health_check=[*FUNCTION_FIXTURES, HealthCheck.too_slow])
@given(protobuf_files(), protobuf_files(), st.booleans(), st.randoms(use_true_random=False))
def test_protobuf_is_decided_as_by_confluent_or_more_strictly(
    java: Client, reader: str, other: str, is_similar: bool, rng: Any
) -> None:
    writer = slightly_changed(reader, rng) if is_similar else other
    try:
        schemas = [ProtobufSchema.parse(text, {}, is_new=True) for text in (reader, writer)]
    except InvalidSchema:
        assume(False)
    problems = {problem.error for problem in schemas[0].problems_with(schemas[1])}
    refused = refusals(java, "PROTOBUF", reader, writer)
    assert problems or not refused
    assert refused or problems <= STRICTER
