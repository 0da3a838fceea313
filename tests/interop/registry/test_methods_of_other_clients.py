"""Registry clients for Node and Go understand all responses, and see errors as Confluent's registry has them."""

from collections.abc import Callable
from typing import Any

import pytest
from interop.clients import Client, ClientError

from support.registries import avro_record

ClientNamed = Callable[[str], Client]

ORDER, WITH_DEFAULT, INCOMPATIBLE = (
    {"type": "AVRO", "text": avro_record("Order", *fields)}
    for fields in (("id",), ("id", "count?"), ("id", "count"))
)
PROTO = {"type": "PROTOBUF", "text": 'syntax = "proto3"; message Order { int64 id = 1; }'}


def refused(client: Client, operation: str, **arguments: Any) -> str:
    """Return the name of the error."""
    with pytest.raises(ClientError) as error:
        client.do(operation, **arguments)
    return error.value.name


@pytest.fixture
def sr(client_named: ClientNamed) -> Client:
    return client_named("sr")


def test_sr_registers_and_lists_versions(sr: Client) -> None:
    first = sr.do("register", subject="versions", schema=ORDER)
    second = sr.do("register", subject="versions", schema=WITH_DEFAULT)
    assert (first["version"], second["version"]) == (1, 2)
    assert sr.do("register", subject="versions", schema=ORDER) == first
    assert sr.do("look_up", subject="versions", schema=ORDER) == first
    assert sr.do("version", subject="versions", version=-1) == second
    assert sr.do("text", subject="versions", version=1) == ORDER["text"]
    sr.do("register", subject="versions/other", schema=ORDER)
    assert sr.do("versions", subject="versions/other") == [1]
    assert sr.do("usages", subject="versions", version=1) == ["versions", "versions/other"]
    assert sr.do("schemas", subject="versions") == ["versions 2", "versions/other 1"]
    assert sr.do("register", subject="versions-proto", schema=PROTO)["type"] == "PROTOBUF"
    assert sr.do("types") == ["AVRO", "PROTOBUF", "JSON"]


def test_sr_compares_schemas(sr: Client) -> None:
    sr.do("register", subject="compared", schema=ORDER)
    assert sr.do("is_compatible", subject="compared", version=-1, schema=WITH_DEFAULT)["is"]
    for version in (1, -1, -2):
        found = sr.do("is_compatible", subject="compared", version=version, schema=INCOMPATIBLE)
        assert not found["is"]
        assert "READER_FIELD_MISSING_DEFAULT_VALUE" in found["messages"][0]
    assert refused(sr, "register", subject="compared", schema=INCOMPATIBLE) == "INCOMPATIBLE_SCHEMA"
    assert (
        refused(sr, "register", subject="compared", schema={"type": "AVRO", "text": "{"}) == "INVALID_SCHEMA"
    )


def test_sr_sets_levels_and_modes(sr: Client) -> None:
    sr.do("register", subject="settings", schema=ORDER)
    not_configured = "SUBJECT_LEVEL_COMPATIBILITY_NOT_CONFIGURED"
    assert refused(sr, "level", subject="settings") == not_configured
    assert sr.do("level") == "BACKWARD"
    assert sr.do("set_level", subject="settings", level="NONE") == "NONE"
    assert sr.do("level", subject="settings") == "NONE"
    sr.do("register", subject="settings", schema=INCOMPATIBLE)
    sr.do("reset_level", subject="settings")
    assert refused(sr, "level", subject="settings") == not_configured
    assert sr.do("mode") == "READWRITE"
    assert refused(sr, "mode", subject="settings") == "SUBJECT_LEVEL_MODE_NOT_CONFIGURED"
    assert sr.do("set_mode", subject="settings", mode="READONLY") == "READONLY"
    assert refused(sr, "register", subject="settings", schema=WITH_DEFAULT) == "OPERATION_NOT_PERMITTED"
    assert refused(sr, "set_mode", subject="settings", mode="IMPORT") == "OPERATION_NOT_PERMITTED"
    assert sr.do("reset_mode", subject="settings") == "READONLY"
    assert refused(sr, "mode", subject="settings") == "SUBJECT_LEVEL_MODE_NOT_CONFIGURED"


