"""`barnabas export`, `plan`, `apply` and `drift` on Apache Kafka: results, exit codes, and continuation after a
kill.
"""

import json
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from interop.brokers import free_ports
from typer.testing import CliRunner, Result

from barnabas.cli.main import app
from barnabas.testing import EmbeddedBroker
from barnabas.wire.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from barnabas.wire.messages.create_acls import CreateAclsRequest
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.delete_acls import DeleteAclsRequest
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest
from barnabas.wire.schema import Message
from interop import candidate, reference
from support.declared import SECURED, another_state, enriched
from support.drifts import PRUNED, SINGLE_CHANGES, ResourceKey, drifted
from support.holding_proxy import HoldingProxy
from support.process import clean_environment
from support.waiting import until

Run = Callable[..., Result]
WORDS = {"PASSWORD_ALICE": "a word", "PASSWORD_BOB": "a word", "WORD": "a word"}
SETTINGS = {
    **SECURED,
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,TURNPIKE:PLAINTEXT",
}
NOTHING_TO_DO = "No changes: the cluster has the declared state.\n"


class Ports(NamedTuple):
    """Ports of Kafka, of the proxy that can hold requests, and of the proxy's target."""

    direct: int
    proxy: int
    behind: int


@pytest.fixture(scope="module")
def ports() -> Ports:
    return Ports(*free_ports(3))


