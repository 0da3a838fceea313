"""Both transports compared with a confluent-kafka consumer, without Spark: its tasks are executed directly."""

import random
from pathlib import Path

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.reading import fetch_reader
from barnabas.testing import EmbeddedBroker
from pyspark_barnabas.plain_errors import BarnabasError
from pyspark_barnabas.source.batch_reader import BatchReader
from support.confluent_transactions import transact
from support.source_rows import (
    WAIT_S,
    consumed_rows,
    fill,
    produce_damaged,
    producer,
    read_batches,
    read_rows,
    record,
    source_options,
)
from support.waiting import until

TRANSPORTS = ("fetch", "files")


@pytest.fixture(params=TRANSPORTS)
def transport(request: pytest.FixtureRequest, broker: EmbeddedBroker) -> dict[str, str]:
    """Return the options of a transport; files are read up to the broker's log end."""
    return {} if request.param == "fetch" else {"transport": "files", "logDirs": str(broker.directory)}


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_of_every_kind_and_codec_equal_a_consumers(
    broker: EmbeddedBroker, topic: str, codec: str, transport: dict[str, str]
) -> None:
    broker.create_topic(topic, 3)
    fill(broker.bootstrap, topic, 500, 2, compression_type=codec)  # the third partition stays empty
    rows = read_rows(source_options(broker.bootstrap, topic, **transport))
    assert len(rows) == 500
    assert rows == consumed_rows(broker.bootstrap, topic)


def test_log_append_time_is_distinguished(
    broker: EmbeddedBroker, topic: str, transport: dict[str, str]
) -> None:
    broker.create_topic(topic, 1, {"message.timestamp.type": "LogAppendTime"})
    fill(broker.bootstrap, topic, 20)
    rows = read_rows(source_options(broker.bootstrap, topic, **transport))
    assert {row.timestamp_type for row in rows} == {1}
    assert rows == consumed_rows(broker.bootstrap, topic)


@pytest.mark.parametrize("level", ["read_committed", "read_uncommitted"])
def test_aborted_and_open_transactions_are_read_only_uncommitted(
    broker: EmbeddedBroker, topic: str, level: str, transport: dict[str, str]
) -> None:
    broker.create_topic(topic)
    transact(broker, topic, f"{topic}-a", "acca")
    fill(broker.bootstrap, topic, 30)
    transact(broker, topic, f"{topic}-b", "caaco")
    fill(broker.bootstrap, topic, 5)
    rows = read_rows(source_options(broker.bootstrap, topic, kafka_isolation_level=level, **transport))
    committed = level == "read_committed"
    assert rows == consumed_rows(broker.bootstrap, topic, committed=committed)
    assert len(rows) == (40 + 30 if committed else 40 + 30 + 50 + 5)


def test_a_task_may_start_within_an_aborted_transaction(
    broker: EmbeddedBroker, topic: str, transport: dict[str, str]
) -> None:
    broker.create_topic(topic)
    transact(broker, topic, topic, "caac")
    expected = consumed_rows(broker.bootstrap, topic, committed=True)
    for low in range(0, 44, 3):
        for high in (low + 1, low + 7, 44):
            start, end = f'{{"{topic}": {{"0": {low}}}}}', f'{{"{topic}": {{"0": {min(high, 44)}}}}}'
            given = {
                "kafka.isolation.level": "read_committed",
                "startingOffsets": start,
                "endingOffsets": end,
            }
            rows = read_rows({**source_options(broker.bootstrap, topic, **transport), **given})
            assert rows == [row for row in expected if low <= row.offset < high]


def interleave(bootstrap: str, topic: str, seed: int) -> None:
    """Write interleaved transactions of four producers, between non-transactional records."""
    rng = random.Random(seed)
    writers = [producer(bootstrap, transactional_id=f"{topic}-{seed}-{index}") for index in range(4)]
    for writer in writers:
        writer.init_transactions(WAIT_S)
    is_open = dict.fromkeys(range(4), False)
    for step in range(80):
        index = rng.randrange(4)
        writer = writers[index]
        if not is_open[index]:
            writer.begin_transaction()
            is_open[index] = True
        if rng.random() < 0.6:
            for number in range(rng.randrange(1, 4)):
                writer.produce(topic, b"%d-%d-%d" % (step, index, number), partition=rng.randrange(2))
            assert writer.flush(WAIT_S) == 0
        else:
            end = rng.choice((writer.commit_transaction, writer.abort_transaction))
            end(WAIT_S)
            is_open[index] = False
        if rng.random() < 0.1:
            fill(bootstrap, topic, 3, 2)
    for index, writer in enumerate(writers):
        if is_open[index] and index:  # the first one's stays open
            writer.abort_transaction(WAIT_S)


