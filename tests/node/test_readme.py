"""Run the documents' code word for word, except for the broker's address."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from barnabas.config.keys.topic import TOPIC_KEYS
from barnabas.config.load import load_broker_config
from barnabas.config.topics import validate_topic_overrides
from barnabas.testing import EmbeddedBroker
from support.documents import ADDRESS, README, ROOT, block_with, code_blocks, inline_code
from support.process import clean_environment, run_serve

TESTING = ROOT / "docs" / "testing.md"
SECURITY = ROOT / "docs" / "security.md"
HISTORY = ROOT / "docs" / "history.md"
OPERATIONS = ROOT / "docs" / "operations.md"

#: The code under test in the documents: a shop.
SHOP = """
from confluent_kafka import Producer

def publish(bootstrap, topic, value):
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    producer.produce(topic, value)
    assert producer.flush(10) == 0

def publish_order(bootstrap):
    publish(bootstrap, "orders", b"one book")
"""


#: The login of the documents' administrator.
LOGIN = """
security.protocol=SASL_PLAINTEXT
sasl.mechanism=SCRAM-SHA-512
sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required username="admin" password="secret";
"""


def environment(bootstrap: str = "") -> dict[str, str]:
    """Return an environment with our own commands first on PATH."""
    commands = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {**clean_environment(), "PATH": commands, "BARNABAS_BOOTSTRAP": bootstrap}


#: Anonymous clients are superusers.
AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


def run(
    command: list[str], directory: Path, bootstrap: str = "", typed: str = ""
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=directory,
        input=typed,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=environment(bootstrap),
    )


@contextmanager
def serving(command: str, directory: Path) -> Iterator[str]:
    """Run a broker from a shell; return the first line that it prints."""
    process = subprocess.Popen(
        ["sh", "-euc", command], cwd=directory, stdout=subprocess.PIPE, text=True, env=environment()
    )
    assert process.stdout
    with process:
        try:
            yield process.stdout.readline()
        finally:
            process.terminate()


def test_the_readmes_commands_have_the_shown_output(kafka: EmbeddedBroker, tmp_path: Path) -> None:
    done = run(["sh", "-eu", "-c", block_with(README, "sh", "barnabas topics")], tmp_path, kafka.bootstrap)
    assert done.returncode == 0, done.stderr
    assert "one book" in done.stdout
    assert "retention.ms=86400000" in done.stdout
    assert kafka.topics() == {"orders": 3}
    [record] = kafka.records("orders")
    assert (record.key, record.value) == (b"alice", b"one book")


def test_users_are_added_as_documented(tmp_path: Path) -> None:
    serve, add = block_with(SECURITY, "bash", "barnabas users").split("barnabas users")
    (tmp_path / "password-file").write_text("secret\n")
    (tmp_path / "admin.properties").write_text(LOGIN)
    command = "exec " + serve.replace(ADDRESS, "127.0.0.1:0")
    with serving(command, tmp_path) as line:
        address = re.search(r"127\.0\.0\.1:\d+", line)
        assert address, line
        added = run(["sh", "-euc", f"barnabas users{add}"], tmp_path, address[0], typed="another\n")
        listed = run(["sh", "-euc", f"barnabas users list {add.partition('alice')[2]}"], tmp_path, address[0])
    assert added.returncode == 0, added.stderr
    assert "alice" in listed.stdout, listed.stderr


@pytest.mark.kafka_settings(AUTHORIZER)
def test_permissions_are_added_listed_and_removed_as_documented(
    kafka: EmbeddedBroker, tmp_path: Path
) -> None:
    (tmp_path / "admin.properties").write_text("client.id=admin\n")
    block = block_with(SECURITY, "bash", "barnabas acls")
    done = run(["sh", "-euc", block], tmp_path, kafka.bootstrap)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("User:alice  *     read") == 3, "added, listed, removed"


def test_the_readme_s_program_prints_the_value_that_it_produced(
    kafka: EmbeddedBroker, tmp_path: Path
) -> None:
    program = block_with(README, "python", "confluent_kafka").replace(ADDRESS, kafka.bootstrap)
    done = run([sys.executable, "-c", program], tmp_path)
    assert done.stdout == "b'v'\n", done.stderr
    assert list(kafka.topics()) == ["events"]


@pytest.mark.parametrize("document", [README, TESTING], ids=lambda document: document.name)
def test_the_tests_of_the_documents_pass(document: Path, tmp_path: Path) -> None:
    blocks = [block for block in code_blocks(document, "python") if "def test_" in block]
    assert blocks
    (tmp_path / "shop.py").write_text(SHOP)
    (tmp_path / "test_it.py").write_text("\n".join(blocks))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--import-mode=importlib"]
    done = run([*command, "-o", f"pythonpath={tmp_path}"], tmp_path)
    tests_count = "".join(blocks).count("def test_")
    assert f"{tests_count} passed" in done.stdout, done.stdout


def test_the_broker_without_pytest_runs_as_documented(tmp_path: Path) -> None:
    done = run([sys.executable, "-c", block_with(TESTING, "python", "with EmbeddedBroker")], tmp_path)
    assert re.fullmatch(r"127\.0\.0\.1:\d+\n", done.stdout), done.stderr


def test_the_ini_files_settings_apply_as_documented(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text(block_with(TESTING, "ini", "kafka_settings"))
    (tmp_path / "test_it.py").write_text(
        "def test_it(kafka):\n"
        "    kafka.produce('t', 'x')\n"
        "    assert kafka.topics() == {'t': 3}\n"
        "    assert kafka.server.broker.config.integer('message.max.bytes') == 20_000\n"
    )
    done = run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"], tmp_path)
    assert "1 passed" in done.stdout, done.stdout


def test_serve_has_the_documented_options() -> None:
    synopsis = block_with(OPERATIONS, "", "barnabas serve")
    options = re.findall(r"--[a-z]+", synopsis)
    helped = run_serve("--help").stdout
    assert options
    assert [option for option in options if option not in helped] == []


@pytest.mark.parametrize("document", [TESTING, SECURITY, HISTORY], ids=lambda document: document.name)
def test_every_setting_in_a_document_is_valid(document: Path) -> None:
    pairs = [text.split(" ")[-1].partition("=") for text in inline_code(document)]
    named = {key: value for key, equals, value in pairs if equals and re.fullmatch(r"[a-z]+(\.[a-z]+)+", key)}
    assert named
    of_topics = {key for key in named if key in TOPIC_KEYS}
    settings = [f"{key}={value}" for key, value in named.items() if key not in of_topics]
    loaded = load_broker_config(settings=settings)
    assert loaded.warnings == ()
    validate_topic_overrides(loaded.config, {key: named[key] for key in of_topics})


@pytest.mark.parametrize("text", [text for text in code_blocks(SECURITY, "bash") if "barnabas serve" in text])
def test_a_broker_may_be_started_as_documented(text: str) -> None:
    command = text.replace("\\\n", " ").splitlines()[0]
    options = re.findall(r"--(listen|set) (\S+)", command)
    settings = [value if option == "set" else f"listeners={value}" for option, value in options]
    assert load_broker_config(settings=settings).warnings == ()


def test_every_make_target_in_a_document_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for document in (README, ROOT / "CONTRIBUTING.md"):
        code = [*code_blocks(document, "sh"), *inline_code(document)]
        lines = [line.partition("#")[0] for text in code for line in text.splitlines()]
        words = {word for line in lines if line.startswith("make ") for word in line.split()[1:]}
        named = {word for word in words if "=" not in word}
        assert named
        assert named <= targets, document
