"""Process a day of a shop from events to a report. The command can be killed and started again; see README.md.

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
TOPICS = ("shop-events", "shop-dead", "shop-windows", "shop-sales")
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
#: Fewer partitions, so that the internal topics are created faster.
BROKER = {
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "log.retention.ms": "-1",
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=1_000_000, help="number of events")
    parser.add_argument("--home", type=Path, default=Path("orders-example"), help="directory for all data")
    parser.add_argument("--bootstrap", help="Kafka cluster (default: start a broker)")
    parser.add_argument("--master", default="local[*]", help="Spark master")
    options = parser.parse_args()
    if options.count < 1:
        parser.error(f"--count is {options.count}; must be at least 1")
    home = options.home.absolute()
    check_count(home, options.count)
    started = time.monotonic()
    with broker(home, options.bootstrap) as bootstrap, spark(options.master) as session:
        create_topics(bootstrap)
        for what, step in (
            ("wrote events to topic shop-events", partial(generate, session, bootstrap, options.count)),
            (
                "wrote tables/events and topic shop-dead",
                partial(run, session, bootstrap, home, "clean.yml"),
            ),
            (
                "wrote topics shop-windows and shop-sales",
                partial(run, session, bootstrap, home, "windows.yml"),
            ),
        ):
            step()
            print(f"{time.monotonic() - started:6.1f} s  {what}", flush=True)
        totals = found(session, bootstrap, home)
    (home / "report.html").write_text(html(totals, options.count), encoding="utf-8")
    print(f"{time.monotonic() - started:6.1f} s  {home / 'report.html'}", flush=True)
    wrong = differences(totals, expected(options.count))
    if wrong:
        sys.exit("\n".join(["the totals differ from those of plain Python:", *wrong[:20]]))
    print(
        f"{time.monotonic() - started:6.1f} s  {options.count:,} events: all totals equal those of plain Python"
    )


def check_count(home: Path, count: int) -> None:
    """Exit if the directory has the data of another number of events."""
    home.mkdir(parents=True, exist_ok=True)
    path = home / "example.json"
    if path.exists():
        existing = json.loads(path.read_text())["count"]
        if existing != count:
            sys.exit(f"{home} has {existing} events: use --count {existing}, or another --home")
        return
    fresh = path.with_suffix(".fresh")
    fresh.write_text(json.dumps({"count": count}))
    fresh.replace(path)


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
    os.environ["PYTHONPATH"] = os.pathsep.join(roots)  # so that Python workers can import the events
    session = spark_session("orders", master=master, settings=SETTINGS)
    try:
        yield session
    finally:
        session.stop()


def create_topics(bootstrap: str) -> None:
    with BlockingClient(bootstrap) as client:
        existing = client.admin.describe_topics()
        missing = [NewTopic(name, PARTITIONS) for name in TOPICS if name not in existing]
        raise_errors(client.admin.create_topics(missing).values())


def generate(session: SparkSession, bootstrap: str, count: int) -> None:
    """Write all events as one batch, exactly once."""
    numbers = session.range(0, count + 1, 1, PARTITIONS)
    events = numbers.mapInArrow(partial(numbered, count=count), "value binary")
    names = {"topic": "shop-events", "sinkName": "shop-events", "batchId": "0", "delivery": "exactly-once"}
    writer = events.write.format("barnabas").option("kafka.bootstrap.servers", bootstrap).options(**names)
    writer.mode("append").save()


def run(session: SparkSession, bootstrap: str, home: Path, name: str) -> None:
    """Run the pipeline of a file, with its tables and state in the directory."""
    path = home / name
    path.write_text((HERE / name).read_text().replace("BOOTSTRAP", bootstrap))
    for status in run_pipeline(session, read_pipeline(path)):
        if status.state is not FlowState.DONE:
            sys.exit(f"{status.flow} is {status.state.value}: {status.error}")


if __name__ == "__main__":
    main()
