"""Every command against a broker: with missing resources, without permission, and with exactly the permissions it
documents.
"""

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer.main
from confluent_kafka import Producer
from typer.testing import CliRunner, Result

from barnabas.base.ids import TopicPartition
from barnabas.cli.main import app
from barnabas.cli.support.commands import entry_of
from barnabas.cli.support.failures import NOT_FOUND, OK, REFUSED, UNREACHABLE, WRONG_USE
from barnabas.client.core.connection import BrokerConnection
from barnabas.client.core.request_codec import api_name
from barnabas.testing import EmbeddedBroker
from support.audit import AUDITED
from support.sasl import MODULE, SASL_SETTINGS

SETTINGS = {
    **SASL_SETTINGS,
    **AUDITED,
    "auto.create.topics.enable": "false",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "delegation.token.secret.key": "secret of the brokers",
}
ROOT: Any = typer.main.get_command(app)
COMMANDS: dict[str, Any] = dict(ROOT.every_command())
VOTER = "3 AAECAwQFBgcICQoLDA0ODw"


class Case(NamedTuple):
    """Arguments of a command: with existing resources, and with missing ones (None: it takes no names)."""

    there: str
    missing: str | None


CASES = {
    "produce": Case("orders --file {lines}", "nope --file {lines}"),
    "consume": Case("orders --from-beginning --exit-at-end", "nope --exit-at-end"),
    "metadata": Case("orders", "nope"),
    "tables status": Case(
        "--topic orders --set barnabas.table.format=delta --location /nowhere/tables", "--topic nope"
    ),
    "topics list": Case("", None),
    "topics create": Case("fresh", None),
    "topics describe": Case("orders", "nope"),
    "topics partitions": Case("orders", "nope"),
    "topics delete": Case("doomed", "nope"),
    "topics add-partitions": Case("orders --total 7", "nope --total 7"),
    "topics trash": Case("", None),
    "topics undelete": Case("lost --as found", "nope"),
    "topics purge": Case("spoilt", "nope"),
    "records offsets": Case("orders", "nope"),
    "records epoch-ends": Case("orders --epoch 0", "nope:0 --epoch 0"),
    "records delete": Case("orders:0=end", "nope:0=1"),
    "configs list": Case("topic", None),
    "configs get": Case("topic orders", "topic nope"),
    "configs set": Case("topic orders retention.ms=1", "topic nope retention.ms=1"),
    "configs delete": Case("topic orders retention.ms", "topic nope retention.ms"),
    "configs replace": Case("topic orders retention.ms=2", "topic nope retention.ms=2"),
    "groups list": Case("", None),
    "groups describe": Case("billing", "nope"),
    "groups explain": Case("billing", "nope"),
    "groups delete": Case("doomed", "nope"),
    "groups offsets": Case("billing", "nope"),
    "groups reset-offsets": Case("billing orders --to-latest", "nope --to-latest"),
    "groups delete-offsets": Case("billing orders:1", "nope orders:1"),
    "groups remove-members": Case("billing --instance nobody", "nope --instance nobody"),
    "transactions list": Case("", None),
    "transactions describe": Case("payments", "nope"),
    "transactions producers": Case("open:0", "nope:0"),
    "transactions abort": Case("open:0 --start-offset 0", "nope:0 --start-offset 0"),
    "transactions terminate": Case("payments", "nope"),
    "cluster status": Case("", None),
    "brokers list": Case("", None),
    "brokers api-versions": Case("1", "77"),
    "brokers unregister": Case("77", "77"),
    "elections": Case("orders:0", "nope:0"),
    "reassignments list": Case("", None),
    "reassignments start": Case("orders:0=1", "nope:0=1"),
    "reassignments balance": Case("", "--brokers 77"),
    "reassignments cancel": Case("orders:0", "nope:0"),
    "log-dirs describe": Case("", "--broker 77"),
    "log-dirs move": Case("{directory} orders:0", "/nowhere orders:0"),
    "features list": Case("", None),
    "features set": Case("metadata.version=30", None),
    "quorum describe": Case("", None),
    "quorum add-voter": Case(f"{VOTER} C=h:1", None),
    "quorum remove-voter": Case(VOTER, VOTER),
    "quorum update-voter": Case(f"{VOTER} C=h:1", f"{VOTER} C=h:1"),
    "acls list": Case("", None),
    "acls unused": Case("", None),
    "acls record": Case("{directory}/decisions", None),
    "acls simulate": Case("{decisions}", "{decisions}-not"),
    "acls explain": Case("--principal User:ANONYMOUS --operation describe --topic orders", None),
    "acls effective": Case("alice", None),
    "acls add": Case("--principal x --operation read --topic y", None),
    "acls remove": Case("--principal nobody", None),
    "tokens list": Case("", None),
    "tokens create": Case("--owner carol", None),
    "tokens renew": Case("{token}", None),
    "tokens expire": Case("{token} --for 1h", None),
    "users list": Case("carol", "nope"),
    "users add": Case("dave --password secret", None),
    "users remove": Case("carol", "nope"),
    "quotas list": Case("", None),
    "quotas set": Case("user=carol producer_byte_rate=1", None),
    "quotas remove": Case("user=carol producer_byte_rate", None),
    "policy test": Case("--rules {rules}", "{rules}-not --rules {rules}"),
    "audit": Case("", None),
    "history": Case("topic/orders", "topic/nope"),
    "rollback": Case("topic/orders --to {revision}", "topic/nope --to 1"),
    "export": Case("", None),
    "plan": Case("{state}", "{state}-not"),
    "apply": Case("{state} --yes", "{state}-not --yes"),
    "drift": Case("{state}", "{state}-not"),
    "verify-eos produce": Case("orders --count 1", "nope --count 1"),
    "verify-eos check": Case("orders orders", "nope nope"),
}


