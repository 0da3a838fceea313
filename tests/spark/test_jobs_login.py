"""Jobs log in with a command config file, so that no password is on a command line."""

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from barnabas.cli.main import app
from barnabas.testing import EmbeddedBroker
from pyspark_barnabas.jobs.common import session as running

PASSWORD = "alice-secret"
JAAS = f'org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="{PASSWORD}";'


@pytest.fixture(scope="module")
def guarded() -> Iterator[EmbeddedBroker]:
    """Run a broker with SASL and a topic."""
    with EmbeddedBroker(users={"alice": PASSWORD}) as broker:
        broker.create_topic("orders", 2)
        for number in range(200):
            broker.produce("orders", f"value {number}", key=f"key {number % 7}", partition=number % 2)
        yield broker


@pytest.fixture
def login(tmp_path: Path) -> Path:
    path = tmp_path / "client.properties"
    path.write_text(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config={JAAS}\n")
    return path


@pytest.mark.parametrize(
    "arguments",
    [
        ["scrub", "-t", "orders"],
        ["rekey", "orders", "orders-2", "--state", "HOME/state", "--was", "1", "--any-place"],
        ["archive", "HOME/archive", "-t", "orders"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_job_logs_in_with_its_command_config(
    spark: SparkSession,
    guarded: EmbeddedBroker,
    login: Path,
    tmp_path: Path,
    arguments: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(running, "job_session", lambda *_: nullcontext(spark))
    words = [each.replace("HOME", str(tmp_path)) for each in arguments]
    command = ["jobs", *words, "--bootstrap", guarded.bootstrap]
    done = CliRunner().invoke(app, [*command, "--command-config", str(login)])
    assert done.exit_code == 0, done.output
    assert PASSWORD not in done.output
    output = [
        path for path in tmp_path.rglob("*") if path.is_file() and PASSWORD.encode() in path.read_bytes()
    ]
    assert output == [login]
