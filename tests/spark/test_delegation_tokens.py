"""Tasks log in with delegation tokens; passwords, and client secrets of OAUTHBEARER, stay with the driver."""

import pickle
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrameWriter, SparkSession
from pyspark.sql.types import BinaryType, StructField, StructType

from barnabas.testing import EmbeddedBroker
from pyspark_barnabas.jobs.archive.job import archive
from pyspark_barnabas.jobs.rekey.job import RekeyRequest, rekey
from pyspark_barnabas.jobs.restore.mapped import restore_mapped
from pyspark_barnabas.jobs.restore.plan import Request
from pyspark_barnabas.sink import writers
from pyspark_barnabas.source.batch_reader import BatchReader
from pyspark_barnabas.source.stream_reader import StreamReader
from support.oauth import (
    AUDIENCE,
    CLIENT_ID,
    CLIENT_SECRET,
    ISSUER,
    AuthorizationServer,
    authorization_server,
)
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


def test_jobs_write_with_delegation_tokens(
    spark: SparkSession, guarded: EmbeddedBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    guarded.create_topic("keyed", 2)
    for number in range(20):
        guarded.produce("keyed", f"{number}", key=f"{number}", partition=number % 2)
    with_options = DataFrameWriter.options
    sinks: list[dict[str, Any]] = []

    def options_seen(writer: DataFrameWriter, **given: Any) -> DataFrameWriter:
        sinks.extend([given] if "sinkName" in given else [])
        return with_options(writer, **given)

    monkeypatch.setattr(DataFrameWriter, "options", options_seen)
    given = options(guarded, **{"kafkaConsumer.pollTimeoutMs": "60000"})
    rekey(spark, given, RekeyRequest("keyed", "rekeyed", any_partition=True), tmp_path / "state")
    archive(spark, {**given, "subscribe": "keyed"}, tmp_path / "archive")
    restore_mapped(spark, Request(given, tmp_path / "archive", ["keyed"], "restored"), tmp_path / "map")
    assert {sink["sinkName"].split("-")[0] for sink in sinks} == {"barnabas", "restore"}
    assert {sink["delegationTokens"] for sink in sinks} == {"true"}
    assert {sink["kafkaConsumer.pollTimeoutMs"] for sink in sinks} == {"60000"}
    for topic in ("rekeyed", "restored"):
        assert sorted(int(record.value or b"") for record in guarded.records(topic)) == list(range(20))


@pytest.fixture
def server() -> Iterator[AuthorizationServer]:
    with authorization_server() as running:
        yield running


@pytest.fixture
def by_tokens(server: AuthorizationServer) -> Iterator[EmbeddedBroker]:
    """Run a broker whose users log in with OAUTHBEARER."""
    settings = {
        "listeners": "CLIENTS://127.0.0.1:0,PLAINTEXT://127.0.0.1:0",
        "listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "sasl.enabled.mechanisms": "OAUTHBEARER,SCRAM-SHA-256",
        "sasl.oauthbearer.jwks.endpoint.url": f"{server.url}/keys",
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "sasl.oauthbearer.expected.issuer": ISSUER,
        "delegation.token.secret.key": "secret of the brokers",
    }
    with EmbeddedBroker(settings) as broker:
        broker.create_topic("orders", 2)
        broker.create_topic("copies", 2)
        for number in range(20):
            broker.produce("orders", f"{number}", partition=number % 2)
        until(lambda: server.keys_count)
        yield broker


def oauth_options(broker: EmbeddedBroker, server: AuthorizationServer, **more: str) -> dict[str, str]:
    prefix = "kafka.sasl.oauthbearer"
    return {
        "kafka.bootstrap.servers": broker.bootstrap,
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "OAUTHBEARER",
        f"{prefix}.token.endpoint.url": f"{server.url}/token",
        f"{prefix}.client.credentials.client.id": CLIENT_ID,
        f"{prefix}.client.credentials.client.secret": CLIENT_SECRET,
        "delegationTokens": "true",
        **more,
    }


def test_a_read_and_a_write_of_a_client_with_oauthbearer_use_one_token(
    spark: SparkSession, by_tokens: EmbeddedBroker, server: AuthorizationServer
) -> None:
    given = oauth_options(by_tokens, server)
    read = spark.read.format("barnabas").options(**given, subscribe="orders").load()
    read.select("value").write.format("barnabas").options(**given, topic="copies").mode("append").save()
    assert sorted(int(record.value or b"") for record in by_tokens.records("copies")) == list(range(20))
    [token] = by_tokens.server.broker.image.delegation_tokens.values()
    assert token.owner == f"User:{CLIENT_ID}"
    assert token_logins(by_tokens) > 0


def test_what_tasks_get_of_a_client_with_oauthbearer_has_no_client_secret(
    by_tokens: EmbeddedBroker, server: AuthorizationServer
) -> None:
    given = oauth_options(by_tokens, server)
    for_tasks = shipped(by_tokens, given)
    assert CLIENT_SECRET.encode() not in for_tasks
    assert server.url.encode() not in for_tasks
    assert CLIENT_SECRET.encode() in shipped(by_tokens, {**given, "delegationTokens": "false"})


def test_a_broker_without_delegation_tokens_names_the_missing_setting(spark: SparkSession) -> None:
    with EmbeddedBroker(users={"alice": PASSWORD}) as broker:
        broker.produce("orders", "1")
        read = spark.read.format("barnabas").options(**options(broker, subscribe="orders"))
        with pytest.raises(PySparkException, match=r"delegation\.token\.secret\.key is not set"):
            read.load().collect()
