"""`barnabas serve` as a process: how it starts, fails to start, and stops."""

import resource
import socket
import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest

from barnabas.client.blocking import BlockingClient
from barnabas.config.config_resource import Resource, ResourceKind
from barnabas.testing import EmbeddedBroker
from barnabas.wire.errors import ErrorCode
from support.admin import create, new_topic
from support.batches import batch, values_of
from support.process import BrokerProcess, run_serve
from support.waiting import until
from support.wire import Wire


def setting(bootstrap: str, key: str) -> str | None:
    """Return a config as the broker describes it."""
    with BlockingClient(bootstrap) as client:
        [node] = client.cluster.metadata.nodes
        resource = Resource(ResourceKind.BROKER, str(node))
        [[entry]] = client.admin.describe_configs([resource], [key]).values()
        return entry.value


def test_it_prints_its_address_and_commands_to_try(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "data") as broker, Wire(broker.port) as wire:
        assert create(wire, new_topic("t"))["t"].error_code == ErrorCode.NONE
        assert wire.produce("t", batch(b"x")).error_code == ErrorCode.NONE
        assert broker.process.stdout
        assert "Try" in broker.process.stdout.readline()
        assert f"--bootstrap {broker.bootstrap}" in broker.process.stdout.readline()


def test_sigterm_stops_it_without_waiting_for_a_fetch(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path) as broker, Wire(broker.port) as wire, Wire(broker.port) as polling:
        create(wire, new_topic("t"))
        wire.produce("t", batch(b"x"))
        polling.send(polling.fetch_request("t", 1, min_bytes=1, max_wait_ms=30_000))
        started_s = time.monotonic()
        assert broker.terminate() == 0
        assert time.monotonic() - started_s < 15
        assert (tmp_path / ".kafka_cleanshutdown").exists()
        assert "Traceback" not in broker.stderr
        assert "Exception" not in broker.stderr


def test_a_store_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path) as broker:
        assert broker.terminate() == 0
    with closing(sqlite3.connect(tmp_path / "metadata.sqlite")) as store, store:
        [[value]] = store.execute("SELECT value FROM items WHERE key = 'format/self'")
        store.execute("UPDATE items SET value = '99' WHERE key = 'format/self'")
    ended = run_serve("--data", str(tmp_path), "--listen", "127.0.0.1:0")
    assert ended.returncode == 2
    assert "The metadata store has records of format 99, and this version of Barnabas knows" in ended.stderr
    assert "Traceback" not in ended.stderr
    with closing(sqlite3.connect(tmp_path / "metadata.sqlite")) as store, store:
        store.execute("UPDATE items SET value = ? WHERE key = 'format/self'", (value,))
    with BrokerProcess(tmp_path) as broker:
        assert broker.terminate() == 0


def test_it_exits_with_1_when_its_only_log_directory_fails(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path) as broker, Wire(broker.port) as wire:
        create(wire, new_topic("t"))
        _, hard_limit = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.prlimit(broker.process.pid, resource.RLIMIT_FSIZE, (0, hard_limit))
        # The response may or may not be sent before the process exits.
        with suppress(ConnectionError, EOFError):
            assert wire.produce("t", batch(b"x")).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert broker.process.wait(10) == 1
    assert (
        f"log directory failed; it and its logs are offline [barnabas.log] path={tmp_path}" in broker.stderr
    )
    assert "File too large" in broker.stderr
    assert "all log directories have failed" in broker.stderr
    assert "Traceback" not in broker.stderr


def test_it_keeps_serving_when_one_of_its_log_directories_fails(tmp_path: Path) -> None:
    with EmbeddedBroker({"log.dirs": f"{tmp_path / 'a'},{tmp_path / 'b'}"}) as kafka:
        kafka.create_topic("t", partitions=2)
        lost, left = (kafka.server.broker.replicas.partition("t", index).log for index in range(2))
        lost.take_offline(OSError(5, "Input/output error"))
        kafka.produce("t", b"x", partition=1)
        assert not kafka.server.failed.is_set()
        with Wire(int(kafka.bootstrap.rpartition(":")[2])) as wire:
            assert wire.produce("t", batch(b"x")).error_code == ErrorCode.KAFKA_STORAGE_ERROR
            left.take_offline(OSError(5, "Input/output error"))
            until(kafka.server.failed.is_set)
            with pytest.raises(
                (ConnectionError, EOFError)
            ):  # no error, after which clients would be led here again
                wire.produce("t", batch(b"x"))


