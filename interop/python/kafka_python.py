"""kafka-python as a JSON-lines program: ``python -m interop.python.kafka_python HOST:PORT``."""
# mypy: disable-error-code="import-untyped"

import logging
import sys
from contextlib import closing
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import for_code

from interop.python import membership
from interop.python.kafka_python_cluster import offer
from interop.python.lines import (
    LOGIN,
    PATIENCE_S,
    PROTOCOL,
    TLS,
    Record,
    TimedOut,
    class_name,
    decode,
    encode,
    encode_headers,
    operation,
    serve,
)

CONNECTION: dict[str, Any] = {
    "bootstrap_servers": sys.argv[1],
    "security_protocol": PROTOCOL,
    **dict(zip(("sasl_mechanism", "sasl_plain_username", "sasl_plain_password"), LOGIN, strict=False)),
    **dict(zip(("ssl_cafile", "ssl_certfile"), TLS, strict=False)),
}
logging.basicConfig()  # the library's errors do not say why a connection has failed
admin = KafkaAdminClient(**CONNECTION, bootstrap_timeout_ms=PATIENCE_S * 1000)
offer(admin)


@operation
def metadata(topic: str | None = None) -> object:
    described = admin.describe_topics(None if topic is None else [topic])
    for each in described:
        if each["error_code"]:
            raise for_code(each["error_code"])(each["name"])
    return {
        "brokers": [f"{broker['host']}:{broker['port']}" for broker in admin.describe_cluster()["brokers"]],
        "topics": {
            each["name"]: sorted(p["partition_index"] for p in each["partitions"]) for each in described
        },
    }


@operation
def create_topic(topic: str, partitions: int, configs: dict[str, str]) -> None:
    admin.create_topics({topic: {"num_partitions": partitions, "configs": configs}})


@operation
def delete_topic(topic: str) -> None:
    admin.delete_topics([topic])


@operation
def create_partitions(topic: str, count: int) -> None:
    admin.create_partitions({topic: count})


@operation
def topic_configs(topic: str) -> object:
    return _configs(ConfigResource(ConfigResourceType.TOPIC, topic))


@operation
def broker_configs(broker: int) -> object:
    return _configs(ConfigResource(ConfigResourceType.BROKER, str(broker)))


def _configs(resource: ConfigResource) -> object:
    described = admin.describe_configs([resource], config_filter="all")
    (resources,) = described.values()
    (entries,) = resources.values()
    return {name: entry["value"] for name, entry in entries.items()}


@operation
def produce(topic: str, partition: int, records: list[Record], codec: str, idempotent: bool) -> object:
    compression = None if codec == "none" else codec
    producer = KafkaProducer(
        **CONNECTION, compression_type=compression, enable_idempotence=idempotent, linger_ms=50
    )
    with closing(producer):
        futures = [_send(producer, topic, partition, record) for record in records]
        return [future.get(PATIENCE_S).offset for future in futures]


def _send(producer: KafkaProducer, topic: str, partition: int, record: Record) -> Any:
    return producer.send(
        topic,
        encode(record.value),
        encode(record.key),
        encode_headers(record),
        partition,
        record.timestamp,
    )


@operation
def transact(topic: str, partition: int, records: list[Record], transactional_id: str, commit: bool) -> None:
    producer = KafkaProducer(**CONNECTION, transactional_id=transactional_id)
    with closing(producer):
        producer.init_transactions()
        producer.begin_transaction()
        for future in [_send(producer, topic, partition, record) for record in records]:
            future.get(PATIENCE_S)
        if commit:
            producer.commit_transaction()
        else:
            producer.abort_transaction()


@operation
def consume(topic: str, partition: int, count: int, timestamp: int | None = None) -> list[Record]:
    assigned = TopicPartition(topic, partition)
    consumer = KafkaConsumer(**CONNECTION, consumer_timeout_ms=PATIENCE_S * 1000)
    with closing(consumer):
        consumer.assign([assigned])
        if timestamp is None:
            consumer.seek_to_beginning(assigned)
        else:
            consumer.seek(assigned, consumer.offsets_for_times({assigned: timestamp})[assigned].offset)
        read = [_record(message) for _, message in zip(range(count), consumer, strict=False)]
    if len(read) < count:
        raise TimedOut(f"{len(read)} of {count} records read")
    return read


def _record(message: Any) -> Record:
    headers = [(name, decode(value)) for name, value in message.headers]
    return Record(decode(message.key), decode(message.value), headers, message.timestamp, message.offset)


class Member:
    """A consumer that joins a group."""

    def __init__(self, topic: str, group: str) -> None:
        self._consumer = KafkaConsumer(
            topic,
            **CONNECTION,
            group_id=group,
            auto_offset_reset="earliest",
            heartbeat_interval_ms=200,
        )

    def read(self) -> list[str]:
        """Return the received values."""
        polled = self._consumer.poll(timeout_ms=50)
        return [decode(message.value) or "" for messages in polled.values() for message in messages]

    def owned(self) -> list[int]:
        """Return the assigned partitions."""
        return [each.partition for each in self._consumer.assignment()]

    def close(self) -> None:
        self._consumer.close()


membership.offer(Member)


@operation
def offsets(topic: str, partition: int) -> object:
    assigned = TopicPartition(topic, partition)
    with closing(KafkaConsumer(**CONNECTION)) as consumer:
        return {
            "earliest": consumer.beginning_offsets([assigned])[assigned],
            "latest": consumer.end_offsets([assigned])[assigned],
        }


@operation
def offset_at(topic: str, partition: int, timestamp: int) -> object:
    assigned = TopicPartition(topic, partition)
    with closing(KafkaConsumer(**CONNECTION)) as consumer:
        found = consumer.offsets_for_times({assigned: timestamp})[assigned]
        return None if found is None else found.offset


@operation
def delete_records(topic: str, partition: int, before: int) -> object:
    assigned = TopicPartition(topic, partition)
    return admin.delete_records({assigned: before})[assigned]["low_watermark"]


if __name__ == "__main__":
    serve(class_name)