@pytest.mark.parametrize("seed", range(3))
def test_interleaved_transactions_are_distinguished(broker: EmbeddedBroker, topic: str, seed: int) -> None:
    broker.create_topic(topic, 2)
    interleave(broker.bootstrap, topic, seed)
    expected = consumed_rows(broker.bootstrap, topic, committed=True)
    assert 0 < len(expected) < len(consumed_rows(broker.bootstrap, topic))
    options = source_options(broker.bootstrap, topic, kafka_isolation_level="read_committed")
    for given in (
        {},
        {"kafka.max.partition.fetch.bytes": "1"},
        {"maxRecordsPerPartition": "7", "kafka.max.partition.fetch.bytes": "500"},
        {"transport": "files", "logDirs": str(broker.directory), "minPartitions": "9"},
    ):
        assert read_rows({**options, **given}) == expected


def test_many_small_fetches_read_the_same_as_one(broker: EmbeddedBroker, topic: str) -> None:
    broker.create_topic(topic)
    for _ in range(20):
        fill(broker.bootstrap, topic, 25)
    options = source_options(broker.bootstrap, topic)
    small = {**options, "kafka.max.partition.fetch.bytes": "1"}
    assert len(list(read_batches(small))) >= 20
    assert read_rows(small) == read_rows(options) == consumed_rows(broker.bootstrap, topic)


def test_tasks_may_be_split_at_any_offset(
    broker: EmbeddedBroker, topic: str, transport: dict[str, str]
) -> None:
    broker.create_topic(topic, 2)
    fill(broker.bootstrap, topic, 200, 2)
    options = source_options(broker.bootstrap, topic, minPartitions="7", includeHeaders="true", **transport)
    assert read_rows(options) == consumed_rows(broker.bootstrap, topic)


def test_segments_are_read_consecutively(
    broker: EmbeddedBroker, topic: str, transport: dict[str, str]
) -> None:
    broker.create_topic(topic, 1, {"segment.bytes": str(1 << 20)})
    writer = producer(broker.bootstrap, linger_ms=0, batch_size=20_000)
    for number in range(400):
        writer.produce(topic, b"%d" % number * 3_000)
        writer.poll(0)
    assert writer.flush(20) == 0
    assert len(list((broker.directory / f"{topic}-0").glob("*.log"))) > 2
    rows = read_rows(source_options(broker.bootstrap, topic, **transport))
    assert rows == consumed_rows(broker.bootstrap, topic)


def test_starting_and_ending_offsets_are_used(
    broker: EmbeddedBroker, topic: str, transport: dict[str, str]
) -> None:
    broker.create_topic(topic)
    for number in range(50):
        broker.produce(topic, str(number), partition=0, timestamp_ms=1_000 + number)
    options = source_options(broker.bootstrap, topic, **transport)
    given = {"startingTimestamp": "1010", "endingTimestamp": "1020"}
    assert [row.offset for row in read_rows({**options, **given})] == list(range(10, 20))
    given = {"startingOffsets": f'{{"{topic}": {{"0": 45}}}}'}
    assert [row.offset for row in read_rows({**options, **given})] == list(range(45, 50))


def test_a_plan_ends_at_the_log_end_at_its_creation(
    broker: EmbeddedBroker, topic: str, transport: dict[str, str]
) -> None:
    broker.create_topic(topic)
    fill(broker.bootstrap, topic, 10)
    options = source_options(broker.bootstrap, topic, **transport)
    tasks = BatchReader(options, ("offset",)).partitions()
    fill(broker.bootstrap, topic, 10)
    assert len(read_rows(options, tasks)) == 10
    assert len(read_rows(options)) == 20


def test_a_missing_topic_is_reported(broker: EmbeddedBroker, transport: dict[str, str]) -> None:
    with pytest.raises(BarnabasError, match="not-there"):
        read_rows(source_options(broker.bootstrap, "not-there", **transport))


def test_topics_are_found_by_a_pattern_without_internal_ones(
    broker: EmbeddedBroker, topic: str, transport: dict[str, str]
) -> None:
    for name in (f"{topic}-a", f"{topic}-b", f"{topic}-c1"):
        broker.create_topic(name)
        broker.produce(name, name)
    options = source_options(broker.bootstrap, topic, **transport)
    del options["subscribe"]
    rows = read_rows({**options, "subscribePattern": f"{topic}-.|__.*"})
    assert [row.topic for row in rows] == [f"{topic}-a", f"{topic}-b"]


def test_partitions_can_be_assigned(broker: EmbeddedBroker, topic: str, transport: dict[str, str]) -> None:
    broker.create_topic(topic, 3)
    fill(broker.bootstrap, topic, 30, 3)
    options = source_options(broker.bootstrap, topic, **transport)
    del options["subscribe"]
    rows = read_rows({**options, "assign": f'{{"{topic}": [0, 2]}}'})
    assert {row.partition for row in rows} == {0, 2}


