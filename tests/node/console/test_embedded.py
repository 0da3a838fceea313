"""The console that a broker serves beside its metrics."""

import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest

from barnabas.telemetry.https import HANDSHAKES_MAX
from support.certificates import Authority
from support.consoles import token_in
from support.process import BrokerProcess, run_serve
from support.processes import descendants
from support.waiting import until

METRICS = "barnabas.metrics.listener=127.0.0.1:0"


def urls(broker: BrokerProcess) -> dict[str, str]:
    """Return the URLs that the broker prints before its hints."""
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
        metrics = httpx.get(found["Metrics"])
        assert metrics.status_code == 200
        assert "barnabas_" in metrics.text
        assert metrics.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        assert httpx.post(found["Metrics"]).status_code == 405
        for url in (found["Console"], found["Metrics"]):
            assert httpx.get(url, headers={"Host": "broker.example"}).status_code == 421
        began_s = time.monotonic()
        assert broker.terminate() == 0
        assert time.monotonic() - began_s < 10


def test_a_setting_disables_the_console_but_not_the_metrics(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path, "--set", METRICS, "--set", "barnabas.console.enable=false") as broker:
        found = urls(broker)
        assert "Console" not in found
        assert "metrics are at /metrics" in httpx.get(found["Metrics"].removesuffix("metrics")).text
        assert httpx.get(found["Metrics"]).status_code == 200


@pytest.mark.parametrize("enabled", ["true", "false"])
def test_metrics_are_served_under_configured_and_advertised_names(tmp_path: Path, enabled: str) -> None:
    settings = {
        "barnabas.console.enable": enabled,
        "barnabas.console.hosts": "metrics.example",
        "advertised.listeners": "PLAINTEXT://kafka.example:9092",
        "barnabas.metrics.listener": "127.0.0.1:0",
    }
    arguments = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
    with BrokerProcess(tmp_path, *arguments) as broker:
        url = urls(broker)["Metrics"]
        statuses = [
            httpx.get(url, headers={"Host": host}).status_code
            for host in ("metrics.example:80", "kafka.example", "evil.example")
        ]
    assert statuses == [200, 200, 421]


def test_a_setting_makes_the_console_read_only(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path, "--set", METRICS, "--set", "barnabas.console.read.only=true") as broker:
        assert "Read-only" in httpx.get(urls(broker)["Console"], timeout=20).text


def test_the_console_of_a_loopback_broker_listens_on_loopback_only(tmp_path: Path) -> None:
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


def test_users_log_in_if_the_broker_requires_it(tmp_path: Path) -> None:
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


#: Nine levels, each nine times the one before: some hundred million values if expanded.
LAUGHS = "a0: &a0 [x, x]\n" + "".join(
    f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]\n" for level in range(1, 10)
)
#: A valid state that takes long to process.
LARGE = "topics:\n" + "".join(f"  topic-{number}: {{partitions: 3}}\n" for number in range(10_000))


def plan(url: str, text: str) -> httpx.Response:
    """Return the plan page's response to a new session."""
    with httpx.Client(base_url=url, follow_redirects=True, timeout=60) as person:
        return person.post("/plan", data={"csrf": token_in(person.get("/plan").text), "text": text})


def test_forms_with_yaml_aliases_are_rejected(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path, "--set", METRICS) as broker, ThreadPoolExecutor(6) as people:
        url = urls(broker)["Console"]
        pages = list(people.map(lambda _: plan(url, LAUGHS), range(6)))
        assert {page.status_code for page in pages} <= {400, 503}
        assert any("&amp;a0 is an anchor" in page.text for page in pages)
        assert "is an anchor" in plan(url, LAUGHS).text
        assert broker.terminate() == 0


def test_stopping_a_broker_does_not_wait_for_plans(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path, "--set", METRICS) as broker, ThreadPoolExecutor(1) as people:
        url = urls(broker)["Console"]
        page = people.submit(plan, url, LARGE)
        until(lambda: descendants(broker.process.pid, "plan_worker"))
        workers = descendants(broker.process.pid, "plan_worker")
        assert broker.terminate() == 0
        until(lambda: not any(Path(f"/proc/{worker}").exists() for worker in workers))
        with pytest.raises(httpx.HTTPError):
            page.result().raise_for_status()


