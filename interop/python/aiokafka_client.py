"""aiokafka as a JSON-lines program: ``python -m interop.python.aiokafka_client HOST:PORT``."""
# mypy: disable-error-code="import-untyped"

import asyncio
import sys
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import for_code

from interop.python import membership
from interop.python.lines import (
    PATIENCE_S,
    Record,
    class_name,
    decode,
    encode,
    encode_headers,
    operation,
    serve,
)

BOOTSTRAP = sys.argv[1]
Coroutine = Callable[..., Awaitable[object]]


def blocking(coroutine: Coroutine) -> Coroutine:
    """Make ``coroutine`` an operation that runs in an event loop of its own."""

    async def run(arguments: dict[str, Any]) -> object:
        return await asyncio.wait_for(coroutine(**arguments), PATIENCE_S)

    @wraps(coroutine)
    def block(**arguments: Any) -> object:
        return asyncio.run(run(arguments))

    operation(block)
    return coroutine


def with_admin(coroutine: Coroutine) -> Coroutine:
    """Make ``coroutine`` an operation that receives a started admin client."""

    @wraps(coroutine)
    async def run(**arguments: Any) -> object:
        admin = AIOKafkaAdminClient(bootstrap_servers=BOOTSTRAP)
        await admin.start()
        try:
            return await coroutine(admin, **arguments)
        finally:
            await admin.close()

    return blocking(run)


@with_admin
async def metadata(admin: AIOKafkaAdminClient, topic: str | None = None) -> object:
    described = await admin.describe_topics(None if topic is None else [topic])
    for each in described:
        _raise_for(each["error_code"], each["topic"])
    return {
        "brokers": [
            f"{broker['host']}:{broker['port']}" for broker in (await admin.describe_cluster())["brokers"]
        ],
        "topics": {each["topic"]: sorted(p["partition"] for p in each["partitions"]) for each in described},
    }


@with_admin
async def create_topic(
    admin: AIOKafkaAdminClient, topic: str, partitions: int, configs: dict[str, str]
) -> None:
    response = await admin.create_topics([NewTopic(topic, partitions, 1, topic_configs=configs)])
    ((_name, error_code, message),) = response.topic_errors
    _raise_for(error_code, message)


@with_admin
async def delete_topic(admin: AIOKafkaAdminClient, topic: str) -> None:
    response = await admin.delete_topics([topic])
    ((name, error_code),) = response.topic_error_codes
    _raise_for(error_code, name)


@with_admin
async def create_partitions(admin: AIOKafkaAdminClient, topic: str, count: int) -> None:
    await admin.create_partitions({topic: NewPartitions(count)})


@with_admin
async def topic_configs(admin: AIOKafkaAdminClient, topic: str) -> object:
    return await _configs(admin, ConfigResource(ConfigResourceType.TOPIC, topic))


@with_admin
async def replace_topic_configs(admin: AIOKafkaAdminClient, topic: str, configs: dict[str, str]) -> None:
    [answer] = await admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, configs)])
    [(error_code, message, *_)] = answer.resources
    _raise_for(error_code, message)


@with_admin
async def broker_configs(admin: AIOKafkaAdminClient, broker: int) -> object:
    return await _configs(admin, ConfigResource(ConfigResourceType.BROKER, str(broker)))


async def _configs(admin: AIOKafkaAdminClient, resource: ConfigResource) -> object:
    for response in await admin.describe_configs([resource]):
        for error_code, message, _kind, _name, entries in response.resources:
            _raise_for(error_code, message)
            return {entry[0]: entry[1] for entry in entries}
    return None


@with_admin
async def delete_records(admin: AIOKafkaAdminClient, topic: str, partition: int, before: int) -> object:
    assigned = TopicPartition(topic, partition)
    return (await admin.delete_records({assigned: RecordsToDelete(before)}))[assigned]


@blocking
async def produce(topic: str, partition: int, records: list[Record], codec: str, idempotent: bool) -> object:
    compression = None if codec == "none" else codec
    producer = AIOKafkaProducer(
        bootstrap_servers=BOOTSTRAP, compression_type=compression, enable_idempotence=idempotent, linger_ms=50
    )
    async with producer:
        sent = [await _send(producer, topic, partition, record) for record in records]
        return [metadata.offset for metadata in await asyncio.gather(*sent)]


async def _send(producer: AIOKafkaProducer, topic: str, partition: int, record: Record) -> Any:
    return await producer.send(
        topic,
        encode(record.value),
        encode(record.key),
        partition,
        record.timestamp,
        encode_headers(record),
    )


@blocking
async def transact(
    topic: str, partition: int, records: list[Record], transactional_id: str, commit: bool
) -> None:
    async with AIOKafkaProducer(bootstrap_servers=BOOTSTRAP, transactional_id=transactional_id) as producer:
        await producer.begin_transaction()
        await asyncio.gather(*[await _send(producer, topic, partition, record) for record in records])
        await (producer.commit_transaction() if commit else producer.abort_transaction())


@blocking
async def consume(topic: str, partition: int, count: int, timestamp: int | None = None) -> list[Record]:
    assigned = TopicPartition(topic, partition)
    async with AIOKafkaConsumer(bootstrap_servers=BOOTSTRAP, auto_offset_reset="earliest") as consumer:
        consumer.assign([assigned])
        if timestamp is None:
            await consumer.seek_to_beginning(assigned)
        else:
            consumer.seek(
                assigned, (await consumer.offsets_for_times({assigned: timestamp}))[assigned].offset
            )
        return [_record(await consumer.getone()) for _ in range(count)]


def _record(message: Any) -> Record:
    headers = [(name, decode(value)) for name, value in message.headers]
    return Record(decode(message.key), decode(message.value), headers, message.timestamp, message.offset)


class Member:
    """A consumer that joins a group, in its own thread's event loop."""

    def __init__(self, topic: str, group: str) -> None:
        self._runner = asyncio.Runner()
        self._consumer = self._runner.run(self._join(topic, group))

    @staticmethod
    async def _join(topic: str, group: str) -> AIOKafkaConsumer:
        consumer = AIOKafkaConsumer(
            topic,
            bootstrap_servers=BOOTSTRAP,
            group_id=group,
            auto_offset_reset="earliest",
            heartbeat_interval_ms=200,
        )
        await consumer.start()
        return consumer

    def read(self) -> list[str]:
        """Return the received values."""
        polled = self._runner.run(self._consumer.getmany(timeout_ms=50))
        return [decode(message.value) or "" for messages in polled.values() for message in messages]

    def owned(self) -> list[int]:
        """Return the assigned partitions."""
        return [each.partition for each in self._consumer.assignment()]

    def close(self) -> None:
        self._runner.run(self._consumer.stop())
        self._runner.close()


membership.offer(Member)


@blocking
async def offsets(topic: str, partition: int) -> object:
    assigned = TopicPartition(topic, partition)
    async with AIOKafkaConsumer(bootstrap_servers=BOOTSTRAP) as consumer:
        return {
            "earliest": (await consumer.beginning_offsets([assigned]))[assigned],
            "latest": (await consumer.end_offsets([assigned]))[assigned],
        }


@blocking
async def offset_at(topic: str, partition: int, timestamp: int) -> object:
    assigned = TopicPartition(topic, partition)
    async with AIOKafkaConsumer(bootstrap_servers=BOOTSTRAP) as consumer:
        found = (await consumer.offsets_for_times({assigned: timestamp}))[assigned]
        return None if found is None else found.offset


def _raise_for(error_code: int, message: str | None) -> None:
    if error_code:
        raise for_code(error_code)(message)


if __name__ == "__main__":
    serve(class_name)
