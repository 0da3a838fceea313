"""What users see of a mistake or of a broker that is not there: its message, without lines of our code."""

from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, PySparkException, StreamingQueryException
from pyspark.sql import SparkSession

from barnabas.testing import EmbeddedBroker
from support.source_rows import fill, source_options

NOWHERE = "127.0.0.1:1"
QUICK = {"kafkaConsumer.pollTimeoutMs": "500"}


def shown(error: BaseException) -> list[str]:
    """Return the lines of an error up to the plan of the query, which Spark appends."""
    return [line for line in str(error).partition("=== Streaming Query ===")[0].splitlines() if line.strip()]


@pytest.mark.parametrize(
    ("bootstrap", "reason"),
    [(None, "topic 'missing' does not exist"), (NOWHERE, f"no connection to a broker at {NOWHERE}")],
)
def test_a_missing_topic_and_an_unreachable_broker_are_reported_in_two_lines(
    spark: SparkSession, broker: EmbeddedBroker, bootstrap: str | None, reason: str, tmp_path: Path
) -> None:
    options = source_options(bootstrap or broker.bootstrap, "missing", **QUICK)
    with pytest.raises(AnalysisException) as batch:
        spark.read.format("barnabas").options(**options).load().count()
    stream = spark.readStream.format("barnabas").options(**options).load().writeStream.format("noop")
    query = stream.option("checkpointLocation", str(tmp_path)).start()
    with pytest.raises(StreamingQueryException) as streaming:
        query.awaitTermination(60)
    for raised in (batch, streaming):
        lines = shown(raised.value)
        assert len(lines) <= 2, lines
        assert reason in lines[0]


def test_an_invalid_option_is_reported_in_two_lines(spark: SparkSession) -> None:
    options = source_options(NOWHERE, "t", minPartitions="many")
    with pytest.raises(AnalysisException, match="minPartitions") as raised:
        spark.read.format("barnabas").options(**options).load().count()
    assert len(shown(raised.value)) <= 2


@pytest.mark.parametrize(
    ("options", "column", "reason"),
    [
        ({"topic": "t"}, "1 value", "column value is of type int: string or binary is expected"),
        ({}, "'a' value", "the rows have no topic"),
        ({"topic": "t", "kafka.acks": "2"}, "'a' value", "kafka.acks"),
        ({"topic": "t"}, "'a' value", f"no connection to a broker at {NOWHERE}"),
    ],
)
def test_errors_of_writing_are_reported_without_our_code(
    spark: SparkSession, options: dict[str, str], column: str, reason: str
) -> None:
    options = {"kafka.bootstrap.servers": NOWHERE, "kafka.delivery.timeout.ms": "500", **options}
    writer = spark.range(1).selectExpr(column).write.format("barnabas").options(**options).mode("append")
    with pytest.raises(PySparkException, match=reason) as raised:
        writer.save()
    assert "Traceback" not in str(raised.value)


def test_errors_of_users_functions_keep_their_traceback(
    spark: SparkSession, broker: EmbeddedBroker, topic: str
) -> None:
    broker.create_topic(topic)
    fill(broker.bootstrap, topic, 2)
    with pytest.raises(AnalysisException):
        spark.read.format("barnabas").options(**source_options(NOWHERE, topic, **QUICK)).load().count()
    frame = spark.read.format("barnabas").options(**source_options(broker.bootstrap, topic)).load()
    with pytest.raises(Exception, match=r"Traceback[\s\S]*in divide"):
        frame.rdd.map(divide).collect()


def divide(row: object) -> float:
    return 1 / 0
