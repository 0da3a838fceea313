"""`read_topic` reads what a consumer reads, whatever a topic has gone through; Polars and DuckDB take it as a table."""

import logging
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import example, given

from barnabas.arrow import COLUMNS, DataLossError, TopicBatches, read_topic
from barnabas.base.ids import TopicPartition
from barnabas.testing import EmbeddedBroker
from barnabas.wire.errors import ErrorCode, KafkaError
from support.changing_topics import CODECS, CONFIGS, LEVELS, STEPS, Step, Topic, some
from support.confluent_transactions import transact
from support.source_rows import consumed_rows, fill, produce_damaged, rows_of
from support.waiting import until

ALL_COLUMNS = ("headers", *COLUMNS)
SMALL = {"internal.segment.bytes": "2000"}
JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="secret";'


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    settings = {
        "log.retention.ms": "-1",
        "log.cleaner.backoff.ms": "20",
        "offsets.topic.num.partitions": "2",
        "transaction.state.log.num.partitions": "2",
    }
    with EmbeddedBroker(settings) as running:
        yield running


@pytest.fixture(scope="module")
def names() -> Iterator[str]:
    return (f"arrow-{number}" for number in range(1_000_000))


@pytest.fixture
def topic(broker: EmbeddedBroker, names: Iterator[str]) -> str:
    """Return a new topic with two partitions."""
    name = next(names)
    broker.create_topic(name, 2)
    return name


def values(batches: TopicBatches) -> list[bytes | None]:
    return [row["value"] for batch in batches for row in batch.to_pylist()]


def write(broker: EmbeddedBroker, topic: str, *written: str, partition: int = 0) -> None:
    for value in written:
        broker.produce(topic, value, partition=partition)


@some
@given(CONFIGS, STEPS)
@example(SMALL, [("fill", "lz4", 40, 2), ("transact", "cac"), ("fill", "none", 40, 1), ("compact",)])
def test_the_rows_are_those_of_a_consumer(
    broker: EmbeddedBroker, names: Any, configs: dict[str, str], steps: list[Step]
) -> None:
    topic = Topic(broker.bootstrap, broker.directory, next(names), configs)
    for step in steps:
        topic.apply(step)
    for level in LEVELS:
        batches = read_topic(broker.bootstrap, topic.name, columns=ALL_COLUMNS, isolation_level=level)
        rows = rows_of(batches)
        assert rows == topic.rows(committed=level == "read_committed")
        assert rows_of(pa.table(batches).to_batches()) == rows, "each iteration reads again"


@pytest.mark.parametrize("codec", CODECS)
def test_batches_of_every_codec_are_read(broker: EmbeddedBroker, topic: str, codec: str) -> None:
    fill(broker.bootstrap, topic, 500, 2, compression_type=codec)
    assert rows_of(read_topic(broker.bootstrap, topic, columns=ALL_COLUMNS)) == consumed_rows(
        broker.bootstrap, topic
    )


def test_aborted_records_are_left_out_if_a_property_says_so(broker: EmbeddedBroker, topic: str) -> None:
    transact(broker, topic, topic, "ca")
    everything = read_topic(broker.bootstrap, topic)
    committed = read_topic(broker.bootstrap, topic, properties={"isolation.level": "read_committed"})
    assert len(values(everything)) == len(consumed_rows(broker.bootstrap, topic))
    assert len(values(committed)) == len(consumed_rows(broker.bootstrap, topic, committed=True))
    assert len(values(committed)) < len(values(everything))


def test_a_large_partition_comes_in_batches_of_a_few_megabytes(broker: EmbeddedBroker, topic: str) -> None:
    for _ in range(60):
        broker.produce(topic, "x" * 500_000, partition=0)
    batches = list(read_topic(broker.bootstrap, topic, columns=["value"]))
    assert sum(batch.num_rows for batch in batches) == 60
    assert max(batch.nbytes for batch in batches) < 8_000_000
    assert {batch.schema for batch in batches} == {pa.schema([("value", pa.binary())])}


# What is read


