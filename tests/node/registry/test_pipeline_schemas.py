"""Schemas of pipelines from a schema registry; the codecs need no Spark session."""

import pyarrow as pa
import pytest

from barnabas.codecs.columns import decoded
from barnabas.codecs.errors import ConversionError
from barnabas.registry.client import RegistryUnavailable
from barnabas.registry.codecs.framing import framed
from barnabas.registry.serving import RegistryServer
from barnabas.testing import EmbeddedBroker
from pyspark_barnabas.codecs.columns import column_types
from pyspark_barnabas.failures import FlowError
from pyspark_barnabas.pipelines.declaration import Coding, Format, RegistrySubject, Stated
from pyspark_barnabas.pipelines.schemas import codec_spec
from support.registries import RestClient, avro_record, running_registry

PROTO = 'syntax = "proto3"; package shop; import "item.proto"; message Order { int64 id = 1; Item item = 2; }'


def coding(url: str, subject: str, message: str | None = None, schema_id: int | None = None) -> Coding:
    stated = None if message is None else Stated(message, "p.yml:5")
    return Coding(Stated("", "p.yml:4"), stated, True, schema_id, RegistrySubject(url, subject))


def test_avro_is_the_latest_version_with_its_references(registry: RegistryServer, rest: RestClient) -> None:
    rest.register("spark-item", avro_record("Item", "sku"))
    text = '{"type":"record","name":"Order","fields":[{"name":"item","type":"Item"}]}'
    reference = {"name": "Item", "subject": "spark-item", "version": 1}
    schema_id = rest.register("spark-order", text, references=[reference])["id"]
    codec = codec_spec(coding(registry.url, "spark-order"), Format.AVRO).codec()
    assert column_types(codec).simpleString() == "struct<item:struct<sku:int>>"
    value = codec.encode({"item": {"sku": 7}})
    assert value == framed(schema_id, b"\x0e")
    assert codec.decode(value) == {"item": {"sku": 7}}


def test_values_of_other_versions_are_read_by_their_own_schemas(
    registry: RegistryServer, rest: RestClient
) -> None:
    first = rest.register("spark-evolved", avro_record("Order", "id", "old"))["id"]
    rest.register("spark-evolved", avro_record("Order", "count?", "id"))
    codec = codec_spec(coding(registry.url, "spark-evolved"), Format.AVRO).codec()
    assert codec.decode(framed(first, b"\x0e\x10")) == {"count": 0, "id": 7}
    with pytest.raises(ConversionError, match="whose schema cannot be used: Schema 9999 not found"):
        codec.decode(framed(9999, b"\x0e"))
    with pytest.raises(ConversionError, match=f"as a value of schema {first}, it ends too early"):
        codec.decode(framed(first, b"\x0e"))


def test_a_registry_that_has_gone_is_an_error_and_not_the_reason_of_a_dead_letter(
    broker: EmbeddedBroker,
) -> None:
    with running_registry(broker.bootstrap) as server:
        rest = RestClient(server.url)
        first = rest.register("spark-gone", avro_record("Order", "id"))["id"]
        rest.register("spark-gone", avro_record("Order", "id", "count?"))
        codec = codec_spec(coding(server.url, "spark-gone"), Format.AVRO).codec()
    with pytest.raises(RegistryUnavailable, match="does not respond"):
        decoded(codec, pa.array([framed(first, b"\x0e")]))


def test_a_schema_id_is_the_only_one_that_is_accepted(registry: RegistryServer, rest: RestClient) -> None:
    first = rest.register("spark-only", avro_record("Order", "id"))["id"]
    codec = codec_spec(coding(registry.url, "spark-only", schema_id=first), Format.AVRO).codec()
    with pytest.raises(ConversionError, match=f"its schema id is 9999, not {first}"):
        codec.decode(framed(9999, b"\x0e"))


def test_protobuf_is_the_latest_version_with_its_imports(registry: RegistryServer, rest: RestClient) -> None:
    item = 'syntax = "proto3"; package shop; message Item { string sku = 1; }'
    rest.register("item.proto", item, schemaType="PROTOBUF")
    reference = {"name": "item.proto", "subject": "item.proto", "version": 1}
    schema_id = rest.register("spark-proto", PROTO, schemaType="PROTOBUF", references=[reference])["id"]
    codec = codec_spec(coding(registry.url, "spark-proto", "shop.Order"), Format.PROTOBUF).codec()
    row = {"id": 7, "item": {"sku": "a"}}
    assert codec.decode(codec.encode(row)) == row
    assert codec.encode(row).startswith(framed(schema_id, b"\0"))


@pytest.mark.parametrize(
    ("subject", "written", "problem"),
    [
        ("spark-none", Format.AVRO, "subject spark-none: Subject 'spark-none' not found"),
        ("spark-json", Format.AVRO, "has a schema of type JSON, not avro"),
    ],
)
def test_errors_have_file_and_line(
    registry: RegistryServer, rest: RestClient, subject: str, written: Format, problem: str
) -> None:
    rest.register("spark-json", "{}", schemaType="JSON")
    with pytest.raises(FlowError, match=rf"^p\.yml:4: registry: .*{problem}"):
        codec_spec(coding(registry.url, subject), written)


def test_a_registry_that_does_not_respond_is_reported() -> None:
    with pytest.raises(FlowError, match=r"^p\.yml:4: registry: subject s: .*does not respond"):
        codec_spec(coding("http://127.0.0.1:1", "s"), Format.AVRO)
