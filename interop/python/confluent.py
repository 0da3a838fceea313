"""confluent-kafka (librdkafka) as a JSON-lines program: ``python -m interop.python.confluent HOST:PORT``."""
# mypy: disable-error-code="attr-defined, no-untyped-call"

import sys
import time
from typing import Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from interop.python import membership
from interop.python.confluent_cluster import offer, only
from interop.python.lines import (
    LOGIN,
    PATIENCE_S,
    PROTOCOL,
    TLS,
    Record,
    TimedOut,
    decode,
    encode,
    encode_headers,
    operation,
    serve,
)

CONNECTION: dict[str, Any] = {
    "bootstrap.servers": sys.argv[1],
    "security.protocol": PROTOCOL,
    **dict(zip(("sasl.mechanism", "sasl.username", "sasl.password"), LOGIN, strict=False)),
    **dict(
        zip(
            ("ssl.ca.location", "ssl.key.location", "ssl.certificate.location"),
            (*TLS, *TLS[1:]),
            strict=False,
        )
    ),
}
admin = AdminClient(CONNECTION)
offer(admin)


@operation
def metadata(topic: str | None = None) -> object:
    found = admin.list_topics(topic, timeout=PATIENCE_S)
    for each in found.topics.values():
        if each.error is not None:
            raise KafkaException(each.error)
    return {
        "brokers": [f"{broker.host}:{broker.port}" for broker in found.brokers.values()],
        "topics": {name: sorted(each.partitions) for name, each in found.topics.items()},
    }


@operation
def create_topic(topic: str, partitions: int, configs: dict[str, str]) -> None:
    only(admin.create_topics([NewTopic(topic, partitions, config=configs)]))


@operation
def delete_topic(topic: str) -> None:
    only(admin.delete_topics([topic]))


@operation
def create_partitions(topic: str, count: int) -> None:
    only(admin.create_partitions([NewPartitions(topic, count)]))


@operation
def topic_configs(topic: str) -> object:
    return _configs(ConfigResource(ResourceType.TOPIC, topic))


@operation
def broker_configs(broker: int) -> object:
    return _configs(ConfigResource(ResourceType.BROKER, str(broker)))


def _configs(resource: ConfigResource) -> object:
    return {name: entry.value for name, entry in only(admin.describe_configs([resource])).items()}


@operation
def produce(topic: str, partition: int, records: list[Record], codec: str, idempotent: bool) -> object:
    producer = Producer(
        {
            **CONNECTION,
            "compression.type": codec,
            "enable.idempotence": idempotent,
            "linger.ms": 50,
        }
    )
    delivered: list[int] = []

    def on_delivery(error: Any, message: Message) -> None:
        if error is not None:
            raise KafkaException(error)
        delivered.append(message.offset() or 0)

    for record in records:
        producer.produce(
            topic,
            encode(record.value),
            encode(record.key),
            partition,
            on_delivery=on_delivery,
            timestamp=record.timestamp or 0,
            headers=[*encode_headers(record)],
        )
    if producer.flush(PATIENCE_S):
        raise TimedOut(f"{len(records) - len(delivered)} of {len(records)} records not delivered")
    return delivered


@operation
def transact(topic: str, partition: int, records: list[Record], transactional_id: str, commit: bool) -> None:
    producer = Producer({**CONNECTION, "transactional.id": transactional_id, "linger.ms": 0})
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    for record in records:
        producer.produce(topic, encode(record.value), encode(record.key), partition)
    producer.flush(PATIENCE_S)
    if commit:
        producer.commit_transaction(PATIENCE_S)
    else:
        producer.abort_transaction(PATIENCE_S)


@operation
def consume(topic: str, partition: int, count: int, timestamp: int | None = None) -> list[Record]:
    consumer = Consumer({**CONNECTION, "group.id": "assigned", "enable.auto.commit": False})
    try:
        consumer.assign([_start(consumer, topic, partition, timestamp)])
        return _read(consumer, count)
    finally:
        consumer.close()


def _start(consumer: Consumer, topic: str, partition: int, timestamp: int | None) -> TopicPartition:
    if timestamp is None:
        return TopicPartition(topic, partition, OFFSET_BEGINNING)
    remaining = TopicPartition(topic, partition, timestamp)
    return consumer.offsets_for_times([remaining], timeout=PATIENCE_S)[0]


def _read(consumer: Consumer, count: int) -> list[Record]:
    read: list[Record] = []
    deadline_s = time.monotonic() + PATIENCE_S
    while len(read) < count:
        if time.monotonic() > deadline_s:
            raise TimedOut(f"{len(read)} of {count} records read")
        message = consumer.poll(0.5)
        if message is not None and message.error() is not None:
            raise KafkaException(message.error())
        if message is not None:
            read.append(_record(message))
    return read


def _record(message: Message) -> Record:
    headers = [(name, decode(value)) for name, value in list[Any](message.headers() or [])]
    _kind, timestamp = message.timestamp()
    return Record(decode(message.key()), decode(message.value()), headers, timestamp, message.offset())


@operation
def offsets(topic: str, partition: int) -> object:
    return {
        "earliest": _list_offset(topic, partition, OffsetSpec.earliest()),
        "latest": _list_offset(topic, partition, OffsetSpec.latest()),
    }


@operation
def offset_at(topic: str, partition: int, timestamp: int) -> object:
    found = _list_offset(topic, partition, OffsetSpec.for_timestamp(timestamp))
    return None if found < 0 else found


def _list_offset(topic: str, partition: int, spec: OffsetSpec) -> int:
    return int(only(admin.list_offsets({TopicPartition(topic, partition): spec})).offset)


@operation
def delete_records(topic: str, partition: int, before: int) -> object:
    return only(admin.delete_records([TopicPartition(topic, partition, before)])).low_watermark


class Member:
    """A consumer that joins a group, in either protocol."""

    def __init__(
        self,
        topic: str,
        group: str,
        strategy: str = "range",
        protocol: str = "classic",
        instance: str | None = None,
    ) -> None:
        by_protocol = {
            "classic": {"partition.assignment.strategy": strategy, "heartbeat.interval.ms": 200},
            "consumer": {"group.protocol": "consumer"},
        }
        start = {"group.id": group, "auto.offset.reset": "earliest"}
        static = {} if instance is None else {"group.instance.id": instance, "session.timeout.ms": 6000}
        self.assignments = 0
        self._consumer = Consumer({**CONNECTION, **start, **by_protocol[protocol], **static})
        self._consumer.subscribe([topic], on_assign=self._assigned)

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self.assignments += 1

    def read(self) -> list[str]:
        """Return the received values."""
        message = self._consumer.poll(0.05)
        if message is None:
            return []
        if message.error() is not None:
            raise KafkaException(message.error())
        return [decode(message.value()) or ""]

    def owned(self) -> list[int]:
        """Return the assigned partitions."""
        return [each.partition for each in self._consumer.assignment()]

    def close(self) -> None:
        self._consumer.close()


membership.offer(Member)


def name_of(error: Exception) -> str:
    """Return librdkafka's name for the error, as ``KafkaError.name()`` does."""
    return error.args[0].name() if isinstance(error, KafkaException) else type(error).__name__


if __name__ == "__main__":
    serve(name_of)
