"""`barnabas users`, `--command-config` and `serve --add-scram`, against a broker with SASL."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from barnabas.cli.main import app
from support.process import BrokerProcess, run_serve
from support.sasl import MODULE
from support.waiting import until

SETTINGS = {
    "listeners": "CLIENTS://127.0.0.1:0",
    "listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT",
    "inter.broker.listener.name": "CLIENTS",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
    "listener.name.clients.plain.sasl.jaas.config": f'{MODULE} required user_old="old-secret";',
}

Run = Callable[..., Result]


def arguments() -> list[str]:
    return [part for key, value in SETTINGS.items() for part in ("--set", f"{key}={value}")]


def client_properties(path: Path, user: str, password: str, mechanism: str) -> Path:
    path.write_text(
        "security.protocol=SASL_PLAINTEXT\n"
        f"sasl.mechanism={mechanism}\n"
        f'sasl.jaas.config={MODULE} required \\\n  username="{user}" password="{password}";\n'
    )
    return path


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    (tmp_path / "password").write_text("from-a-file\n")
    users = ["--add-scram", "admin=admin-secret", "--add-scram", f"reader=@{tmp_path / 'password'}"]
    environment = {"BARNABAS_ADD_SCRAM": "writer=from-the-environment"}
    with BrokerProcess(tmp_path / "data", *arguments(), *users, port=-1, environment=environment) as broker:
        yield broker


@pytest.fixture
def run(broker: BrokerProcess, tmp_path: Path) -> Run:
    """Return a function that runs the command line as `admin`, or as the user in a properties file."""
    admin = client_properties(tmp_path / "admin.properties", "admin", "admin-secret", "SCRAM-SHA-512")

    def invoke(*command: str, config: Path | None = admin, given: str | None = None) -> Result:
        environment = {"BARNABAS_BOOTSTRAP": f"127.0.0.1:{broker.port}", "COLUMNS": "200"}
        option = [] if config is None else ["--command-config", str(config)]
        return CliRunner().invoke(app, [*command, *option], env=environment, input=given)

    return invoke


@pytest.mark.parametrize(
    ("user", "password"),
    [("admin", "admin-secret"), ("reader", "from-a-file"), ("writer", "from-the-environment")],
)
def test_bootstrap_users_log_in_with_each_mechanism(
    run: Run, tmp_path: Path, user: str, password: str
) -> None:
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        config = client_properties(tmp_path / "user.properties", user, password, mechanism)
        result = run("topics", "list", "--json", config=config)
        assert (result.exit_code, json.loads(result.stdout)) == (0, [])


def test_passwords_are_neither_in_process_listings_nor_in_the_log(broker: BrokerProcess) -> None:
    command = Path(f"/proc/{broker.process.pid}/cmdline").read_bytes()
    assert b"admin=************" in command
    assert b"admin-secret" not in command
    assert b"old-secret" not in command
    broker.terminate()
    assert "added a user" in broker.stderr
    assert "admin-secret" not in broker.stderr


def test_logins_and_denials_are_in_the_log(run: Run, broker: BrokerProcess, tmp_path: Path) -> None:
    wrong = client_properties(tmp_path / "wrong.properties", "mallory", "guess-secret", "SCRAM-SHA-512")
    assert run("topics", "list").exit_code == 0
    assert run("topics", "list", config=wrong).exit_code == 4
    broker.terminate()
    lines = [line for line in broker.stderr.splitlines() if "[barnabas.security]" in line]
    succeeded = next(line for line in lines if "login succeeded" in line)
    failed = next(line for line in lines if "login failed" in line)
    assert "user=admin mechanism=SCRAM-SHA-512 address=127.0.0.1 listener=CLIENTS" in succeeded
    assert "user=mallory mechanism=SCRAM-SHA-512 address=127.0.0.1" in failed
    assert "guess-secret" not in broker.stderr
    assert "old-secret" not in broker.stderr


def test_the_suggested_commands_mention_the_login(broker: BrokerProcess) -> None:
    assert broker.process.stdout
    shown = [broker.process.stdout.readline() for _ in range(4)]
    assert [line.endswith(f"--bootstrap {broker.bootstrap} --command-config FILE\n") for line in shown] == [
        False,
        True,
        True,
        True,
    ]


def test_every_command_logs_in(run: Run, tmp_path: Path) -> None:
    (tmp_path / "lines").write_text("hello\n")
    assert run("topics", "create", "t").output == "t: created\n"
    assert run("produce", "t", "--file", str(tmp_path / "lines")).exit_code == 0
    assert run("consume", "t", "--from-beginning", "--exit-at-end").stdout == "hello\n"
    assert run("metadata").exit_code == 0
    assert run("topics", "delete", "t").output == "t: deleted\n"


def test_a_password_argument_is_removed_from_process_listings() -> None:
    """The command waits for a broker that does not respond."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        bootstrap = f"127.0.0.1:{listener.getsockname()[1]}"
        commands = (
            ["users", "add", "dora", "--password", "dora-secret"],
            ["users", "add", "dora", "--password=dora-secret"],
            ["configs", "set", "broker", "0", "listener.name.x.plain.sasl.jaas.config=dora-secret"],
        )
        for command in commands:
            arguments = [sys.executable, "-m", "barnabas", *command, "--bootstrap", bootstrap]
            with subprocess.Popen(arguments, stderr=subprocess.DEVNULL) as process:
                shown = Path(f"/proc/{process.pid}/cmdline")
                until(lambda shown=shown: b"***********" in shown.read_bytes())
                assert b"dora-secret" not in shown.read_bytes()
                process.kill()


