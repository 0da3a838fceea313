"""`barnabas tables` as its users call it."""

import json
import os
import re
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.client.admin.admin import raise_errors
from barnabas.client.blocking import BlockingClient
from barnabas.config.alter_op import AlterConfigOp, OpType
from barnabas.config.config_resource import Resource, ResourceKind
from barnabas.tables.settings import TableFormat
from barnabas.testing import EmbeddedBroker
from support.process import START_TIMEOUT_S, clean_environment
from support.table_service import COMMAND, RunningService, table_service
from support.tables import settings_of, table_rows
from support.waiting import until

QUICK = {"barnabas.table.target.lag.ms": "200"}


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    """A broker of its own: the command keeps the tables of all topics."""
    with EmbeddedBroker() as running:
        yield running


def command(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*COMMAND, *arguments],
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def status(broker: EmbeddedBroker, *options: str) -> dict[str, Any]:
    shown = command("status", "--bootstrap", broker.bootstrap, "--json", *options)
    found: dict[str, Any] = json.loads(shown.stdout)
    return found


def set_config(broker: EmbeddedBroker, topic: str, key: str, value: str) -> None:
    with BlockingClient(broker.bootstrap) as client:
        edit = AlterConfigOp(key, OpType.SET, value)
        raise_errors(client.admin.alter_configs({Resource(ResourceKind.TOPIC, topic): [edit]}).values())


def values(settings: Any) -> list[bytes]:
    try:
        return [row["value"] for row in table_rows(settings)]
    except Exception:  # there is no table yet
        return []


def test_topics_get_tables_while_the_service_runs(broker: EmbeddedBroker, tmp_path: Path) -> None:
    """One fails, which does not stop the others; one gets its config later."""
    lake = tmp_path / "lake"
    broker.create_topic("orders", configs={**QUICK, "barnabas.table.format": "delta"})
    broker.create_topic("clicks", configs={**QUICK, "barnabas.table.format": "iceberg"})
    broker.create_topic("broken", configs={**QUICK, "barnabas.table.format": "delta"})
    broker.create_topic("later", configs=QUICK)
    (lake / "broken").mkdir(parents=True)
    (lake / "broken" / "_delta_log").write_text("not a directory")
    for topic in ("orders", "clicks", "broken", "later"):
        broker.produce(topic, topic)
    orders = settings_of("orders", TableFormat.DELTA, lake / "orders")
    clicks = settings_of("clicks", TableFormat.ICEBERG, lake / "clicks")
    later = settings_of("later", TableFormat.DELTA, lake / "later")
    options = ("--location", str(lake), "--metrics", "127.0.0.1:0")
    with table_service(broker.bootstrap, tmp_path / "log", *options) as service:
        until(lambda: values(orders) == [b"orders"] and values(clicks) == [b"clicks"])
        set_config(broker, "later", "barnabas.table.format", "delta")
        until(lambda: values(later) == [b"later"])
        samples = scraped(service)
        assert samples['barnabas_table_rows_total{topic="orders"}'] == 1
        assert samples['barnabas_table_failed{topic="orders"}'] == 0
        assert samples['barnabas_table_failed{topic="broken"}'] == 1
        assert service.stop() == 0
        assert "a table cannot be advanced; trying again [barnabas.tables] topic=broken" in service.log


def scraped(service: RunningService) -> dict[str, float]:
    until(lambda: "metrics: " in service.log)
    url = re.search(r"metrics: (\S+)", service.log)
    assert url is not None
    with urllib.request.urlopen(url[1]) as response:
        lines = response.read().decode().splitlines()
    return {
        name: float(value) for name, _, value in (line.rpartition(" ") for line in lines) if name[:1] != "#"
    }


def test_the_status_compares_tables_with_their_topics(broker: EmbeddedBroker, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    broker.create_topic("orders", configs={**QUICK, "barnabas.table.format": "delta"})
    broker.create_topic(
        "relative", configs={"barnabas.table.format": "delta", "barnabas.table.location": "x"}
    )
    broker.produce("orders", "0")
    shown = command("status", "--bootstrap", broker.bootstrap, "--location", str(lake))
    assert "not created yet" in shown.stdout
    assert "must be an absolute path or a URL" in shown.stderr
    assert shown.returncode == 1
    with table_service(broker.bootstrap, tmp_path / "log", "--location", str(lake)):
        until(lambda: bool(status(broker, "--location", str(lake))["tables"][0]["rows_count"]))
    broker.produce("orders", "1")
    [report] = status(broker, "--location", str(lake))["tables"]
    assert (report["topic"], report["rows_count"], report["missing_offsets_count"]) == ("orders", 1, 1)
    assert (report["version"], report["files_count"]) == ("1", 1)
    assert list(status(broker, "--location", str(lake))["problems"]) == ["relative"]


def test_without_tables_the_status_says_what_to_do(broker: EmbeddedBroker) -> None:
    broker.create_topic("orders")
    shown = command("status", "--bootstrap", broker.bootstrap)
    assert shown.stdout == "no topic asks for a table: set barnabas.table.format=delta or iceberg on one\n"
    assert shown.returncode == 0


def test_configs_of_topics_can_be_given_to_the_command(broker: EmbeddedBroker, tmp_path: Path) -> None:
    """Brokers of Apache Kafka do not know them."""
    broker.create_topic("orders")
    broker.create_topic("other")
    broker.produce("orders", "0")
    options = ["--topic", "orders", "--set", "barnabas.table.format=delta", "--location", str(tmp_path)]
    orders = settings_of("orders", TableFormat.DELTA, tmp_path / "orders")
    with table_service(broker.bootstrap, tmp_path / "log", *options):
        until(lambda: values(orders) == [b"0"])
    assert not (tmp_path / "other").exists()
    wrong = command("run", "--bootstrap", broker.bootstrap, "--set", "barnabas.table.format=delta")
    assert "--set needs --topic" in wrong.stderr


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--registry", "ftp://host"], "is not the URL of a registry"),
        (["--store-option", "AWS_SECRET"], "--store-option"),
        (["--location", "ftp://host/x"], "--location"),
    ],
)
def test_options_that_are_not_valid_end_the_service(
    broker: EmbeddedBroker, options: list[str], problem: str
) -> None:
    ended = command("run", "--bootstrap", broker.bootstrap, *options)
    assert problem in ended.stderr
    assert ended.returncode == 2


def kept_values(lake: Path, topic: str) -> list[bytes]:
    return values(settings_of(topic, TableFormat.DELTA, lake / topic))


def test_processes_share_the_topics_and_end_with_their_supervisor(
    broker: EmbeddedBroker, tmp_path: Path
) -> None:
    topics = [f"t{number}" for number in range(6)]
    for topic in topics:
        broker.create_topic(topic, configs={**QUICK, "barnabas.table.format": "delta"})
        broker.produce(topic, topic)
    options = ("--location", str(tmp_path / "lake"), "--processes", "2")
    with table_service(broker.bootstrap, tmp_path / "log", *options) as service:
        until(lambda: all(kept_values(tmp_path / "lake", topic) == [topic.encode()] for topic in topics))
        workers = service.workers()
        assert len(workers) == 2
        os.kill(service.process.pid, signal.SIGKILL)
        service.process.wait(START_TIMEOUT_S)
        until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers))
