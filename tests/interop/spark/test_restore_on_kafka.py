"""The job `restore` on Apache Kafka: by producing, with an offset map; what needs Barnabas is rejected immediately."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from interop.brokers import Broker
from pyspark.sql import SparkSession

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.admin import raise_errors
from barnabas.client.admin.model import NewTopic
from barnabas.client.blocking import BlockingClient
from barnabas.wire.errors import KafkaError
from pyspark_barnabas.jobs.archive.job import archive
from pyspark_barnabas.jobs.common.client import NotBarnabas
from pyspark_barnabas.jobs.restore import mapped as job
from pyspark_barnabas.jobs.restore.job import restore
from pyspark_barnabas.jobs.restore.mapped import restore_mapped
from pyspark_barnabas.jobs.restore.offset_map import read_map, translate_groups
from pyspark_barnabas.jobs.restore.plan import Request
from pyspark_barnabas.source.options import batch_options
from support.confluent_transactions import transact_at
from support.source_rows import SourceRow, consumed_rows, fill

TOPIC, AGAIN, GROUP = "archived", "archived-again", "of-archived"


class Dead(BaseException):
    """Not caught by any handler: like a kill, it leaves everything as it is."""


@pytest.fixture
def client(kafka: Broker) -> Iterator[BlockingClient]:
    with BlockingClient(kafka.bootstrap) as connected:
        yield connected


def contents(rows: list[SourceRow]) -> list[tuple[object, ...]]:
    """Return everything except topic and offset, in the order of each partition."""
    return [(row.partition, *row[3:]) for row in rows]


def test_an_archive_is_produced_once_and_groups_continue_and_only_barnabas_keeps_offsets(
    spark: SparkSession,
    kafka: Broker,
    client: BlockingClient,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    options = {"kafka.bootstrap.servers": kafka.bootstrap}
    raise_errors(client.admin.create_topics([NewTopic(TOPIC, 3)]).values())
    fill(kafka.bootstrap, TOPIC, 100, 2)
    client.admin.delete_records({TopicPartition(TOPIC, 0): 10})
    transact_at(kafka.bootstrap, TOPIC, "of archived", "cac")
    archive(spark, {**options, "subscribe": TOPIC}, tmp_path / "archive")
    expected = consumed_rows(kafka.bootstrap, TOPIC, committed=True)
    request = Request(options, tmp_path / "archive", [TOPIC], AGAIN)
    with pytest.raises(NotBarnabas, match="--map works with any broker"):
        restore(None, request)
    assert isinstance(client.admin.describe_topics([AGAIN])[AGAIN], KafkaError), "nothing was made"

    save = job._save

    def dying(directory: Path, state: Any) -> None:
        """Write the second batch without recording it."""
        if state.done_count == 2:
            raise Dead
        save(directory, state)

    with monkeypatch.context() as patch:
        patch.setattr(job, "_BATCH_RECORDS", 30)
        patch.setattr(job, "_save", dying)
        with pytest.raises(Dead):
            restore_mapped(spark, request, tmp_path / "map")
    restore_mapped(spark, request, tmp_path / "map")
    rows = consumed_rows(kafka.bootstrap, AGAIN, committed=True)
    assert contents(rows) == contents(expected)
    maps = read_map(tmp_path / "map")
    for before, after in zip(expected, rows, strict=True):
        assert maps[TopicPartition(TOPIC, before.partition)].translated(before.offset) == after.offset
    check_translated(kafka, client, tmp_path / "map", expected, rows)


def check_translated(
    kafka: Broker, client: BlockingClient, directory: Path, expected: list[SourceRow], rows: list[SourceRow]
) -> None:
    stopped = {TopicPartition(TOPIC, 0): 33, TopicPartition(TOPIC, 1): 49}
    client.groups.commit_offsets(GROUP, stopped)
    connection = batch_options({"kafka.bootstrap.servers": kafka.bootstrap, "subscribe": TOPIC}).connection
    translate_groups(connection, connection, directory, [GROUP])
    committed = client.groups.offsets(GROUP)
    for tp, stop in stopped.items():
        restored = committed[TopicPartition(AGAIN, tp.partition)].offset  # type: ignore[union-attr]
        left = [each for each in expected if each.partition == tp.partition and each.offset >= stop]
        found = [each for each in rows if each.partition == tp.partition and each.offset >= restored]
        assert contents(found) == contents(left)
