"""Real clients and Kafka's tools log in with PLAIN and both kinds of SCRAM, and with a wrong password."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from interop.brokers import shifted
from interop.clients import KINDS, Client, ClientError
from interop.reference import tool
from interop.targets import BROKERS_COUNT, START

from interop import sasl

USERS = {"PLAIN": "alice", "SCRAM-SHA-256": "carol", "SCRAM-SHA-512": "dave"}
LOGGING_IN = [kind.name for kind in KINDS.values() if kind.logs_in]


@pytest.fixture(scope="module")
def address(target: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the first broker's SASL listener; `admin` has created the SCRAM users with Kafka's own tool."""
    home, address = tmp_path_factory.mktemp("logins"), sasl.free_address(BROKERS_COUNT)
    settings = sasl.SETTINGS | {"delegation.token.secret.key": "secret of the brokers"}
    broker = START[target](home, settings, listeners=[f"{sasl.LISTENER}://{address}"])
    try:
        admin = properties(home, "PLAIN", "admin")
        for mechanism, user in USERS.items():
            if mechanism != "PLAIN":
                setting = f"{mechanism}=[iterations=4096,password={user}-secret]"
                who = ("--alter", "--entity-type", "users", "--entity-name", user, "--add-config", setting)
                run("kafka-configs", address, admin, *who)
        yield address
    finally:
        broker.stop()


def properties(home: Path, mechanism: str, user: str, password: str | None = None) -> Path:
    """Write a file for --command-config."""
    given = sasl.client_properties(mechanism, user, password or f"{user}-secret")
    path = home / f"{user}.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in given.items()))
    return path


def run(name: str, address: str, config: Path, *arguments: str) -> str:
    return tool(name, "--bootstrap-server", address, "--command-config", config, *arguments).stdout


@pytest.mark.parametrize("name", LOGGING_IN)
@pytest.mark.parametrize("mechanism", USERS)
def test_a_client_logs_in_and_works(address: str, tmp_path: Path, name: str, mechanism: str) -> None:
    user = USERS[mechanism]
    client = Client(KINDS[name], address, tmp_path / "client.log", (mechanism, user, f"{user}-secret"))
    try:
        topic = f"logins-{name}-{mechanism}"
        client.do("create_topic", topic=topic, partitions=1, configs={})
        addresses = [shifted(address, number) for number in range(BROKERS_COUNT)]
        assert sorted(client.do("metadata")["brokers"]) == sorted(addresses)
        records = [{"key": None, "value": text} for text in ("one", "two")]
        assert client.do(
            "produce", topic=topic, partition=0, records=records, codec="none", idempotent=True
        ) == [0, 1]
        if client.kind.can("consume"):
            read = client.do("consume", topic=topic, partition=0, count=2)
            assert [record["value"] for record in read] == ["one", "two"]
    finally:
        client.close()


@pytest.mark.parametrize("name", ["java", "franz-go", "kafkajs"])
@pytest.mark.parametrize("mechanism", USERS)
def test_a_client_with_a_wrong_password_gets_the_reason(
    address: str, tmp_path: Path, name: str, mechanism: str
) -> None:
    client = Client(KINDS[name], address, tmp_path / "client.log", (mechanism, USERS[mechanism], "wrong"))
    try:
        with pytest.raises(ClientError) as refused:
            client.do("metadata")
    finally:
        client.close()
    assert "sasl" in f"{refused.value.name} {refused.value.message}".lower()


@pytest.mark.parametrize("mechanism", USERS)
def test_kafka_topics_logs_in_with_a_command_config(address: str, tmp_path: Path, mechanism: str) -> None:
    config = properties(tmp_path, mechanism, USERS[mechanism])
    topic = f"logins-tools-{mechanism}"
    assert f"Created topic {topic}." in run("kafka-topics", address, config, "--create", "--topic", topic)
    assert topic in run("kafka-topics", address, config, "--list").split()


def test_kafka_topics_reports_that_the_login_failed(address: str, tmp_path: Path) -> None:
    config = properties(tmp_path, "SCRAM-SHA-256", "carol", "wrong")
    done = tool(
        "kafka-topics", "--bootstrap-server", address, "--command-config", config, "--list", check=False
    )
    assert done.returncode != 0
    assert (
        "Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-256"
        in done.stdout + done.stderr
    )


def test_kafka_configs_describes_and_deletes_scram_credentials(address: str, tmp_path: Path) -> None:
    admin = properties(tmp_path, "PLAIN", "admin")
    who = ("--entity-type", "users", "--entity-name", "erin")
    run("kafka-configs", address, admin, "--alter", *who, "--add-config", "SCRAM-SHA-512=[password=x]")
    described = run("kafka-configs", address, admin, "--describe", *who)
    assert "SCRAM credential configs for user-principal 'erin' are SCRAM-SHA-512=iterations=4096" in described
    run("kafka-configs", address, admin, "--alter", *who, "--delete-config", "SCRAM-SHA-512")
    assert "SCRAM-SHA-512" not in run("kafka-configs", address, admin, "--describe", *who)


def test_kafka_delegation_tokens_creates_a_token_with_which_clients_log_in(
    address: str, tmp_path: Path
) -> None:
    alice = properties(tmp_path, "PLAIN", "alice")
    made = run(
        *("kafka-delegation-tokens", address, alice, "--create", "--max-life-time-period", "-1"),
        *("--renewer-principal", "User:bob"),
    )
    row = next(line.split() for line in made.splitlines() if "User:alice" in line)
    token_id, hmac = row[:2]
    described = ("--describe", "--owner-principal", "User:alice")
    assert token_id in run("kafka-delegation-tokens", address, alice, *described)
    renewal = ("--renew", "--renew-time-period", "3600000", "--hmac", hmac)
    bob = properties(tmp_path, "PLAIN", "bob")
    assert "Completed renew operation" in run("kafka-delegation-tokens", address, bob, *renewal)
    config = properties(tmp_path, "SCRAM-SHA-512", token_id, hmac)
    config.write_text(config.read_text().replace('";', '" tokenauth=true;'))
    assert "Created topic of-a-token." in run(
        "kafka-topics", address, config, "--create", "--topic", "of-a-token"
    )
    expiry = ("--expire", "--expiry-time-period", "-1", "--hmac", hmac)
    assert "Completed expire operation" in run("kafka-delegation-tokens", address, alice, *expiry)
    refused = tool(
        "kafka-topics", "--bootstrap-server", address, "--command-config", config, "--list", check=False
    )
    assert refused.returncode != 0
    assert "invalid credentials" in refused.stdout + refused.stderr
