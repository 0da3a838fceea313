"""Spark reads what `barnabas tables` wrote, row by row what a consumer reads."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder
from interop.brokers import Broker
from interop.clients import Client
from interop.topics import make_topic

from barnabas.tables.settings import TableFormat, TableSettings
from barnabas.tables.topic_table import TopicTable
from interop import lake
from support.process import clean_environment
from support.source_rows import SourceRow, consumed_rows
from support.spark_topics import fill, fill_in_transactions
from support.tables import advance, settings_of, topic_table


def digits(value: bytes | None) -> str | None:
    return None if value is None else value.hex().upper()


def expected(row: SourceRow) -> list[Any]:
    headers = None if row.headers is None else [[name, digits(value)] for name, value in row.headers]
    return [digits(row.value), digits(row.key), row.partition, row.offset, row.timestamp, headers]


def test_spark_reads_the_rows_that_a_consumer_reads(broker: Broker, helper: Client, tmp_path: Path) -> None:
    topic = make_topic(helper, "lake", 3, retention_ms="-1")
    fill(broker.bootstrap, topic, partitions=3, per_partition=500)
    tables = [topic_table(settings_of(topic, kind, tmp_path / kind.value / topic)) for kind in TableFormat]
    for table in tables:
        advance(table, broker.bootstrap)
    fill_in_transactions(broker.bootstrap, topic, ["yes 1", "no 2", "yes 3"], transactional_id=topic)
    for table in tables:
        advance(table, broker.bootstrap)
    rows = [expected(row) for row in consumed_rows(broker.bootstrap, topic, committed=True)]
    delta, iceberg = in_spark(tmp_path, topic)
    assert delta == rows
    assert iceberg == rows
    check_deleted_rows_stay_deleted(broker, topic, tables[0], len(rows))


def check_deleted_rows_stay_deleted(broker: Broker, topic: str, table: TopicTable, count: int) -> None:
    """Spark has deleted three rows; the service goes on, and joins the other files."""
    for number in range(8):
        fill_in_transactions(broker.bootstrap, topic, [f"yes {number}"], transactional_id=topic)
        advance(table, broker.bootstrap)
    table.maintain()
    assert table.counts.joined_files_count == 9, "all files but that of the deleted rows"
    found = offsets_in(table.settings)
    assert len(found) == len(set(found)) == count - 3 + 8
    assert not {offset for _, offset in found} & {3}


def offsets_in(settings: TableSettings) -> list[tuple[int, int]]:
    """Return partitions and offsets as delta-rs finds them by a query, which knows deletion vectors."""
    query = QueryBuilder().register("t", DeltaTable(str(settings.location)))
    found = pa.table(query.execute("SELECT kafka_partition, kafka_offset FROM t"))
    return list(zip(*(column.to_pylist() for column in found.columns), strict=True))


def in_spark(directory: Path, topic: str) -> tuple[list[Any], list[Any]]:
    """Return the rows of both tables, as a Spark of its own reads them."""
    lake.fetch()
    warehouse = directory / "iceberg"
    ended = subprocess.run(
        [
            sys.executable,
            str(lake.HERE / "lake" / "read_tables.py"),
            lake.jars(),
            str(warehouse / "iceberg-catalog.db"),
            str(warehouse),
            str(directory / "delta" / topic),
            f"barnabas.topics.`{topic}`",
        ],
        env=clean_environment({"PYTHONPATH": str(lake.PACKAGES)}),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    delta, iceberg = json.loads(ended.stdout.splitlines()[-1])
    return delta, iceberg
