"""`barnabas pipeline` without Spark: validation of files and status of flows."""

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from barnabas.cli.main import app
from pyspark_barnabas.pipelines.state import FlowState, FlowStatus, StateDirectory

FILE = """\
bootstrap: 127.0.0.1:9092
state: state
flows:
  one:
    from: {topic: in, format: raw}
    to: {topic: out}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "pipelines.yml"
    path.write_text(FILE)
    return path


def test_the_status_of_flows_is_a_table_or_json(file: Path) -> None:
    status = FlowStatus("one", FlowState.FAILED, 3, 10, 7, 2, 1, 5.5, 0, "why it failed")
    assert "new" in CliRunner().invoke(app, ["pipeline", "status", str(file)]).output
    StateDirectory(file.parent / "state").write_status(status)
    table = CliRunner().invoke(app, ["pipeline", "status", str(file)]).output
    assert "why it failed" in table
    [found] = json.loads(CliRunner().invoke(app, ["pipeline", "status", str(file), "--json"]).output)
    assert (found["state"], found["batch"], found["dead_letters"]) == ("failed", 3, 2)


@pytest.mark.parametrize("command", ["run", "plan", "status"])
def test_an_invalid_file_is_reported_before_spark_starts(file: Path, command: str) -> None:
    file.write_text(FILE.replace("raw", "rar"))
    ended = CliRunner().invoke(app, ["pipeline", command, str(file)])
    assert ended.exit_code == 2
    assert f"{file}:5: flows.one.from.format is 'rar': must be json, raw, avro" in ended.output


@pytest.mark.parametrize("command", ["run", "plan", "status"])
def test_a_missing_file_is_reported_as_not_found(file: Path, command: str) -> None:
    ended = CliRunner().invoke(app, ["pipeline", command, f"{file}.old"])
    assert ended.exit_code == 3
    assert ended.output == f"error: {file}.old: No such file or directory\n"


def test_without_spark_there_is_an_installation_hint(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    ended = CliRunner().invoke(app, ["pipeline", "status", str(file)])
    assert ended.exit_code == 1
    assert "pip install '.[spark]'" in ended.output
