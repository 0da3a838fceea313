"""ACLs on a real broker: principals that log in; permissions added and removed with `barnabas acls`."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from barnabas.base.ids import TopicPartition
from barnabas.cli.main import app
from barnabas.client.admin.offsets import EARLIEST
from barnabas.client.blocking import BlockingClient
from barnabas.testing import EmbeddedBroker
from barnabas.wire.acls import AclBinding, AclFilter, AclOperation, AclPermission, PatternType, ResourceType
from barnabas.wire.errors import ErrorCode, KafkaError
from support.sasl import ALICE, SASL_SETTINGS

#: The administrator uses the listener without login.
SETTINGS = {
    **SASL_SETTINGS,
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
pytestmark = pytest.mark.kafka_settings(SETTINGS)

Run = Callable[..., Result]


def address_of(kafka: EmbeddedBroker, listener: str) -> str:
    return next(f"{host}:{port}" for name, host, port in kafka.server.addresses if name == listener)


@pytest.fixture
def run(kafka: EmbeddedBroker) -> Run:
    """Return a function that runs the command line as the administrator."""

    def invoke(*command: str) -> Result:
        environment = {"BARNABAS_BOOTSTRAP": address_of(kafka, "PLAINTEXT"), "COLUMNS": "200"}
        return CliRunner().invoke(app, command, env=environment)

    return invoke


def rows(result: Result) -> list[dict[str, Any]]:
    assert result.exit_code == 0, result.output
    found: list[dict[str, Any]] = json.loads(result.stdout)
    return found


@pytest.fixture
def admin(kafka: EmbeddedBroker) -> Iterator[BlockingClient]:
    with BlockingClient(address_of(kafka, "PLAINTEXT")) as client:
        yield client


@pytest.fixture
def alice(kafka: EmbeddedBroker) -> Iterator[BlockingClient]:
    with BlockingClient(address_of(kafka, "CLIENTS"), login=ALICE) as client:
        yield client


ORDERS = ("--topic", "orders", "--principal", "alice")


def produce(client: BlockingClient, *values: bytes) -> None:
    with client.producer() as producer:
        for value in values:
            producer.send_and_wait("orders", value)


def refused(call: Callable[[], object]) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        call()
    return caught.value.code


def test_an_acl_applies_from_the_response_until_it_is_removed(
    run: Run, admin: BlockingClient, alice: BlockingClient
) -> None:
    assert run("topics", "create", "orders").exit_code == 0
    with alice.producer() as producer:
        code = refused(lambda: producer.send_and_wait("orders", b"1"))
        assert code in (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    [added] = rows(run("acls", "add", *ORDERS, "--operation", "write", "--json"))
    assert added == {
        "resource": "topic",
        "name": "orders",
        "pattern": "literal",
        "principal": "User:alice",
        "host": "*",
        "operation": "write",
        "permission": "allow",
    }
    with alice.producer() as producer:
        for value in (b"2", b"3", b"4"):
            producer.send_and_wait("orders", value)
        assert rows(run("acls", "remove", *ORDERS, "--json")) == [added]
        assert refused(lambda: producer.send_and_wait("orders", b"5")) is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    starts = {TopicPartition("orders", 0): EARLIEST}
    assert [record.value for record in admin.consumer(starts, stop_at_end=True)] == [b"2", b"3", b"4"]


def test_a_topic_without_describe_permission_looks_like_a_missing_one(
    run: Run, alice: BlockingClient
) -> None:
    assert run("topics", "create", "orders").exit_code == 0
    for name in ("orders", "missing"):
        [found] = alice.admin.describe_topics([name]).values()
        assert isinstance(found, KafkaError)
        assert found.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert alice.admin.describe_topics() == {}


def test_acls_are_listed_by_the_resource_name_that_they_match(run: Run) -> None:
    run("acls", "add", "-p", "alice", "-p", "Group:x", "-o", "read", "-o", "write", "-t", "ord", "--prefixed")
    run("acls", "add", "-p", "*", "-o", "describe", "-t", "*", "--host", "10.0.0.1", "--deny")
    run("acls", "add", "-p", "bob", "-o", "cluster-action", "--cluster", "--prefixed")
    assert len(rows(run("acls", "list", "--json"))) == 6
    assert len(rows(run("acls", "list", "--topic", "orders", "--json"))) == 5
    assert rows(run("acls", "list", "--topic", "orders", "--exact", "--json")) == []
    assert len(rows(run("acls", "list", "--topic", "ord", "--exact", "-p", "alice", "--json"))) == 2
    [denied] = rows(run("acls", "list", "-p", "*", "--json"))
    assert (denied["principal"], denied["permission"], denied["host"]) == ("User:*", "deny", "10.0.0.1")
    [on_cluster] = rows(run("acls", "list", "--cluster", "--json"))
    assert (on_cluster["name"], on_cluster["pattern"]) == ("kafka-cluster", "literal")
    assert len(rows(run("acls", "remove", "--topic", "ord", "--prefixed", "-o", "read", "--json"))) == 2
    assert len(rows(run("acls", "remove", "--principal", "Group:x", "--json"))) == 1
    assert len(rows(run("acls", "list", "--json"))) == 3
    assert "User:bob" in run("acls", "list").stdout


def test_unused_acls_are_listed_also_after_a_restart(
    kafka: EmbeddedBroker, run: Run, alice: BlockingClient
) -> None:
    assert run("topics", "create", "orders").exit_code == 0
    run("acls", "add", *ORDERS, "--operation", "write", "--operation", "read")
    produce(alice, b"1")
    result = run("acls", "unused", "--json")
    assert [(each["operation"], each["last used"]) for each in rows(result)] == [("read", "")]
    by_now = rows(run("acls", "unused", "--since", "2999-01-01", "--json"))
    assert [bool(each["last used"]) for each in by_now] == [False, True]
    assert rows(run("acls", "unused", "--since", "1d", "--json")) == []  # they were created a moment ago
    assert refused(alice.admin.describe_acl_use) is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert len(rows(run("acls", "list", "--json"))) == 2
    used = kafka.server.broker.authorizer.used() if kafka.server.broker.authorizer else []
    assert {acl.last_used_ms is not None for acl in used} == {True, False}
    kafka.restart()
    assert kafka.server.broker.authorizer is not None
    assert set(kafka.server.broker.authorizer.used()) == set(used)


def test_recorded_requests_are_decided_again_with_other_acls(
    run: Run, alice: BlockingClient, tmp_path: Path
) -> None:
    decisions, state = tmp_path / "decisions", tmp_path / "cluster.yaml"
    simulate = "acls", "simulate", str(decisions)
    assert run("topics", "create", "orders").exit_code == 0
    run("acls", "add", *ORDERS, "--operation", "write", "--operation", "read")
    produce(alice, b"1")
    assert refused(alice.admin.describe_acls) is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    recorded = json.loads(run("acls", "record", str(decisions), "--json").stdout)
    assert recorded["decisions"] == len(decisions.read_text().splitlines()) - 1
    assert rows(run(*simulate, "--json")) == {"refused": [], "allowed": []}

    exported = run("export", "--section", "acls").stdout
    state.write_text(exported.replace("write", "create"))
    result = run(*simulate, "--file", str(state), "--json")
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert found["allowed"] == []
    assert {(each["operation"], each["name"]) for each in found["refused"]} == {
        ("write", "orders"),
        ("write", None),  # an idempotent producer may write to some topic
    }
    assert {each["principal"] for each in found["refused"]} == {"User:alice"}
    assert all(each["last used"] for each in found["refused"])
    assert "(any)" in run(*simulate, "--file", str(state)).stdout

    run("acls", "add", "--cluster", "--principal", "alice", "--operation", "describe")
    [allowed] = json.loads(run(*simulate, "--json").stdout)["allowed"]
    assert (allowed["resource"], allowed["operation"]) == ("cluster", "describe")
    lost = json.loads(run(*simulate, "--super-user", "nobody", "--json").stdout)["refused"]
    assert {each["principal"] for each in lost} == {"User:ANONYMOUS"}
    assert run(*simulate, "--super-user", "nobody", "--allow-if-no-acl").exit_code == 1


def test_recorded_requests_are_known_after_a_restart(
    kafka: EmbeddedBroker, run: Run, alice: BlockingClient, tmp_path: Path
) -> None:
    assert refused(alice.admin.describe_acls) is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    kafka.restart()
    run("acls", "record", str(tmp_path / "decisions"))
    assert '"User:alice"' in (tmp_path / "decisions").read_text()


def test_a_simulation_needs_acls_in_its_file(run: Run, tmp_path: Path) -> None:
    decisions, state = tmp_path / "decisions", tmp_path / "cluster.yaml"
    decisions.write_text("")
    state.write_text("topics: {t: {partitions: 1}}")
    result = run("acls", "simulate", str(decisions), "--file", str(state))
    assert result.exit_code == 2
    assert "declares no ACLs" in result.stderr


@pytest.mark.parametrize(
    "command",
    [
        ("add", "--topic", "t", "--operation", "read"),
        ("add", "--topic", "t", "--principal", "alice"),
        ("add", "--principal", "alice", "--operation", "read"),
        ("remove",),
    ],
)
def test_an_incomplete_acl_is_a_usage_error(run: Run, command: tuple[str, ...]) -> None:
    result = run("acls", *command)
    assert result.exit_code == 2
    assert "error:" in result.stderr


def test_the_client_creates_describes_and_deletes_acls(admin: BlockingClient, alice: BlockingClient) -> None:
    binding = AclBinding(
        ResourceType.GROUP, "g", PatternType.LITERAL, "User:bob", "*", AclOperation.READ, AclPermission.ALLOW
    )
    nonsense = binding._replace(resource_name="")
    made, error = admin.admin.create_acls([binding, nonsense])
    assert made is None
    assert isinstance(error, KafkaError)
    assert error.code is ErrorCode.INVALID_REQUEST
    assert admin.admin.describe_acls() == [binding]
    assert refused(lambda: alice.admin.describe_acls()) is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    [error] = alice.admin.delete_acls([AclFilter()])
    assert isinstance(error, KafkaError)
    assert admin.admin.delete_acls([AclFilter(), AclFilter(principal="User:nobody")]) == [{binding: None}, {}]


def test_an_acl_that_a_policy_protects_is_reported_beside_deleted_ones(tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text("mode: enforce\n")
    with EmbeddedBroker({**SETTINGS, "barnabas.policy.file": str(rules)}) as kafka:

        def run(*command: str) -> Result:
            environment = {"BARNABAS_BOOTSTRAP": address_of(kafka, "PLAINTEXT")}
            return CliRunner().invoke(app, ["acls", *command, "--json"], env=environment)

        assert len(rows(run("add", "-p", "bob", "-o", "read", "-t", "pay", "-t", "t"))) == 2
        rules.write_text("topics:\n  - prefix: pay\n    protected: true\n")
        kafka.restart()
        for command in (("add", "-p", "eve", "-o", "read", "-t", "pay", "-t", "t"), ("remove", "-p", "bob")):
            result = run(*command)
            assert result.exit_code == 4
            assert [each["name"] for each in json.loads(result.stdout)] == ["t"]
            assert "'pay' is protected" in json.loads(result.stderr)["message"]


@pytest.mark.kafka_settings({"authorizer.class.name": "", "super.users": ""})
def test_without_an_authorizer_the_command_has_a_hint(run: Run) -> None:
    result = run("acls", "list")
    assert result.exit_code == 1
    assert "authorizer.class.name" in result.stderr
