"""`barnabas log-dirs` against a broker."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from barnabas.cli.main import app
from barnabas.testing import EmbeddedBroker

Run = Callable[..., Result]
WAIT_S = 20


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker({"log.dirs": f"{tmp_path / 'a'},{tmp_path / 'b'}"}) as running:
        running.create_topic("t", partitions=2)
        running.produce("t", b"one", partition=0)
        yield running


@pytest.fixture
def run(broker: EmbeddedBroker) -> Run:
    def invoke(*arguments: str) -> Result:
        return CliRunner().invoke(
            app, ["log-dirs", *arguments], env={"BARNABAS_BOOTSTRAP": broker.bootstrap, "COLUMNS": "300"}
        )

    return invoke


def done(result: Result) -> str:
    assert result.exit_code == 0, result.output
    return result.stdout


def replicas(run: Run, *partitions: str) -> dict[str, list[tuple[str, int]]]:
    """Return the last component of a directory's path -> its replicas."""
    found = json.loads(done(run("describe", "--json", *partitions)))
    return {
        Path(each["directory"]).name: [(item["topic"], item["partition"]) for item in each["replicas"]]
        for each in found
    }


def test_directories_and_replicas_are_listed(broker: EmbeddedBroker, run: Run, tmp_path: Path) -> None:
    own = str(broker.server.broker.broker_id)
    lines = [line.split() for line in done(run("describe")).splitlines()]
    assert [line[:3] for line in lines[1:3]] == [[own, str(tmp_path / name), "online"] for name in "ab"]
    assert [line[1:3] for line in lines[5:]] == [[str(tmp_path / "a"), "t-0"], [str(tmp_path / "b"), "t-1"]]
    assert replicas(run, "t:1", "--broker", own) == {"a": [], "b": [("t", 1)]}
    assert replicas(run, "t") == {"a": [("t", 0)], "b": [("t", 1)]}
    [first, _] = json.loads(done(run("describe", "--json")))
    assert first["error"] is None
    assert first["total_bytes"] > first["usable_bytes"] > 0
    assert first["replicas"][0]["size_bytes"] > 0


def test_a_replica_is_moved(broker: EmbeddedBroker, run: Run, tmp_path: Path) -> None:
    to = str(tmp_path / "b")
    assert done(run("move", to, "t")) == f"t-0: moving to {to}\nt-1: moving to {to}\n"
    deadline_s = time.monotonic() + WAIT_S
    while replicas(run) != {"a": [], "b": [("t", 0), ("t", 1)]}:
        assert time.monotonic() < deadline_s
    assert [record.value for record in broker.records("t")] == [b"one"]


def test_failed_moves_are_explained(broker: EmbeddedBroker, run: Run, tmp_path: Path) -> None:
    result = run("move", "/nowhere", "t:0")
    assert result.exit_code == 3
    assert "t-0 cannot be moved to /nowhere" in result.stderr
    assert "LOG_DIR_NOT_FOUND" in result.stderr
    assert run("move", str(tmp_path / "b"), "gone").exit_code == 3
    assert run("move", str(tmp_path / "b"), "t:first").exit_code == 2
    assert run("describe", "gone").exit_code == 3
