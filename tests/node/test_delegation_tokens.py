"""Delegation tokens from the command line to the log, with brokers that require a login."""

import base64
import json
import re
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from barnabas.cli.main import app
from barnabas.cli.support.failures import REFUSED
from barnabas.client.admin.delegation_tokens import DelegationTokenAdmin, IssuedToken
from barnabas.client.auth.sasl import SaslLogin
from barnabas.client.core.cluster import ClusterClient
from barnabas.metadata.audit.events import AuditOutcome
from barnabas.telemetry.logs import clear_level, set_level
from barnabas.testing import EmbeddedBroker
from barnabas.wire.errors import ErrorCode, KafkaError
from support.audit import AUDITED, events
from support.delegation_tokens import secrets_of
from support.loop import on_loop
from support.sasl import ALICE, MODULE, SASL_SETTINGS
from support.tls import AUTHORITY, REQUIRED, port_of, settings_of, write_keystore
from support.waiting import until

SECRET = "secret of the brokers"
SETTINGS = {
    **SASL_SETTINGS,
    **AUDITED,
    "delegation.token.secret.key": SECRET,
    "delegation.token.expiry.check.interval.ms": "50",
}
BOB = SaslLogin("PLAIN", "bob", "bob-secret")


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(SETTINGS) as kafka:
        yield kafka


def address(kafka: EmbeddedBroker) -> str:
    """Return the address of the listener that requires a login."""
    return next(f"{host}:{port}" for name, host, port in kafka.server.addresses if name == "CLIENTS")


def token_login(token: IssuedToken, mechanism: str = "SCRAM-SHA-256") -> SaslLogin:
    return SaslLogin(mechanism, token.token_id, token.password, is_delegation_token=True)


async def log_in(kafka: EmbeddedBroker, login: SaslLogin) -> None:
    async with ClusterClient(address(kafka), login=login) as cluster:
        await cluster.refresh([])


class Console:
    """The command line of a user."""

    def __init__(self, kafka: EmbeddedBroker, properties: Path) -> None:
        self._environment = {
            "BARNABAS_BOOTSTRAP": address(kafka),
            "BARNABAS_COMMAND_CONFIG": str(properties),
            "COLUMNS": "250",
        }

    def run(self, *words: str) -> Result:
        return CliRunner().invoke(app, words, env=self._environment)


@pytest.fixture
def alice(broker: EmbeddedBroker, tmp_path: Path) -> Console:
    (tmp_path / "alice.properties").write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        f'sasl.jaas.config={MODULE} required username="alice" password="alice-secret";\n'
    )
    return Console(broker, tmp_path / "alice.properties")


def test_a_token_from_the_command_line_logs_in_its_owner(
    broker: EmbeddedBroker, alice: Console, tmp_path: Path
) -> None:
    path = tmp_path / "token.properties"
    created = alice.run("tokens", "create", "--properties", str(path), "--max-lifetime", "1h", "--json")
    [token] = json.loads(created.stdout)
    assert token["owner"] == token["requester"] == "User:alice"
    assert token["expires_max_ms"] - token["issued_ms"] == 3_600_000
    assert path.stat().st_mode & 0o777 == 0o600
    assert "password" not in created.stdout
    path.write_text(f"security.protocol=SASL_PLAINTEXT\n{path.read_text()}")
    with_token = Console(broker, path)
    assert with_token.run("topics", "create", "orders").exit_code == 0
    [change] = [event for event in events(broker) if event.key == "partitions"]
    assert change.principal == "User:alice"
    refused = with_token.run("tokens", "create")
    assert refused.exit_code == REFUSED
    assert "but not with a delegation token" in refused.stderr


@pytest.mark.parametrize(
    ("of_login", "of_token"), [("SCRAM-SHA-512", "SCRAM-SHA-512"), ("PLAIN", "SCRAM-SHA-256")]
)
def test_the_properties_of_a_token_have_a_mechanism_of_the_listener(
    alice: Console, tmp_path: Path, of_login: str, of_token: str
) -> None:
    assert alice.run("users", "add", "alice", "--password", "alice-secret").exit_code == 0
    login = tmp_path / "alice.properties"
    login.write_text(login.read_text().replace("sasl.mechanism=PLAIN", f"sasl.mechanism={of_login}"))
    path = tmp_path / "token.properties"
    assert alice.run("tokens", "create", "--properties", str(path)).exit_code == 0
    assert path.read_text().startswith(f"sasl.mechanism={of_token}\n")


def test_a_client_with_a_certificate_gets_the_properties_of_a_token(tmp_path: Path) -> None:
    broker_store = write_keystore(AUTHORITY.issue(), tmp_path / "broker.pem")
    own = write_keystore(AUTHORITY.issue(), tmp_path / "own.pem")
    (tmp_path / "trust.pem").write_text(AUTHORITY.pem)
    (tmp_path / "own.properties").write_text(
        f"security.protocol=SSL\nssl.keystore.type=PEM\nssl.keystore.location={own}\n"
        f"ssl.truststore.type=PEM\nssl.truststore.location={tmp_path / 'trust.pem'}\n"
    )
    path = tmp_path / "token.properties"
    settings = {**settings_of(broker_store, **REQUIRED), "delegation.token.secret.key": SECRET}
    with EmbeddedBroker(settings) as kafka:
        environment = {
            "BARNABAS_BOOTSTRAP": f"127.0.0.1:{port_of(kafka, 'SSL')}",
            "BARNABAS_COMMAND_CONFIG": str(tmp_path / "own.properties"),
        }
        result = CliRunner().invoke(app, ["tokens", "create", "--properties", str(path)], env=environment)
    assert result.exit_code == 0, result.stderr
    assert path.read_text().startswith("sasl.mechanism=SCRAM-SHA-256\nsasl.jaas.config=")


