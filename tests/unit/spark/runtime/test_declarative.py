"""The environment of spark-pipelines."""

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from pyspark_barnabas.runtime.declarative import pipelines_command, project_of
from pyspark_barnabas.runtime.submit import spark_home


@pytest.fixture
def environment(tmp_path: Path) -> Mapping[str, str]:
    """Return the environment of a machine with a (fake) Java."""
    program = tmp_path / "jdk" / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\necho 'java.specification.version = 17' >&2\n")
    program.chmod(0o755)
    return {"JAVA_HOME": str(tmp_path / "jdk"), "HOME": "/home/alice"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "conf").mkdir(parents=True)
    (folder / "inner").mkdir()
    (folder / "spark-pipeline.yml").touch()
    (folder / "conf" / "spark-defaults.conf").touch()
    return folder


def test_this_interpreter_runs_the_installed_spark(environment: Mapping[str, str], tmp_path: Path) -> None:
    call = pipelines_command(
        ["init", "--name", "x"], {**environment, "PYSPARK_DRIVER_PYTHON": "/p"}, tmp_path
    )
    assert call.command == [f"{spark_home()}/bin/spark-pipelines", "init", "--name", "x"]
    assert call.environment["PYSPARK_PYTHON"] == sys.executable
    assert "PYSPARK_DRIVER_PYTHON" not in call.environment
    assert call.environment["JAVA_HOME"] == environment["JAVA_HOME"]
    assert "SPARK_CONF_DIR" not in call.environment


def test_settings_beside_the_spec_are_used_unless_others_are_named(
    environment: Mapping[str, str], project: Path
) -> None:
    inner = pipelines_command(["run"], environment, project / "inner")
    assert inner.environment["SPARK_CONF_DIR"] == str(project / "conf")
    named = pipelines_command(["run"], {**environment, "SPARK_CONF_DIR": "/conf"}, project)
    assert named.environment["SPARK_CONF_DIR"] == "/conf"


def test_the_spec_is_named_or_in_a_directory_around(project: Path) -> None:
    assert project_of(["run"], project / "inner") == project
    assert project_of(["run", "--spec", "project/spark-pipeline.yml"], project.parent) == project
    assert project_of(["run", "--spec=spark-pipeline.yml"], project) == project
    assert project_of(["run"], Path("/")) is None
