"""Publishes the lines of the security log to a topic, if `barnabas.security.log.topic.enable` is set.

The topic has one partition. Its leader appends; other brokers send their lines to it. Lines wait in a queue of limited
size, so that some are lost while there is no leader for long; the log has all of them.
"""

import asyncio
import json
from collections import deque
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from barnabas.api.context import BrokerContext
from barnabas.api.topics.topic_creator import create_internal_topic
from barnabas.base.topic_names import SECURITY_TOPIC
from barnabas.client.core.errors import BrokerConnectionError
from barnabas.metadata.topics import NO_LEADER
from barnabas.replication.broker_client import BrokerClient
from barnabas.replication.partition import ALL_REPLICAS
from barnabas.telemetry import names
from barnabas.telemetry.logs import get_logger
from barnabas.telemetry.metrics import MetricsRegistry
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.wire.records.key_value_batch import encode_pairs

#: Lines that wait at most: at least two minutes of them.
WAITING_COUNT_MAX = 2_000

#: Lines in a batch at most; a line has at most about a kilobyte.
BATCH_COUNT_MAX = 200

#: Pause after an attempt that failed, and the time for the last lines at a stop.
RETRY_S, STOP_S = 1.0, 2.0

_TIMEOUT_MS = 10_000

_log = get_logger("barnabas.security")


class _Line(NamedTuple):
    """A line as a record."""

    key: bytes
    value: bytes
    time_ms: int


class SecurityLogPublisher:
    """Appends lines in their order. A response that is lost may repeat a batch."""

    def __init__(self, broker: BrokerContext, client: BrokerClient) -> None:
        self._broker = broker
        self._client = client
        self._waiting: deque[_Line] = deque()
        self._woken = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self._is_stopping = False
        self._last_failure = ""  #: why the last attempt failed
        self.published_count = 0
        self.lost_count = 0

    def start(self) -> None:
        self._broker.security_log.on_line = self._add
        self._running = asyncio.get_running_loop().create_task(self._run(), name="security log")

    async def stop(self, *, abruptly: bool = False) -> None:
        """Publish what is left, if that is possible within a short time."""
        if self._running is None:
            return
        self._is_stopping = True
        self._woken.set()
        await asyncio.wait([self._running], timeout=0 if abruptly else STOP_S)
        self._running.cancel()
        await asyncio.gather(self._running, return_exceptions=True)

    def _add(self, event: str, fields: Mapping[str, object]) -> None:
        if len(self._waiting) >= WAITING_COUNT_MAX:
            self._waiting.popleft()
            self.lost_count += 1
        time_ms = self._broker.clock.wall_ms()
        source = fields.get("principal") or fields.get("user") or ""
        line = {"time": time_ms, "broker": self._broker.broker_id, "event": event, **fields}
        self._waiting.append(_Line(str(source).encode(), json.dumps(line).encode(), time_ms))
        self._woken.set()

    async def _run(self) -> None:
        while True:
            await self._woken.wait()
            self._woken.clear()
            while self._waiting:
                if not await self._publish_once():
                    await asyncio.sleep(RETRY_S)
            if self._is_stopping:
                return

    async def _publish_once(self) -> bool:
        """Publish the first lines; return whether that worked."""
        lines = [self._waiting[at] for at in range(min(BATCH_COUNT_MAX, len(self._waiting)))]
        try:
            await self._publish(lines)
        except (KafkaError, BrokerConnectionError, OSError) as error:
            self._log_failure(str(error))
            return False
        except Exception:
            _log.exception("cannot publish lines of the security log; they are in the log")
        else:
            self._last_failure = ""
            self.published_count += len(lines)
        for _ in lines:
            self._waiting.popleft()
        return True

    async def _publish(self, lines: Sequence[_Line]) -> None:
        broker = self._broker
        await create_internal_topic(broker, SECURITY_TOPIC)
        topic = broker.image.topics[SECURITY_TOPIC]
        leader = broker.image.partition(topic, 0).leader
        batch = encode_pairs([(line.key, line.value) for line in lines], lines[-1].time_ms)
        if leader == broker.broker_id:
            broker.replicas.partition(SECURITY_TOPIC, 0).append_as_coordinator(memoryview(batch))
            return
        if leader == NO_LEADER:
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"{SECURITY_TOPIC} has no leader")
        data = PartitionProduceData(index=0, records=bytes(batch))
        topic_data = TopicProduceData(name=SECURITY_TOPIC, topic_id=topic.topic_id, partition_data=[data])
        request = ProduceRequest(acks=ALL_REPLICAS, timeout_ms=_TIMEOUT_MS, topic_data=[topic_data])
        response = await self._client.send(leader, request)
        [result] = response.responses[0].partition_responses
        if result.error_code:
            raise KafkaError(ErrorCode.of(result.error_code), f"broker {leader}: {result.error_message}")

    def _log_failure(self, reason: str) -> None:
        if reason != self._last_failure:
            _log.warning("cannot publish the security log yet", why=reason)
        self._last_failure = reason

    def register_metrics(self, registry: MetricsRegistry) -> None:
        registry.add_metric(
            names.SECURITY_LOG_LINES,
            lambda: [
                ({"outcome": "published"}, self.published_count),
                ({"outcome": "lost"}, self.lost_count),
            ],
        )

    def statistics(self) -> dict[str, int]:
        return {
            "published_count": self.published_count,
            "lost_count": self.lost_count,
            "waiting_count": len(self._waiting),
        }