def test_offsets_and_times_limit_what_is_read(broker: EmbeddedBroker, topic: str) -> None:
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    for hour in range(6):
        time_ms = round((begin + timedelta(hours=hour)).timestamp() * 1_000)
        broker.produce(topic, f"{hour}", partition=hour % 2, timestamp_ms=time_ms)

    def read(**limits: Any) -> list[bytes | None]:
        return sorted(values(read_topic(broker.bootstrap, topic, **limits)), key=str)

    assert read(start=begin + timedelta(hours=2), end=begin + timedelta(hours=4)) == [b"2", b"3"]
    assert read(start=begin + timedelta(hours=2, microseconds=1)) == [b"3", b"4", b"5"]
    assert read(start=begin + timedelta(hours=9)) == []
    assert read(end=datetime(1960, 1, 1, tzinfo=UTC)) == []
    assert read(start="latest") == []
    assert read(start={0: 1}) == [b"1", b"2", b"3", b"4", b"5"]
    assert read(start={(topic, 0): 1}, end={(topic, 1): 1}) == [b"1", b"2", b"4"]
    assert read_topic(broker.bootstrap, topic, start="latest", end="earliest").ends == {
        TopicPartition(topic, index): 3 for index in (0, 1)
    }
    assert read(end={0: 1_000, 1: 0}) == [b"0", b"2", b"4"], "an end may be behind the last record"


def test_a_later_read_continues_where_the_first_ended(broker: EmbeddedBroker, topic: str) -> None:
    write(broker, topic, "a", "b")
    first = read_topic(broker.bootstrap, topic)
    write(broker, topic, "c", partition=1)
    assert values(first) == [b"a", b"b"], "ends are fixed"
    then = read_topic(broker.bootstrap, topic, start=first.ends)
    assert values(then) == [b"c"]
    assert then.ends == {TopicPartition(topic, 0): 2, TopicPartition(topic, 1): 1}


def test_topics_are_selected_by_name_pattern_or_partition(broker: EmbeddedBroker) -> None:
    for name in ("sales-eu", "sales-us", "stock"):
        write(broker, name, name)
    assert values(read_topic(broker.bootstrap, ["stock", "sales-us"])) == [b"sales-us", b"stock"]
    assert values(read_topic(broker.bootstrap, pattern="sales-.*")) == [b"sales-eu", b"sales-us"]
    assert values(read_topic(broker.bootstrap, pattern="nothing-.*")) == []
    broker.create_topic("parted", 3)
    write(broker, "parted", "x", partition=1)
    write(broker, "parted", "y", partition=2)
    assert values(read_topic(broker.bootstrap, "parted", partitions=[0, 2])) == [b"y"]


def test_columns_come_in_the_requested_order_and_an_empty_topic_has_them(
    broker: EmbeddedBroker, topic: str
) -> None:
    batches = read_topic(broker.bootstrap, topic, columns=["value", "offset"])
    assert pa.table(batches).column_names == ["value", "offset"]
    write(broker, topic, "a")
    filled = read_topic(broker.bootstrap, topic, columns=["value"]).select(["partition", "offset"])
    assert pa.table(filled).to_pylist() == [{"partition": 0, "offset": 0}]
    assert read_topic(broker.bootstrap, topic).schema.names == list(COLUMNS)


# Other tools


def test_duckdb_and_polars_read_it_like_a_table(broker: EmbeddedBroker, topic: str) -> None:
    fill(broker.bootstrap, topic, 300, 2)
    rows = consumed_rows(broker.bootstrap, topic)
    records = read_topic(broker.bootstrap, topic)
    counted = (
        'SELECT partition, count(value), max("offset") FROM records GROUP BY partition ORDER BY partition'
    )
    expected = [
        (index, sum(row.partition == index and row.value is not None for row in rows), 149)
        for index in (0, 1)
    ]
    assert duckdb.sql(counted).fetchall() == expected
    joined = 'SELECT count(*) FROM records a JOIN records b USING (partition, "offset")'
    assert duckdb.sql(joined).fetchall() == [(300,)], "it is read twice"
    frame = pl.DataFrame(records)
    grouped = (
        frame.group_by("partition").agg(pl.col("value").count(), pl.col("offset").max()).sort("partition")
    )
    assert grouped.rows() == expected
    assert frame["value"].to_list() == [row.value for row in rows]
    assert pl.from_arrow(records.reader()).equals(frame)  # type: ignore[arg-type]


def fetching_threads() -> int:
    return sum(thread.name == "barnabas-fetch" for thread in threading.enumerate())