def test_a_plan_is_cancelled_when_its_browser_disconnects(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path, "--set", METRICS) as broker, ThreadPoolExecutor(1) as people:
        url = urls(broker)["Console"]
        with httpx.Client(base_url=url, timeout=60) as person:
            data = {"csrf": token_in(person.get("/plan").text), "text": LARGE}
            page = people.submit(person.post, "/plan", data=data)
            until(lambda: descendants(broker.process.pid, "plan_worker"))
            for connection in person._transport._pool.connections:  # type: ignore[attr-defined]
                connection._connection._network_stream.get_extra_info("socket").shutdown(socket.SHUT_RDWR)
            until(lambda: not descendants(broker.process.pid, "plan_worker"))
            assert page.exception() is not None


@contextmanager
def serving_https(directory: Path, enabled: str) -> Iterator[tuple[dict[str, str], ssl.SSLContext]]:
    """Run a broker; yield its URLs, and a context that trusts it."""
    authority = Authority()
    keystore = authority.issue().write_pem(directory / "web.pem")
    settings = {
        "barnabas.console.enable": enabled,
        "barnabas.metrics.ssl.enable": "true",
        "listener.name.https.ssl.keystore.type": "PEM",
        "listener.name.https.ssl.keystore.location": str(keystore),
    }
    options = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    with BrokerProcess(directory / "data", "--set", METRICS, *options) as broker:
        yield urls(broker), ssl.create_default_context(cadata=authority.pem)


@pytest.mark.parametrize("enabled", ["true", "false"])
def test_console_and_metrics_are_served_over_https(tmp_path: Path, enabled: str) -> None:
    with serving_https(tmp_path, enabled) as (found, trusting):
        assert httpx.get(found["Metrics"], verify=trusting, timeout=20).status_code == 200
        if enabled == "true":
            page = httpx.get(found["Console"], verify=trusting, timeout=20)
            assert page.status_code == 200
            assert "Secure" in page.headers["Set-Cookie"]
        with pytest.raises(httpx.HTTPError):
            httpx.get(found["Metrics"].replace("https:", "http:"))


@pytest.mark.parametrize("enabled", ["true", "false"])
def test_silent_clients_of_https_are_given_up_for_others(tmp_path: Path, enabled: str) -> None:
    def is_ended(client: socket.socket) -> bool:
        try:
            return client.recv(1) == b""
        except BlockingIOError:
            return False
        except ConnectionError:
            return True

    with serving_https(tmp_path, enabled) as (found, trusting), ExitStack() as stack:
        url = httpx.URL(found["Metrics"])
        silent = [
            stack.enter_context(socket.create_connection((url.host, url.port)))
            for _ in range(HANDSHAKES_MAX + 5)
        ]
        for client in silent:
            client.setblocking(False)
        until(lambda: all(is_ended(client) for client in silent[:5]))
        assert not any(is_ended(client) for client in silent[6:])
        assert httpx.get(url, verify=trusting, timeout=20).status_code == 200


def test_https_with_certificates_of_clients_is_an_error_at_the_start(tmp_path: Path) -> None:
    client_auth = "listener.name.https.ssl.client.auth=required"
    settings = ("--set", METRICS, "--set", "barnabas.metrics.ssl.enable=true", "--set", client_auth)
    ended = run_serve("--data", str(tmp_path), "--listen", "127.0.0.1:0", *settings)
    assert ended.returncode == 2
    assert "console, metrics and registry do not ask for certificates of clients" in ended.stderr


def test_https_without_a_keystore_is_an_error_at_the_start(tmp_path: Path) -> None:
    settings = ("--set", METRICS, "--set", "barnabas.metrics.ssl.enable=true")
    ended = run_serve("--data", str(tmp_path), "--listen", "127.0.0.1:0", *settings)
    assert ended.returncode == 2
    assert "Metrics cannot be served over HTTPS: ssl.keystore.location" in ended.stderr
    assert "Traceback" not in ended.stderr
