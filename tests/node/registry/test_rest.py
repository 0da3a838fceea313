"""The REST API: status codes, error codes and entities of Confluent's registry."""

import json
import socket
from typing import Any
from urllib.parse import urlsplit

import pytest

from barnabas.registry import app
from barnabas.registry.serving import RegistryServer
from support.registries import RestClient, avro_record

A, B, C = avro_record("R", "a"), avro_record("R", "a", "b?"), avro_record("R", "a", "b")


def code_of(response: Any) -> int:
    assert set(response) == {"error_code", "message"}, response
    code: int = response["error_code"]
    return code


def test_a_schema_is_registered_once_and_has_one_id_in_all_subjects(rest: RestClient) -> None:
    schema_id = rest.register("once-1", A)["id"]
    assert rest.register("once-1", A)["id"] == schema_id
    assert rest.register("once-2", f" {A}\n")["id"] == schema_id
    assert rest.get("/subjects/once-1/versions") == [1]
    assert rest.get(f"/schemas/ids/{schema_id}") == {"schema": A}
    assert rest.get(f"/schemas/ids/{schema_id}/subjects") == ["once-1", "once-2"]
    assert rest.get(f"/schemas/ids/{schema_id}/versions") == [
        {"subject": "once-1", "version": 1},
        {"subject": "once-2", "version": 1},
    ]
    assert rest.send("GET", f"/schemas/ids/{schema_id}/schema").text == A


def test_versions_count_up_and_latest_is_the_last(rest: RestClient) -> None:
    first, second = rest.register("versions", A)["id"], rest.register("versions", B)["id"]
    assert second > first
    assert rest.get("/subjects/versions/versions") == [1, 2]
    expected = {"subject": "versions", "version": 2, "id": second, "schema": B}
    assert rest.get("/subjects/versions/versions/2") == expected
    assert rest.get("/subjects/versions/versions/latest") == expected
    assert rest.get("/subjects/versions/versions/-1") == expected
    assert rest.send("GET", "/subjects/versions/versions/1/schema").text == A
    assert rest.get("/schemas?subjectPrefix=versions&latestOnly=true") == [expected]


def test_a_look_up_finds_the_version_with_a_schema(rest: RestClient) -> None:
    schema_id = rest.register("look-up", A)["id"]
    found = rest.post("/subjects/look-up", {"schema": A})
    assert found == {"subject": "look-up", "version": 1, "id": schema_id, "schema": A}
    assert code_of(rest.post("/subjects/look-up", {"schema": B})) == 40403
    assert code_of(rest.post("/subjects/look-up-none", {"schema": A})) == 40401


def test_subjects_may_contain_slashes_and_spaces(rest: RestClient) -> None:
    rest.register("a%2Fb%20c", A)
    assert rest.get("/subjects?subjectPrefix=a/") == ["a/b c"]
    assert rest.get("/subjects/a%2Fb%20c/versions/1")["subject"] == "a/b c"
    assert rest.delete("/subjects/a%2Fb%20c") == [1]


def test_responses_have_the_content_type_of_the_api(rest: RestClient) -> None:
    response = rest.send("GET", "/subjects")
    assert response.headers["content-type"] == "application/vnd.schemaregistry.v1+json"
    response = rest.send("GET", "/subjects", headers={"Accept": "application/json"})
    assert response.headers["content-type"] == "application/json"
    response = rest.send("GET", "/subjects", headers={"Accept": "text/html"})
    assert (response.status_code, response.json()["error_code"]) == (406, 406)


@pytest.mark.parametrize("path", ["/config/", "/subjects/", "/subjects/slash/versions/", "/schemas/types/"])
def test_addresses_may_end_with_a_slash(rest: RestClient, path: str) -> None:
    rest.register("slash", A)
    assert rest.get(path) == rest.get(path.removesuffix("/"))


