"""Tables whose rows are written in tasks of Spark."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from pyspark.sql import SparkSession

from barnabas.base.clock import SystemClock
from barnabas.reading.connection import ConnectionOptions
from barnabas.tables.building import TableStores, build_topic_table
from barnabas.tables.settings import Decoding, TableSettings
from barnabas.tables.topic_table import TopicTable
from barnabas.testing import EmbeddedBroker
from pyspark_barnabas.tables import SparkRangesWriter
from support.confluent_transactions import transact
from support.source_rows import consumed_rows, fill
from support.tables import (
    FORMAT_IDS,
    FORMATS,
    advance,
    expected_row,
    plain_row,
    settings_of,
    table_rows,
    topic_table,
)


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker({"log.retention.ms": "-1"}, registry=True) as running:
        yield running


def spark_table(spark: SparkSession, broker: EmbeddedBroker, settings: TableSettings) -> TopicTable:
    connection, stores = ConnectionOptions(broker.bootstrap), TableStores()
    writer = SparkRangesWriter(spark, connection, stores, broker.registry_url)
    return build_topic_table(settings, stores, writer, SystemClock())


@pytest.mark.parametrize("kind", FORMATS, ids=FORMAT_IDS)
def test_the_rows_are_those_that_a_consumer_reads(
    spark: SparkSession, broker: EmbeddedBroker, tmp_path: Path, kind: Any
) -> None:
    """A service without Spark may continue."""
    topic = f"rows-{kind.value}"
    broker.create_topic(topic, 3)
    settings = settings_of(topic, kind, tmp_path / topic)
    fill(broker.bootstrap, topic, 600, 3)
    transact(broker, topic, topic, "ca")
    advance(spark_table(spark, broker, settings), broker.bootstrap)
    fill(broker.bootstrap, topic, 100, 3)
    advance(topic_table(settings), broker.bootstrap)
    fill(broker.bootstrap, topic, 100, 3)
    advance(spark_table(spark, broker, settings), broker.bootstrap)
    expected = [expected_row(row) for row in consumed_rows(broker.bootstrap, topic, committed=True)]
    assert [plain_row(row) for row in table_rows(settings)] == expected


def test_columns_of_several_tasks_are_added(
    spark: SparkSession, broker: EmbeddedBroker, tmp_path: Path
) -> None:
    """Each partition has values of another schema."""
    broker.create_topic("schemas", 3)
    client = SchemaRegistryClient({"url": broker.registry_url})
    client.set_compatibility("schemas-value", "NONE")
    for partition, name in enumerate(("a", "b", "c")):
        fields = [{"name": "id", "type": "int"}, {"name": name, "type": "string"}]
        serialize = AvroSerializer(client, json.dumps({"type": "record", "name": "R", "fields": fields}))
        value = serialize({"id": partition, name: name}, SerializationContext("schemas", MessageField.VALUE))
        broker.produce("schemas", value, partition=partition)
    settings = settings_of("schemas", FORMATS[0], tmp_path / "t", value_decoding=Decoding.REGISTRY)
    advance(spark_table(spark, broker, settings), broker.bootstrap)
    rows = table_rows(settings)
    assert [(row["id"], row["a"], row["b"], row["c"], row["kafka_error"]) for row in rows] == [
        (0, "a", None, None, None),
        (1, None, "b", None, None),
        (2, None, None, "c", None),
    ]
