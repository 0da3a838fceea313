"""Tasks log in with delegation tokens, and the password of the user stays with the driver."""

import pickle
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import BinaryType, StructField, StructType

from barnabas.testing import EmbeddedBroker
from pyspark_barnabas.sink import writers
from pyspark_barnabas.source.batch_reader import BatchReader
from pyspark_barnabas.source.stream_reader import StreamReader
from support.waiting import until

PASSWORD = "alice-secret"
JAAS = f'org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="{PASSWORD}";'
VALUE = StructType([StructField("value", BinaryType())])


@pytest.fixture(scope="module")
def guarded() -> Iterator[EmbeddedBroker]:
    """Run a broker with SASL, delegation tokens and two topics."""
    settings = {"delegation.token.secret.key": "secret of the brokers"}
    with EmbeddedBroker(settings, {"alice": PASSWORD}) as broker:
        broker.create_topic("orders", 2)
        broker.create_topic("copies", 2)
        for number in range(20):
            broker.produce("orders", f"{number}", partition=number % 2)
        yield broker


def options(broker: EmbeddedBroker, **more: str) -> dict[str, str]:
    return {
        "kafka.bootstrap.servers": broker.bootstrap,
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.jaas.config": JAAS,
        "delegationTokens": "true",
        **more,
    }


def tokens_count(broker: EmbeddedBroker) -> int:
    return len(broker.server.broker.image.delegation_tokens)


def logins_with(broker: EmbeddedBroker, mechanism: str) -> int:
    logins = broker.server.parts.listeners.logins.items()
    return sum(count for (_, used, _), count in logins if used == mechanism)


def token_logins(broker: EmbeddedBroker) -> int:
    return logins_with(broker, "SCRAM-SHA-256")


def test_a_read_and_a_stream_use_one_token(
    spark: SparkSession, guarded: EmbeddedBroker, tmp_path: Path
) -> None:
    read = spark.read.format("barnabas").options(**options(guarded, subscribe="orders")).load()
    assert sorted(int(row.value) for row in read.collect()) == list(range(20))
    assert tokens_count(guarded) == 1
    logins_count = token_logins(guarded)
    assert logins_count > 0
    stream = spark.readStream.format("barnabas").options(
        **options(guarded, subscribe="orders", startingOffsets="earliest")
    )
    rows = stream.load().select("value")
    writer = rows.writeStream.format("barnabas").options(**options(guarded, topic="copies"))
    writer = writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True)
    writer.start().awaitTermination()
    assert sorted(int(record.value or b"") for record in guarded.records("copies")) == list(range(20))
    assert tokens_count(guarded) == 1
    assert token_logins(guarded) > logins_count


def test_each_batch_of_a_stream_looks_for_a_fresh_token_for_its_writers(
    spark: SparkSession, guarded: EmbeddedBroker, tmp_path: Path
) -> None:
    """A stream may run for longer than any token is valid."""
    rows = spark.readStream.format("rate").load().selectExpr("string(value) AS value")
    writer = rows.writeStream.format("barnabas").options(**options(guarded, topic="copies"))
    query = (
        writer.option("checkpointLocation", str(tmp_path)).trigger(processingTime="100 milliseconds").start()
    )

    def batches_count() -> int:
        return 0 if query.lastProgress is None else int(query.lastProgress["batchId"])

    try:
        until(lambda: batches_count() >= 1)
        before_count = batches_count(), logins_with(guarded, "PLAIN")
        until(lambda: batches_count() >= before_count[0] + 3)
        assert logins_with(guarded, "PLAIN") >= before_count[1] + 2  # the first may have been planned before
    finally:
        query.stop()


def shipped(broker: EmbeddedBroker, given: Mapping[str, str]) -> bytes:
    """Return what tasks get of a read, a stream and their writers."""
    source = {**given, "subscribe": "orders"}
    batch, stream = BatchReader(source, ("value",)), StreamReader(source, ("value",))
    tasks = batch.partitions()
    write = writers.batch_writer({**given, "topic": "copies"}, VALUE, overwrite=False)
    stream_write = writers.stream_writer({**given, "topic": "copies"}, VALUE, overwrite=False)
    return pickle.dumps((batch, stream, tasks, write, stream_write))


def test_what_tasks_get_has_no_password(guarded: EmbeddedBroker) -> None:
    assert PASSWORD.encode() not in shipped(guarded, options(guarded))
    assert PASSWORD.encode() in shipped(guarded, options(guarded, delegationTokens="false"))


def test_a_broker_without_delegation_tokens_names_the_missing_setting(spark: SparkSession) -> None:
    with EmbeddedBroker(users={"alice": PASSWORD}) as broker:
        broker.produce("orders", "1")
        read = spark.read.format("barnabas").options(**options(broker, subscribe="orders"))
        with pytest.raises(PySparkException, match=r"delegation\.token\.secret\.key is not set"):
            read.load().collect()