@pytest.mark.parametrize(
    ("method", "path", "body", "code"),
    [
        ("GET", "/subjects/none/versions", None, 40401),
        ("GET", "/subjects/none/versions/1", None, 40401),
        ("GET", "/subjects/errors/versions/9", None, 40402),
        ("GET", "/subjects/errors/versions/zero", None, 42202),
        ("GET", "/subjects/errors/versions/0", None, 42202),
        ("GET", "/schemas/ids/99999", None, 40403),
        ("GET", "/config/errors", None, 40408),
        ("GET", "/mode/errors", None, 40409),
        ("DELETE", "/config/errors", None, 40401),
        ("DELETE", "/subjects/none", None, 40401),
        ("DELETE", "/subjects/errors?permanent=true", None, 40405),
        ("DELETE", "/subjects/errors/versions/9", None, 40402),
        ("DELETE", "/subjects/errors/versions/1?permanent=true", None, 40407),
        ("PUT", "/config", {"compatibility": "SOME"}, 42203),
        ("PUT", "/config", {"compatibilityGroup": "a"}, 422),
        ("PUT", "/mode", {"mode": "SOME"}, 42204),
        ("POST", "/subjects/errors/versions", {"schema": "{"}, 42201),
        ("POST", "/subjects/errors/versions", {"schema": ""}, 42201),
        ("POST", "/subjects/errors/versions", {"schema": A, "schemaType": "XML"}, 42201),
        ("POST", "/subjects/errors/versions", {"schema": C}, 409),
        ("POST", "/subjects/errors/versions", {"schema": B, "id": 77}, 42205),
        ("POST", "/subjects/errors/versions", {"schema": B, "version": 7}, 42201),
        ("POST", "/subjects/:.other:errors/versions", {"schema": A}, 42208),
        ("POST", "/compatibility/subjects/errors/versions/9", {"schema": A}, 40402),
        ("POST", "/compatibility/subjects/none/versions/1", {"schema": A}, 40402),
        ("GET", "/subjects/errors/versions/1?format=other", None, 422),
        ("GET", "/subjects?limit=many", None, 400),
        ("POST", "/subjects/errors/versions", [], 422),
        ("GET", "/nothing", None, 404),
        ("PATCH", "/subjects", None, 405),
    ],
)
def test_errors_have_the_codes_of_confluent(
    rest: RestClient, method: str, path: str, body: Any, code: int
) -> None:
    rest.register("errors", A)
    response = rest.send(method, path, body)
    assert code_of(response.json()) == code
    assert response.status_code == int(str(code)[:3])


def sent_in_part(registry: RegistryServer) -> socket.socket:
    """Return a connection on which a request has begun."""
    address = urlsplit(registry.url)
    connection = socket.create_connection((address.hostname or "", address.port or 0), timeout=10)
    head = f"POST /subjects/part/versions HTTP/1.1\r\nHost: {address.netloc}\r\nContent-Length: 10\r\n\r\n"
    connection.sendall(head.encode() + b"{")
    return connection


def test_a_request_that_does_not_end_is_given_up(
    registry: RegistryServer, rest: RestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert rest.get("/mode") == {"mode": "READWRITE"}, "the registry has started"
    monkeypatch.setattr(app, "_BODY_S", 0.2)
    with sent_in_part(registry) as connection:
        assert connection.recv(1_000).startswith(b"HTTP/1.1 408 ")


def test_a_client_that_leaves_amid_its_request_is_no_error(
    registry: RegistryServer, rest: RestClient, capfd: pytest.CaptureFixture[str]
) -> None:
    assert rest.get("/mode") == {"mode": "READWRITE"}, "the registry has started"
    sent_in_part(registry).close()
    assert rest.get("/mode") == {"mode": "READWRITE"}
    assert "failed" not in capfd.readouterr().err


DEEP = "[" * 100_000
HALF = r'{"type":"record","name":"R","doc":"\ud800","fields":[]}'


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (r'{"schema":"\"int\"","metadata":{"a":NaN}}', 400),
        (r'{"schema":"\"int\"","ruleSet":[-Infinity]}', 400),
        (r'{"schema":"\"int\"","metadata":{"a":1e999}}', 42201),
        (r'{"schema":"\"int\"","references":[{"name":"a","subject":"s","version":1e999}]}', 42201),
        (r'{"schema":"\"int\"","references":[{"name":"a","subject":"\ud800","version":1}]}', 400),
        (r'{"schema":"\"int\"","id":2147483648}', 422),
        (r'{"schema":"\ud800"}', 400),
        (json.dumps({"schema": HALF}), 42201),
        (json.dumps({"schema": HALF, "schemaType": "JSON"}), 42201),
        (json.dumps({"schema": r'{"type":"\ud800"}'}), 42201),
        (json.dumps({"schema": DEEP}), 42201),
        (f'{{"schema":{DEEP}', 400),
    ],
)
def test_values_that_java_cannot_have_are_refused(rest: RestClient, body: str, code: int) -> None:
    headers = {"Content-Type": "application/json"}
    for path in ("/subjects/values/versions", "/compatibility/subjects/values/versions", "/subjects/errors"):
        rest.register("errors", A)
        response = rest.send("POST", path, None, content=body.encode(), headers=headers)
        assert code_of(response.json()) == code
        assert response.status_code == int(str(code)[:3])
    assert "values" not in rest.get("/subjects")


def test_a_form_of_a_browser_is_refused(registry: RegistryServer, rest: RestClient) -> None:
    response = rest.send(
        "POST", "/subjects/form/versions", None, content=b"{}", headers={"Content-Type": "text/plain"}
    )
    assert response.status_code == 415


