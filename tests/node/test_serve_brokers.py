"""`barnabas serve --brokers 3`: processes that share a store."""

import asyncio
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

import pytest
from interop.brokers import consecutive_ports

from barnabas.base.ids import TopicPartition, uuid_to_text
from barnabas.client.admin.model import NewTopic
from barnabas.client.blocking import BlockingClient
from barnabas.client.core.address import BrokerAddress
from barnabas.config.config_resource import Resource, ResourceKind
from barnabas.config.config_source import ConfigSource
from barnabas.config.load import load_broker_config
from barnabas.log.startup.meta_properties import MetaProperties, write_meta_properties
from barnabas.server.supervisor import Supervisor, plan_brokers
from barnabas.wire.errors import KafkaError
from support.process import COMMAND, clean_environment, run_serve
from support.terminals import Terminal
from support.waiting import until

#: Runs a program as that of the terminal that is its standard input.
IN_TERMINAL = ("setsid", "--ctty")


@contextmanager
def started(
    data: Path, count: int, *options: str, stdin: TextIO | None = None, output: int | TextIO | None = None
) -> Iterator[tuple["subprocess.Popen[str]", list[BrokerAddress]]]:
    """:param output: Standard output and standard error; by default only the former is captured."""
    port = consecutive_ports(count)
    arguments = ["--brokers", str(count), "--data", str(data), "--listen", f"127.0.0.1:{port}", *options]
    with subprocess.Popen(
        [*(() if stdin is None else IN_TERMINAL), *COMMAND, *arguments],
        stdin=subprocess.DEVNULL if stdin is None else stdin,
        stdout=subprocess.PIPE if output is None else output,
        stderr=subprocess.DEVNULL if output is None else output,
        text=True,
        env=clean_environment(),
    ) as process:
        try:
            yield process, [BrokerAddress("127.0.0.1", port + number) for number in range(count)]
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


@contextmanager
def brokers(data: Path, count: int, *options: str) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    with started(data, count, *options) as (process, listeners):
        assert process.stdout is not None
        line = process.stdout.readline()
        addresses = ",".join(map(str, listeners))
        assert line.startswith(f"Barnabas serves Kafka with {count} brokers on {addresses}, data in {data}")
        yield process, addresses


def processes() -> Iterator[tuple[int, list[bytes]]]:
    """Yield the processes of the machine, with their arguments."""
    for directory in Path("/proc").iterdir():
        if directory.name.isdigit():
            with suppress(OSError):
                yield int(directory.name), (directory / "cmdline").read_bytes().split(b"\0")


def pid_of(data: Path) -> int:
    """Return the process of the broker with this log directory."""
    for pid, arguments in processes():
        if f"--set=log.dirs={data}".encode() in arguments:
            return pid
    raise AssertionError(f"no broker has {data}")


def accepts(address: BrokerAddress) -> bool:
    with suppress(OSError), socket.create_connection(address):
        return True
    return False


def were_stopped_in_order(data: Path, count: int) -> bool:
    directories = [data, *(data / "brokers" / str(node_id) for node_id in range(2, count + 1))]
    return all((directory / ".kafka_cleanshutdown").exists() for directory in directories)


