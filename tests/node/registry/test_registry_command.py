"""`barnabas registry` in a process of its own."""

import re
import signal
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from barnabas.testing import EmbeddedBroker
from barnabas.wire.acls import AclBinding, AclOperation, AclPermission, PatternType, ResourceType
from support.certificates import Authority
from support.process import START_TIMEOUT_S, clean_environment
from support.registries import RestClient, avro_record

COMMAND = [sys.executable, "-m", "barnabas", "registry"]
LISTEN = ["--listen", "127.0.0.1:0"]
LOGIN = (
    "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-256\nsasl.jaas.config="
    'org.apache.kafka.common.security.scram.ScramLoginModule required username="registry" password="secret";\n'
)


@contextmanager
def running(bootstrap: str, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start the command; yield the process and its URL, and end it."""
    command = [*COMMAND, "--bootstrap", bootstrap, *LISTEN, *options]
    with subprocess.Popen(command, env=clean_environment(), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        printed = re.search(rf"The schema registry of {bootstrap}: (https?://\S+)", process.stdout.readline())
        assert printed
        try:
            yield process, printed[1]
        finally:
            process.terminate()
            process.wait(START_TIMEOUT_S)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_schemas_until_a_signal(kafka: EmbeddedBroker, number: signal.Signals) -> None:
    with running(kafka.bootstrap, "--topic", "own_schemas") as (process, url):
        assert RestClient(url).register("s", avro_record("R", "a")) == {"id": 1}
        process.send_signal(number)
        assert process.wait(START_TIMEOUT_S) == 0
    assert "own_schemas" in kafka.server.broker.metadata.image.topics


@pytest.mark.kafka_users({"registry": "secret"})
def test_it_logs_in_with_a_command_config(kafka: EmbeddedBroker, tmp_path: Path) -> None:
    config = tmp_path / "client.properties"
    config.write_text(LOGIN)
    with running(kafka.bootstrap, "--command-config", str(config)) as (_, url):
        assert RestClient(url).register("s", avro_record("R", "a")) == {"id": 1}


GRANTS = (
    *((ResourceType.TOPIC, "_schemas", name) for name in ("CREATE", "READ", "WRITE")),
    (ResourceType.TRANSACTIONAL_ID, "barnabas-registry-_schemas", "WRITE"),
)


@pytest.mark.kafka_users({"registry": "secret", "admin": "secret"})
@pytest.mark.kafka_settings(
    {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin;User:ANONYMOUS",
    }
)
def test_it_needs_few_permissions(kafka: EmbeddedBroker, tmp_path: Path) -> None:
    config = tmp_path / "client.properties"
    config.write_text(LOGIN)
    bindings = [
        AclBinding(
            kind,
            name,
            PatternType.LITERAL,
            "User:registry",
            "*",
            AclOperation[operation],
            AclPermission.ALLOW,
        )
        for kind, name, operation in GRANTS
    ]
    assert set(kafka.client.admin.create_acls(bindings)) == {None}
    with running(kafka.bootstrap, "--command-config", str(config)) as (_, url):
        assert RestClient(url).register("s", avro_record("R", "a")) == {"id": 1}
        assert RestClient(url).register("s", avro_record("R", "a", "b?")) == {"id": 2}


def test_with_a_keystore_it_serves_https(kafka: EmbeddedBroker, tmp_path: Path) -> None:
    authority = Authority()
    keystore = authority.issue().write_pem(tmp_path / "own.pem")
    trusting = ssl.create_default_context(cadata=authority.pem)
    with running(kafka.bootstrap, "--keystore", str(keystore)) as (_, url):
        assert RestClient(url, verify=trusting).get("/subjects") == []


def test_with_users_it_refuses_everybody_else(kafka: EmbeddedBroker, tmp_path: Path) -> None:
    (tmp_path / "users").write_text("# users\nalice=secret\n")
    with running(kafka.bootstrap, "--users-file", str(tmp_path / "users")) as (_, url):
        for auth in (None, ("alice", "wrong"), ("bob", "secret")):
            response = RestClient(url, auth=auth).send("GET", "/subjects")
            assert response.status_code == 401
            assert response.headers["www-authenticate"].startswith("Basic")
        assert RestClient(url, auth=("alice", "secret")).get("/subjects") == []


def test_a_file_of_users_without_passwords_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "users").write_text("alice\n")
    ended = subprocess.run(
        [*COMMAND, *LISTEN, "--users-file", str(tmp_path / "users")],
        env=clean_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 2
    assert "line 1: must be NAME=PASSWORD" in ended.stderr


def test_a_trust_store_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    config = tmp_path / "client.properties"
    config.write_text("security.protocol=SSL\nssl.truststore.location=/none\nssl.truststore.type=PEM\n")
    command = [*COMMAND, "--bootstrap", "127.0.0.1:1", *LISTEN, "--command-config", str(config)]
    ended = subprocess.run(
        command, env=clean_environment(), capture_output=True, text=True, timeout=START_TIMEOUT_S, check=False
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == "error: ssl.truststore.location=/none: cannot be read: No such file or directory\n"


def test_on_a_loopback_address_it_refuses_the_names_of_others(kafka: EmbeddedBroker) -> None:
    with running(kafka.bootstrap) as (_, url):
        response = RestClient(url).send("GET", "/subjects", headers={"Host": "attacker.example"})
    assert response.status_code == 421