@pytest.mark.parametrize(
    "headers", [{"Origin": "http://other.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}]
)
def test_a_page_of_another_site_changes_nothing(rest: RestClient, headers: dict[str, str]) -> None:
    body = json.dumps({"schema": A}).encode()
    response = rest.send("POST", "/subjects/page/versions", None, content=body, headers=headers)
    assert (response.status_code, code_of(response.json())) == (403, 403)
    assert "page" not in rest.get("/subjects")
    assert rest.send("GET", "/subjects", headers=headers).status_code == 200


def test_a_deleted_version_keeps_its_id_until_it_is_deleted_permanently(rest: RestClient) -> None:
    schema_id = rest.register("deleted", avro_record("Deleted", "a"))["id"]
    assert rest.delete("/subjects/deleted/versions/1") == 1
    assert code_of(rest.delete("/subjects/deleted/versions/1")) == 40406
    assert code_of(rest.get("/subjects/deleted/versions/1")) == 40401
    assert rest.get("/subjects/deleted/versions/1?deleted=true")["id"] == schema_id
    assert rest.get("/subjects/deleted/versions?deletedOnly=true") == [1]
    assert "schema" in rest.get(f"/schemas/ids/{schema_id}")
    assert rest.get(f"/schemas/ids/{schema_id}/subjects") == []
    assert rest.delete("/subjects/deleted/versions/1?permanent=true") == 1
    assert code_of(rest.get(f"/schemas/ids/{schema_id}")) == 40403


def test_latest_is_the_last_version_that_is_not_deleted(rest: RestClient) -> None:
    rest.register("latest", A)
    rest.register("latest", B)
    assert rest.delete("/subjects/latest/versions/2") == 2
    assert rest.get("/subjects/latest/versions/latest?deleted=true")["version"] == 1
    assert code_of(rest.delete("/subjects/latest/versions/latest?permanent=true")) == 40407
    assert rest.delete("/subjects/latest/versions/latest") == 1
    assert code_of(rest.delete("/subjects/latest/versions/latest")) == 40402
    assert code_of(rest.get("/subjects/latest/versions/latest?deleted=true")) == 40402
    assert code_of(rest.get("/subjects/latest/versions/latest")) == 40401


def test_a_schema_that_is_registered_again_keeps_its_id_and_gets_a_new_version(rest: RestClient) -> None:
    schema_id = rest.register("again", A)["id"]
    assert rest.delete("/subjects/again") == [1]
    assert code_of(rest.delete("/subjects/again")) == 40404
    assert "again" not in rest.get("/subjects")
    assert "again" in rest.get("/subjects?deleted=true")
    assert rest.register("again", A)["id"] == schema_id
    assert rest.get("/subjects/again/versions?deleted=true") == [2]


def test_a_schema_that_others_refer_to_cannot_be_deleted(rest: RestClient) -> None:
    rest.register("referred", avro_record("shop.Item", "a"))
    text = '{"type":"record","name":"shop.Order","fields":[{"name":"item","type":"shop.Item"}]}'
    references = [{"name": "shop.Item", "subject": "referred", "version": -1}]
    schema_id = rest.register("referring", text, references=references)["id"]
    assert rest.get(f"/schemas/ids/{schema_id}")["references"] == [{**references[0], "version": 1}]
    assert rest.get("/subjects/referred/versions/1/referencedby") == [schema_id]
    resolved = json.loads(rest.get(f"/schemas/ids/{schema_id}?format=resolved")["schema"])
    assert resolved["fields"][0]["type"]["name"] == "Item"
    assert code_of(rest.delete("/subjects/referred/versions/1")) == 42206
    assert code_of(rest.delete("/subjects/referred")) == 42206
    assert rest.delete("/subjects/referring") == [1]
    assert rest.delete("/subjects/referred") == [1]


def test_an_unknown_reference_is_reported(rest: RestClient) -> None:
    references = [{"name": "x.json", "subject": "missing", "version": 3}]
    refused = rest.register(
        "unknown-reference", '{"$ref":"x.json"}', schemaType="JSON", references=references
    )
    assert code_of(refused) == 42201
    assert "subject 'missing', version 3" in refused["message"]


def test_levels_apply_to_a_subject_or_to_all(rest: RestClient) -> None:
    assert rest.get("/config") == {"compatibilityLevel": "BACKWARD"}
    rest.register("levels", A)
    assert rest.put("/config/levels", {"compatibility": "none"}) == {"compatibility": "NONE"}
    assert rest.get("/config/levels") == {"compatibilityLevel": "NONE"}
    assert "id" in rest.register("levels", C)
    assert rest.delete("/config/levels") == {"compatibilityLevel": "NONE"}
    assert rest.get("/config/levels?defaultToGlobal=true") == {"compatibilityLevel": "BACKWARD"}


def test_a_check_explains_itself_if_asked(rest: RestClient) -> None:
    rest.register("checked", A)
    path = "/compatibility/subjects/checked/versions"
    assert rest.post(f"{path}/latest", {"schema": B}) == {"is_compatible": True}
    checked = rest.post(f"{path}?verbose=true", {"schema": C})
    assert checked["is_compatible"] is False
    assert "READER_FIELD_MISSING_DEFAULT_VALUE" in checked["messages"][0]
    for path in ("unchecked/versions", "unchecked/versions/latest"):
        assert rest.post(f"/compatibility/subjects/{path}", {"schema": C}) == {"is_compatible": True}


def test_transitive_levels_compare_all_versions(rest: RestClient) -> None:
    first, second, third = (avro_record("R", *fields) for fields in (("a",), ("a", "b?"), ("a", "b")))
    for level, is_compatible in (("BACKWARD", True), ("BACKWARD_TRANSITIVE", False)):
        subject = f"transitive-{level}"
        rest.register(subject, first)
        rest.register(subject, second)
        rest.put(f"/config/{subject}", {"compatibility": level})
        assert ("id" in rest.register(subject, third)) is is_compatible


def test_modes_refuse_changes_and_imports_keep_ids(rest: RestClient) -> None:
    rest.register("modes", A)
    assert rest.put("/mode/modes", {"mode": "READONLY"}) == {"mode": "READONLY"}
    assert code_of(rest.register("modes", B)) == 42205
    assert "id" in rest.register("modes", A)
    assert rest.delete("/mode/modes") == {"mode": "READONLY"}
    assert code_of(rest.put("/mode/modes", {"mode": "IMPORT"})) == 42205
    assert rest.put("/mode/imported", {"mode": "IMPORT"}) == {"mode": "IMPORT"}
    imported = avro_record("Imported", "a")
    assert rest.register("imported", imported, id=4711, version=5) == {"id": 4711}
    assert rest.get("/subjects/imported/versions/5")["id"] == 4711
    assert rest.get("/mode") == {"mode": "READWRITE"}


def test_normalized_schemas_are_equal_in_any_order(rest: RestClient) -> None:
    one, other = {"type": "object", "title": "T"}, {"title": "T", "type": "object"}
    ids = {
        rest.post(
            "/subjects/ordered/versions?normalize=true", {"schema": json.dumps(each), "schemaType": "JSON"}
        )["id"]
        for each in (one, other)
    }
    assert len(ids) == 1
    rest.put("/config/always", {"normalize": True})
    always = {rest.register("always", json.dumps(each), schemaType="JSON")["id"] for each in (one, other)}
    assert always == ids


def test_protobuf_can_be_returned_as_a_descriptor(rest: RestClient) -> None:
    text = 'syntax = "proto3";\n\nmessage A {\n  string a = 1;\n}\n'
    schema_id = rest.register("descriptor", text, schemaType="PROTOBUF")["id"]
    assert rest.get(f"/schemas/ids/{schema_id}") == {"schemaType": "PROTOBUF", "schema": text}
    serialized = rest.get(f"/schemas/ids/{schema_id}?format=serialized")["schema"]
    assert rest.register("descriptor", serialized, schemaType="PROTOBUF")["id"] == schema_id


def test_metadata_and_rules_of_clients_are_kept(rest: RestClient) -> None:
    rules = {
        "domainRules": [{"name": "r", "kind": "CONDITION", "type": "CEL", "mode": "WRITE", "expr": "true"}]
    }
    fields = {"metadata": {"properties": {"owner": "me"}}, "ruleSet": rules}
    schema_id = rest.register("kept", A, **fields)["id"]
    assert rest.get(f"/schemas/ids/{schema_id}") == {"schema": A, **fields}
    assert rest.register("kept", A)["id"] == schema_id, "it inherits them"
    assert rest.post("/subjects/kept", {"schema": A})["id"] == schema_id
    assert rest.register("kept", A, metadata={})["id"] != schema_id
    assert rest.register("not-kept", A)["id"] != schema_id


def test_the_last_version_with_properties_is_found(rest: RestClient) -> None:
    path = "/subjects/described/metadata"
    assert code_of(rest.get(path)) == 40401
    rest.register("described", A, metadata={"properties": {"owner": "me", "tier": "gold"}})
    rest.register("described", B, metadata={"properties": {"owner": "me", "tier": "tin"}})
    rest.register("described", avro_record("R", "a", "c?"), metadata=["of another form"])
    assert rest.get(f"{path}?key=owner&value=me")["version"] == 2
    assert rest.get(f"{path}?key=owner&value=me&key=tier&value=gold")["version"] == 1
    assert code_of(rest.get(f"{path}?key=owner&value=you")) == 40403
    rest.delete("/subjects/described/versions/2")
    assert rest.get(f"{path}?key=owner&value=me")["version"] == 1
    assert rest.get(f"{path}?key=owner&value=me&deleted=true")["version"] == 2
