"""The client of a registry."""

import json
from pathlib import Path

import pytest

from barnabas.registry.avro.schema import AvroSchema
from barnabas.registry.client import RegistryClient, RegistryUnavailable
from barnabas.registry.errors import RegistryError
from barnabas.registry.serving import RegistryServer
from barnabas.registry.standalone import standalone_schema
from barnabas.testing import EmbeddedBroker
from support.registries import RestClient, avro_record, running_registry


def test_schemas_are_fetched_by_id_and_by_subject(registry: RegistryServer, rest: RestClient) -> None:
    schema_id = rest.register("client%2Fs", avro_record("R", "a"))["id"]
    client = RegistryClient(f"{registry.url}/")
    found = client.version("client/s")
    assert (found.id, found.schema.text) == (schema_id, avro_record("R", "a"))
    assert client.by_id(schema_id) == found
    with pytest.raises(RegistryError, match="Subject 'none' not found") as missing:
        client.version("none")
    assert missing.value.code == 40401


def test_references_are_fetched_too(registry: RegistryServer, rest: RestClient) -> None:
    rest.register("client-item", avro_record("Item", "a"))
    text = json.dumps({"type": "array", "items": "Item"})
    reference = {"name": "Item", "subject": "client-item", "version": 1}
    rest.register("client-items", text, references=[reference])
    client = RegistryClient(registry.url)
    schema = client.version("client-items").schema
    parsed = client.parsed(schema)
    assert isinstance(parsed, AvroSchema)
    assert parsed.canonical == text.replace(" ", "")
    assert json.loads(standalone_schema(parsed))["items"]["name"] == "Item"


def test_the_name_and_password_of_the_url_are_sent(broker: EmbeddedBroker, tmp_path: Path) -> None:
    (tmp_path / "users").write_text("a b=p@ss:word\n")
    with running_registry(broker.bootstrap, users_file=str(tmp_path / "users")) as server:
        address = server.url.removeprefix("http://")
        client = RegistryClient(f"http://a%20b:p%40ss%3Aword@{address}")
        assert client.url == server.url
        with pytest.raises(RegistryError, match="Subject 'none' not found"):
            client.version("none")
        with pytest.raises(RegistryError, match="Unauthorized"):
            RegistryClient(server.url).version("none")


def test_a_registry_that_does_not_respond_is_reported_without_the_password() -> None:
    with pytest.raises(RegistryUnavailable, match=r"at http://127\.0\.0\.1:1 does not respond"):
        RegistryClient("http://user:secret@127.0.0.1:1").by_id(1)
    with pytest.raises(ValueError, match=r"'127\.0\.0\.1:8081' is not the URL of a registry"):
        RegistryClient("127.0.0.1:8081")