def test_an_iteration_that_is_left_early_ends_its_thread(broker: EmbeddedBroker, topic: str) -> None:
    fill(broker.bootstrap, topic, 300, 2)
    batches = read_topic(broker.bootstrap, topic)
    left = iter(batches)
    assert next(left).num_rows == 150
    assert fetching_threads() == 1
    del left
    assert fetching_threads() == 0
    assert duckdb.sql('SELECT "offset" FROM batches LIMIT 1').fetchall() == [(0,)]
    until(lambda: fetching_threads() == 0)


def test_one_reader_is_one_iteration(broker: EmbeddedBroker, topic: str) -> None:
    write(broker, topic, "a", "b")
    reader = read_topic(broker.bootstrap, topic, columns=["value"]).reader()
    assert reader.schema == pa.schema([("value", pa.binary())])
    assert reader.read_all()["value"].to_pylist() == [b"a", b"b"]
    assert reader.read_all().num_rows == 0


# Errors


def test_what_does_not_exist_is_named(broker: EmbeddedBroker, topic: str) -> None:
    with pytest.raises(KafkaError, match="topic 'nowhere' does not exist") as raised:
        read_topic(broker.bootstrap, "nowhere")
    assert raised.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    with pytest.raises(KafkaError, match=f"partition {topic}-7 does not exist"):
        read_topic(broker.bootstrap, topic, partitions=[0, 7])
    with pytest.raises(ValueError, match=r"start names partition .*9.*, which is not read"):
        read_topic(broker.bootstrap, topic, start={9: 0})
    with pytest.raises(ValueError, match=r"start is -1 for partition .*: an offset is expected"):
        read_topic(broker.bootstrap, topic, start={0: -1})
    write(broker, "another", "a")
    with pytest.raises(ValueError, match=r"start names partition 0 of 2 topics: write \(topic, 0\)"):
        read_topic(broker.bootstrap, [topic, "another"], start={0: 0})


def test_records_that_are_removed_meanwhile_are_an_error_or_a_warning(
    broker: EmbeddedBroker, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    write(broker, topic, "a", "b", "c")
    strict = read_topic(broker.bootstrap, topic)
    lenient = read_topic(broker.bootstrap, topic, fail_on_data_loss=False)
    broker.client.admin.delete_records({TopicPartition(topic, 0): 2})
    gone = f"partition {topic}-0 begins at offset 2 now: offsets 0 to 2 are gone"
    with pytest.raises(DataLossError, match=f"{gone}.*set fail_on_data_loss to false"):
        values(strict)
    with pytest.raises(duckdb.Error, match=gone):
        duckdb.sql("SELECT * FROM strict").fetchall()
    with caplog.at_level(logging.WARNING):
        assert values(lenient) == [b"c"]
    assert gone in caplog.text
    with pytest.raises(DataLossError, match="ends at offset 3, before the start at 9"):
        read_topic(broker.bootstrap, topic, start={0: 9})


def test_after_a_loss_a_later_read_continues_at_the_end_of_the_log(
    broker: EmbeddedBroker, topic: str
) -> None:
    """As after a topic was recreated: offsets that the log does not have yet are not skipped when it has them."""
    write(broker, topic, "a", "b")
    lost = read_topic(broker.bootstrap, topic, start={0: 9}, fail_on_data_loss=False)
    assert (values(lost), lost.ends[TopicPartition(topic, 0)]) == ([], 2)
    write(broker, topic, "c")
    assert values(read_topic(broker.bootstrap, topic, start=lost.ends)) == [b"c"]


def test_damaged_records_are_an_error_that_names_the_batch(broker: EmbeddedBroker, topic: str) -> None:
    produce_damaged(broker, topic)
    with pytest.raises(KafkaError, match="batch at offset 0: its checksum is not that of its bytes"):
        values(read_topic(broker.bootstrap, topic))


def test_it_logs_in_with_client_properties() -> None:
    login = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": JAAS,
    }
    with EmbeddedBroker(users={"alice": "secret"}) as guarded:
        write(guarded, "orders", "a")
        assert values(read_topic(guarded.bootstrap, "orders", properties=login)) == [b"a"]
        wrong = {**login, "sasl.jaas.config": JAAS.replace("secret", "mistaken")}
        with pytest.raises(KafkaError) as raised:
            read_topic(guarded.bootstrap, "orders", properties=wrong)
    assert raised.value.code is ErrorCode.SASL_AUTHENTICATION_FAILED
    assert "mistaken" not in str(raised.value)
