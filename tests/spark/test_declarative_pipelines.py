"""The shop's events as a project of Declarative Pipelines: killed, run again, with replayed dead letters."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
from deltalake import DeltaTable
from examples.orders.events import decoded, event
from examples.orders.fill import PARTITIONS, fill
from examples.orders.replay import replay
from examples.orders.totals import expected
from pyspark.sql import SparkSession

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.offsets import EARLIEST
from barnabas.testing import EmbeddedBroker
from barnabas.wire.isolation import Isolation
from support.spark import ROOT

COUNT = 12_000
WAIT_S = 240
PROGRAM = Path(sys.executable).parent / "barnabas"
#: What a shell has that has activated nothing.
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "HOME": str(Path.home())}
JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"


class Project:
    """A copy of the example with its own directory, and small batches."""

    def __init__(self, home: Path, bootstrap: str) -> None:
        self.home = home / "data"
        self._folder = home / "project"
        example = ROOT / "examples" / "orders"
        for name in ("spark-pipeline.yml", "conf/spark-defaults.conf", "pipeline/orders.py"):
            text = (example / name).read_text().replace("/tmp/barnabas-orders", str(self.home))
            text = text.replace("127.0.0.1:9092", bootstrap).replace('"250000"', '"6500"')
            text = text.replace("-Dderby", f"{JVM} -Dderby").replace("  2g", "  1g")
            (self._folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self._folder / name).write_text(text)
        self._log = self._folder / "run.log"

    def start(self) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            return subprocess.Popen(
                [PROGRAM, "spark-pipelines", "run"],
                cwd=self._folder,
                env=ENVIRONMENT,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def run(self) -> None:
        assert self.start().wait(WAIT_S) == 0, self.output

    def run_until(self, seen: Callable[[], bool]) -> None:
        """Kill a run, with all its processes, when something is seen."""
        process = self.start()
        end_s = time.monotonic() + WAIT_S
        while not seen():
            assert process.poll() is None, self.output
            assert time.monotonic() < end_s, self.output
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(30)

    @property
    def output(self) -> str:
        return self._log.read_text(errors="replace")[-4000:]

    def exists(self, path: str) -> bool:
        return (self.home / path).exists()

    def events(self) -> list[dict[str, Any]]:
        """Return the rows of the streaming table: of the files that Spark's log has."""
        table = self.home / "warehouse" / "events"
        lines = [
            line
            for log in (table / "_spark_metadata").glob("[0-9]*")
            for line in log.read_text().splitlines()[1:]
        ]
        files = [json.loads(line)["path"].removeprefix("file://") for line in lines]
        rows: list[dict[str, Any]] = ds.dataset(files, format="parquet").to_table().to_pylist()
        return rows

    def sales(self) -> dict[str, int]:
        rows = ds.dataset(self.home / "warehouse" / "sales", format="parquet").to_table().to_pylist()
        return {row["item"]: row["cents"] for row in rows}

    def delta(self, name: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = DeltaTable(self.home / "delta" / name).to_pyarrow_table().to_pylist()
        return rows


@pytest.fixture
def shop() -> Iterator[EmbeddedBroker]:
    settings = {"offsets.topic.num.partitions": "2", "transaction.state.log.num.partitions": "2"}
    with EmbeddedBroker({**settings, "log.retention.ms": "-1"}) as broker:
        fill(broker.client, COUNT)
        yield broker


def records(broker: EmbeddedBroker, topic: str) -> list[tuple[bytes, dict[str, str]]]:
    starts = {TopicPartition(topic, index): EARLIEST for index in range(PARTITIONS)}
    consumer = broker.client.consumer(starts, stop_at_end=True, isolation=Isolation.READ_COMMITTED)
    return [
        (each.value or b"", {key: (value or b"").decode() for key, value in each.headers})
        for each in consumer
    ]


def check_results(project: Project, shop: EmbeddedBroker, repaired: dict[int, dict[str, Any]]) -> None:
    """Check all results against plain Python.

    :param repaired: The events that are valid only since they were replayed.
    """
    totals = expected(COUNT)
    rows = project.events()
    ids = sorted(row["id"] for row in rows)
    assert len(ids) == sum(totals.rows.values()) + len(repaired)
    assert len(set(ids)) == len(ids), "each event is in the table once"
    assert {row["topic"] for row in rows} == {"shop-events"}, "replayed events have their first position"
    sales = Counter(totals.items)
    for each in repaired.values():
        sales[each["item"]] += each["cents"]
    assert project.sales() == dict(+sales)
    assert sorted(row["id"] for row in project.delta("events")) == ids
    latest: dict[str, int] = {}
    for row in rows:
        latest[row["customer"]] = max(row["id"], latest.get(row["customer"], -1))
    assert {row["customer"]: row["id"] for row in project.delta("customers")} == latest
    assert len(project.delta("customers")) == len(latest)
    letters = records(shop, "shop-dead")
    assert len(letters) == sum(totals.dead.values()), "each dead letter is written once"
    windows = [json.loads(value) for value, _ in records(shop, "shop-windows")]
    found = {each["start"]: (each["orders"], each["clicks"], each["cents"]) for each in windows}
    assert found == {start: tuple(window) for start, window in totals.windows.items()}
    assert len(windows) == len(found), "each window is written once"


@pytest.mark.long  # examples/orders, which the other tests kill, is such a project, too
@pytest.mark.parametrize(
    "seen", ["delta/events/_delta_log/00000000000000000000.json", "warehouse/events/_spark_metadata/0"]
)
def test_a_killed_project_completes_on_its_next_run_and_replayed_letters_become_rows(
    spark: SparkSession, shop: EmbeddedBroker, tmp_path: Path, seen: str
) -> None:
    project = Project(tmp_path, shop.bootstrap)
    project.run_until(lambda: project.exists(seen))
    project.run()
    check_results(project, shop, {})
    raw = {event(number, COUNT) for number in range(COUNT)}
    letters = records(shop, "shop-dead")
    assert all(value in raw for value, _ in letters), "letters have the value as it was"
    assert {headers["barnabas.topic"] for _, headers in letters} == {"shop-events"}

    for _ in range(2):  # the second time changes nothing
        replay(spark, shop.bootstrap, 0)
    project.run()
    values = {number: event(number, COUNT) for number in range(COUNT)}
    repaired = {number: decoded(value[1:]) for number, value in values.items() if value[:1] == b"\xff"}
    assert repaired
    check_results(project, shop, {number: row for number, row in repaired.items() if row is not None})