# Data loss


def test_records_deleted_before_the_start_are_data_loss(
    broker: EmbeddedBroker, topic: str, transport: dict[str, str]
) -> None:
    broker.create_topic(topic)
    fill(broker.bootstrap, topic, 30)
    broker.client.admin.delete_records({TopicPartition(topic, 0): 12})
    options = source_options(broker.bootstrap, topic, **transport)
    assert [row.offset for row in read_rows(options)] == list(range(12, 30))
    requested = {**options, "startingOffsets": f'{{"{topic}": {{"0": 5}}}}'}
    if transport:
        until(lambda: f"{topic} 0 12" in (broker.directory / "log-start-offset-checkpoint").read_text())
    with pytest.raises(BarnabasError, match="begins at offset 12 now: offsets 5 to 12 are gone"):
        read_rows(requested)
    assert [row.offset for row in read_rows({**requested, "failOnDataLoss": "false"})] == list(range(12, 30))


def test_an_end_beyond_the_log_is_data_loss(
    broker: EmbeddedBroker, topic: str, transport: dict[str, str]
) -> None:
    broker.create_topic(topic)
    fill(broker.bootstrap, topic, 10)
    requested = source_options(broker.bootstrap, topic, **transport)
    requested |= {"endingOffsets": f'{{"{topic}": {{"0": 15}}}}'}
    with pytest.raises(BarnabasError, match="ends at offset 10 now"):
        read_rows(requested)
    assert len(read_rows({**requested, "failOnDataLoss": "false"})) == 10


def test_a_start_beyond_the_log_is_data_loss(broker: EmbeddedBroker, topic: str) -> None:
    broker.create_topic(topic)
    requested = source_options(broker.bootstrap, topic) | {"startingOffsets": f'{{"{topic}": {{"0": 15}}}}'}
    with pytest.raises(BarnabasError, match="ends at offset 0, before the start at 15"):
        read_rows(requested)


@pytest.mark.parametrize("recreated", [False, True])
def test_a_topic_deleted_after_the_plan_is_data_loss(
    broker: EmbeddedBroker,
    topic: str,
    transport: dict[str, str],
    recreated: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fetch_reader, "_UNKNOWN_ATTEMPTS_COUNT", 3)  # each pauses longer than the one before
    broker.create_topic(topic)
    fill(broker.bootstrap, topic, 10)
    options = source_options(broker.bootstrap, topic, **transport)
    tasks = BatchReader(options, ("offset",)).partitions()
    broker.delete_topic(topic)
    if recreated:
        broker.create_topic(topic)
        fill(broker.bootstrap, topic, 20)
    with pytest.raises(BarnabasError, match=f"topic '{topic}'"):
        read_rows(options, tasks)
    assert read_rows({**options, "failOnDataLoss": "false"}, tasks) == []


# Errors


@pytest.mark.parametrize(
    "error", ["NOT_LEADER_OR_FOLLOWER", "FENCED_LEADER_EPOCH", "UNKNOWN_TOPIC_OR_PARTITION"]
)
def test_a_task_survives_retriable_errors(broker: EmbeddedBroker, topic: str, error: str) -> None:
    broker.create_topic(topic)
    fill(broker.bootstrap, topic, 50)
    fault = broker.fail_next("Fetch", error, times=2)
    assert len(read_rows(source_options(broker.bootstrap, topic))) == 50
    assert fault.is_over


def test_a_task_survives_lost_connections(broker: EmbeddedBroker, topic: str) -> None:
    broker.create_topic(topic)
    fill(broker.bootstrap, topic, 50)
    broker.drop_next("Fetch", times=3)
    assert len(read_rows(source_options(broker.bootstrap, topic))) == 50


def test_a_task_survives_a_restart_of_the_broker(topic: str) -> None:
    with EmbeddedBroker() as broker:
        broker.create_topic(topic)
        for _ in range(5):
            fill(broker.bootstrap, topic, 50)
        options = source_options(broker.bootstrap, topic, kafka_max_partition_fetch_bytes="1")
        batches = read_batches(options)
        found = next(batches).num_rows
        broker.restart(kill=True)
        assert found + sum(batch.num_rows for batch in batches) == 250


def test_record_sizes_are_sampled_where_they_are_unknown(broker: EmbeddedBroker, topic: str) -> None:
    broker.create_topic(topic)
    fill(broker.bootstrap, topic, 50)
    broker.fail_next("DescribeLogDirs", "CLUSTER_AUTHORIZATION_FAILED")
    options = source_options(broker.bootstrap, topic, taskSize="1k")
    assert read_rows(options) == consumed_rows(broker.bootstrap, topic)


