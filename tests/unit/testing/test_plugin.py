import subprocess
import sys
from pathlib import Path

import pytest

import barnabas.testing
from barnabas.testing import EmbeddedBroker


def run_pytest(directory: Path, test: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    (directory / "test_it.py").write_text(test)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rA", *arguments]
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)


def test_registering_the_plugin_imports_only_itself() -> None:
    program = (
        "import sys, pytest; before = set(sys.modules); import barnabas.testing.plugin;"
        "print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["barnabas", "barnabas.testing", "barnabas.testing.plugin"]


def test_pytest_rewrites_no_module_of_the_broker(tmp_path: Path) -> None:
    test = """
import sys

def test_it(kafka):
    rewritten = [
        name for name, module in sys.modules.items()
        if name.startswith(("barnabas", "pyspark_barnabas"))
        and type(module.__spec__.loader).__name__ == "AssertionRewritingHook"
    ]
    assert sorted(rewritten) == ["barnabas", "barnabas.testing", "barnabas.testing.plugin"]
"""
    done = run_pytest(tmp_path, test)
    assert "1 passed" in done.stdout, done.stdout


def test_the_package_has_exactly_its_public_names() -> None:
    assert barnabas.testing.EmbeddedBroker is EmbeddedBroker
    assert barnabas.testing.Fault.__name__ == "Fault"
    with pytest.raises(AttributeError, match="no attribute 'Broker'"):
        assert barnabas.testing.Broker


def test_each_test_has_its_own_broker_and_the_session_shares_one(tmp_path: Path) -> None:
    test = """
seen, shared = set(), set()

def check(kafka, kafka_session):
    assert kafka.topics() == {}
    kafka.create_topic("t")
    seen.add(kafka.directory)
    shared.add(kafka_session.bootstrap)

def test_one(kafka, kafka_session):
    check(kafka, kafka_session)
    kafka_session.create_topic("kept")

def test_two(kafka, kafka_session):
    check(kafka, kafka_session)
    assert len(seen) == 2 and len(shared) == 1
    assert kafka_session.topics() == {"kept": 1}
    assert sum(directory.exists() for directory in seen) == 1
"""
    done = run_pytest(tmp_path, test)
    assert "2 passed" in done.stdout, done.stdout


def test_the_marker_overrides_the_command_line_and_that_the_ini_file(
    tmp_path: Path,
) -> None:
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\nkafka_settings =\n  num.partitions = 2\n  auto.create.topics.enable=false\n"
    )
    test = """
import pytest

def partitions(broker):
    return broker.server.broker.config.integer("num.partitions")

def test_ini_and_command_line(kafka, kafka_session):
    assert partitions(kafka) == partitions(kafka_session) == 3
    assert not kafka.server.broker.config.boolean("auto.create.topics.enable")

@pytest.mark.kafka_settings({"num.partitions": "4"})
class TestMarked:
    def test_class(self, kafka, kafka_session):
        assert partitions(kafka) == 4
        assert partitions(kafka_session) == 3

    @pytest.mark.kafka_settings({"num.partitions": "5"})
    def test_function(self, kafka):
        assert partitions(kafka) == 5
"""
    done = run_pytest(tmp_path, test, "--strict-markers", "--kafka-set", "num.partitions=3")
    assert "3 passed" in done.stdout, done.stdout


@pytest.mark.parametrize(
    ("marker", "shown"),
    [
        ("kafka_settings", "kafka_settings()"),
        ("kafka_settings(num_partitions=3)", "kafka_settings(num_partitions=3)"),
        ("kafka_users('alice')", "kafka_users('alice')"),
    ],
)
def test_a_marker_with_other_arguments_is_reported(tmp_path: Path, marker: str, shown: str) -> None:
    test = f"import pytest\n\n@pytest.mark.{marker}\ndef test_it(kafka): ..."
    assert f"invalid marker {shown}: expected one dict" in run_pytest(tmp_path, test).stdout


def test_the_marker_applies_to_clusters(tmp_path: Path) -> None:
    test = """
import pytest

@pytest.mark.kafka_settings({"num.partitions": "4"})
def test_it(kafka_cluster):
    [broker] = kafka_cluster(brokers=1).brokers.values()
    assert broker.server.broker.config.integer("num.partitions") == 4
"""
    assert "1 passed" in run_pytest(tmp_path, test).stdout


def test_a_setting_without_a_value_is_reported(tmp_path: Path) -> None:
    done = run_pytest(tmp_path, "def test_it(kafka): pass", "--kafka-set", "num.partitions")
    assert "invalid broker setting" in done.stdout + done.stderr
    assert done.returncode != 0


def test_the_directory_is_removed_when_the_test_fails(tmp_path: Path) -> None:
    test = """
def test_it(kafka):
    open("where", "w").write(str(kafka.directory))
    assert not kafka.directory.exists()
"""
    done = run_pytest(tmp_path, test)
    assert "1 failed" in done.stdout, done.stdout
    assert not Path((tmp_path / "where").read_text()).exists()