def test_a_port_in_use_is_exit_code_2(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        ended = run_serve("--data", str(tmp_path), "--listen", address)
    assert ended.returncode == 2
    assert f"\nbarnabas: Cannot listen on {address}: Address already in use." in ended.stderr
    assert "--listen" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("option", [["--listen"], ["--listen", "127.0.0.1:0", "--set"]])
def test_an_unknown_host_is_exit_code_2(tmp_path: Path, option: list[str]) -> None:
    address = "127.0.0.1:1:0"  # not a name that can be resolved
    what = address if option == ["--listen"] else f"barnabas.metrics.listener={address}"
    ended = run_serve("--data", str(tmp_path), *option, what)
    assert ended.returncode == 2
    assert address in ended.stderr
    assert "Unknown error" not in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_metrics_port_in_use_is_exit_code_2(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        where = ("--data", str(tmp_path), "--listen", "127.0.0.1:0")
        ended = run_serve(*where, "--set", f"barnabas.metrics.listener={address}")
    assert ended.returncode == 2
    assert address in ended.stderr
    assert "barnabas.metrics.listener" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_directory_in_use_is_exit_code_2_and_its_broker_keeps_running(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path) as broker, Wire(broker.port) as wire:
        create(wire, new_topic("t"))
        ended = run_serve("--data", str(tmp_path), "--listen", "127.0.0.1:0")
        assert ended.returncode == 2
        assert str(tmp_path) in ended.stderr
        assert "in use" in ended.stderr
        assert "Traceback" not in ended.stderr
        assert wire.produce("t", batch(b"x")).error_code == ErrorCode.NONE


def test_an_unusable_directory_is_exit_code_2(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ended = run_serve("--data", str(tmp_path / "file" / "data"), "--listen", "127.0.0.1:0")
    assert ended.returncode == 2
    assert str(tmp_path / "file" / "data") in ended.stderr
    assert "Not a directory" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["--set", "num.partitions=many"], ["num.partitions", "many", "whole number"]),
        (["--set", "num.partitions=0"], ["num.partitions", "0", "at least 1"]),
        (["--set", "nonsense"], ["nonsense", "key=value"]),
        (["--listen", "nowhere"], ["nowhere"]),
        (["--config", "missing.properties"], ["missing.properties", "No such file"]),
    ],
)
def test_an_invalid_value_is_exit_code_2_with_key_value_and_valid_values(
    tmp_path: Path, arguments: list[str], parts: list[str]
) -> None:
    ended = run_serve("--data", str(tmp_path), *arguments)
    assert ended.returncode == 2
    for part in parts:
        assert part.lower() in ended.stderr.lower()
    assert "Traceback" not in ended.stderr


def test_an_invalid_value_in_the_environment_is_reported(tmp_path: Path) -> None:
    ended = run_serve("--data", str(tmp_path), environment={"BARNABAS_NUM_PARTITIONS": "many"})
    assert ended.returncode == 2
    assert "num.partitions" in ended.stderr
    assert "many" in ended.stderr


def test_data_with_log_dirs_is_an_error_on_the_command_line_and_a_warning_elsewhere(
    tmp_path: Path,
) -> None:
    ended = run_serve("--data", str(tmp_path), "--set", "log.dirs=/elsewhere")
    assert ended.returncode == 2
    assert "--data: conflicts with --set log.dirs=/elsewhere" in ended.stderr
    with BrokerProcess(tmp_path, environment={"BARNABAS_LOG_DIRS": "/elsewhere"}) as broker:
        broker.terminate()
        assert (
            "warning: --data is used instead of BARNABAS_LOG_DIRS=/elsewhere (environment)" in broker.stderr
        )


def test_listen_with_listeners_is_an_error_on_the_command_line(tmp_path: Path) -> None:
    given = ("--listen", "127.0.0.1:0", "--set", "listeners=PLAINTEXT://127.0.0.1:1")
    ended = run_serve("--data", str(tmp_path), *given)
    assert ended.returncode == 2
    assert "--listen: conflicts with --set listeners=PLAINTEXT://127.0.0.1:1" in ended.stderr


