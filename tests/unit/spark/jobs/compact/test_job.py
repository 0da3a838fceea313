"""The job `compact` without Spark: rejected inputs, and the command's output."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
from typer.testing import CliRunner

from barnabas.cli.main import app
from pyspark_barnabas.jobs.common import session as running
from pyspark_barnabas.jobs.compact import job as module
from pyspark_barnabas.jobs.compact.job import IMPORTED, REFUSED, Compacted, compact
from pyspark_barnabas.option_values import OptionError

DONE = Compacted("orders", 3, IMPORTED, 5, 900, 7, 2, 70_000, 20_000, 700, 200)


def test_without_a_broker_the_compacted_topics_are_unknown() -> None:
    with pytest.raises(OptionError, match=r"kafka\.bootstrap\.servers"):
        compact(None, {"subscribe": "t", "logDirs": "/tmp"})  # type: ignore[arg-type]


@pytest.fixture
def results(monkeypatch: pytest.MonkeyPatch) -> list[Compacted]:
    """Set the job's results; return the arguments that the command passes."""
    found: list[Compacted] = []

    @contextmanager
    def session(name: str, master: str) -> Iterator[None]:
        assert (name, master) == ("compact", "local[3]")
        yield

    def run(spark: None, options: Mapping[str, str], **arguments: Any) -> list[Compacted]:
        assert options["logDirs"] == "/logs"
        assert options["subscribe"] == "orders"
        assert options["kafka.bootstrap.servers"] == "there:1"
        assert arguments["wait_s"] == 5.0
        return found

    monkeypatch.setattr(running, "job_session", session)
    monkeypatch.setattr(module, "compact", run)
    return found


def invoked(*arguments: str) -> tuple[int, str]:
    fixed = ["-d", "/logs", "-b", "there:1", "-t", "orders", "--wait", "5", "--master", "local[3]"]
    result = CliRunner().invoke(app, ["jobs", "compact", *fixed, *arguments], env={"COLUMNS": "200"})
    return result.exit_code, result.output


def test_the_command_prints_sizes_before_and_after(results: list[Compacted]) -> None:
    assert invoked()[0] == 0
    results.append(DONE)
    status, output = invoked()
    assert status == 0
    for shown in ("orders", "imported", "70000", "20000", "700", "200", "900"):
        assert shown in output
    status, output = invoked("--json", "--dry-run")
    found = json.loads(output)
    assert found["dry_run"]
    assert found["partitions"][0]["bytes_after"] == 20_000


def test_a_log_that_is_not_compacted_is_a_failure(results: list[Compacted]) -> None:
    results.append(Compacted("orders", 3, REFUSED, why="the log has changed meanwhile"))
    status, output = invoked()
    assert status == 1
    assert "the log has changed meanwhile" in output