def test_sr_deletes_softly_then_for_good(sr: Client) -> None:
    sr.do("register", subject="deleted", schema=ORDER)
    sr.do("register", subject="deleted", schema=WITH_DEFAULT)
    assert (
        refused(sr, "delete_version", subject="deleted", version=1, permanent=True)
        == "SCHEMA_VERSION_NOT_SOFT_DELETED"
    )
    sr.do("delete_version", subject="deleted", version=1)
    assert refused(sr, "delete_version", subject="deleted", version=1) == "SCHEMA_VERSION_SOFT_DELETED"
    assert sr.do("versions", subject="deleted") == [2]
    assert sr.do("versions", subject="deleted", deleted=True) == [1, 2]
    assert refused(sr, "version", subject="deleted", version=1) == "VERSION_NOT_FOUND"
    sr.do("delete_version", subject="deleted", version=1, permanent=True)
    assert refused(sr, "delete_subject", subject="deleted", permanent=True) == "SUBJECT_NOT_SOFT_DELETED"
    assert sr.do("delete_subject", subject="deleted") == [2]
    assert refused(sr, "delete_subject", subject="deleted") == "SUBJECT_SOFT_DELETED"
    assert "deleted" not in sr.do("subjects")
    assert "deleted" in sr.do("subjects", deleted=True)
    assert sr.do("delete_subject", subject="deleted", permanent=True) == [2]
    assert refused(sr, "versions", subject="deleted") == "SUBJECT_NOT_FOUND"


def test_sr_follows_references(sr: Client) -> None:
    item = {"type": "AVRO", "text": avro_record("Item", "sku")}
    sr.do("register", subject="referred", schema=item)
    basket = {
        "type": "AVRO",
        "text": '{"type":"record","name":"Basket","fields":[{"name":"item","type":"Item"}]}',
        "references": [{"name": "Item", "subject": "referred", "version": 1}],
    }
    sr.do("register", subject="referring", schema=basket)
    assert sr.do("referrers", subject="referred", version=1) == ["referring 1"]
    assert refused(sr, "delete_version", subject="referred", version=1) == "REFERENCE_EXISTS"
    assert refused(sr, "delete_subject", subject="referred") == "REFERENCE_EXISTS"
    sr.do("delete_subject", subject="referring")
    assert sr.do("delete_subject", subject="referred") == [1]


def test_srclient(client_named: ClientNamed) -> None:
    client = client_named("srclient")
    schema_id = client.do("register", subject="srclient", schema=ORDER)
    assert client.do("look_up", subject="srclient", schema=ORDER) == {"id": schema_id, "version": 1}
    assert client.do("latest", subject="srclient") == {"id": schema_id, "version": 1}
    assert client.do("is_compatible", subject="srclient", schema=WITH_DEFAULT)
    assert not client.do("is_compatible", subject="srclient", schema=INCOMPATIBLE)
    assert refused(client, "register", subject="srclient", schema=INCOMPATIBLE) == "409"
    assert client.do("level", subject="srclient") == "BACKWARD"
    assert client.do("set_level", subject="srclient", level="NONE") == "NONE"
    client.do("register", subject="srclient", schema=INCOMPATIBLE)
    assert client.do("versions", subject="srclient") == [1, 2]
    client.do("delete_version", subject="srclient", version=1, permanent=True)
    assert client.do("versions", subject="srclient") == [2]
    client.do("delete_subject", subject="srclient", permanent=True)
    assert refused(client, "versions", subject="srclient") == "40401"
    assert "srclient" not in client.do("subjects", deleted=True)


def test_kafkajs(client_named: ClientNamed) -> None:
    client = client_named("kafkajs")
    first = client.do("register", subject="kafkajs", schema=ORDER, level="FORWARD")
    assert client.do("latest", subject="kafkajs") == first
    assert client.do("version", subject="kafkajs", version=1) == first
    assert client.do("look_up", subject="kafkajs", schema=ORDER) == first
    with pytest.raises(ClientError, match="Compatibility does not match the configuration"):
        client.do("register", subject="kafkajs", schema=WITH_DEFAULT, level="FULL")
    with pytest.raises(ClientError, match="incompatible with an earlier schema"):
        client.do(
            "register",
            subject="kafkajs",
            schema={**ORDER, "text": avro_record("Order", "n")},
            level="FORWARD",
        )
    client.do("register", subject="kafkajs", schema=INCOMPATIBLE, level="FORWARD")
    with pytest.raises(ClientError, match="Schema not found"):
        client.do("look_up", subject="kafkajs", schema=WITH_DEFAULT)
    with pytest.raises(ClientError, match="Subject 'unknown' not found"):
        client.do("latest", subject="unknown")