def test_an_unknown_key_is_a_warning_with_the_nearest_key(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path, "--set", "num.partition=3") as broker:
        broker.terminate()
        assert (
            "warning: Unknown configuration num.partition (--set); did you mean num.partitions?"
            in broker.stderr
        )


def test_file_environment_and_set_override_each_other_in_this_order(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=2\nnum.network.threads=4\nlog.retention.hours=5\n")
    environment = {"BARNABAS_NUM_PARTITIONS": "3", "BARNABAS_NUM_NETWORK_THREADS": "5"}
    arguments = ("--config", str(file), "--set", "num.partitions=4")
    with BrokerProcess(tmp_path / "data", *arguments, environment=environment) as broker:
        keys = ("num.partitions", "num.network.threads", "log.retention.hours")
        assert [setting(broker.bootstrap, key) for key in keys] == ["4", "5", "5"]


APACHE_PROPERTIES = """
# Licensed to the Apache Software Foundation (ASF) under one or more ...
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://127.0.0.1:0
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs={data}
num.partitions=1
num.recovery.threads.per.data.dir=1
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""


def test_apache_kafkas_property_file_is_accepted(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text(APACHE_PROPERTIES.format(data=tmp_path / "data"))
    with BrokerProcess(None, "--config", str(file), port=-1) as broker:
        with Wire(broker.port) as wire:
            create(wire, new_topic("t"))
            wire.produce("t", batch(b"x"))
            assert values_of(wire.fetch("t").records) == [b"x"]
        assert broker.terminate() == 0
        assert "Unknown configuration" not in broker.stderr
    assert (tmp_path / "data" / "t-0").is_dir()


def test_invalid_frames_close_their_connection_with_a_log_line(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path, "--set", "socket.request.max.bytes=1000") as broker:
        for size in (1001, -1, -(2**31)):
            with Wire(broker.port) as wire:
                wire.socket.sendall(size.to_bytes(4, "big", signed=True))
                assert wire.is_closed()
        broker.terminate()
        assert broker.stderr.count("closing a connection") == 3
        for number in ("1001", "-1", "1000"):
            assert number in broker.stderr


@pytest.mark.parametrize("stop", ["kill", "terminate"])
def test_a_restart_on_the_same_data_keeps_its_state(tmp_path: Path, stop: str) -> None:
    with BrokerProcess(tmp_path) as broker:
        with Wire(broker.port) as wire:
            create(wire, new_topic("t", configs={"retention.ms": "-1"}))
            wire.produce("t", batch(b"a"))
        getattr(broker, stop)()
    with BrokerProcess(tmp_path, port=broker.port) as broker, Wire(broker.port) as wire:
        assert wire.produce("t", batch(b"b")).base_offset == 1
        assert values_of(wire.fetch("t").records) == [b"a", b"b"]


@pytest.mark.parametrize(
    ("setting", "shown"),
    [
        ("num.partitions=${env:MISPLACED}", "Invalid value '${env:MISPLACED}' for num.partitions"),
        ("sasl.enabled.mechanisms=${env:MISPLACED}", "'${env:MISPLACED}': it must be one of PLAIN"),
        ("barnabas.store=${env:MISPLACED}", "Invalid value '${env:MISPLACED}' for barnabas.store"),
        ("ssl.keystore.location=${env:MISPLACED}", "ssl.keystore.location=${env:MISPLACED}: cannot be read"),
        ("barnabas.policy.file=${env:MISPLACED}", "${env:MISPLACED}"),
    ],
)
def test_a_value_of_a_variable_is_not_shown_when_the_broker_cannot_start(
    tmp_path: Path, setting: str, shown: str
) -> None:
    settings = (
        "config.providers=env",
        "config.providers.env.class=org.apache.kafka.common.config.provider.EnvVarConfigProvider",
        "listeners=PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms=PLAIN",
        "ssl.keystore.location=unused.pem",
        setting,
    )
    given = [word for each in settings for word in ("--set", each)]
    ended = run_serve("--data", str(tmp_path), *given, environment={"MISPLACED": "hunter2"})
    assert ended.returncode == 2
    assert shown in ended.stderr
    assert "hunter2" not in ended.stderr + ended.stdout
