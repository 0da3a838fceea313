"""The job `compact` on Spark compared with the broker's own cleaner, on copies of the same logs."""

from pathlib import Path
from random import Random

from confluent_kafka import Producer
from pyspark.sql import SparkSession

from barnabas.base.clock import SystemClock
from barnabas.base.ids import TopicPartition
from barnabas.client.admin.admin import raise_errors
from barnabas.config.alter_op import AlterConfigOp, OpType
from barnabas.config.config_resource import Resource, ResourceKind
from barnabas.log.partition_log import PartitionLog
from barnabas.testing import EmbeddedBroker
from barnabas.wire.records.compression import Compression
from barnabas.wire.records.record import Record
from pyspark_barnabas.jobs.compact.job import IMPORTED, Compacted, compact
from support.changing_topics import CODECS
from support.compaction import batches_of, cleaned_by_broker, copy_logs, files_of, records_of
from support.served_logs import log_of, options_of
from support.source_rows import WAIT_S, SourceRow, consumed_rows, fill, producer, record

PARTITIONS_COUNT, KEYS_COUNT, RECORDS_COUNT = 2, 300, 600
CONFIGS = {
    "segment.bytes": "1048576",  # the smallest value that brokers accept
    "min.cleanable.dirty.ratio": "1.0",  # the broker's own cleaner has nothing to do
    "delete.retention.ms": "0",  # tombstones that one pass has seen are removed by the next
}


def make_compacted(broker: EmbeddedBroker, topic: str) -> None:
    edits = {Resource(ResourceKind.TOPIC, topic): [AlterConfigOp("cleanup.policy", OpType.SET, "compact")]}
    raise_errors(broker.client.admin.alter_configs(edits).values())


def rewrite(bootstrap: str, topic: str, rng: Random) -> None:
    """Write keys repeatedly with producers of every codec: idempotent, in a transaction, in an aborted one."""
    for codec in CODECS:
        packed = {"compression_type": codec, "batch_size": 20_000}
        produce(producer(bootstrap, enable_idempotence=True, **packed), topic, rng)
        writer = producer(bootstrap, transactional_id=f"{topic} {codec}", **packed)
        writer.init_transactions(WAIT_S)
        for end in (writer.commit_transaction, writer.abort_transaction):
            writer.begin_transaction()
            produce(writer, topic, rng)
            end(WAIT_S)


def produce(writer: Producer, topic: str, rng: Random) -> None:
    """Write records with short and long keys, a tenth of them tombstones."""
    for number in range(RECORDS_COUNT):
        key = (b"key %d" % rng.randrange(KEYS_COUNT)) * rng.choice((1, 8))
        value = rng.randbytes(rng.randrange(1_500)) if rng.randrange(10) else None
        fields = {**record(number), "key": key, "value": value}
        writer.produce(topic, partition=number % PARTITIONS_COUNT, **fields)
        writer.poll(0)
    assert writer.flush(WAIT_S) == 0


def check_equal(spark: SparkSession, broker: EmbeddedBroker, topic: str, copy: Path) -> None:
    """Compact a topic with the job, and a copy of its logs with the broker's cleaner."""
    partitions = [TopicPartition(topic, index) for index in range(PARTITIONS_COUNT)]
    copy_logs(broker.directory, copy, partitions)
    before, began_ms = consumed_rows(broker.bootstrap, topic, committed=True), SystemClock().wall_ms()
    assert len(before) < len(consumed_rows(broker.bootstrap, topic)), "some were aborted"
    done = compact(spark, options_of(broker, topic))
    assert [each.state for each in done] == [IMPORTED] * PARTITIONS_COUNT
    assert all(each.segments_before > 3 for each in done)
    assert consumed_rows(broker.bootstrap, topic, committed=True) == left_of(before, done)
    logs = {tp: log_of(broker, tp) for tp in partitions}
    moments = {tp: moment_of(log) for tp, log in logs.items()}
    assert all(began_ms <= each <= SystemClock().wall_ms() for each in moments.values())
    with cleaned_by_broker(copy, logs[partitions[0]].config, moments) as own:
        for tp, log in logs.items():
            assert served(broker, tp) == records_of(own[tp])
            assert segments_of(log) == segments_of(own[tp])
            assert log.cleaner_offset == own[tp].cleaner_offset == done[tp.partition].end_offset


def left_of(rows: list[SourceRow], done: list[Compacted]) -> list[SourceRow]:
    """Return each key's last record below the cleaner offset, without tombstones of the pass before, and all
    records above.
    """
    below = [row for row in rows if row.offset < done[row.partition].end_offset]
    last = {(row.partition, row.key): row.offset for row in below}

    def is_left(row: SourceRow) -> bool:
        bounds = done[row.partition]
        if row.offset >= bounds.end_offset:
            return True
        is_gone = row.value is None and row.offset < bounds.first_dirty_offset
        return row.key is not None and row.offset == last[row.partition, row.key] and not is_gone

    return [row for row in rows if is_left(row)]


def moment_of(log: PartitionLog) -> int:
    """Return the time of a pass, from its newest tombstones' delete horizon."""
    horizons = [header.delete_horizon_ms for header, _ in batches_of(log)]
    return max(each for each in horizons if each is not None) - log.config.delete_retention_ms


def served(broker: EmbeddedBroker, tp: TopicPartition) -> list[Record]:
    """Return every record, including those of aborted transactions."""
    found = broker.records(tp.topic)
    return [Record(*each[2:]) for each in found if each.partition == tp.partition]


def segments_of(log: PartitionLog) -> dict[int, dict[str, bytes]]:
    """Return the files of each segment; only the log of the active one, whose indexes are in memory."""
    found = {each.base_offset: files_of(log.directory, each.base_offset) for each in log.segments}
    active = found[log.segments.active.base_offset]
    return {**found, log.segments.active.base_offset: {".log": active[".log"]}}


def test_the_job_writes_the_same_files_as_the_brokers_cleaner(
    spark: SparkSession, broker: EmbeddedBroker, topic: str, tmp_path: Path
) -> None:
    rng = Random(7)
    broker.create_topic(topic, PARTITIONS_COUNT, CONFIGS)
    fill(broker.bootstrap, topic, 400, PARTITIONS_COUNT)
    assert any(row.key is None for row in consumed_rows(broker.bootstrap, topic))
    make_compacted(broker, topic)  # from now on every record needs a key
    for name in ("all of it is new", "more is written"):
        rewrite(broker.bootstrap, topic, rng)
        check_equal(spark, broker, topic, tmp_path / name)
    for index in range(PARTITIONS_COUNT):
        log = log_of(broker, TopicPartition(topic, index))
        left = [header for header, records in batches_of(log) if records and not header.is_control]
        assert {each.compression for each in left if each.next_offset <= log.cleaner_offset} == set(
            Compression
        )
