"""`read_topic` on a cluster under test, which may be of Apache Kafka."""

from datetime import UTC, datetime

import pytest
from interop.brokers import Broker

from barnabas.arrow import COLUMNS, DataLossError, read_topic
from barnabas.base.ids import TopicPartition
from barnabas.client.blocking import BlockingClient
from support.changing_topics import CODECS, LEVELS
from support.confluent_transactions import transact_at
from support.source_rows import consumed_rows, fill, rows_of


def test_the_rows_are_those_of_a_consumer(broker: Broker, topic: str) -> None:
    for codec in CODECS:
        fill(broker.bootstrap, topic, 100, compression_type=codec)
    transact_at(broker.bootstrap, topic, topic, "cac")
    for level in LEVELS:
        batches = read_topic(broker.bootstrap, topic, columns=[*COLUMNS, "headers"], isolation_level=level)
        rows = consumed_rows(broker.bootstrap, topic, committed=level == "read_committed")
        assert rows_of(batches) == rows
    assert not list(read_topic(broker.bootstrap, topic, start=datetime(2100, 1, 1, tzinfo=UTC)))


def test_deleted_records_are_reported(broker: Broker, topic: str) -> None:
    fill(broker.bootstrap, topic, 10)
    batches = read_topic(broker.bootstrap, topic)
    with BlockingClient(broker.bootstrap) as client:
        client.admin.delete_records({TopicPartition(topic, 0): 4})
    with pytest.raises(DataLossError, match="begins at offset 4 now: offsets 0 to 4 are gone"):
        list(batches)
