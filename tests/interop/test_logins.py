"""Real clients and Kafka's tools log in with PLAIN and both kinds of SCRAM, and with a wrong password."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from interop.brokers import shifted
from interop.clients import KINDS, Client, ClientError
from interop.reference import tool, write_properties
from interop.sasl import LOGINS
from interop.targets import BROKERS_COUNT, START
from interop.topics import write_and_read

from interop import sasl


@pytest.fixture(scope="module")
def address(target: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the first broker's SASL listener; `admin` has created the SCRAM users with Kafka's own tool."""
    home, address = tmp_path_factory.mktemp("logins"), sasl.free_address(BROKERS_COUNT)
    settings = {
        **sasl.SETTINGS,
        "delegation.token.secret.key": "secret of the brokers",
        "group.initial.rebalance.delay.ms": "0",
    }
    broker = START[target](home, settings, listeners=[f"{sasl.LISTENER}://{address}"])
    try:
        sasl.create_scram_users(address, "--command-config", properties(home, "PLAIN", "admin"))
        yield address
    finally:
        broker.stop()


def properties(home: Path, mechanism: str, user: str, password: str | None = None) -> Path:
    """Write a file for --command-config."""
    path = home / f"{user}.properties"
    write_properties(path, sasl.client_properties(mechanism, user, password or f"{user}-secret"))
    return path


def run(name: str, address: str, config: Path, *arguments: str) -> str:
    return tool(name, "--bootstrap-server", address, "--command-config", config, *arguments).stdout


@pytest.mark.parametrize("name", [kind.name for kind in KINDS.values() if kind.is_secure])
@pytest.mark.parametrize("mechanism", LOGINS)
def test_a_client_logs_in_and_works(address: str, tmp_path: Path, name: str, mechanism: str) -> None:
    with closing(Client(KINDS[name], address, tmp_path / "client.log", LOGINS[mechanism])) as client:
        assert write_and_read(client, f"logins-{name}-{mechanism}") == ["one", "two"]
        addresses = [shifted(address, number) for number in range(BROKERS_COUNT)]
        assert sorted(client.do("metadata")["brokers"]) == sorted(addresses)


@pytest.mark.parametrize("name", ["java", "franz-go", "kafkajs"])
@pytest.mark.parametrize("mechanism", LOGINS)
def test_a_client_with_a_wrong_password_gets_the_reason(
    address: str, tmp_path: Path, name: str, mechanism: str
) -> None:
    login = (*LOGINS[mechanism][:2], "wrong")
    with (
        closing(Client(KINDS[name], address, tmp_path / "client.log", login)) as client,
        pytest.raises(ClientError) as refused,
    ):
        client.do("metadata")
    assert "sasl" in f"{refused.value.name} {refused.value.message}".lower()


@pytest.mark.parametrize("mechanism", LOGINS)
def test_kafka_topics_logs_in_with_a_command_config(address: str, tmp_path: Path, mechanism: str) -> None:
    config = properties(tmp_path, *LOGINS[mechanism])
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
    token_id, hmac = sasl.create_token(address, alice, "--renewer-principal", "User:bob")
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
