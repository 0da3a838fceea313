"""The jobs `usage` and `rekey` on Apache Kafka."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from interop.brokers import Broker
from pyspark.sql import SparkSession

from barnabas.client.admin.admin import raise_errors
from barnabas.client.admin.model import NewTopic
from barnabas.client.blocking import BlockingClient
from barnabas.reports.usage.measuring import usage
from pyspark_barnabas.jobs.rekey.job import RekeyRequest, rekey
from pyspark_barnabas.jobs.rekey.state import Copying, RekeyDirectory
from support.rekeyed import check_copy, commit, consume, contents, grow, unread, write
from support.source_rows import consumed_rows

SOURCE, TARGET = "grown", "grown-again"
GROUPS = ("ahead", "behind")


pytestmark = pytest.mark.long


class Running(NamedTuple):
    """Apache Kafka and a client of it."""

    bootstrap: str
    client: BlockingClient


class Dead(BaseException):
    """Not caught by any handler: like a kill, it leaves everything as it is."""


@pytest.fixture(scope="module")
def running(kafka: Broker) -> Iterator[Running]:
    """Create a topic that grew from 2 to 3 partitions, which also moves keys between old partitions."""
    with BlockingClient(kafka.bootstrap) as client:
        found = Running(kafka.bootstrap, client)
        configs = {"retention.bytes": "100000000", "max.message.bytes": "2000000"}
        raise_errors(client.admin.create_topics([NewTopic(SOURCE, 2, 1, configs)]).values())
        write(found, SOURCE, 2, range(60))
        grow(found, SOURCE, 3)
        write(found, SOURCE, 3, range(60, 120))
        yield found


def test_usage_counts_equal_those_of_a_consumer_and_the_broker(running: Running) -> None:
    found = usage({"kafka.bootstrap.servers": running.bootstrap, "subscribe": SOURCE}, keys_count=2)
    rows = consumed_rows(running.bootstrap, SOURCE)
    [topic] = found.topics
    assert (topic.partitions_count, topic.records_count) == (3, len(rows))
    assert topic.size_bytes == sum(
        replica.size_bytes
        for node in running.client.cluster.metadata.nodes
        for each in running.client.admin.describe_log_dirs(node)
        for tp, replica in each.replicas.items()
        if tp.topic == SOURCE
    )
    keys = Counter((row.partition, row.key) for row in rows)
    assert len(found.keys) == 6
    for each in found.keys:
        assert each.records_count == keys[each.partition, each.key.encode()]
    assert {each.date for each in found.days if each.records_count} == {"2020-09-13"}, "markers are of today"


def test_a_topic_is_rekeyed_by_runs_that_die_and_its_groups_continue_without_gap_or_repetition(
    spark: SparkSession, running: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"kafka.bootstrap.servers": running.bootstrap}
    request = RekeyRequest(SOURCE, TARGET, was=(2,), partitions=4, groups=GROUPS, step_records=400)
    written = RekeyDirectory.write
    calls = 0

    def write_and_die(store: RekeyDirectory, state: Copying) -> None:
        """Copy the first step without recording it."""
        nonlocal calls
        calls += 1
        if calls == 5:
            raise Dead
        written(store, state)

    with monkeypatch.context() as patch:
        patch.setattr(RekeyDirectory, "write", write_and_die)
        with pytest.raises(Dead):
            rekey(spark, options, request, tmp_path)
    rekey(spark, options, request, tmp_path)
    before = {row.partition: row.offset + 1 for row in consumed_rows(running.bootstrap, SOURCE)}
    write(running, SOURCE, 3, range(120, 150))
    ends = {row.partition: row.offset + 1 for row in consumed_rows(running.bootstrap, SOURCE)}
    ahead = {partition: (before[partition] + 3 * end) // 4 for partition, end in ends.items()}
    positions = {"ahead": ahead, "behind": before}
    for group, offsets in positions.items():
        commit(running, group, SOURCE, offsets)
    done = rekey(spark, options, request, tmp_path, cut_over=True)
    assert done.is_cut_over
    check_copy(running, SOURCE, TARGET, 4)
    for each in done.groups:
        expected = contents(unread(running, SOURCE, positions[each.group]))
        assert expected
        assert contents(consume(running, each.group, TARGET)) == expected
        assert each.again_count == 0
