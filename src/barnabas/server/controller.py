"""Fences dead brokers and elects leaders, on the broker that is the controller at the time."""

import asyncio
from collections.abc import Callable
from functools import partial

from barnabas.metadata.broker_lifecycle import controller_id, dead_brokers, decide_elections, decide_fence
from barnabas.metadata.brokers import BROKERS, SESSIONS
from barnabas.metadata.changed_keys import ChangedKeys
from barnabas.metadata.configs import BROKER_CONFIGS, TOPIC_CONFIGS
from barnabas.metadata.election_rules import ElectionRules
from barnabas.metadata.elections import decide_elect_preferred
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.internal_replication import decide_replicate_internal_topics
from barnabas.metadata.internal_topics import BROKER_TOPICS
from barnabas.metadata.topic_rotation import TopicRotation
from barnabas.metadata.topics import NO_LEADER, TOPICS
from barnabas.metadata.woken_task import WokenTask
from barnabas.metadata.writer import MetadataWriter
from barnabas.telemetry import names
from barnabas.telemetry.logs import get_logger
from barnabas.telemetry.metrics import MetricsRegistry, Values
from barnabas.telemetry.names import MetricName
from barnabas.wire.errors import KafkaError

#: After which time to try again if the store failed.
RETRY_S = 1.0

#: Changes of these record types may make a broker fenced, or an election necessary or possible.
_FOLLOWED = (BROKERS, SESSIONS, BROKER_CONFIGS)

#: If the configs of more topics change at once, look for elections without checking whether they are possible.
CHECKED_TOPICS_COUNT = 100

_log = get_logger("barnabas.controller")


class Controller:
    """Runs on every broker, and acts on one of them (see `controller_id`)."""

    def __init__(
        self,
        broker_id: int,
        metadata: MetadataWriter,
        replication_factor: Callable[[str, int], int],
        rules: ElectionRules,
        rebalance_interval_s: float | None,
    ) -> None:
        """:param replication_factor: (internal topic, number of brokers) -> the number of replicas as configured.
        :param rebalance_interval_s: How often preferred leaders are elected; None for never.
        """
        self._broker_id = broker_id
        self._metadata = metadata
        self._replication_factor = replication_factor
        self._rules = rules
        self._rebalance_interval_s = rebalance_interval_s
        self._acting = WokenTask(
            "controller",
            self._act,
            retry_s=RETRY_S,
            log=_log,
            warning="the controller cannot change the metadata; retrying",
        )
        self._rebalancing: asyncio.Task[None] | None = None
        self.fenced_count = 0
        self.elections_count = 0
        self.checks_count = 0  #: how often all partitions were checked

    def start(self) -> None:
        """Begin to follow the image."""
        self._metadata.listen(self._apply)
        self._acting.wake()
        self._acting.start()
        if self._rebalance_interval_s is not None:
            rebalancing = self._rebalance_leaders(self._rebalance_interval_s)
            loop = asyncio.get_running_loop()
            self._rebalancing = loop.create_task(rebalancing, name="leader-rebalance")

    async def stop(self) -> None:
        await self._acting.stop()
        if self._rebalancing is not None:
            self._rebalancing.cancel()
            await asyncio.gather(self._rebalancing, return_exceptions=True)
            self._rebalancing = None

    @property
    def is_active(self) -> bool:
        return controller_id(self._metadata.image) == self._broker_id

    async def _apply(self, before: MetadataImage, after: MetadataImage, changed: ChangedKeys) -> None:
        topics = changed.of(TOPIC_CONFIGS)
        if (
            changed.contains_any_of(_FOLLOWED)
            or not BROKER_TOPICS.isdisjoint(changed.of(TOPICS))  # a broker may have joined meanwhile
            or len(topics) > CHECKED_TOPICS_COUNT
            or any(_may_elect(after, name) for name in topics)
        ):
            self._acting.wake()

    async def _act(self) -> None:
        self.checks_count += self.is_active
        while self.is_active and (dead := dead_brokers(self._metadata.image)):
            await self._metadata.write(partial(decide_fence, broker_id=dead[0]))
            self.fenced_count += 1
            _log.warning("fenced a broker whose session has ended", broker_id=dead[0])
        limit = self._metadata.partitions_max
        elections = partial(decide_elections, rules=self._rules, limit=limit, rotation=TopicRotation())
        while self.is_active and (count := await self._metadata.write(elections, is_large=True)):
            self.elections_count += count
            _log.info("elected leaders", partitions_count=count)
        replicate = partial(
            decide_replicate_internal_topics,
            replication_factor=self._replication_factor,
            rules=self._rules,
            limit=limit,
        )
        while self.is_active and (count := await self._metadata.write(replicate)):
            _log.info("adding replicas to internal topics", partitions_count=count)

    async def _rebalance_leaders(self, interval_s: float) -> None:
        """Return leadership to the preferred leaders that are in sync (auto.leader.rebalance.enable)."""
        while True:
            await asyncio.sleep(interval_s)
            if not self.is_active:
                continue
            try:
                elect = partial(
                    decide_elect_preferred,
                    rules=self._rules,
                    limit=self._metadata.partitions_max,
                    rotation=TopicRotation(),
                )
                while await self._metadata.write(elect, is_large=True):
                    pass
            except KafkaError as error:
                _log.warning("cannot elect preferred leaders; retrying", why=error.message)

    def register_metrics(self, registry: MetricsRegistry) -> None:
        metrics = (names.ACTIVE_CONTROLLER, names.OFFLINE_PARTITIONS, names.FENCED_BROKERS)

        def collect() -> dict[MetricName, Values]:
            image = self._metadata.image
            values = (1, _offline_count(image), _fenced_count(image)) if self.is_active else (0, 0, 0)
            return {metric: [({}, value)] for metric, value in zip(metrics, values, strict=True)}

        registry.add_together(metrics, collect)

    def statistics(self) -> dict[str, int]:
        return {
            "is_active": int(self.is_active),
            "fenced_count": self.fenced_count,
            "elections_count": self.elections_count,
            "checks_count": self.checks_count,
        }


def _may_elect(image: MetadataImage, name: str) -> bool:
    """Return whether other configs of a topic may elect a leader, or end the eligibility of a replica."""
    topic = image.topics.get(name)
    if topic is None or not image.partition_states:
        return False
    states = (image.partition(topic, index) for index in range(topic.partition_count))
    return any(state.leader == NO_LEADER or state.elr for state in states)


def _offline_count(image: MetadataImage) -> int:
    """Return the number of partitions without a leader."""
    return sum(state.leader == NO_LEADER for state in image.partition_states.values())


def _fenced_count(image: MetadataImage) -> int:
    return sum(broker.fenced for broker in image.brokers.values())