#: What a command calls only if there is something to change, which is not so in `World`.
NOT_CALLED = {"reassignments balance": {"AlterPartitionReassignments", "ElectLeaders"}}


class World(NamedTuple):
    """A broker with some of everything, and the commands' principals."""

    kafka: EmbeddedBroker
    alice: str
    names: dict[str, str]

    def run(self, command: str, arguments: str, *, as_alice: bool = False) -> Result:
        """Run the command as the administrator, or as Alice, who has only permitted operations."""
        listener = "CLIENTS" if as_alice else "PLAINTEXT"
        address = next(
            f"{host}:{port}" for name, host, port in self.kafka.server.addresses if name == listener
        )
        login = {"BARNABAS_COMMAND_CONFIG": self.alice} if as_alice else {}
        words = [*command.split(), *shlex.split(arguments.format(**self.names))]
        return CliRunner().invoke(app, words, env={"BARNABAS_BOOTSTRAP": address, "COLUMNS": "200", **login})

    def make(self) -> None:
        """Create the resources that cases name."""
        for topic in {"orders", "doomed", "open"} - self.kafka.topics().keys():
            self.kafka.create_topic(topic, partitions=2)
        self.kafka.produce("orders", "one")  # commands that read fetch only where there is something
        groups = self.kafka.client.groups
        for group in ("billing", "doomed"):
            groups.commit_offsets(group, {TopicPartition("orders", 1): 0})
        self.run("users add", "carol --password secret")
        [token] = json.loads(self.run("tokens create", "--json", as_alice=True).stdout)
        self.names["token"] = token["token"]
        self.run("topics delete", "fresh found --if-exists")
        trashed = {each["topic"] for each in json.loads(self.run("topics trash", "--json").stdout)}
        for topic in {"lost", "spoilt"} - trashed:
            self.kafka.create_topic(topic)
            self.run("topics delete", topic)

    def permit(self, needs: tuple[str, ...]) -> None:
        """Replace Alice's permissions."""
        self.run("acls remove", "--principal alice")
        for operation, kind in (need.split() for need in needs):
            on = "--cluster" if kind == "cluster" else f"--{kind} '*'"
            done = self.run("acls add", f"--principal alice --operation {operation} {on}")
            assert done.exit_code == OK, done.output


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    home = tmp_path_factory.mktemp("home")
    (home / "alice").write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        f'sasl.jaas.config={MODULE} required username="alice" password="alice-secret";\n'
    )
    (home / "lines").write_text("one\n")
    (home / "rules").write_text("mode: enforce\n")
    (home / "decisions").write_text("")
    with EmbeddedBroker(SETTINGS) as kafka:
        files = {name: str(home / name) for name in ("lines", "rules", "state", "decisions")}
        world = World(kafka, str(home / "alice"), {**files, "directory": str(kafka.directory)})
        world.make()
        (home / "state").write_text(world.run("export", "--include topic/open").stdout)
        world.names["revision"] = str(kafka.server.broker.image.revision)
        yield world


