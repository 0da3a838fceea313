"""Settings before a JVM starts."""

import sys
from pathlib import Path

import pytest

from pyspark_barnabas.runtime.session import executor_settings, local_settings, prepare


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Create a Java home with a fake program."""
    program = tmp_path / "home" / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\necho 'java.specification.version = 17' >&2\n")
    program.chmod(0o755)
    return tmp_path / "home"


def test_java_is_found_and_workers_run_this_interpreter(home: Path) -> None:
    environment = {"PATH": str(home / "bin")}
    prepare(environment)
    assert environment == {
        "PATH": str(home / "bin"),
        "JAVA_HOME": str(home),
        "PYSPARK_PYTHON": sys.executable,
    }


def test_a_configured_interpreter_is_kept(home: Path) -> None:
    environment = {"PATH": str(home / "bin"), "PYSPARK_PYTHON": "/opt/python"}
    prepare(environment)
    assert environment["PYSPARK_PYTHON"] == "/opt/python"


def test_a_drivers_interpreter_is_not_passed_to_workers(home: Path) -> None:
    environment = {"PATH": str(home / "bin"), "PYSPARK_DRIVER_PYTHON": "jupyter"}
    prepare(environment)
    assert environment["PYSPARK_PYTHON"] == sys.executable
    assert "PYSPARK_DRIVER_PYTHON" not in environment


def test_executors_have_arrows_variable_if_the_driver_has_it() -> None:
    chosen = {"ARROW_ENABLE_UNSAFE_MEMORY_ACCESS": "true"}
    assert executor_settings(chosen) == {"spark.executorEnv.ARROW_ENABLE_UNSAFE_MEMORY_ACCESS": "true"}
    assert executor_settings({}) == {}


@pytest.mark.parametrize("started_by", ["PYSPARK_GATEWAY_PORT", "SPARK_REMOTE"])
def test_nothing_is_set_if_spark_is_already_running(started_by: str) -> None:
    environment = {started_by: "1", "PATH": "/nowhere"}
    prepare(environment)
    assert environment == {started_by: "1", "PATH": "/nowhere"}


@pytest.mark.parametrize(
    ("master", "is_local"),
    [("local[4]", True), ("local", True), ("spark://127.0.0.1:7077", False), (None, False)],
)
def test_workers_of_a_local_master_use_unix_sockets(master: str | None, is_local: bool) -> None:
    assert (local_settings(master).get("spark.python.unix.domain.socket.enabled") == "true") is is_local
