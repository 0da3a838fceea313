"""Commands against a fake broker."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest

from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from barnabas.wire.messages.fetch import FetchRequest
from barnabas.wire.messages.list_offsets import ListOffsetsRequest
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.produce import ProduceRequest
from barnabas.wire.records.batch import read_header
from barnabas.wire.records.compression import Compression
from barnabas.wire.records.record import Record, encode_batch
from unit.cli.conftest import Run
from unit.client.fake_broker import FakeBroker
from unit.client.producer.test_producer import refused


def put(broker: FakeBroker, *values: bytes, partition: int = 0) -> None:
    for number, value in enumerate(values):
        broker.append("t", partition, encode_batch([Record(0, 1_000 + number, b"k", value, (("h", b"1"),))]))


#: A background process ignores Ctrl-C in its children by default.
COMMAND_LINE = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from barnabas.cli.main import main
main()
"""


@contextmanager
def process(broker: FakeBroker, *arguments: str, **options: Any) -> Iterator["subprocess.Popen[bytes]"]:
    """Run the command line in a process that ends with the test."""
    command = [sys.executable, "-c", COMMAND_LINE, *arguments]
    environment = os.environ | {"BARNABAS_BOOTSTRAP": broker.bootstrap}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, env=environment, **(pipes | options)) as running:
        try:
            yield running
        finally:
            running.kill()


def test_topics_are_created_listed_described_grown_and_deleted(broker: FakeBroker, run: Run) -> None:
    assert (
        run("topics", "create", "a", "b", "-p", "2", "-c", "retention.ms=1000").output
        == "a: created\nb: created\n"
    )
    assert run("topics", "list").output.split() == [
        "topic",
        "partitions",
        "replicas",
        "a",
        "2",
        "1",
        "b",
        "2",
        "1",
    ]
    described = run("topics", "describe", "a").output
    assert "retention.ms=1000" in described
    assert "segment.bytes" not in described
    assert described.splitlines()[-1].split() == ["1", "1", "1", "1", "0", "0"]
    assert run("topics", "add-partitions", "a", "--total", "3").output == "a: extended to 3 partitions\n"
    assert len(broker.topics["a"].logs) == 3
    assert run("topics", "delete", "a", "b").output == "a: deleted\nb: deleted\n"
    assert broker.topics == {}


def test_output_as_json(broker: FakeBroker, run: Run) -> None:
    broker.create("old")
    created = run("topics", "create", "new", "old", "--json")
    assert created.exit_code == 1
    new, old = json.loads(created.stdout)
    assert (new["topic"], new["error"], new["partitions"]) == ("new", None, 1)
    assert old["error"] == "TOPIC_ALREADY_EXISTS"
    assert json.loads(created.stderr)["error"] == "TOPIC_ALREADY_EXISTS"
    assert [each["topic"] for each in json.loads(run("topics", "list", "--json").stdout)] == ["new", "old"]
    (described,) = json.loads(run("topics", "describe", "old", "--json").stdout)
    assert described["partitions"][0]["latest"] == 0
    assert described["configs"] == {"retention.ms": "1000"}
    assert json.loads(run("topics", "delete", "old", "--json").stdout) == [{"topic": "old", "error": None}]


def test_each_failed_topic_is_reported(broker: FakeBroker, run: Run) -> None:
    broker.create("a")
    broker.create("b")
    created = run("topics", "create", "a", "c", "b")
    assert created.stdout == "c: created\n"
    assert [line.split("'")[1] for line in created.stderr.splitlines() if "error:" in line] == ["a", "b"]
    assert created.stderr.count("try:") == 1
    errors = run("topics", "create", "a", "d", "b", "--json").stderr.splitlines()
    assert [json.loads(line)["error"] for line in errors] == ["TOPIC_ALREADY_EXISTS"] * 2
    described = run("topics", "describe", "nope", "c")
    assert (described.exit_code, described.stdout.split()[0]) == (3, "c")
    assert "'nope' does not exist" in described.stderr