def test_a_killed_broker_is_replaced_and_comes_back_and_a_signal_stops_all(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with brokers(data, 3) as (process, addresses):
        with BlockingClient(addresses) as client:
            client.admin.create_topics([NewTopic("t", 3, 3)])
            with client.producer() as producer:
                for number in range(30):
                    producer.send_and_wait("t", b"%d" % number, partition=number % 3)
                os.kill(pid_of(data / "brokers" / "2"), signal.SIGKILL)
                for number in range(30, 60):
                    producer.send_and_wait("t", b"%d" % number, partition=number % 3)
            starts = {TopicPartition("t", index): 0 for index in range(3)}
            with client.consumer(starts, stop_at_end=True) as consumer:
                values = sorted(int(record.value or b"") for record in consumer)
            assert values == list(range(60))
            until(lambda: len(client.admin.describe_cluster().nodes) == 3)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    assert were_stopped_in_order(data, 3)


def test_passwords_are_not_among_the_arguments_of_the_brokers_and_have_their_effect(tmp_path: Path) -> None:
    password = "pw-3f1c9"
    options = ("--set", f"ssl.key.password={password}", "--add-scram", f"alice={password}")
    with brokers(tmp_path, 2, *options) as (_, addresses), BlockingClient(addresses) as client:
        assert list(client.admin.describe_user_scram_credentials()) == ["alice"]
        [described] = client.admin.describe_configs([Resource(ResourceKind.BROKER, "2")]).values()
        assert pid_of(tmp_path / "brokers" / "2")
        assert not [pid for pid, arguments in processes() if password.encode() in b" ".join(arguments)]
        assert not isinstance(described, KafkaError)
        [key] = [each for each in described if each.name == "ssl.key.password"]
        assert (key.value, key.source) == (None, ConfigSource.STATIC_BROKER_CONFIG)


def test_several_brokers_print_where_console_and_registry_are_and_no_warnings(tmp_path: Path) -> None:
    port = consecutive_ports(6)
    options = ["--brokers", "2", "--data", str(tmp_path), "--listen", f"127.0.0.1:{port}"]
    options += ["--set", f"barnabas.metrics.listener=127.0.0.1:{port + 2}"]
    options += ["--set", f"barnabas.registry.listener=127.0.0.1:{port + 4}"]
    with subprocess.Popen(
        [*COMMAND, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=clean_environment(),
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        lines = [process.stdout.readline() for _ in range(5)]
        process.terminate()
        errors = process.stderr.read()
    assert lines[1:4] == [
        f"Metrics: http://127.0.0.1:{port + 2}/metrics\n",
        f"Console: http://127.0.0.1:{port + 2}/\n",
        f"Schema registry: http://127.0.0.1:{port + 4}\n",
    ]
    assert "Unknown configuration" not in errors


def test_the_cluster_of_several_brokers_is_that_of_the_first_ones_data(tmp_path: Path) -> None:
    cluster_id = uuid_to_text(b"c" * 16)
    write_meta_properties(tmp_path, MetaProperties(cluster_id, 1, b"d" * 16))
    with brokers(tmp_path, 3) as (_, addresses), BlockingClient(addresses) as client:
        assert client.admin.describe_cluster().cluster_id == cluster_id


def test_brokers_stop_in_order_when_their_supervisor_is_killed(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with brokers(data, 2) as (process, _):
        directories = data, data / "brokers" / "2"
        pids = [pid_of(directory) for directory in directories]
        process.kill()
        process.wait()
        until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))
    assert were_stopped_in_order(data, 2)


def test_brokers_stop_in_order_when_their_terminal_is_closed(tmp_path: Path) -> None:
    terminal = Terminal()
    with started(tmp_path, 2, stdin=terminal.stream, output=terminal.stream) as (process, _):
        with terminal:
            terminal.read_until("Try, in another terminal")
        assert process.wait(60) == 0
    assert were_stopped_in_order(tmp_path, 2)


def test_sighup_without_a_closed_terminal_lets_all_brokers_reload_their_policies(tmp_path: Path) -> None:
    log = tmp_path / "log"

    def reloads(node_id: int) -> int:
        lines = [line for line in log.read_text().splitlines() if line.startswith(f"broker {node_id} | ")]
        return sum("policies reloaded" in line for line in lines)

    with log.open("w") as output, started(tmp_path, 2, output=output) as (process, _):
        until(lambda: "Try, in another terminal" in log.read_text())
        process.send_signal(signal.SIGHUP)
        until(lambda: (reloads(1), reloads(2)) == (1, 1))
        os.kill(pid_of(tmp_path / "brokers" / "2"), signal.SIGKILL)
        until(lambda: "a broker has ended" in log.read_text())
        process.send_signal(signal.SIGHUP)
        until(lambda: (reloads(1), reloads(2)) == (2, 2))
        process.terminate()
        assert process.wait(60) == 0
    assert log.read_text().count("a broker has ended") == 1
    assert were_stopped_in_order(tmp_path, 2)


def test_sighup_does_not_end_a_broker_that_starts(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("w") as output, started(tmp_path, 1, output=output) as (process, _):
        until(lambda: "the broker starts" in log.read_text())
        process.send_signal(signal.SIGHUP)
        until(lambda: "policies reloaded" in log.read_text())
        process.terminate()
        assert process.wait(60) == 0


@pytest.mark.parametrize("count", [1, 2])
def test_brokers_serve_although_nobody_reads_their_output(tmp_path: Path, count: int) -> None:
    reader, output = os.pipe()
    os.close(reader)
    with started(tmp_path, count, output=output) as (process, addresses):
        os.close(output)
        until(lambda: all(map(accepts, addresses)))
        if count > 1:
            killed = pid_of(tmp_path / "brokers" / "2")
            os.kill(killed, signal.SIGKILL)
            until(lambda: not Path(f"/proc/{killed}").exists())
            until(lambda: accepts(addresses[-1]))
        process.terminate()
        assert process.wait(60) == 0
    assert were_stopped_in_order(tmp_path, count)


def test_an_unexpected_error_stops_the_brokers_in_order(tmp_path: Path) -> None:
    settings = [f"listeners=PLAINTEXT://127.0.0.1:{consecutive_ports(2)}", f"log.dirs={tmp_path}"]
    plans = plan_brokers(load_broker_config(settings=settings, environment={}).config, 2)

    def fail() -> None:
        raise LookupError("unexpected")

    with pytest.raises(ExceptionGroup) as raised:
        asyncio.run(Supervisor(plans, [], {}, [], names_brokers=True).run(fail))
    assert raised.group_contains(LookupError)
    assert were_stopped_in_order(tmp_path, 2)


def test_a_store_and_several_brokers_exclude_each_other(tmp_path: Path) -> None:
    ended = run_serve("--brokers", "2", "--data", str(tmp_path), "--store", f"sqlite:{tmp_path / 's'}")
    assert ended.returncode == 2
    assert "barnabas.store" in ended.stderr


def test_an_unknown_store_is_refused(tmp_path: Path) -> None:
    ended = run_serve("--data", str(tmp_path), "--listen", "127.0.0.1:0", "--store", "oracle:x")
    assert ended.returncode == 2
    assert "must be empty, sqlite:FILE, etcd://HOST:PORT,HOST:PORT, or etcds:// for TLS" in ended.stderr
