"""`barnabas produce` and `barnabas consume` with a schema registry."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from barnabas.cli.main import app
from barnabas.registry.serving import RegistryServer
from barnabas.testing import EmbeddedBroker
from support.registries import RestClient, avro_record

Command = Callable[..., Result]

JSON_SCHEMA = '{"type":"object","properties":{"id":{"type":"integer"}},"required":["id"]}'
PROTO = 'syntax = "proto3"; package shop; message Key { string id = 1; } message Order { int64 id = 1; }'


@pytest.fixture
def run(broker: EmbeddedBroker, registry: RegistryServer) -> Command:
    """Return a function that runs a command with the registry."""

    def invoke(*arguments: str, url: str = registry.url) -> Result:
        environment = {"BARNABAS_BOOTSTRAP": broker.bootstrap}
        return CliRunner().invoke(app, [*arguments, "--registry", url], env=environment)

    return invoke


@pytest.fixture
def produce(run: Command, tmp_path: Path) -> Command:
    def invoke(topic: str, lines: str, *arguments: str) -> Result:
        (tmp_path / "lines").write_text(lines)
        return run("produce", topic, "--file", str(tmp_path / "lines"), *arguments)

    return invoke


def consume(run: Command, topic: str, *arguments: str) -> str:
    result = run("consume", topic, "--from-beginning", "--exit-at-end", *arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.parametrize(
    ("kind", "schema", "line"),
    [
        ("AVRO", avro_record("Order", "id"), '{"id": 7}'),
        ("JSON", JSON_SCHEMA, '{"id": 7}'),
        ("PROTOBUF", 'syntax = "proto3"; message Order { int32 id = 1; }', '{"id": 7}'),
    ],
)
def test_json_lines_are_encoded_by_a_schema_and_decoded_by_their_id(
    rest: RestClient, run: Command, produce: Command, kind: str, schema: str, line: str
) -> None:
    schema_id = rest.register(f"lines-{kind}-value", schema, schemaType=kind)["id"]
    assert produce(f"lines-{kind}", f"{line}\n").exit_code == 0
    assert consume(run, f"lines-{kind}") == f"{line}\n"
    record = json.loads(consume(run, f"lines-{kind}", "--json"))
    assert (record["value"], record["value_schema_id"]) == (json.loads(line), schema_id)


def test_lines_that_do_not_fit_are_reported_and_the_others_arrive(
    rest: RestClient, run: Command, produce: Command
) -> None:
    rest.register("checked-value", avro_record("Order", "id"))
    result = produce("checked", '{"id": 1}\n{"id": "two"}\nthree\n{"id": 4}\n')
    assert result.exit_code == 1
    assert "line 2: INVALID_RECORD: the value does not fit schema" in result.stderr
    assert "id: 'two' is not a int" in result.stderr
    assert "line 3: INVALID_RECORD" in result.stderr
    assert consume(run, "checked") == '{"id": 1}\n{"id": 4}\n'


def test_keys_and_messages_have_their_own_subjects(rest: RestClient, run: Command, produce: Command) -> None:
    rest.register("keys", '"long"')
    rest.register("orders", PROTO, schemaType="PROTOBUF")
    options = ["--subject", "orders", "--message", "Order", "--key-separator", "|", "--key-subject", "keys"]
    assert produce("keyed", '5|{"id": "7"}\n', *options).exit_code == 0
    assert consume(run, "keyed", "--format", "%k %s\\n") == '5 {"id": "7"}\n'


def test_an_unknown_subject_is_exit_code_3(produce: Command) -> None:
    result = produce("unregistered", "{}\n")
    assert result.exit_code == 3
    assert "subject 'unregistered-value': Subject 'unregistered-value' not found." in result.stderr


def test_options_of_subjects_need_a_registry(broker: EmbeddedBroker, tmp_path: Path) -> None:
    (tmp_path / "lines").write_text("{}\n")
    command = ["produce", "t", "--file", str(tmp_path / "lines"), "--subject", "s"]
    result = CliRunner().invoke(app, command, env={"BARNABAS_BOOTSTRAP": broker.bootstrap})
    assert result.exit_code == 2
    assert "--registry URL" in result.stderr


def test_what_cannot_be_decoded_is_printed_as_it_is(broker: EmbeddedBroker, run: Command) -> None:
    broker.create_topic("raw")
    for value in (b"plain", b"\0\0\0\x27\x0f?", b"plain"):
        broker.produce("raw", value)
    result = run("consume", "raw", "--from-beginning", "--exit-at-end")
    assert result.stdout_bytes == b"plain\n\0\0\0\x27\x0f?\nplain\n"
    assert result.stderr.count("warning: not decoded: schema 9999: Schema 9999 not found") == 1


def test_a_registry_that_does_not_respond_is_reported_once(broker: EmbeddedBroker, run: Command) -> None:
    broker.create_topic("unanswered")
    for schema_id in (1, 2):
        broker.produce("unanswered", b"\0" + schema_id.to_bytes(4, "big"))
    result = run("consume", "unanswered", "--from-beginning", "--exit-at-end", url="http://127.0.0.1:1")
    assert result.exit_code == 0
    assert result.stderr.count("does not respond") == 1


def test_producing_without_the_registry_fails_as_unreachable(
    produce: Command, run: Command, tmp_path: Path
) -> None:
    (tmp_path / "lines").write_text("{}\n")
    result = run("produce", "t", "--file", str(tmp_path / "lines"), url="http://127.0.0.1:1")
    assert result.exit_code == 5
    assert "start a schema registry with 'barnabas registry'" in result.stderr
