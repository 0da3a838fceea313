"""What spark-submit is called with."""

import os
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from pyspark_barnabas.submit import packed, spark_home, split, submission, value_of, with_py_file


@pytest.fixture
def environment(tmp_path: Path) -> Mapping[str, str]:
    """Of a machine with a Java, or what answers as one does."""
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
def test_the_application_is_the_first_argument_that_belongs_to_no_option(
    arguments: list[str], options_count: int
) -> None:
    assert split(arguments) == (arguments[:options_count], arguments[options_count:])


def test_the_last_of_an_options_values_counts_however_it_is_written() -> None:
    assert value_of(["--master", "yarn", "--master=local"], "--master", "") == "local"
    assert value_of(["--name", "--master"], "--master", "none") == "none"


def test_the_packages_go_next_to_files_named_already() -> None:
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
    assert submitted.command[1:] == ["--master", "spark://one:7077", "--py-files", archive, "app.py"]
    assert submitted.environment["PYTHONPATH"] == f"{archive}:/mine"


def test_nothing_is_sent_to_workers_that_have_it(environment: Mapping[str, str]) -> None:
    submitted = submission(["--master", "yarn", "app.py"], environment, ship=False)
    assert submitted.command[1:] == ["--master", "yarn", "app.py"]


@pytest.mark.parametrize(
    ("arguments", "given", "expected"),
    [
        (["--master", "yarn", "app.py"], {}, (None, sys.executable)),
        (["--master", "yarn", "--deploy-mode", "cluster", "app.py"], {}, (None, None)),
        (["--master", "yarn", "app.py"], {"PYSPARK_PYTHON": "/opt/python"}, ("/opt/python", None)),
        (["app.py"], {"MASTER": "local"}, (sys.executable, None)),
    ],
)
def test_workers_elsewhere_run_the_interpreter_that_is_there(
    arguments: list[str],
    given: Mapping[str, str],
    expected: tuple[str | None, str | None],
    environment: Mapping[str, str],
) -> None:
    variables = submission(arguments, {**environment, **given}, ship=False).environment
    assert (variables.get("PYSPARK_PYTHON"), variables.get("PYSPARK_DRIVER_PYTHON")) == expected


def test_what_is_sent_can_be_imported_from_and_is_packed_once(environment: Mapping[str, str]) -> None:
    place = packed(environment)
    assert packed(environment) == place
    names = zipfile.ZipFile(place).namelist()
    assert {"barnabas/client/__init__.py", "pyspark_barnabas/__init__.py"} <= set(names)
    assert not any("__pycache__" in name for name in names)
    assert [each.name for each in place.parent.iterdir()] == [place.name]


def test_every_module_can_be_imported_out_of_what_is_sent(environment: Mapping[str, str]) -> None:
    place = str(packed(environment))
    modules = [
        "pyspark_barnabas.batch_reader",
        "pyspark_barnabas.stream_reader",
        "pyspark_barnabas.sink.writers",
    ]
    modules.append("barnabas.wire.records.arrow_numba")
    program = (
        f"import importlib; print(*(importlib.import_module(name).__file__ for name in {modules}), sep='\\n')"
    )
    variables = {**os.environ, "PYTHONPATH": place, "XDG_CACHE_HOME": environment["XDG_CACHE_HOME"]}
    ended = subprocess.run(
        [sys.executable, "-c", program],
        env=variables,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert all(file.startswith(place) for file in ended.stdout.splitlines())
