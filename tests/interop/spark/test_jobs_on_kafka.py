"""Jobs on Apache Kafka: its logs, compacted, transactional, of any codec, are intact and can be archived."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from interop.brokers import Broker
from interop.targets import START
from pyspark.sql import SparkSession

from barnabas.base.ids import TopicPartition
from pyspark_barnabas.jobs.archive.job import archive
from pyspark_barnabas.jobs.archive.opening import open_archive
from pyspark_barnabas.jobs.scrub.batch_checks import Finding, Scrubbed
from pyspark_barnabas.jobs.scrub.job import plan_scrub, scrub_options, scrub_part
from support.cleaned_logs import is_cleaned
from support.confluent_transactions import transact_at
from support.source_rows import WAIT_S, consumed_rows, fill, frame_rows, producer
from support.waiting import until

pytestmark = pytest.mark.long

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
SEGMENT_BYTES = 1 << 20  #: the smallest value that Kafka accepts
PROPERTIES = {
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "log.retention.ms": "-1",
    "log.segment.bytes": str(SEGMENT_BYTES),
    "log.cleaner.backoff.ms": "100",
    "log.cleaner.min.cleanable.ratio": "0.01",
}
COMPACTED = TopicPartition("compacted", 0)
TOPICS = ("plain", "compacted")


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Run a Kafka that has cleaned a log itself; a test may stop it for good."""
    broker = START["kafka"](tmp_path_factory.mktemp("kafka"), PROPERTIES)
    try:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        compacted = NewTopic(COMPACTED.topic, 1, 1, config={"cleanup.policy": "compact"})
        for outcome in admin.create_topics([NewTopic("plain", 2, 1), compacted]).values():
            outcome.result(WAIT_S)
        fill_plain(broker.bootstrap)
        fill_compacted(broker.bootstrap)
        until(lambda: is_cleaned(broker.data_dir, COMPACTED))
        yield broker
    finally:
        broker.stop()


def fill_plain(bootstrap: str) -> None:
    for codec in CODECS:
        fill(bootstrap, "plain", 400, 2, compression_type=codec, batch_size=4_000)
    fill(bootstrap, "plain", 400, 2, enable_idempotence=True, batch_size=4_000)
    transact_at(bootstrap, "plain", "of plain", "cacca")


def fill_compacted(bootstrap: str) -> None:
    """Write segments of few keys, including transactions."""
    for codec in CODECS:
        writer = producer(
            bootstrap, compression_type=codec, batch_size=20_000, transactional_id=f"packed by {codec}"
        )
        writer.init_transactions(WAIT_S)
        for outcome in (writer.commit_transaction, writer.abort_transaction, writer.commit_transaction):
            writer.begin_transaction()
            for number in range(1_000):
                value = bytes((number * 7 + tp * tp) % 251 for tp in range(600))
                writer.produce(COMPACTED.topic, value, b"key-%d" % (number % 900), partition=0)
                writer.poll(0)
            outcome(WAIT_S)


def scrubbed(options: dict[str, str], topics: Sequence[str] = TOPICS) -> list[Scrubbed]:
    """Run the job's check without Spark."""
    parsed = scrub_options({**options, "subscribe": ",".join(topics)})
    return [scrub_part(part, parsed) for part in plan_scrub(parsed)]


def findings(found: list[Scrubbed]) -> list[Finding]:
    return [finding for each in found for finding in each.findings]


def test_an_archive_equals_a_read_committed_consumers_records(
    spark: SparkSession, kafka: Broker, tmp_path: Path
) -> None:
    options = {"kafka.bootstrap.servers": kafka.bootstrap, "subscribe": "plain"}
    for kind in ("parquet", "delta"):
        archive(spark, options, tmp_path / kind, kind=kind)
    fill(kafka.bootstrap, "plain", 100, 2)
    expected = consumed_rows(kafka.bootstrap, "plain", committed=True)
    for kind in ("parquet", "delta"):
        run = archive(spark, options, tmp_path / kind)
        assert (run.run, run.records_count) == (2, 100)
        assert frame_rows(open_archive(tmp_path / kind).records(spark)) == expected


def test_its_batches_are_intact_over_the_wire(kafka: Broker) -> None:
    found = scrubbed({"kafka.bootstrap.servers": kafka.bootstrap})
    assert findings(found) == []
    assert [(each.topic, each.partition) for each in found] == [COMPACTED, ("plain", 0), ("plain", 1)]
    assert all(each.batches_count > 1 for each in found)


def test_its_files_are_intact_while_it_runs_and_after_a_stop(kafka: Broker) -> None:
    files = {"logDirs": str(kafka.data_dir)}
    topics = (*TOPICS, "__transaction_state")
    found = scrubbed({**files, "kafka.bootstrap.servers": kafka.bootstrap}, topics)
    assert findings(found) == []
    [compacted] = [each for each in found if each.topic == COMPACTED.topic]
    assert compacted.segments_count > 1
    assert compacted.records_count < compacted.next_offset, "it has been cleaned"
    kafka.stop()
    found = scrubbed(files, topics)
    assert findings(found) == []
    assert {each.topic for each in found} == set(topics)
