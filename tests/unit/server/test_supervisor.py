import asyncio
import errno
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path
from typing import Any

import pytest
from interop.brokers import consecutive_ports

from barnabas.base.ids import uuid_to_text
from barnabas.config.definition import ConfigError
from barnabas.config.load import load_broker_config
from barnabas.log.startup.meta_properties import MetaProperties, write_meta_properties
from barnabas.server.supervisor import PROBE_INTERVAL_S, BrokerPlan, Supervisor, plan_brokers


def settings_of(count: int, **settings: str) -> list[dict[str, Any]]:
    given = {"listeners": "PLAINTEXT://h:9092", "log.dirs": "d"}
    given |= {key.replace("_", "."): value for key, value in settings.items()}
    loaded = load_broker_config(settings=[f"{key}={value}" for key, value in given.items()], environment={})
    return [dict(plan.settings) for plan in plan_brokers(loaded.config, count)]


def test_ids_ports_and_directories_count_up_and_the_store_is_shared() -> None:
    one, two, three = settings_of(3)
    assert [each["node.id"] for each in (one, two, three)] == ["1", "2", "3"]
    assert [each["listeners"] for each in (one, two, three)] == [
        f"PLAINTEXT://h:{port}" for port in (9092, 9093, 9094)
    ]
    assert [each["log.dirs"] for each in (one, two, three)] == ["d", "d/brokers/2", "d/brokers/3"]
    assert {each["barnabas.store"] for each in (one, two, three)} == {"sqlite:d/metadata.sqlite"}


def test_all_listeners_and_log_directories_are_shifted() -> None:
    _, two = settings_of(
        2,
        listeners="A://:1000,B://[::1]:2000",
        listener_security_protocol_map="A:PLAINTEXT,B:PLAINTEXT",
        inter_broker_listener_name="A",
        advertised_listeners="A://public:1,B://other:2",
        log_dirs="x,/y",
    )
    assert two["listeners"] == "A://:1001,B://[::1]:2001"
    assert two["advertised.listeners"] == "A://public:2,B://other:3"
    assert two["log.dirs"] == "x/brokers/2,/y/brokers/2"


def test_each_broker_serves_metrics_and_schemas_and_the_first_the_console() -> None:
    one, two = settings_of(2, barnabas_metrics_listener="127.0.0.1:9404")
    assert one["barnabas.metrics.listener"] == "127.0.0.1:9404"
    assert two["barnabas.metrics.listener"] == "127.0.0.1:9405"
    registries = settings_of(2, barnabas_registry_listener="127.0.0.1:8081")
    assert [each["barnabas.registry.listener"] for each in registries] == ["127.0.0.1:8081", "127.0.0.1:8082"]
    assert "barnabas.console.enable" not in one
    assert two["barnabas.console.enable"] == "false"


def test_the_store_is_in_the_metadata_directory() -> None:
    assert settings_of(1, metadata_log_dir="m")[0]["barnabas.store"] == "sqlite:m/metadata.sqlite"


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"listeners": "PLAINTEXT://h:0"}, "listeners must have fixed ports"),
        ({"barnabas_store": "sqlite:x"}, "--brokers uses a store of its own"),
    ],
)
def test_settings_that_cannot_be_counted_up_are_refused(settings: dict[str, str], what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        settings_of(2, **settings)


def test_the_log_of_a_broker_is_copied_line_by_line_however_long_a_line_is(
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    [plan] = plan_brokers(
        load_broker_config(settings=["listeners=PLAINTEXT://h:9092"], environment={}).config, 1
    )

    async def copy() -> None:
        supervisor = Supervisor([plan], [], {}, [], names_brokers=True)
        script = "import sys; sys.stderr.write('a\\n' + 'b' * 200_000 + '\\nend')"
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", script, stderr=PIPE)
        await supervisor._copy_log(plan, process)
        await process.wait()

    asyncio.run(copy())
    written = capfdbinary.readouterr().err
    assert written == b"broker 1 | a\nbroker 1 | " + b"b" * 200_000 + b"\nbroker 1 | end\n"


def two_brokers(data: Path) -> list[BrokerPlan]:
    settings = [f"listeners=PLAINTEXT://127.0.0.1:{consecutive_ports(2)}", f"log.dirs={data}"]
    return plan_brokers(load_broker_config(settings=settings, environment={}).config, 2)


def test_a_new_broker_waits_for_the_first_which_may_have_data_of_a_cluster(tmp_path: Path) -> None:
    first, second = two_brokers(tmp_path)

    async def scenario() -> None:
        supervisor = Supervisor([first, second], [], {}, [], names_brokers=True)
        assert await supervisor._may_start(first)
        waiting = asyncio.create_task(supervisor._may_start(second))
        done, _ = await asyncio.wait([waiting], timeout=3 * PROBE_INTERVAL_S)
        assert not done
        async with await asyncio.start_server(lambda _, writer: writer.close(), *first.address):
            assert await waiting

    asyncio.run(scenario())


def test_a_broker_that_has_joined_before_does_not_wait(tmp_path: Path) -> None:
    first, second = two_brokers(tmp_path)
    directory = Path(second.settings["log.dirs"])
    directory.mkdir(parents=True)
    write_meta_properties(directory, MetaProperties(uuid_to_text(b"c" * 16), 2, b"d" * 16))
    supervisor = Supervisor([first, second], [], {}, [], names_brokers=True)
    assert asyncio.run(supervisor._may_start(second))


def test_a_waiting_broker_is_not_started_when_the_supervisor_stops(tmp_path: Path) -> None:
    first, second = two_brokers(tmp_path)
    supervisor = Supervisor([first, second], [], {}, [], names_brokers=True)
    supervisor.stop()
    assert not asyncio.run(supervisor._may_start(second))


def test_a_broker_whose_process_cannot_be_started_is_started_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _ = two_brokers(tmp_path)
    supervisor = Supervisor([first], [], {}, [], names_brokers=True)
    attempts: list[BrokerPlan] = []

    async def start(plan: BrokerPlan) -> Process:
        attempts.append(plan)
        if len(attempts) == 1:
            raise OSError(errno.EMFILE, "Too many open files")
        supervisor.stop()
        return await asyncio.create_subprocess_exec(sys.executable, "-c", "", stderr=PIPE)

    monkeypatch.setattr(supervisor, "_start", start)
    asyncio.run(supervisor._keep(first))
    assert attempts == [first, first]
