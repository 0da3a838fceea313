"""Log output of a broker process from start to stop, in text and in JSON."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.admin import create, new_topic
from support.batches import batch
from support.process import BrokerProcess, run_serve
from support.wire import Wire

JSON = ("--set", "barnabas.log.format=json")


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_start_and_stop_are_logged_with_the_broker_id(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path, "--set", "node.id=7") as broker:
        assert broker.terminate() == 0
    log = broker.stderr
    starts, opened, serves, received, stopped = log.splitlines()
    assert "the broker starts" in starts
    assert "version=" in starts
    assert "node_id=7" in starts
    assert "opened the logs of a log directory" in opened
    assert "cluster_id=" in serves
    assert f"PLAINTEXT://{broker.bootstrap}" in serves
    assert "received SIGTERM: the broker stops" in received
    assert "the broker has stopped" in stopped
    assert "took_ms=" in stopped


def test_recovery_after_a_crash_is_logged(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path) as broker, Wire(broker.port) as wire:
        create(wire, new_topic("t"))
        wire.produce("t", batch(b"x"))
        broker.kill()
    with (tmp_path / "t-0" / f"{0:020d}.log").open("ab") as file:
        file.write(b"torn")
    with BrokerProcess(tmp_path) as broker:
        broker.terminate()
    assert "log directory was not shut down cleanly; recovering its logs" in broker.stderr
    assert "truncated the incomplete or damaged end of a log" in broker.stderr
    assert "partition=t-0 discarded_bytes=4 log_end_offset=1" in broker.stderr
    assert "recovered=True took_ms=" in broker.stderr


def test_with_the_json_format_every_line_is_json(tmp_path: Path) -> None:
    """Standard output is included, because container logs hold both."""
    program = (
        "import sys, threading, warnings\n"
        "from barnabas.server import main\n"
        "greeted = main._first_of\n"
        "async def noisy(*events):\n"
        "    warnings.warn('old')\n"
        "    thread = threading.Thread(target=lambda: 1 / 0)\n"
        "    thread.start()\n"
        "    thread.join()\n"
        "    events[0].set()\n"
        "    await greeted(*events)\n"
        "main._first_of = noisy\n"
        "from barnabas.cli.main import main as run\n"
        "run()\n"
    )
    import sys

    arguments = [
        "serve",
        "--data",
        str(tmp_path),
        "--listen",
        "127.0.0.1:0",
        *JSON,
        "--set",
        "num.partition=3",
    ]
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == ""
    found = lines(done.stderr)
    assert any("Unknown configuration num.partition" in each["event"] for each in found)
    assert any(each["logger"] == "py.warnings" for each in found)
    assert any("ZeroDivisionError" in each.get("exception", "") for each in found)
    [serves] = [each for each in found if each["event"] == "the broker serves"]
    assert serves["node_id"] == 1
    assert serves["listeners"][0].startswith("PLAINTEXT://127.0.0.1:")


@pytest.mark.parametrize(
    "arguments",
    [("--set", "num.partitions=many"), ("--config", "missing.properties"), ("--listen", "nowhere")],
)
def test_errors_before_the_start_are_json_too(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    ended = run_serve("--data", str(tmp_path), *arguments, *JSON)
    assert ended.returncode == 2
    [line] = lines(ended.stderr)
    assert (line["level"], line["event"]) == ("error", "the broker cannot start")
    assert arguments[1].partition("=")[2] in line["why"]


def test_the_format_can_be_set_in_the_file(tmp_path: Path) -> None:
    (tmp_path / "server.properties").write_text("barnabas.log.format=json\nnum.partitions=many\n")
    ended = run_serve("--config", str(tmp_path / "server.properties"))
    [line] = lines(ended.stderr)
    assert "num.partitions" in line["why"]
