"""Topics and records of an embedded broker or cluster, for tests."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Self

from barnabas.base.clock import Clock, SystemClock
from barnabas.base.ids import TopicPartition
from barnabas.client.admin.admin import raise_errors
from barnabas.client.admin.model import NewTopic
from barnabas.client.admin.offsets import EARLIEST
from barnabas.client.blocking import BlockingClient, BlockingProducer
from barnabas.client.consumer.completed_fetch import ConsumedRecord
from barnabas.client.core.metadata import TopicInfo
from barnabas.client.producer.accumulator import RecordMetadata

WAIT_MS = 10_000


class EmbeddedKafka(ABC):
    """What an embedded broker and an embedded cluster have in common."""

    def __init__(self) -> None:
        self._clock: Clock = SystemClock()
        self._client: BlockingClient | None = None
        self._producer: BlockingProducer | None = None

    @abstractmethod
    def start(self) -> Self:
        """Start what serves clients, and return this object once it does."""

    @abstractmethod
    def stop(self) -> None:
        """Stop, and remove the data."""

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    @abstractmethod
    def _new_client(self) -> BlockingClient:
        """Connect a client.

        :raises RuntimeError: If nothing is running.
        """

    @property
    def client(self) -> BlockingClient:
        """A connected `KafkaClient` of Barnabas."""
        if self._client is None:
            self._client = self._new_client()
        return self._client

    def _close_client(self) -> None:
        client, self._client = self._client, None
        producer, self._producer = self._producer, None
        try:
            if producer is not None:
                producer.close(flush=False)
        finally:
            if client is not None:
                client.close()

    def create_topic(
        self, name: str, partitions: int = 1, configs: Mapping[str, str | None] | None = None
    ) -> None:
        """Create a topic.

        :raises KafkaError: The broker's error, such as TOPIC_ALREADY_EXISTS.
        """
        topic = NewTopic(name, partitions, configs=configs or {})
        raise_errors(self.client.admin.create_topics([topic]).values())

    def delete_topic(self, name: str) -> None:
        """Delete a topic.

        :raises KafkaError: The broker's error, such as UNKNOWN_TOPIC_OR_PARTITION.
        """
        raise_errors(self.client.admin.delete_topics([name]).values())

    def topics(self) -> dict[str, int]:
        """Return the partition count of every topic by name, without internal topics."""
        described = self.client.admin.describe_topics()
        return {
            name: len(topic.partitions)
            for name, topic in described.items()
            if isinstance(topic, TopicInfo) and not topic.is_internal
        }

    def produce(
        self,
        topic: str,
        value: str | bytes | None,
        key: str | bytes | None = None,
        *,
        partition: int | None = None,
        headers: Iterable[tuple[str, str | bytes | None]] = (),
        timestamp_ms: int | None = None,
    ) -> RecordMetadata:
        """Write one record and wait until it is stored; text is encoded as UTF-8. Creates the topic if needed.

        :raises KafkaError: The broker's error.
        """
        if self._producer is None:
            self._producer = self.client.producer()
        return self._producer.send_and_wait(
            topic,
            _as_bytes(value),
            _as_bytes(key),
            partition=partition,
            headers=tuple((name, _as_bytes(header_value)) for name, header_value in headers),
            timestamp_ms=timestamp_ms,
        )

    def records(
        self, topic: str, *, count: int | None = None, timeout_ms: int = WAIT_MS
    ) -> list[ConsumedRecord]:
        """Return all records of a topic by partition and offset; with `count`, wait until there are that many.

        :raises KafkaError: UNKNOWN_TOPIC_OR_PARTITION.
        :raises TimeoutError: When fewer than `count` have arrived within `timeout_ms`.
        """
        [described] = self.client.admin.describe_topics([topic]).values()
        if not isinstance(described, TopicInfo):
            raise described
        starts = {TopicPartition(topic, index): EARLIEST for index in range(len(described.partitions))}
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        found: list[ConsumedRecord] = []
        with self.client.consumer(starts, stop_at_end=count is None) as consumer:
            if count is None:
                found.extend(consumer)
            while count is not None and len(found) < count:
                left_ms = deadline_ms - self._clock.monotonic_ms()
                if left_ms <= 0:
                    message = f"topic '{topic}' has {len(found)} records after {timeout_ms} ms, not {count}"
                    raise TimeoutError(message)
                found += consumer.poll(left_ms)
        return sorted(found, key=lambda record: (record.partition, record.offset))


def _as_bytes(data: str | bytes | None) -> bytes | None:
    return data.encode() if isinstance(data, str) else data
