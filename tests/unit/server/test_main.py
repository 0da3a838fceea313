import asyncio
import os
import resource
import signal
import socket
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.base.kept_processes import EXIT_CANNOT_START
from barnabas.config.broker_config import BrokerConfig
from barnabas.config.definition import ConfigError
from barnabas.server import main
from barnabas.server.broker import BrokerServer
from barnabas.server.main import EXIT_STOPPED, load, serve


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("BARNABAS_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "server.properties"
    path.write_text("listeners=PLAINTEXT://127.0.0.1:1111\nlog.dirs=/from/file\nnum.partitions=3\n")
    return path


def loaded(
    file: Path | None = None,
    data: Path | None = None,
    listen: str | None = None,
    overrides: Mapping[str, str] | None = None,
) -> BrokerConfig:
    return load(file, data, listen, overrides or {}).config


def where(config: BrokerConfig) -> tuple[str, tuple[str, ...]]:
    return f"{config.listeners[0].host}:{config.listeners[0].port}", config.log_dirs


def test_the_default_is_loopback_with_data_in_the_working_directory() -> None:
    assert where(loaded()) == ("127.0.0.1:9092", ("data",))


def test_the_file_overrides_the_defaults(file: Path) -> None:
    config = loaded(file)
    assert where(config) == ("127.0.0.1:1111", ("/from/file",))
    assert config.integer("num.partitions") == 3


def test_the_environment_overrides_the_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BARNABAS_LISTENERS", "PLAINTEXT://127.0.0.1:2222")
    monkeypatch.setenv("BARNABAS_LOG_DIRS", "/one,/two")
    monkeypatch.setenv("BARNABAS_NUM_PARTITIONS", "4")
    config = loaded(file)
    assert where(config) == ("127.0.0.1:2222", ("/one", "/two"))
    assert config.integer("num.partitions") == 4


def test_the_command_line_overrides_everything(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BARNABAS_LISTENERS", "PLAINTEXT://127.0.0.1:2222")
    monkeypatch.setenv("BARNABAS_NUM_PARTITIONS", "4")
    config = loaded(file, Path("/mine"), "127.0.0.1:3333", {"num.partitions": "5"})
    assert where(config) == ("127.0.0.1:3333", ("/mine",))
    assert config.integer("num.partitions") == 5


def test_without_listen_its_key_applies() -> None:
    overrides = {"log.dirs": "/key", "listeners": "PLAINTEXT://127.0.0.1:4444"}
    assert where(loaded(overrides=overrides)) == ("127.0.0.1:4444", ("/key",))


@pytest.mark.parametrize("key", ["log.dirs", "log.dir"])
def test_data_and_log_dirs_on_one_command_line_are_rejected(key: str) -> None:
    with pytest.raises(ConfigError, match=rf"'/mine' for --data: conflicts with --set {key}=/key"):
        loaded(data=Path("/mine"), overrides={key: "/key"})


def test_listen_and_listeners_on_one_command_line_are_rejected() -> None:
    expected = "'127.0.0.1:1' for --listen: conflicts with --set listeners=PLAINTEXT://:2"
    with pytest.raises(ConfigError, match=expected):
        loaded(listen="127.0.0.1:1", overrides={"listeners": "PLAINTEXT://:2"})


def test_settings_replaced_by_an_option_are_reported(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BARNABAS_LOG_DIR", "/from/environment")
    monkeypatch.setenv("BARNABAS_LISTENERS", "PLAINTEXT://:2")
    both = load(file, Path("/mine"), "127.0.0.1:3", {})
    assert where(both.config) == ("127.0.0.1:3", ("/mine",))
    assert both.replaced == (
        "--data is used instead of log.dirs=/from/file (file)",
        "--data is used instead of BARNABAS_LOG_DIR=/from/environment (environment)",
        "--listen is used instead of BARNABAS_LISTENERS=PLAINTEXT://:2 (environment)",
        "--listen is used instead of listeners=PLAINTEXT://127.0.0.1:1111 (file)",
    )
    assert load(file, None, None, {}).replaced == ()


def test_log_dir_alone_is_sufficient_in_any_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "server.properties"
    path.write_text("log.dir=/from/file\n")
    assert loaded(path).log_dirs == ("/from/file",)
    assert loaded(overrides={"log.dir": "/from/set"}).log_dirs == ("/from/set",)
    monkeypatch.setenv("BARNABAS_LOG_DIR", "/from/environment")
    assert loaded().log_dirs == ("/from/environment",)


def test_an_unknown_key_is_a_warning_with_the_nearest_one() -> None:
    [warning] = load(None, None, None, {"num.partition": "1"}).warnings
    assert "num.partition" in str(warning)
    assert "did you mean num.partitions?" in str(warning)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"num.partitions": "many"}, "Invalid value .many. for num.partitions"),
        ({"listeners": "nonsense"}, "Invalid value .nonsense. for listeners"),
    ],
)
def test_an_invalid_value_is_reported_with_its_key(overrides: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        loaded(overrides=overrides)


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        ({"num.partitions": "many"}, "many"),
        (
            {"listeners": "SSL://127.0.0.1:0", "security.inter.broker.protocol": "SSL"},
            "must be set for listener SSL",
        ),
    ],
)
def test_a_failed_start_is_exit_code_2_with_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], overrides: dict[str, str], says: str
) -> None:
    assert serve(None, tmp_path, None, overrides) == EXIT_CANNOT_START
    captured = capsys.readouterr()
    assert captured.err.startswith("barnabas: ")
    assert says in captured.err
    assert "Traceback" not in captured.err


