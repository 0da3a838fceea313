"""Arguments of spark-submit."""

import os
import re
import shlex
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from barnabas.cli.main import app
from pyspark_barnabas.delegation import VARIABLE
from pyspark_barnabas.runtime.submit import (
    Submission,
    packed,
    spark_home,
    split,
    submission,
    value_of,
    with_py_file,
)
from support.spark import ROOT


@pytest.fixture
def environment(tmp_path: Path) -> Mapping[str, str]:
    """Return the environment of a machine with a (fake) Java."""
    program = tmp_path / "jdk" / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\necho 'java.specification.version = 17' >&2\n")
    program.chmod(0o755)
    return {
        "JAVA_HOME": str(tmp_path / "jdk"),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "HOME": "/home/alice",
    }


@pytest.mark.parametrize(
    ("arguments", "options_count"),
    [
        (["app.py"], 0),
        (["--master", "local[2]", "app.py", "--master", "not-ours"], 2),
        (["--verbose", "--conf=a=b", "-v", "app.py"], 3),
        (["--conf", "a=b", "--supervise", "app.py", "-x"], 3),
        (["--version"], 1),
        ([], 0),
    ],
)
def test_the_application_is_the_first_argument_that_is_not_an_options_value(
    arguments: list[str], options_count: int
) -> None:
    assert split(arguments) == (arguments[:options_count], arguments[options_count:])


def test_the_last_of_an_options_values_applies_in_either_notation() -> None:
    assert value_of(["--master", "yarn", "--master=local"], "--master", "") == "local"
    assert value_of(["--name", "--master"], "--master", "none") == "none"


def test_the_packages_are_added_to_files_that_are_already_named() -> None:
    assert with_py_file(["--name", "x"], "b.zip") == ["--name", "x", "--py-files", "b.zip"]
    options = ["--py-files=lost.py", "--name", "x", "--py-files", "a.py,c.egg", "--verbose"]
    assert with_py_file(options, "b.zip") == ["--name", "x", "--verbose", "--py-files", "a.py,c.egg,b.zip"]


def test_on_one_machine_everything_runs_on_this_interpreter_and_nothing_is_sent(
    environment: Mapping[str, str],
) -> None:
    submitted = submission(["--master", "local[2]", "app.py", "--rows", "5"], environment)
    program = str(spark_home() / "bin" / "spark-submit")
    assert submitted.command == [program, "--master", "local[2]", "app.py", "--rows", "5"]
    assert submitted.environment["PYSPARK_PYTHON"] == sys.executable
    assert submitted.environment["JAVA_HOME"] == environment["JAVA_HOME"]
    assert submitted.environment["HOME"] == "/home/alice"
    assert "PYTHONPATH" not in submitted.environment


def test_a_clusters_workers_are_sent_the_packages(environment: Mapping[str, str]) -> None:
    submitted = submission(["--master", "spark://one:7077", "app.py"], {**environment, "PYTHONPATH": "/mine"})
    archive = str(packed(environment))
    assert submitted.command[-3:] == ["--py-files", archive, "app.py"]
    assert submitted.environment["PYTHONPATH"] == f"{archive}:/mine"


def test_nothing_is_sent_to_workers_that_have_the_packages(environment: Mapping[str, str]) -> None:
    submitted = submission(["--master", "yarn", "app.py"], environment, ship=False)
    assert "--py-files" not in submitted.command
    assert "PYTHONPATH" not in submitted.environment


@pytest.mark.parametrize(
    ("arguments", "given", "workers", "driver"),
    [
        (["--master", "yarn"], {}, None, sys.executable),
        (["--master", "yarn"], {"PYSPARK_PYTHON": "/opt/python"}, "/opt/python", None),
        (["--master", "yarn"], {"PYSPARK_DRIVER_PYTHON": "ipython"}, None, "ipython"),
        (
            ["--master", "yarn"],
            {"PYSPARK_DRIVER_PYTHON": "ipython", "PYSPARK_PYTHON": "/opt/python"},
            "/opt/python",
            "ipython",
        ),
        (["--master", "yarn", "-c", "spark.pyspark.python=/opt/python"], {}, "/opt/python", None),
        (["--conf", "spark.pyspark.driver.python=/mine"], {"PYSPARK_DRIVER_PYTHON": "other"}, None, "/mine"),
        (["--master", "yarn", "--deploy-mode", "cluster"], {}, None, None),
        ([], {"MASTER": "local"}, sys.executable, None),
    ],
)
def test_drivers_and_workers_each_run_their_configured_interpreter(
    arguments: list[str],
    given: Mapping[str, str],
    workers: str | None,
    driver: str | None,
    environment: Mapping[str, str],
) -> None:
    submitted = submission([*arguments, "app.py"], {**environment, **given}, ship=False)
    named = [each for each in submitted.command if each.startswith("spark.pyspark.driver.python=")]
    assert submitted.environment.get("PYSPARK_PYTHON") == workers
    assert named == ([f"spark.pyspark.driver.python={driver}"] if driver else [])
    assert "PYSPARK_DRIVER_PYTHON" not in submitted.environment
    assert submitted.command[-1] == "app.py"