def test_damage_is_found_unless_crc_checks_are_disabled(broker: EmbeddedBroker, topic: str) -> None:
    broker.create_topic(topic)
    produce_damaged(broker, topic)
    options = source_options(broker.bootstrap, topic)
    with pytest.raises(BarnabasError, match="checksum"):
        read_rows(options)
    assert [row.value for row in read_rows({**options, "checkCrcs": "false"})] == [b"Intact"]


def test_a_reader_that_logs_in_can_read() -> None:
    with EmbeddedBroker(users={"alice": "alice-secret"}) as broker:
        broker.produce("orders", "secret")
        jaas = 'x.ScramLoginModule required username="alice" password="alice-secret";'
        given = {
            "kafka.security.protocol": "SASL_PLAINTEXT",
            "kafka.sasl.mechanism": "SCRAM-SHA-256",
            "kafka.sasl.jaas.config": jaas,
        }
        assert len(read_rows({**source_options(broker.bootstrap, "orders"), **given})) == 1


def test_no_schema_has_more_columns_than_the_connectors(broker: EmbeddedBroker, topic: str) -> None:
    broker.produce(topic, **{key: record(3)[key] for key in ("key", "value")})
    [batch] = read_batches(source_options(broker.bootstrap, topic), ("offset",))
    assert batch.schema.names == ["offset"]


# Compaction

COMPACTED = {
    "cleanup.policy": "compact",
    "internal.segment.bytes": "20000",
    "min.cleanable.dirty.ratio": "0.01",
    "file.delete.delay.ms": "0",
}


def test_compaction_gaps_are_not_data_loss(topic: str) -> None:
    with EmbeddedBroker({"log.cleaner.backoff.ms": "5"}) as broker:
        broker.create_topic(topic, 1, COMPACTED)
        for _ in range(5):
            fill(broker.bootstrap, topic, 400, keyed=True, compression_type="lz4", batch_size=4_000)
        until(lambda: len(broker.records(topic)) < 1_000)
        assert broker.records(topic)
        for transport in ({}, {"transport": "files", "logDirs": str(broker.directory)}):
            options = source_options(broker.bootstrap, topic, minPartitions="5", **transport)
            until(lambda options=options: read_rows(options) == consumed_rows(broker.bootstrap, topic))


def test_files_are_read_while_they_are_replaced(topic: str) -> None:
    with EmbeddedBroker({"log.cleaner.backoff.ms": "1"}) as broker:
        broker.create_topic(topic, 1, COMPACTED)
        options = source_options(broker.bootstrap, topic, transport="files", logDirs=str(broker.directory))
        newest: dict[bytes | None, int] = {}
        for number in range(60):
            for key in (b"a", b"b", b"%d" % number):
                delivery = broker.produce(topic, b"x" * 3_000, key, partition=0)
                newest[key] = delivery.offset
            found = {row.key: row.offset for row in read_rows(options)}
            assert found == newest


# Archives: without a broker


def test_an_archive_is_read_up_to_its_checkpoints(topic: str) -> None:
    with EmbeddedBroker() as broker:
        broker.create_topic(topic, 2)
        transact(broker, topic, topic, "cac")
        fill(broker.bootstrap, topic, 30)
        expected = {
            level: consumed_rows(broker.bootstrap, topic, committed=level == "read_committed")
            for level in ("read_committed", "read_uncommitted")
        }
        for level, rows in expected.items():
            broker.halt(kill=False)
            options = {
                "subscribe": topic,
                "transport": "files",
                "logDirs": str(broker.directory),
                "kafka.isolation.level": level,
            }
            assert read_rows(options) == rows
            broker.serve()


def test_an_archive_is_read_up_to_its_first_open_transaction(topic: str) -> None:
    with EmbeddedBroker() as broker:
        broker.create_topic(topic)
        fill(broker.bootstrap, topic, 5)
        transact(broker, topic, topic, "cao")
        fill(broker.bootstrap, topic, 5)
        expected = consumed_rows(broker.bootstrap, topic, committed=True)
        broker.halt(kill=False)
        options = {"subscribe": topic, "transport": "files", "logDirs": str(broker.directory)}
        assert read_rows({**options, "kafka.isolation.level": "read_committed"}) == expected
        assert len(read_rows(options)) == 5 + 30 + 5
        given = {"startingTimestamp": "1700000000000", "endingTimestamp": "1700000020000"}
        times = {row.timestamp for row in read_rows({**options, **given})}
        assert times
        broker.serve()


def test_without_checkpoints_there_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    options = {"subscribe": "orders", "transport": "files", "logDirs": str(tmp_path)}
    with pytest.raises(BarnabasError, match=r"replication-offset-checkpoint.*kafka.bootstrap.servers"):
        read_rows(options)
    with pytest.raises(BarnabasError, match="not found"):
        read_rows({**options, "logDirs": str(tmp_path / "nowhere")})