def test_existing_or_missing_topics_can_be_accepted(broker: FakeBroker, run: Run) -> None:
    broker.create("t")
    assert run("topics", "create", "t").exit_code == 1
    assert run("topics", "create", "t", "--if-not-exists").exit_code == 0
    assert run("topics", "delete", "gone").exit_code == 3
    assert run("topics", "delete", "gone", "--if-exists").exit_code == 0


def test_validate_only_changes_nothing(broker: FakeBroker, run: Run) -> None:
    assert run("topics", "create", "t", "--validate-only").output == "t: could be created\n"
    assert broker.topics == {}


@pytest.mark.parametrize(
    "arguments",
    [("topics", "describe", "nope"), ("consume", "nope"), ("metadata", "nope"), ("consume", "t", "-p", "7")],
)
def test_a_missing_resource_is_exit_code_3_with_a_hint(
    broker: FakeBroker, run: Run, arguments: tuple[str, ...]
) -> None:
    broker.create("t")
    result = run(*arguments)
    assert result.exit_code == 3
    assert "error: UNKNOWN_TOPIC_OR_PARTITION: topic" in result.stderr
    assert "try: 'barnabas topics list'" in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ("topics", "list", "--bootstrap", "nonsense:port"),
        ("topics", "create", "t", "--config", "retention"),
        ("topics", "nonsense"),
        ("produce", "t", "--acks", "7"),
        ("consume", "t", "--from-beginning", "--offset", "3"),
        ("consume", "t", "--format", "%s", "--json"),
        ("consume", "t", "--format", "%q"),
        ("consume", "t", "--since", "never"),
        ("serve", "--set", "nonsense"),
    ],
)
def test_usage_errors_are_exit_code_2(broker: FakeBroker, run: Run, arguments: tuple[str, ...]) -> None:
    broker.create("t")
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stderr


def test_an_unreachable_broker_is_exit_code_5_with_its_address(run: Run) -> None:
    result = run("topics", "list", "--bootstrap", "127.0.0.1:1")
    assert result.exit_code == 5
    assert "no connection to a broker at 127.0.0.1:1: Connection refused" in result.stderr
    assert "try: start a broker with 'barnabas serve'" in result.stderr


def test_metadata_shows_brokers_and_topics(broker: FakeBroker, run: Run) -> None:
    broker.create("t", 2)
    shown = run("metadata").output
    assert "cluster fake" in shown
    assert f"127.0.0.1:{broker.port}" in shown
    assert shown.splitlines()[-1].split() == ["t", "2", "1", "ok"]
    printed = json.loads(run("metadata", "t", "--json").stdout)
    assert printed["brokers"][0]["port"] == broker.port
    assert len(printed["topics"][0]["partitions"]) == 2


def test_a_file_is_produced_line_by_line(broker: FakeBroker, run: Run, tmp_path: Path) -> None:
    broker.create("t", 3)
    (tmp_path / "lines").write_bytes(b"k1:v1\nplain\n\nk2:a:b")
    arguments = ("--file", str(tmp_path / "lines"), "-K", ":", "-H", "h=1", "-p", "2", "-z", "gzip", "--json")
    result = run("produce", "t", *arguments)
    assert json.loads(result.stdout) == {
        "topic": "t",
        "records": 4,
        "partitions": [{"partition": 2, "records": 4, "first_offset": 0, "last_offset": 3}],
        "failed": 0,
    }
    expected = [(b"k1", b"v1"), (None, b"plain"), (None, b""), (b"k2", b"a:b")]
    assert [(record.key, record.value) for record in broker.records("t", 2)] == expected
    assert broker.records("t", 2)[0].headers == (("h", b"1"),)
    assert read_header(broker.topics["t"].logs[2]).compression is Compression.GZIP


def test_a_rejected_line_is_reported(broker: FakeBroker, run: Run, tmp_path: Path) -> None:
    broker.create("t")
    broker.answer(ProduceRequest, refused(ErrorCode.MESSAGE_TOO_LARGE))
    (tmp_path / "line").write_text("one line\n")
    result = run("produce", "t", "--file", str(tmp_path / "line"))
    assert result.exit_code == 1
    assert "error: line 1: MESSAGE_TOO_LARGE" in result.stderr
    assert "max.message.bytes" in result.stderr
    assert "error: 1 of 1 lines were not delivered" in result.stderr