def test_without_a_configured_interpreter_this_one_must_be_the_machines_python3(
    environment: Mapping[str, str],
) -> None:
    submitted = submission(["--master", "yarn", "app.py"], {**environment, "PATH": "/usr/bin"}, ship=False)
    assert submitted.environment["PATH"] == f"{Path(sys.executable).parent}:/usr/bin"


def documented() -> list[str]:
    """Return the commands of the table in docs/spark.md."""
    text = (ROOT / "docs" / "spark.md").read_text()
    return re.findall(r"^\| [^|]+ \| `([^`]*barnabas spark-submit [^`]+)` \|$", text, re.MULTILINE)


def submit_as_documented(master: str, environment: Mapping[str, str]) -> Submission:
    """Return what the documented command for a master executes."""
    [line] = [each for each in documented() if f"--master {master}" in each.replace("'", "")]
    words = shlex.split(line)
    at = words.index("barnabas")
    given = {**environment, **dict(word.split("=", 1) for word in words[:at])}
    submitted: list[Submission] = []

    def execute(program: str, command: list[str], variables: Mapping[str, str]) -> None:
        submitted.append(Submission(command, dict(variables)))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "environ", given)
        patch.setattr(os, "execve", execute)
        app(words[at + 1 :], standalone_mode=False)
    [only] = submitted
    return only


def test_the_documented_command_for_yarn_runs_in_the_environment_that_is_sent(
    environment: Mapping[str, str],
) -> None:
    submitted = submit_as_documented("yarn", environment)
    assert submitted.command[1:] == [
        *("--master", "yarn", "--deploy-mode", "cluster"),
        *("--archives", "environment.tar.gz#environment"),
        *("--conf", "spark.yarn.appMasterEnv.PYSPARK_PYTHON=environment/bin/python"),
        *("--py-files", str(packed(environment))),
        "app.py",
    ]
    assert submitted.environment["HADOOP_CONF_DIR"] == "/etc/hadoop/conf"
    assert not {"PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"} & set(submitted.environment)


def test_the_documented_command_for_kubernetes_uses_the_image_only(
    environment: Mapping[str, str],
) -> None:
    submitted = submit_as_documented("k8s", environment)
    assert submitted.command[1:] == [
        *("--master", "k8s://https://HOST:6443", "--deploy-mode", "cluster"),
        *("--conf", "spark.kubernetes.container.image=IMAGE"),
        "local:///app/app.py",
    ]
    assert not {"PYTHONPATH", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"} & set(submitted.environment)


def test_the_documented_commands_for_one_machine_and_a_standalone_cluster_run_the_driver_here(
    environment: Mapping[str, str],
) -> None:
    assert submit_as_documented("local", environment).command[1:] == ["--master", "local[*]", "app.py"]
    command = submit_as_documented("spark", environment).command
    assert command[1:] == [
        *("--master", "spark://HOST:7077"),
        *("--conf", f"spark.pyspark.driver.python={sys.executable}"),
        *("--py-files", str(packed(environment))),
        "app.py",
    ]


def test_the_archive_that_is_sent_can_be_imported_and_is_created_once(environment: Mapping[str, str]) -> None:
    path = packed(environment)
    assert packed(environment) == path
    names = zipfile.ZipFile(path).namelist()
    assert {"barnabas/client/__init__.py", "pyspark_barnabas/__init__.py"} <= set(names)
    assert not any("__pycache__" in name for name in names)
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_every_module_can_be_imported_from_the_archive(environment: Mapping[str, str]) -> None:
    path = str(packed(environment))
    modules = [
        "pyspark_barnabas.source.batch_reader",
        "pyspark_barnabas.source.stream_reader",
        "pyspark_barnabas.sink.writers",
    ]
    modules.append("barnabas.wire.records.arrow_decode_numba")
    program = (
        f"import importlib; print(*(importlib.import_module(name).__file__ for name in {modules}), sep='\\n')"
    )
    variables = {**os.environ, "PYTHONPATH": path, "XDG_CACHE_HOME": environment["XDG_CACHE_HOME"]}
    ended = subprocess.run(
        [sys.executable, "-c", program],
        env=variables,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert all(file.startswith(path) for file in ended.stdout.splitlines())


def test_delegation_tokens_are_requested_by_a_variable(environment: Mapping[str, str]) -> None:
    assert VARIABLE not in submission(["app.py"], environment).environment
    assert submission(["app.py"], environment, delegation_tokens=True).environment[VARIABLE] == "true"