@pytest.fixture(scope="module")
def kafka(ports: Ports, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the address of a sample Kafka."""
    settings = {
        **SETTINGS,
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{ports.direct},TURNPIKE://127.0.0.1:{ports.proxy}",
    }
    behind = f"TURNPIKE://127.0.0.1:{ports.behind}"
    broker = reference.start(tmp_path_factory.mktemp("kafka"), settings, ports.direct, listeners=[behind])
    try:
        enriched(broker.bootstrap)
        yield broker.bootstrap
    finally:
        broker.stop()


@pytest.fixture(scope="module")
def proxy(kafka: str, ports: Ports) -> Iterator[HoldingProxy]:
    with HoldingProxy(ports.proxy, ports.behind) as proxy:
        yield proxy


@pytest.fixture(scope="module")
def run(kafka: str) -> Run:
    """Return a function that runs commands in this process, because starting one costs more than most commands."""

    def invoke(*command: str | Path) -> Result:
        environment = {"BARNABAS_BOOTSTRAP": kafka, "COLUMNS": "200", **WORDS}
        return CliRunner().invoke(app, [str(each) for each in command], env=environment)

    return invoke


@pytest.fixture(scope="module")
def file(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Export the cluster as an exhaustive state."""
    file = tmp_path_factory.mktemp("declared") / "cluster.yaml"
    file.write_text(PRUNED + run("export").stdout)
    return file


def revert_drift(run: Run, file: Path) -> None:
    done = run("apply", file, "--yes", "--allow-destroy")
    assert done.exit_code == 0, done.output
    assert drifted(run("drift", file, "--json")) == {}


@pytest.mark.parametrize(("command", "key", "values"), SINGLE_CHANGES)
def test_every_single_change_is_found_and_reverted(
    run: Run, file: Path, command: str, key: ResourceKey, values: tuple[Any, Any]
) -> None:
    done = run(*command.split())
    assert done.exit_code == 0, done.output

    def is_all_that_is_found() -> bool:
        found = drifted(run("drift", file, "--json"))
        return found.get(key) == values and {name for name, _ in found} == {key[0]}

    until(is_all_that_is_found)
    revert_drift(run, file)


def test_added_partitions_are_found(run: Run, file: Path) -> None:
    run("topics", "add-partitions", "plain", "--total", "3")
    until(lambda: drifted(run("drift", file, "--json")) == {("topic/plain", "partitions"): (2, 3)})
    assert "the number of partitions cannot be reduced" in run("plan", file).stdout
    run("topics", "delete", "plain")
    until(lambda: drifted(run("drift", file, "--json")).get(("topic/plain", "partitions")) == (2, None))
    revert_drift(run, file)


def test_settings_of_a_brokers_start_can_be_declared(run: Run, tmp_path: Path) -> None:
    expected = tmp_path / "expected.yaml"
    expected.write_text(
        "brokers: {1: {expect: {num.io.threads: 9, num.partitions: 1, message.max.bytes: 1048588,"
        " log.cleaner.threads: 2, no.such.key: 1}}}\n"
    )
    assert drifted(run("drift", expected, "--json")) == {
        ("broker/1", "num.io.threads"): ("9", "8"),
        ("broker/1", "no.such.key"): ("1", None),
    }


@contextmanager
def another_kafka() -> Iterator[str]:
    """Run a Kafka that was started with other settings, and has the same dynamic ones."""
    with reference.kafka({**SETTINGS, "num.io.threads": "3"}) as other:
        enriched(other.bootstrap)
        yield other.bootstrap


@contextmanager
def a_barnabas() -> Iterator[str]:
    with EmbeddedBroker({**SECURED, "num.io.threads": "3"}) as other:
        enriched(other.bootstrap)
        yield other.bootstrap


@pytest.mark.parametrize("another", [another_kafka, a_barnabas])
def test_two_clusters_are_compared(run: Run, another: Callable[[], Any]) -> None:
    with another() as other:
        different = {"broker/1"} if another is a_barnabas else set()

        def is_equal_otherwise() -> bool:
            found = drifted(run("drift", "--against", other, "--json"))
            assert found.pop(("broker/1", "num.io.threads")) == ("3", "8")
            return {resource for resource, _ in found} <= different

        until(is_equal_otherwise)  # Kafka answers before its broker has applied a change
        more = CliRunner().invoke(app, ["topics", "create", "more", "-p", "3", "-b", other])
        assert more.exit_code == 0, more.output
        topics = {("topic/more", "partitions"): (3, None), ("topic/more", "replication_factor"): (1, None)}
        until(lambda: drifted(run("drift", "--against", other, "--json", "-s", "topics")) == topics)


# As processes


def barnabas(bootstrap: str, *command: str | Path) -> subprocess.Popen[str]:
    """Start the installed command without a terminal."""
    return subprocess.Popen(
        [candidate.COMMAND, *command],
        env=clean_environment({"BARNABAS_BOOTSTRAP": bootstrap, "COLUMNS": "200", **WORDS}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Return exit code, stdout and stderr."""
    printed, complaint = process.communicate(timeout=60)
    return process.returncode, printed, complaint


def test_each_command_ends_with_its_exit_code(kafka: str, tmp_path: Path) -> None:
    code, exported, _ = ended(barnabas(kafka, "export"))
    assert code == 0
    file = tmp_path / "cluster.yaml"
    file.write_text(PRUNED + exported)
    assert ended(barnabas(kafka, "plan", file)) == (0, NOTHING_TO_DO, "")
    assert ended(barnabas(kafka, "drift", file)) == (0, "No drift.\n", "")
    file.write_text(file.read_text().replace("retention.ms: 86400000", "retention.ms: 90000000"))
    code, planned, _ = ended(barnabas(kafka, "plan", file, "--json"))
    assert code == 2
    [change] = json.loads(planned)["changes"]
    assert (change["resource"], change["key"]) == ("topic/orders", "retention.ms")
    assert (change["before"], change["after"]) == ("86400000", "90000000")
    code, found, _ = ended(barnabas(kafka, "drift", file, "--json"))
    assert (code, json.loads(found)["differences"]) == (
        2,
        [{"resource": "topic/orders", "key": "retention.ms", "declared": "90000000", "found": "86400000"}],
    )
    code, _, complaint = ended(barnabas(kafka, "apply", file))
    assert (code, "cannot ask for confirmation" in complaint) == (2, True)
    code, done, _ = ended(barnabas(kafka, "apply", file, "--yes"))
    assert (code, done.splitlines()[-1]) == (0, "1 done")
    file.write_text("topics: {orders: {partitions: 1}}\n")
    code, done, _ = ended(barnabas(kafka, "apply", file, "--yes", "--json"))
    assert (code, [each["status"] for each in json.loads(done)]) == (1, ["skipped"])


def test_watching_reports_new_and_resolved_drift(run: Run, kafka: str, file: Path) -> None:
    revert_drift(run, file)
    run("configs", "set", "topic", "orders", "retention.ms=7")
    watching = barnabas(kafka, "drift", file, "--watch", "--interval", "0.1")
    assert watching.stdout
    first = json.loads(watching.stdout.readline())
    assert (first["event"], first["resource"], first["found"]) == ("drift", "topic/orders", "7")
    run("configs", "set", "topic", "orders", "retention.ms=86400000")
    second = json.loads(watching.stdout.readline())
    assert (second["event"], second["key"], second["found"]) == ("resolved", "retention.ms", "86400000")
    run("acls", "add", "--principal", "eve", "--operation", "read", "--topic", "plain")
    third = json.loads(watching.stdout.readline())
    assert (third["event"], third["key"]) == ("drift", "acl User:eve ALLOW READ from *")
    watching.send_signal(signal.SIGTERM)
    assert ended(watching) == (2, "", "")
    revert_drift(run, file)


@pytest.mark.parametrize(
    ("request_type", "number", "is_forwarded"),
    [
        (AlterUserScramCredentialsRequest, 1, False),
        (CreateAclsRequest, 1, True),
        (CreateTopicsRequest, 2, True),  # the first is a validation, for the plan
        (DeleteAclsRequest, 1, False),
        (DeleteTopicsRequest, 1, False),
    ],
)
def test_the_next_apply_completes_a_killed_one(
    proxy: HoldingProxy,
    run: Run,
    file: Path,
    tmp_path: Path,
    request_type: type[Message],
    number: int,
    is_forwarded: bool,
) -> None:
    revert_drift(run, file)
    state = tmp_path / "another.yaml"
    state.write_text(another_state(orders_partitions=3))
    hold = proxy.hold(request_type.API_KEY, number, is_forwarded=is_forwarded)
    applying = barnabas(proxy.bootstrap, "apply", state, "--yes", "--allow-destroy")
    hold.wait()
    applying.kill()
    assert ended(applying)[0] == -signal.SIGKILL
    assert run("plan", state).exit_code == 2, "it was half-way"
    done = run("apply", state, "--yes", "--allow-destroy")
    assert done.exit_code == 0, done.output
    assert run("plan", state).stdout == NOTHING_TO_DO