@pytest.fixture(scope="module")
def transaction(world: World) -> Iterator[None]:
    """Begin a transaction that stays open."""
    address = next(
        f"{host}:{port}" for name, host, port in world.kafka.server.addresses if name == "PLAINTEXT"
    )
    producer = Producer({"bootstrap.servers": address, "transactional.id": "payments"})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce("open", b"1", partition=0)
    producer.flush()
    yield
    producer.purge()


@pytest.fixture
def called_apis(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Collect the APIs that commands call."""
    names: set[str] = set()
    transmit = BrokerConnection._transmit

    def noted(self: BrokerConnection, request: object, version: int) -> int:
        names.add(api_name(type(request)))  # type: ignore[arg-type]
        return transmit(self, request, version)  # type: ignore[arg-type]

    monkeypatch.setattr(BrokerConnection, "_transmit", noted)
    return names


def commands() -> set[str]:
    """Return every command that calls brokers and ends, except jobs."""
    return {
        name
        for name, command in COMMANDS.items()
        if name.split()[0] not in ("jobs", "console", "registry")
        and name != "tables run"
        and any(param.name == "bootstrap" for param in command.params)
    }


def test_every_command_that_calls_brokers_has_a_case() -> None:
    assert sorted(commands() - CASES.keys()) == []


@pytest.mark.parametrize("command", [name for name, case in CASES.items() if case.missing is not None])
def test_a_missing_resource_is_exit_code_3(world: World, command: str) -> None:
    result = world.run(command, CASES[command].missing or "")
    assert result.exit_code == NOT_FOUND, result.output
    assert "error: " in result.stderr


@pytest.mark.usefixtures("transaction")
@pytest.mark.parametrize("command", CASES)
def test_a_command_needs_the_permissions_and_calls_the_apis_that_it_documents(
    world: World, called_apis: set[str], command: str
) -> None:
    entry, case = entry_of(COMMANDS[command].callback), CASES[command]
    world.make()
    world.permit(())
    refused = world.run(command, case.there, as_alice=True)
    assert (refused.exit_code == REFUSED) != entry.hides, refused.output
    assert entry.hides or f"barnabas acls add --principal alice --operation {entry.needs[0].split()[0]}" in (
        refused.stderr
    )
    world.permit(entry.needs)
    called_apis.clear()
    allowed = world.run(command, case.there, as_alice=True)
    assert allowed.exit_code not in (WRONG_USE, REFUSED, UNREACHABLE), allowed.output
    assert set(entry.apis) - NOT_CALLED.get(command, set()) <= called_apis


def test_a_policy_violation_has_the_policys_message(tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text("mode: enforce\ntopics:\n  - prefix: tmp\n    partitions: {max: 1}\n")
    with EmbeddedBroker({"barnabas.policy.file": str(rules)}) as kafka:
        result = CliRunner().invoke(
            app, ["topics", "create", "tmp-1", "-p", "2"], env={"BARNABAS_BOOTSTRAP": kafka.bootstrap}
        )
    assert result.exit_code == REFUSED, result.output
    assert "POLICY_VIOLATION" in result.stderr
    assert "comply with the policy" in result.stderr


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("topics describe ordesr", "orders"),
        ("records delete ordr:0=1", "orders"),
        ("groups describe biling", "billing"),
    ],
)
def test_an_unknown_name_suggests_a_similar_one(world: World, command: str, name: str) -> None:
    world.make()
    result = world.run(command, "")
    assert result.exit_code == NOT_FOUND
    assert f"try: {name}, which exists" in result.stderr
