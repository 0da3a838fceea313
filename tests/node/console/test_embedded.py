"""The console that a broker serves itself, beside its metrics."""

import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from support.process import BrokerProcess

METRICS = "barnabas.metrics.listener=127.0.0.1:0"


def urls(broker: BrokerProcess) -> dict[str, str]:
    """What the broker says where, up to the advice."""
    assert broker.process.stdout
    found = {}
    while not (line := broker.process.stdout.readline()).startswith("Try"):
        what, _, where = line.strip().partition(": ")
        found[what] = where
    return found


def test_a_broker_serves_its_console_beside_its_metrics(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path, "--set", METRICS) as broker:
        found = urls(broker)
        page = httpx.get(found["Console"], timeout=20)
        assert page.status_code == 200
        assert broker.bootstrap in page.text
        metrics = httpx.get(found["Metrics"], headers={"Host": "broker.example"})
        assert metrics.status_code == 200
        assert "barnabas_" in metrics.text
        assert metrics.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        assert httpx.post(found["Metrics"]).status_code == 405
        assert httpx.get(found["Console"], headers={"Host": "broker.example"}).status_code == 421
        began_s = time.monotonic()
        assert broker.terminate() == 0
        assert time.monotonic() - began_s < 10


def test_a_setting_turns_the_console_off_and_leaves_the_metrics(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path, "--set", METRICS, "--set", "barnabas.console.enable=false") as broker:
        found = urls(broker)
        assert "Console" not in found
        assert "metrics are at /metrics" in httpx.get(found["Metrics"].removesuffix("metrics")).text
        assert httpx.get(found["Metrics"]).status_code == 200


def test_a_setting_makes_the_console_read_only(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path, "--set", METRICS, "--set", "barnabas.console.read.only=true") as broker:
        assert "Read-only" in httpx.get(urls(broker)["Console"], timeout=20).text


def test_a_broker_for_this_machine_alone_is_not_opened_to_the_network_by_its_console(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path, "--set", "barnabas.metrics.listener=0.0.0.0:0") as broker:
        assert "Console" not in urls(broker)


@pytest.mark.parametrize("settings", [[], ["--set", METRICS, "--set", "barnabas.console.enable=false"]])
def test_a_broker_without_a_console_imports_nothing_of_it(tmp_path: Path, settings: list[str]) -> None:
    code = (
        "import atexit, sys\n"
        "parts = {'starlette', 'uvicorn', 'jinja2', 'barnabas.console'}\n"
        "atexit.register(lambda: print('imported', sorted(parts & set(sys.modules))))\n"
        f"sys.argv = ['barnabas', 'serve', '--data', {str(tmp_path)!r}, '--listen', '127.0.0.1:0', *{settings!r}]\n"
        "from barnabas.cli.main import main\n"
        "main()\n"
    )
    serving = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert serving.stdout is not None
    assert serving.stdout.readline().startswith("Barnabas serves Kafka on ")
    serving.terminate()
    printed, _ = serving.communicate(timeout=60)
    assert serving.returncode == 0
    assert "imported []" in printed


def test_people_log_in_where_the_broker_asks_for_it(tmp_path: Path) -> None:
    sasl = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0,PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "barnabas.metrics.listener": "127.0.0.1:0",
    }
    settings = [part for key, value in sasl.items() for part in ("--set", f"{key}={value}")]
    with BrokerProcess(tmp_path, *settings, "--add-scram", "alice=secret", port=-1) as broker:
        url = urls(broker)["Console"]
        with httpx.Client(base_url=url, follow_redirects=True, timeout=20) as person:
            assert person.get("/").url.path == "/login"
            page = person.post("/login", data={"user": "alice", "password": "secret"})
            assert "User:alice" in page.text