def test_an_existing_file_of_properties_is_kept(alice: Console, tmp_path: Path) -> None:
    path = tmp_path / "token.properties"
    path.write_text("mine")
    result = alice.run("tokens", "create", "--properties", str(path))
    assert result.exit_code != 0
    assert "exists" in result.stderr
    assert path.read_text() == "mine"
    assert alice.run("tokens", "list", "--json").stdout.strip() == "[]"


def test_tokens_are_listed_renewed_and_expired(alice: Console) -> None:
    [token] = json.loads(alice.run("tokens", "create", "--renewer", "bob", "--json").stdout)
    listed = alice.run("tokens", "list")
    assert re.search(rf"{token['token']}\s+User:alice\s+User:alice\s+User:bob", listed.stdout)
    assert token["password"] not in listed.stdout
    renewed = json.loads(alice.run("tokens", "renew", token["token"], "--for", "2h", "--json").stdout)
    assert renewed["expires_ms"] != token["expires_ms"]
    assert alice.run("tokens", "expire", token["token"]).exit_code == 0
    unknown = alice.run("tokens", "expire", token["token"])
    assert f"delegation token '{token['token']}' does not exist" in unknown.stderr


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
@on_loop
async def test_a_token_logs_in_by_each_mechanism(broker: EmbeddedBroker, mechanism: str) -> None:
    async with ClusterClient(address(broker), login=ALICE) as cluster:
        token = await DelegationTokenAdmin(cluster).create()
    await log_in(broker, token_login(token, mechanism))
    with pytest.raises(KafkaError) as raised:
        await log_in(broker, SaslLogin(mechanism, token.token_id, token.password))
    assert raised.value.code is ErrorCode.SASL_AUTHENTICATION_FAILED


@on_loop
async def test_an_expired_token_logs_nobody_in_and_is_removed(broker: EmbeddedBroker) -> None:
    async with ClusterClient(address(broker), login=ALICE) as cluster:
        admin = DelegationTokenAdmin(cluster)
        token = await admin.create(max_lifetime_ms=1)
        with pytest.raises(
            KafkaError, match=f"refused delegation token '{token.token_id}', which may have"
        ) as raised:
            await log_in(broker, token_login(token))
    assert raised.value.code is ErrorCode.SASL_AUTHENTICATION_FAILED
    until(lambda: not broker.server.broker.image.delegation_tokens)


@on_loop
async def test_tokens_survive_a_restart(broker: EmbeddedBroker) -> None:
    async with ClusterClient(address(broker), login=ALICE) as cluster:
        token = await DelegationTokenAdmin(cluster).create()
    broker.restart(kill=True)
    await log_in(broker, token_login(token))


@on_loop
async def test_each_change_of_a_token_is_audited_without_its_password(broker: EmbeddedBroker) -> None:
    async with ClusterClient(address(broker), login=ALICE) as cluster:
        admin = DelegationTokenAdmin(cluster)
        token = await admin.create(renewers=["User:bob"])
    async with ClusterClient(address(broker), login=BOB) as cluster:
        admin = DelegationTokenAdmin(cluster)
        expires_ms = await admin.renew(token.hmac, 1_000)
        await admin.expire(token.hmac)
    until(lambda: len(events(broker)) == 3)
    found = [event for event in events(broker) if event.outcome is AuditOutcome.CHANGED]
    state = {"requester": "User:alice", "renewers": ["User:bob"], "expires_ms": token.expires_ms}
    renewed = {**state, "expires_ms": expires_ms}
    assert [(each.api, each.principal, each.before, each.after) for each in found] == [
        ("CreateDelegationToken", "User:alice", None, state),
        ("RenewDelegationToken", "User:bob", state, renewed),
        ("ExpireDelegationToken", "User:bob", renewed, None),
    ]
    assert {(each.resource, each.key) for each in found} == {
        ("user/User:alice", f"delegation token {token.token_id}")
    }
    for hidden in (token.password, token.hmac.hex(), SECRET):
        assert hidden not in repr(found)


def test_secrets_of_tokens_are_neither_logged_nor_shown(
    broker: EmbeddedBroker, alice: Console, capfd: pytest.CaptureFixture[str]
) -> None:
    set_level("barnabas", "DEBUG")
    [token] = json.loads(alice.run("tokens", "create", "--json").stdout)
    alice.run("tokens", "renew", token["token"], "--for", "2h")
    [stored] = broker.server.broker.image.delegation_tokens.values()
    until(lambda: len(events(broker)) == 2)
    commands = (["tokens", "list", "--json"], ["export"], ["audit", "--json"])
    output = "".join(alice.run(*words).stdout for words in commands) + "".join(capfd.readouterr())
    clear_level("barnabas")
    assert token["token"] in output
    hidden = secrets_of(base64.b64decode(token["password"]), stored)
    assert [secret for secret in hidden if secret in output] == []


@pytest.mark.parametrize("ask", [DelegationTokenAdmin.create, DelegationTokenAdmin.describe])
@on_loop
async def test_without_a_login_there_are_no_tokens(
    broker: EmbeddedBroker, ask: Callable[[DelegationTokenAdmin], Awaitable[object]]
) -> None:
    plaintext = next(f"{host}:{port}" for name, host, port in broker.server.addresses if name == "PLAINTEXT")
    async with ClusterClient(plaintext) as cluster:
        with pytest.raises(KafkaError) as raised:
            await ask(DelegationTokenAdmin(cluster))
    assert raised.value.code is ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
