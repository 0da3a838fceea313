"""Jobs that need Arrow and no Spark, where packages are missing."""

import os
import subprocess
import sys

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
