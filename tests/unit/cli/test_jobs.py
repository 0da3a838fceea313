"""Jobs that need Arrow and no Spark, where packages are missing; and locations that jobs reject."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from barnabas.cli.main import app

NOBODY = "127.0.0.1:1"


@pytest.mark.parametrize("job", ["usage", "audit"])
def test_without_arrow_a_job_prints_an_installation_hint(job: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    ended = CliRunner().invoke(app, ["jobs", job])
    assert ended.exit_code == 1
    assert "Arrow is not installed: numba cannot be imported" in ended.output
    assert "pip install '.[arrow]'" in ended.output


@pytest.mark.parametrize("job", ["usage", "audit"])
def test_a_job_imports_no_spark(job: str) -> None:
    program = (
        "import sys\n"
        "for name in ('pyspark', 'pandas', 'deltalake', 'pyspark_barnabas'): sys.modules[name] = None\n"
        "from barnabas.cli.main import main\n"
        "main()\n"
    )
    command = [sys.executable, "-c", program, "jobs", job, "--bootstrap", NOBODY]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ))
    assert ended.returncode != 0
    assert NOBODY in ended.stderr
    assert "import" not in ended.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["archive", "ftp://host/a"], "location ftp://host/a: must be a path, or begin with s3://"),
        (["archive", "s3://user:hidden@bucket/a"], "must not contain credentials"),
        (["archive", "s3://bucket/a", "--store-option", "hidden"], "must have the form KEY=VALUE"),
        (["archive", "a", "--store-option", "aws_region=x"], "store options apply only to object stores"),
        (["restore", "a", "--map", "s3://bucket/map"], "--map s3:/bucket/map: must be a path"),
        (["scrub", "--log-dir", "s3://bucket/logs"], "--log-dir s3:/bucket/logs: must be a path"),
        (["scrub", "--archive", "a", "-b", NOBODY], "--archive excludes --log-dir and --bootstrap"),
        (["scrub", "--archive", "none"], "none is not an archive"),
    ],
)
def test_a_location_that_a_job_cannot_use_is_wrong_use(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = CliRunner().invoke(app, ["jobs", *arguments])
    assert ended.exit_code == 2, ended.output
    assert message in ended.output
    assert "hidden" not in ended.output
    assert list(tmp_path.iterdir()) == []
