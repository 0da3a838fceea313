"""Three brokers over three members of etcd: processes, disks and the network fail while real clients work.

`make soak-cluster` tries all faults, and writes what clients see of them to docs/reliability.md.
"""

import contextlib
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from interop.brokers import free_ports
from interop.etcd_clusters import EtcdCluster, running
from interop.faults import FAULTS, PROPERTIES, Result, Scenario, scenarios
from interop.load import PRODUCERS, Acknowledged, longest_stall_s, violations
from interop.relays import CLIENTS, Network
from interop.soak_cluster import with_rows
from interop.topics import eventually
from interop.volumes import Volume

#: Short, and measures no stalls; `make soak-cluster` runs all.
SELECTED = (
    Scenario("cut off except from clients", "controller", "franz-go", warm_up_count=100, inputs_count=400),
)

#: Repeats lines with its pid before them.
ECHO = """
import os, socketserver, sys
class Echo(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            self.wfile.write(b"%d " % os.getpid() + line)
class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address, daemon_threads = True, True
Server(("127.0.0.1", int(sys.argv[1])), Echo).serve_forever()
"""
#: Connects to a port, and passes lines on in both directions.
CONNECT = """
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as connection:
    for line in sys.stdin:
        connection.sendall(line.encode())
        print(connection.makefile().readline(), end="", flush=True)
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[EtcdCluster]:
    with running(PROPERTIES) as running_cluster:
        yield running_cluster


@pytest.mark.parametrize("scenario", SELECTED, ids=str)
def test_nothing_acknowledged_is_lost_and_outputs_are_exact_when_a_broker_is(
    cluster: EtcdCluster, scenario: Scenario, tmp_path: Path
) -> None:
    result = scenario.run(cluster, tmp_path)
    assert result.violations == []
    assert result.acknowledged


def test_each_fault_has_each_target_with_every_client() -> None:
    planned = scenarios()
    assert {scenario.application for scenario in planned} == {"java", "confluent-kafka", "franz-go"}
    assert {scenario.fault for scenario in planned} > FAULTS.keys()
    assert len({str(scenario) for scenario in planned}) == len(planned)


# The check of logs


def acknowledged(value: str, offset: int) -> Acknowledged:
    return Acknowledged(value, 0, offset, sent_ms=1000, acknowledged_ms=1500)


def found(records: list[Acknowledged], *log: str) -> list[str]:
    """Return the kinds of violations of a log with one partition."""
    values = {(0, offset): value for offset, value in enumerate(log)}
    return [violation.partition(":")[0] for violation in violations(records, values)]


def test_a_log_with_acknowledged_and_other_records_in_order_is_accepted() -> None:
    assert found([acknowledged("a 0", 0), acknowledged("a 2", 3)], "a 0", "b 0", "a 1", "a 2") == []


def test_an_acknowledged_record_that_is_missing_or_replaced_is_lost() -> None:
    assert found([acknowledged("a 0", 0), acknowledged("a 1", 1)], "b 0") == ["lost", "lost"]


def test_a_record_that_is_in_the_log_twice_is_a_duplicate() -> None:
    assert found([acknowledged("a 0", 0)], "a 0", "a 0") == ["duplicate"]


def test_records_of_one_producer_in_another_order_are_reordered() -> None:
    assert found([], "a 1", "b 0", "a 0") == ["reordered"]


def test_the_longest_stall_is_that_of_the_slowest_record() -> None:
    assert longest_stall_s([acknowledged("a 0", 0), Acknowledged("a 1", 0, 1, 1000, 4500)]) == 3.5
    assert longest_stall_s([]) == 0


def test_rows_of_the_table_are_replaced_or_added_in_order() -> None:
    def result(scenario: Scenario, stall_s: float) -> Result:
        return Result(scenario, dict.fromkeys(PRODUCERS, stall_s), [acknowledged("a 0", 0)])

    first, second, third, *_ = scenarios()
    empty = "before\n## Real processes\n| fault |\n| --- |\n\nafter\n"
    document = with_rows(
        with_rows(empty, [result(third, 1), result(first, 2)]), [result(second, 3), result(third, 4)]
    )
    cells = [line.split(" | ")[1:3] for line in document.splitlines()[4:7]]
    assert cells == [[first.target, "2.0"], [second.target, "3.0"], [third.target, "4.0"]]
    assert document.startswith("before\n")
    assert document.endswith(" | 1 | 0 |\n\nafter\n")


# Relays and volumes


@contextlib.contextmanager
def program(source: str, port: int) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", source, str(port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def network() -> Iterator[Network]:
    network = Network()
    yield network
    network.close()


def is_open(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def ask(client: subprocess.Popen[str]) -> None:
    assert client.stdin
    client.stdin.write("hello\n")
    client.stdin.flush()


def answer(client: subprocess.Popen[str]) -> str:
    assert client.stdout
    return client.stdout.readline().partition(" ")[2]


def test_two_processes_are_cut_off_from_each_other_while_both_reach_others(network: Network) -> None:
    [port] = free_ports(1)
    relay = network.relay("server", port)
    with program(ECHO, port) as server:
        eventually(lambda: is_open(relay))
        with program(CONNECT, relay) as one, program(CONNECT, relay) as other:
            network.pids |= {"server": server.pid, "one": one.pid, "other": other.pid}
            for client in (one, other):
                ask(client)
                assert answer(client) == "hello\n"
            network.cut("one", ["server"])
            ask(one)
            ask(other)
            assert answer(other) == "hello\n"
            with pytest.raises(subprocess.TimeoutExpired):
                one.wait(0.2)
            network.heal()
            assert answer(one) == "hello\n"


def test_a_process_without_a_name_is_a_client(network: Network) -> None:
    [port] = free_ports(1)
    relay = network.relay("server", port)
    with program(ECHO, port):
        eventually(lambda: is_open(relay))
        network.cut("server", [CLIENTS])
        with socket.create_connection(("127.0.0.1", relay), timeout=0.2) as connection:
            connection.sendall(b"hello\n")
            with pytest.raises(TimeoutError):
                connection.recv(1)
            network.heal()
            connection.settimeout(30)
            assert connection.recv(100)


def test_a_relay_refuses_connections_while_its_server_is_dead(network: Network) -> None:
    [port] = free_ports(1)
    relay = network.relay("server", port)
    assert not is_open(relay)
    with program(ECHO, port) as server:
        eventually(lambda: is_open(relay))
        with socket.create_connection(("127.0.0.1", relay)) as connection:
            server.send_signal(signal.SIGKILL)
            assert connection.recv(1) == b""
        eventually(lambda: not is_open(relay))
    with program(ECHO, port):
        eventually(lambda: is_open(relay))


def test_a_volume_is_full_until_it_is_freed(tmp_path: Path) -> None:
    volume = Volume(tmp_path / "volume", 1 << 20)
    path = tmp_path / "volume" / "file"
    try:
        volume.fill()
        with pytest.raises(OSError, match="No space left"):
            path.write_bytes(b"x")
        volume.free()
        assert path.write_bytes(b"x") == 1
    finally:
        volume.close()