@pytest.mark.parametrize("file", ["meta.properties", "metadata.sqlite"])
def test_a_damaged_file_is_exit_code_2_with_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], file: str
) -> None:
    (tmp_path / file).write_bytes(b"neither properties nor a database" * 50)
    assert serve(None, tmp_path, "127.0.0.1:0", {}) == EXIT_CANNOT_START
    says = capsys.readouterr().err
    assert str(tmp_path / file) in says
    assert "Traceback" not in says


def test_a_port_in_use_is_exit_code_2_with_its_number(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert serve(None, tmp_path, f"127.0.0.1:{port}", {}) == EXIT_CANNOT_START
    assert f"Cannot listen on 127.0.0.1:{port}: Address already in use" in capsys.readouterr().err


def test_a_missing_file_is_exit_code_2_with_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert serve(tmp_path / "none.properties", None, None, {}) == EXIT_CANNOT_START
    assert "none.properties" in capsys.readouterr().err


@pytest.fixture
def _stop_once_started(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Send the signal that stops a broker as soon as it has printed its greeting."""
    greet = main._print_banner

    def greet_and_stop(*arguments: object) -> None:
        greet(*arguments)  # type: ignore[arg-type]
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)

    monkeypatch.setattr(main, "_print_banner", greet_and_stop)
    yield
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


@pytest.mark.usefixtures("_stop_once_started")
def test_a_signal_stops_it_cleanly_after_it_has_printed_its_address(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    overrides = {"barnabas.metrics.listener": "127.0.0.1:0", "num.partition": "1"}
    assert serve(None, tmp_path, "127.0.0.1:0", overrides) == EXIT_STOPPED
    captured = capsys.readouterr()
    assert "Barnabas serves Kafka on 127.0.0.1:" in captured.out
    assert f"data in {tmp_path}" in captured.out
    assert "/metrics" in captured.out
    assert "the console is not served, only metrics" in captured.err
    assert "barnabas topics create greetings --bootstrap 127.0.0.1:" in captured.out
    assert "warning: Unknown configuration num.partition" in captured.err
    assert (tmp_path / ".kafka_cleanshutdown").exists()


@pytest.mark.usefixtures("_stop_once_started")
def test_settings_without_effect_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    authorizer = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    overrides = {"authorizer.class.name": authorizer, "num.io.threads": "8", "num.partitions": "2"}
    assert serve(None, tmp_path, "127.0.0.1:0", overrides) == EXIT_STOPPED
    errors = capsys.readouterr().err
    assert "no effect in Barnabas: num.io.threads\n" in errors
    assert "num.partitions" not in errors


@pytest.mark.usefixtures("_stop_once_started")
def test_it_raises_its_file_limit_to_the_systems_maximum(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 512), hard))
    try:
        assert serve(None, tmp_path, "127.0.0.1:0", {}) == EXIT_STOPPED
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("_stop_once_started")
def test_the_broker_stops_once_its_garbage_collector_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[str] = []

    async def collect(_received_bytes: object) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append("collector")

    async def stop(server: BrokerServer) -> None:
        ended.append("broker")
        await stop_broker(server)

    stop_broker = BrokerServer.stop
    monkeypatch.setattr(main, "collect_all_when_quiet", collect)
    monkeypatch.setattr(BrokerServer, "stop", stop)
    assert serve(None, tmp_path, "127.0.0.1:0", {}) == EXIT_STOPPED
    assert ended == ["collector", "broker"]


@pytest.mark.parametrize(
    ("host", "bootstrap"),
    [("::1", "[::1]:9092"), ("0.0.0.0", "127.0.0.1:9092"), ("::", "[::1]:9092"), ("example", "example:9092")],
)
def test_suggested_commands_have_an_address_that_clients_can_use(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], host: str, bootstrap: str
) -> None:
    config = loaded(data=tmp_path)
    server: Any = SimpleNamespace(
        addresses=[("PLAINTEXT", host, 9092)], metrics_port=None, registry_port=None, serves_pages=False
    )
    main._print_banner(server, config)
    assert f"--bootstrap {bootstrap}\n" in capsys.readouterr().out