def test_an_error_of_the_topic_stops_producing(broker: FakeBroker, run: Run, tmp_path: Path) -> None:
    broker.create("t")
    broker.answer(ProduceRequest, refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    (tmp_path / "lines").write_text("one\ntwo\n")
    result = run("produce", "t", "--file", str(tmp_path / "lines"), "--json")
    assert result.exit_code == 4
    [error] = [json.loads(line) for line in result.stderr.splitlines()]
    assert (error["error"], error["lines"]) == ("TOPIC_AUTHORIZATION_FAILED", [1, 2])
    assert json.loads(result.stdout)["failed"] == 2


def auto_create(setting: str) -> DescribeConfigsResponse:
    config = DescribeConfigsResourceResult(name="auto.create.topics.enable", value=setting, config_source=5)
    result = DescribeConfigsResult(resource_type=4, resource_name="1", configs=[config])
    return DescribeConfigsResponse(results=[result])


@pytest.mark.parametrize(("setting", "is_patient"), [("false", False), ("true", True), (None, True)])
def test_a_missing_topic_is_awaited_only_if_a_broker_may_create_it(
    broker: FakeBroker, run: Run, tmp_path: Path, setting: str | None, is_patient: bool
) -> None:
    if setting is not None:
        broker.serve(DescribeConfigsRequest, lambda _: auto_create(setting))
    (tmp_path / "line").write_text("one line\n")
    result = run("produce", "missing", "--file", str(tmp_path / "line"))
    assert (result.exit_code, "topic 'missing' does not exist" in result.stderr) == (3, True)
    asked = [each for each in broker.received(MetadataRequest) if each.allow_auto_topic_creation]
    assert (len(asked) > 1) == is_patient


def test_a_missing_file_is_not_found(broker: FakeBroker, run: Run, tmp_path: Path) -> None:
    result = run("produce", "t", "--file", str(tmp_path / "missing"))
    assert result.exit_code == 3
    assert "missing" in result.stderr


def test_stdin_is_produced_as_it_arrives(broker: FakeBroker) -> None:
    broker.create("t")
    with process(broker, "produce", "t") as command:
        assert command.stdin is not None
        command.stdin.write(b"first\n")
        command.stdin.flush()
        asyncio.run(until_records(broker, 1))
        output, errors = command.communicate(b"second", timeout=20)
    assert (command.returncode, output, errors) == (0, b"", b"")
    assert [record.value for record in broker.records("t")] == [b"first", b"second"]


async def until_records(broker: FakeBroker, count: int) -> None:
    async with asyncio.timeout(20):
        while len(broker.records("t")) < count:
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--from-beginning",), "a\nb\nc\nz\n"),
        (("--from-beginning", "-p", "0"), "a\nb\nc\n"),
        (("-o", "2", "-p", "0"), "c\n"),
        (("-o", "-1"), "c\nz\n"),
        (("-o", "-99"), "a\nb\nc\nz\n"),
        (("--since", "1002"), "c\n"),
        (("--from-beginning", "--count", "2"), "a\nb\n"),
        ((), ""),
        (("-o", "0", "-p", "1", "--format", "%t/%p/%o %k=%s %h\\n"), "t/1/0 k=z h=1\n"),
    ],
)
def test_records_are_printed_from_the_given_offset(
    broker: FakeBroker, run: Run, arguments: tuple[str, ...], expected: str
) -> None:
    broker.create("t", 2)
    put(broker, b"a", b"b", b"c")
    put(broker, b"z", partition=1)
    result = run("consume", "t", "--exit-at-end", *arguments)
    assert (result.exit_code, sorted(result.output)) == (0, sorted(expected))


