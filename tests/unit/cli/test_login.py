import json
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from barnabas.cli.main import app
from barnabas.cli.support.login import command_config, current_login, current_tls, security_properties
from barnabas.client.auth.sasl import SaslLogin
from barnabas.tls.settings import TrustStore
from unit.cli.conftest import Run

DIRECTORY_PROVIDER = "org.apache.kafka.common.config.provider.DirectoryConfigProvider"
JAAS = 'a.PlainLoginModule required username="alice" password="secret";'


def test_every_command_that_calls_brokers_has_login_options() -> None:
    root: Any = get_command(app)
    options = {
        name: {option for param in command.params for option in param.opts}
        for name, command in root.every_command()
    }
    speaking = {name: opts for name, opts in options.items() if "--bootstrap" in opts}
    assert len(speaking) > 10
    assert [name for name, opts in speaking.items() if "--command-config" not in opts] == []


def test_without_a_file_there_is_no_login(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config={JAAS}\n")
    assert current_login() is None
    with command_config(path):
        assert current_login() == SaslLogin("PLAIN", "alice", "secret")
        assert security_properties() == {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": JAAS,
        }
    assert current_login() is None
    assert security_properties() == {}


def test_the_file_says_how_connections_are_encrypted(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text(
        "security.protocol=SSL\nssl.truststore.type=PEM\nssl.truststore.location=ca.pem\nacks=all\n"
    )
    with command_config(path):
        assert current_login() is None
        tls = current_tls()
        assert tls is not None
        assert tls.trust == TrustStore("PEM", "ca.pem")
        assert "acks" not in security_properties()
        assert security_properties()["ssl.truststore.location"] == "ca.pem"
    assert current_tls() is None


@pytest.mark.parametrize(
    ("content", "exit_code", "why"),
    [
        (None, 3, "No such file"),
        ("security.protocol=TLS", 2, "client.properties: security.protocol=TLS"),
        (
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config=secret",
            2,
            "one login module",
        ),
        ("\n\na=\\u12", 2, "line 3: '\\u12' is not a valid character: expected four hexadecimal"),
    ],
)
def test_an_invalid_file_is_reported_without_its_password(
    run: Run, tmp_path: Path, content: str | None, exit_code: int, why: str
) -> None:
    path = tmp_path / "client.properties"
    if content is not None:
        path.write_text(content)
    result = run("topics", "list", "--command-config", str(path))
    assert result.exit_code == exit_code
    assert why in result.stderr
    assert "secret" not in result.stderr


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (
            "security.protocol=${dir:HOME:misplaced}",
            "security.protocol=${dir:HOME:misplaced}: must be one of",
        ),
        (
            "security.protocol=SSL\nssl.enabled.protocols=TLSv1.3,${dir:HOME:misplaced}",
            "ssl.enabled.protocols=TLSv1.3,${dir:HOME:misplaced}: must be among",
        ),
        (
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=${dir:HOME:misplaced}",
            "sasl.mechanism=${dir:HOME:misplaced}: this client supports",
        ),
    ],
)
def test_an_error_in_the_file_shows_variables_instead_of_values(
    run: Run, tmp_path: Path, content: str, why: str
) -> None:
    (tmp_path / "misplaced").write_text("hunter2")
    path = tmp_path / "client.properties"
    providers = f"config.providers=dir\nconfig.providers.dir.class={DIRECTORY_PROVIDER}\n"
    path.write_text(providers + content.replace("HOME", str(tmp_path)))
    result = run("topics", "list", "--command-config", str(path))
    assert result.exit_code == 2
    assert why.replace("HOME", str(tmp_path)) in result.stderr
    assert "hunter2" not in result.stderr.lower()


def test_later_errors_show_variables_of_the_file_as_well(tmp_path: Path) -> None:
    (tmp_path / "misplaced").write_text("hunter2")
    path = tmp_path / "client.properties"
    location = f"${{dir:{tmp_path}:misplaced}}"
    path.write_text(
        f"config.providers=dir\nconfig.providers.dir.class={DIRECTORY_PROVIDER}\n"
        f"security.protocol=SSL\nssl.truststore.location={location}\n"
    )
    result = CliRunner().invoke(
        app, ["topics", "list", "--bootstrap", "127.0.0.1:1", "--command-config", str(path)]
    )
    assert result.exit_code == 2
    assert f"ssl.truststore.location={location}: cannot be read" in result.stderr


def test_suspicious_lines_are_reported_once_without_passwords(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text(
        "# mine\nsecurity.protocl=PLAINTEXT\nsecret;\nssl.truststore.location=x\nvalue.subject=y\n"
    )
    printed = run("topics", "list", "--command-config", str(path))
    assert printed.exit_code == 0
    start = f"warning: --command-config {path}: line"
    assert printed.stderr.splitlines() == [
        f"{start} 2: unknown client property 'security.protocl'; did you mean security.protocol?",
        f"{start} 3: expected key=value",
        f"{start} 5: unknown client property 'value.subject'",
    ]
    as_json = run("topics", "list", "--json", "--command-config", str(path))
    assert [list(json.loads(line)) for line in as_json.stderr.splitlines()] == [["warning"]] * 3
