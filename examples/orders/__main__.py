"""A day of a shop from events to a report, in one command that may be killed and begun again; see README.md.

python -m examples.orders [--count 1000000] [--home orders-example] [--bootstrap HOST:PORT]
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from examples.orders.events import numbered
from examples.orders.report import found, html
from examples.orders.totals import differences, expected
from pyspark.sql import SparkSession

from barnabas.client.admin.admin import raise_errors
from barnabas.client.admin.model import NewTopic
from barnabas.client.blocking import BlockingClient
from barnabas.testing import EmbeddedBroker
from pyspark_barnabas.pipelines.engine import run_pipeline
from pyspark_barnabas.pipelines.parser import read_pipeline
from pyspark_barnabas.pipelines.state import FlowState
from pyspark_barnabas.runtime.session import spark_session

HERE = Path(__file__).resolve().parent
TOPICS = ("shop-events", "shop-dead", "shop-windows")
PARTITIONS = 4
SETTINGS = {
    "spark.driver.memory": "2g",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "4",
}
#: The broker's own topics are made when first used, and with fewer partitions they are made sooner.
BROKER = {
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "log.retention.ms": "-1",
}


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--count", type=int, default=1_000_000, help="how many events")
    options.add_argument("--home", type=Path, default=Path("orders-example"), help="where all of it is kept")
    options.add_argument("--bootstrap", help="a Kafka cluster; a broker of its own if none is given")
    options.add_argument("--master", default="local[*]", help="where Spark runs")
    asked = options.parse_args()
    if asked.count < 1:
        options.error(f"--count is {asked.count}; must be at least 1")
    home = asked.home.absolute()
    settle(home, asked.count)
    began = time.monotonic()
    with broker(home, asked.bootstrap) as bootstrap, spark(asked.master) as session:
        make_topics(bootstrap)
        for what, step in (
            ("events are in topic shop-events", partial(generate, session, bootstrap, asked.count)),
            (
                "cleaned into tables/events and topic shop-dead",
                partial(run, session, bootstrap, home, "clean.yml"),
            ),
            ("counted into topic shop-windows", partial(run, session, bootstrap, home, "windows.yml")),
        ):
            step()
            print(f"{time.monotonic() - began:6.1f} s  {what}", flush=True)
        totals = found(session, bootstrap, home)
    (home / "report.html").write_text(html(totals, asked.count), encoding="utf-8")
    print(f"{time.monotonic() - began:6.1f} s  {home / 'report.html'}", flush=True)
    wrong = differences(totals, expected(asked.count))
    if wrong:
        sys.exit("\n".join(["the totals are not those of plain Python:", *wrong[:20]]))
    print(f"{time.monotonic() - began:6.1f} s  {asked.count:,} events: all totals are those of plain Python")


def settle(home: Path, count: int) -> None:
    """One home has one size."""
    home.mkdir(parents=True, exist_ok=True)
    place = home / "example.json"
    if place.exists():
        there = json.loads(place.read_text())["count"]
        if there != count:
            sys.exit(f"{home} has {there} events: go on with --count {there}, or take another --home")
        return
    fresh = place.with_suffix(".fresh")
    fresh.write_text(json.dumps({"count": count}))
    fresh.replace(place)


@contextmanager
def broker(home: Path, bootstrap: str | None) -> Iterator[str]:
    if bootstrap is not None:
        yield bootstrap
        return
    (home / "broker").mkdir(exist_ok=True)
    with EmbeddedBroker({**BROKER, "log.dirs": str(home / "broker")}) as running:
        yield running.bootstrap


@contextmanager
def spark(master: str) -> Iterator[SparkSession]:
    roots = [str(HERE.parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ["PYTHONPATH"] = os.pathsep.join(roots)  # where Python workers find the events
    session = spark_session("orders", master=master, settings=SETTINGS)
    try:
        yield session
    finally:
        session.stop()


def make_topics(bootstrap: str) -> None:
    with BlockingClient(bootstrap) as client:
        there = client.admin.describe_topics()
        wanted = [NewTopic(name, PARTITIONS) for name in TOPICS if name not in there]
        raise_errors(client.admin.create_topics(wanted).values())


def generate(session: SparkSession, bootstrap: str, count: int) -> None:
    """All events as one batch, which is written once."""
    numbers = session.range(0, count + 1, 1, PARTITIONS)
    events = numbers.mapInArrow(partial(numbered, count=count), "value binary")
    names = {"topic": "shop-events", "sinkName": "shop-events", "batchId": "0", "delivery": "exactly-once"}
    writer = events.write.format("barnabas").option("kafka.bootstrap.servers", bootstrap).options(**names)
    writer.mode("append").save()


def run(session: SparkSession, bootstrap: str, home: Path, name: str) -> None:
    """What a file declares, with its tables and state in the home."""
    place = home / name
    place.write_text((HERE / name).read_text().replace("BOOTSTRAP", bootstrap))
    for status in run_pipeline(session, read_pipeline(place)):
        if status.state is not FlowState.DONE:
            sys.exit(f"{status.flow} is {status.state.value}: {status.error}")


if __name__ == "__main__":
    main()