def test_a_password_of_a_dash_is_read_from_stdin(run: Run, tmp_path: Path) -> None:
    assert run("users", "add", "erin", "--password", "-", given="erin-secret\n").exit_code == 0
    erin = client_properties(tmp_path / "erin.properties", "erin", "erin-secret", "SCRAM-SHA-512")
    assert run("topics", "list", config=erin).exit_code == 0
    assert run("users", "add", "erin", "--password", "-", given="\n").exit_code == 2


def test_users_are_added_listed_and_removed(run: Run, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("carol-secret\n")
    added = run("users", "add", "carol", "--password", f"@{tmp_path / 'secret'}")
    assert added.output == "carol: added for SCRAM-SHA-256\ncarol: added for SCRAM-SHA-512\n"
    carol = client_properties(tmp_path / "carol.properties", "carol", "carol-secret", "SCRAM-SHA-256")
    assert run("users", "remove", "writer", config=carol).exit_code == 0
    assert (
        run("users", "add", "carol", "-m", "scram-sha-256", "--iterations", "5000", given="new\n").exit_code
        == 0
    )
    users = {each["user"]: each["mechanisms"] for each in json.loads(run("users", "list", "--json").stdout)}
    assert users == {
        "admin": {"SCRAM-SHA-256": 4096, "SCRAM-SHA-512": 4096},
        "carol": {"SCRAM-SHA-256": 5000, "SCRAM-SHA-512": 4096},
        "reader": {"SCRAM-SHA-256": 4096, "SCRAM-SHA-512": 4096},
    }
    assert run("users", "list", config=carol).exit_code == 4
    removed = run("users", "remove", "carol", "-m", "SCRAM-SHA-256", "--json")
    assert json.loads(removed.stdout) == [{"user": "carol", "mechanism": "SCRAM-SHA-256", "done": "removed"}]
    assert run("users", "list").stdout.splitlines()[3].split() == ["carol", "SCRAM-SHA-512", "4096"]


def test_failures_have_hints(run: Run, tmp_path: Path) -> None:
    assert run("users", "remove", "nobody").exit_code == 3
    assert run("users", "add", "carol", given="").exit_code == 2
    too_few = run("users", "add", "carol", "--iterations", "1", given="secret\n")
    assert (too_few.exit_code, "4096" in too_few.stderr) == (2, True)
    wrong = client_properties(tmp_path / "wrong.properties", "admin", "wrong", "SCRAM-SHA-512")
    refused = run("topics", "list", config=wrong)
    assert refused.exit_code == 4
    assert "SASL_AUTHENTICATION_FAILED" in refused.stderr
    assert "--command-config" in refused.stderr
    assert run("topics", "list", config=tmp_path / "no.properties").exit_code == 3
    anonymous = run("topics", "list", config=None)
    assert (anonymous.exit_code, "--command-config" in anonymous.stderr) == (5, True)
    wrong.write_text("security.protocol=TLS\n")
    assert run("topics", "list", config=wrong).exit_code == 2


def test_an_invalid_bootstrap_user_stops_the_start_without_showing_its_password() -> None:
    ended = run_serve("--add-scram", "=secret")
    assert ended.returncode == 2
    assert "must be NAME=PASSWORD" in ended.stderr
    assert "secret" not in ended.stderr


def test_an_existing_bootstrap_user_keeps_its_password(tmp_path: Path) -> None:
    for password in ("first", "second"):
        with BrokerProcess(
            tmp_path / "data", *arguments(), "--add-scram", f"admin={password}", port=-1
        ) as broker:
            config = client_properties(tmp_path / "admin.properties", "admin", "first", "SCRAM-SHA-256")
            environment = {**os.environ, "BARNABAS_BOOTSTRAP": f"127.0.0.1:{broker.port}"}
            command = ["topics", "list", "--command-config", str(config)]
            assert CliRunner().invoke(app, command, env=environment).exit_code == 0


def test_a_command_config_may_name_where_the_password_is(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "data", *arguments(), "--add-scram", "admin=hidden", port=-1) as broker:
        config = client_properties(
            tmp_path / "admin.properties", "admin", "${env:ADMIN_PASSWORD}", "SCRAM-SHA-256"
        )
        provider = "org.apache.kafka.common.config.provider.EnvVarConfigProvider"
        with config.open("a") as file:
            file.write(f"config.providers=env\nconfig.providers.env.class={provider}\n")
        environment = {"BARNABAS_BOOTSTRAP": f"127.0.0.1:{broker.port}", "ADMIN_PASSWORD": "hidden"}
        command = ["topics", "list", "--command-config", str(config)]
        assert CliRunner().invoke(app, command, env=environment).exit_code == 0
        missing = CliRunner().invoke(app, command, env={**environment, "ADMIN_PASSWORD": None})
        assert missing.exit_code == 2
        assert "the environment has no such variable" in missing.stderr