@pytest.mark.parametrize(("options", "level"), [((), 0), (("--committed",), 1)])
def test_read_committed_is_requested(
    broker: FakeBroker, run: Run, options: tuple[str, ...], level: int
) -> None:
    broker.create("t")
    put(broker, b"a")
    assert run("consume", "t", "-o", "-1", "-e", *options).exit_code == 0
    levels = {request.isolation_level for request in broker.received(FetchRequest)}
    levels |= {request.isolation_level for request in broker.received(ListOffsetsRequest)[1:]}
    assert levels == {level}


def test_records_are_printed_as_json_lines(broker: FakeBroker, run: Run) -> None:
    broker.create("t")
    put(broker, b"a", b"b")
    lines = run("consume", "t", "--from-beginning", "-e", "--json").output.splitlines()
    assert [json.loads(line)["offset"] for line in lines] == [0, 1]


def test_an_offset_out_of_range_is_reported_with_the_range(broker: FakeBroker, run: Run) -> None:
    broker.create("t")
    put(broker, b"a")
    result = run("consume", "t", "-o", "9", "-c", "1")
    assert result.exit_code == 1
    assert "has offsets 0 to 1" in result.stderr
    assert "--from-beginning" in result.stderr


def test_consume_ends_quietly_on_ctrl_c(broker: FakeBroker) -> None:
    broker.create("t")
    put(broker, b"a")
    with process(broker, "consume", "t", "--from-beginning") as command:
        assert command.stdout is not None
        assert command.stdout.readline() == b"a\n"
        command.send_signal(signal.SIGINT)
        output, errors = command.communicate(timeout=20)
    assert (command.returncode, output, errors) == (130, b"", b"")


def test_consume_ends_quietly_when_its_pipe_is_closed(broker: FakeBroker) -> None:
    broker.create("t")
    put(broker, b"a")
    with process(broker, "consume", "t", "--from-beginning") as command:
        assert command.stdout is not None
        assert command.stdout.readline() == b"a\n"
        command.stdout.close()
        put(broker, b"b")
        assert command.wait(20) == 0
        assert command.stderr is not None
        assert command.stderr.read() == b""


def test_produce_ends_quietly_on_ctrl_c_while_stdin_is_open(broker: FakeBroker) -> None:
    broker.create("t")
    with process(broker, "produce", "t") as command:
        assert command.stdin is not None
        command.stdin.write(b"first\n")
        command.stdin.flush()
        asyncio.run(until_records(broker, 1))
        command.send_signal(signal.SIGINT)
        assert command.wait(20) == 130
        assert command.stderr is not None
        assert command.stderr.read() == b""


def test_serve_passes_its_options_to_the_server(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    calls: list[dict[str, Any]] = []

    def serve(**options: Any) -> int:
        calls.append(options)
        return 7

    server = types.ModuleType("barnabas.server.main")
    server.serve = serve  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "barnabas.server.main", server)
    arguments = (
        "--config",
        "c",
        "--data",
        str(tmp_path),
        "--listen",
        "h:1",
        "--set",
        "a=b",
        "--set",
        "c=d=e",
        "--add-scram",
        "u=p",
    )
    assert run("serve", *arguments).exit_code == 7
    assert calls == [
        {
            "config_file": Path("c"),
            "data": tmp_path,
            "listen": "h:1",
            "overrides": {"a": "b", "c": "d=e"},
            "users": ["u=p"],
            "web": ANY,
            "brokers_count": 1,
        }
    ]


@pytest.mark.parametrize(
    ("option", "value", "key"),
    [
        ("--store", "sqlite:s", "barnabas.store"),
        ("--node-id", "2", "node.id"),
        ("--rack", "a", "broker.rack"),
    ],
)
def test_an_option_of_serve_conflicts_with_its_setting(run: Run, option: str, value: str, key: str) -> None:
    ended = run("serve", option, value, "--set", f"{key}=1")
    assert ended.exit_code == 2
    assert f"conflicts with --set {key}=1: use only one of them" in " ".join(ended.stderr.split())


def test_describing_topics_does_not_create_them(broker: FakeBroker, run: Run) -> None:
    broker.auto_create = True
    run("topics", "describe", "nope")
    run("consume", "nope")
    assert broker.topics == {}
    assert not any(request.allow_auto_topic_creation for request in broker.received(MetadataRequest))
