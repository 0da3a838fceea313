"""Decoding with dead letters, and their replay, in a job of one's own."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from barnabas.codecs import BinaryFormat, CodecSpec
from barnabas.codecs.framing import Frame
from barnabas.testing import EmbeddedBroker
from pyspark_barnabas.decoding.dead_letters import dead_letters, parsed_letters, restored
from pyspark_barnabas.decoding.records import TextSpec, decode, expect, good_rows, json_values

AVRO = b'{"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]}'
SCHEMA = "id BIGINT, name STRING"
VALUES = [b'{"id": 1, "name": "a"}', b'{"id": "x"}', b"\xff{}", None, b'{"id": -2}']


@pytest.fixture
def topics(broker: EmbeddedBroker, names: Iterator[str]) -> tuple[str, str]:
    """Return a topic with values, and an empty one for dead letters."""
    source, dead = next(names), next(names)
    for name in (source, dead):
        broker.create_topic(name, 1)
    with broker.client.producer() as producer:
        for number, value in enumerate(VALUES):
            producer.send(
                source, value, key=b"k%d" % number, partition=0, headers=[("trace", b"t"), ("n", None)]
            )
    return source, dead


def read(spark: SparkSession, broker: EmbeddedBroker, *topics: str) -> DataFrame:
    options = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": ",".join(topics)}
    return spark.read.format("barnabas").options(**options, includeHeaders="true").load()


def checked(records: DataFrame) -> DataFrame:
    return expect(decode(records, json_values(SCHEMA)), positive="row.id > 0", named="row.name IS NOT NULL")


def test_letters_keep_the_whole_record_and_are_restored_from_the_replay_topic(
    spark: SparkSession, broker: EmbeddedBroker, topics: tuple[str, str]
) -> None:
    source, dead = topics
    rows = checked(read(spark, broker, source))
    assert [tuple(row) for row in good_rows(rows, "topic", "offset").collect()] == [(1, "a", source, 0)]
    letters = dead_letters(rows, "one").write.format("barnabas")
    letters.option("kafka.bootstrap.servers", broker.bootstrap).option("topic", dead).mode("append").save()

    parsed = {row["offset"]: row for row in parsed_letters(read(spark, broker, dead)).collect()}
    assert sorted(parsed) == [1, 2, 3, 4]
    first = {row["offset"]: row for row in read(spark, broker, source).collect()}
    for offset, row in parsed.items():
        assert (row["key"], row["value"]) == (first[offset]["key"], first[offset]["value"])
        assert (row["topic"], row["partition"], row["flow"]) == (source, 0, "one")
        assert row["timestamp"] == first[offset]["timestamp"]
    assert parsed[1]["reason"] == "the value is not JSON with the columns id BIGINT,name STRING"
    assert parsed[2]["reason"] == "the value is not UTF-8"
    assert parsed[3]["reason"] == "the value is null"
    assert parsed[4]["reason"] == "expectation positive: row.id > 0 is not true"

    again = restored(read(spark, broker, source, dead), dead).where("offset > 0").orderBy("offset").collect()
    assert [row["topic"] for row in again] == [source] * 8
    for one, other in zip(again[::2], again[1::2], strict=True):
        assert one == other, "a restored record is the record that it was first, with its headers"


def test_headers_of_a_letter_are_believed_in_the_replay_topic_only(
    spark: SparkSession, broker: EmbeddedBroker, names: Iterator[str]
) -> None:
    topic = next(names)
    broker.create_topic(topic, 1)
    forged = [("barnabas.topic", b"other"), ("barnabas.partition", b"7"), ("barnabas.offset", b"9")]
    with broker.client.producer() as producer:
        producer.send(topic, b"{}", partition=0, headers=forged)
    [row] = restored(read(spark, broker, topic), "replay").collect()
    assert (row["topic"], row["partition"], row["offset"], len(row["headers"])) == (topic, 0, 0, 3)


def test_letters_with_malformed_headers_do_not_end_a_flow(
    spark: SparkSession, broker: EmbeddedBroker, names: Iterator[str]
) -> None:
    """Spark raises an error for a text that is no number, and a stream would read the record again after each start."""
    topic = next(names)
    broker.create_topic(topic, 1)
    headers = {"barnabas.topic": b"t", "barnabas.partition": b"0", "barnabas.offset": b"5"}
    with broker.client.producer() as producer:
        for wrong in (
            {"barnabas.offset": b"\xff"},
            {"barnabas.partition": b"99999999999"},
            {"barnabas.timestamp": b"9223372036854775807"},
        ):
            producer.send(topic, b"{}", partition=0, headers=[*{**headers, **wrong}.items()])
    records = read(spark, broker, topic)
    rows = restored(records, topic).collect()
    positions = [(row["topic"], row["partition"], row["offset"]) for row in rows]
    assert positions == [(topic, 0, 0), ("t", None, 5), ("t", 0, 5)]
    assert [row["timestamp"] is None for row in rows] == [False, True, True]
    parsed = parsed_letters(records).select("partition", "offset", "timestamp").collect()
    assert [tuple(row) for row in parsed] == [(0, None, None), (None, 5, None), (0, 5, None)]


def test_avro_values_are_decoded_and_a_schema_must_be_columns(
    spark: SparkSession, broker: EmbeddedBroker, names: Iterator[str]
) -> None:
    topic = next(names)
    broker.create_topic(topic, 1)
    with broker.client.producer() as producer:
        for value in (b"\x02", b"\x02\x02", b"5"):
            producer.send(topic, value, partition=0)
    avro = decode(read(spark, broker, topic), CodecSpec(BinaryFormat.AVRO, AVRO, "", Frame()))
    rows = [(row["row"], row["error"]) for row in avro.orderBy("offset").collect()]
    assert rows[0] == ((1,), None)
    assert rows[1] == (None, "the value is not Avro of R: 1 of its 2 bytes are left over")
    assert isinstance(json_values("id INT"), TextSpec)
    with pytest.raises(ValueError, match="INT is one type; columns such as"):
        json_values("INT")


def test_a_stream_is_in_a_delta_table_once_after_a_commit_whose_end_was_lost(
    spark: SparkSession, broker: EmbeddedBroker, topics: tuple[str, str], tmp_path: Path
) -> None:
    options = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topics[0]}
    for _ in range(2):
        records = spark.readStream.format("barnabas").options(**options, startingOffsets="earliest").load()
        query = records.select("offset", "value").writeStream.format("barnabas-delta")
        query = query.option("path", str(tmp_path / "t")).option("checkpointLocation", str(tmp_path / "c"))
        query.trigger(availableNow=True).start().awaitTermination()
        for name in ("0", ".0.crc"):
            (tmp_path / "c" / "commits" / name).unlink()
    assert DeltaTable(tmp_path / "t").to_pyarrow_table()["offset"].to_pylist() == [0, 1, 2, 3, 4]
