"""Both brokers as one: each request goes to both, and the differences are returned."""

import itertools
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from barnabas.api.registry import ApiSpec
from barnabas.wire.messages.alter_client_quotas import AlterClientQuotasRequest
from barnabas.wire.messages.alter_configs import AlterConfigsRequest, AlterConfigsResource
from barnabas.wire.messages.create_partitions import CreatePartitionsRequest
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from barnabas.wire.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from barnabas.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from barnabas.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from barnabas.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from barnabas.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from barnabas.wire.messages.produce import ProduceRequest
from barnabas.wire.messages.write_txn_markers import WriteTxnMarkersRequest
from barnabas.wire.schema import Message
from differential import listed, symbols
from differential.compare import Difference, compare
from differential.identities import Identities
from differential.sides import Answer, Side

#: Apache Kafka responds when its controller has decided; its broker applies the change a little later.
VISIBLE_TIMEOUT_S = 30.0
VISIBLE_INTERVAL_S = 0.002

#: Topic name -> its number of partitions.
Topics = dict[str, int]

#: Types of resources that keep configs.
TOPIC = 2
CONFIGURED = (TOPIC, 4, 16, 32)

AnyAlteration = AlterConfigsRequest | IncrementalAlterConfigsRequest
CHANGES_CONFIGS = (AlterConfigsRequest, IncrementalAlterConfigsRequest)
CHANGES_TOPICS = (CreateTopicsRequest, DeleteTopicsRequest, CreatePartitionsRequest, MetadataRequest)
APPENDS = (ProduceRequest, WriteTxnMarkersRequest)
CLOCK_INTERVAL_S = 0.0002


@dataclass
class Pair:
    """Apache Kafka and Barnabas, each with a connection."""

    kafka: Side
    barnabas: Side
    apis: dict[int, ApiSpec]
    _numbers: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    def new_world(self) -> "World":
        """Return fresh topic names and ids."""
        prefix = f"w{next(self._numbers)}-"
        return World(self, *(Identities(prefix, side.home) for side in (self.kafka, self.barnabas)))

    @contextmanager
    def world(self) -> Iterator["World"]:
        """Run a new world; its topics are deleted from both brokers afterwards."""
        world = self.new_world()
        try:
            yield world
        finally:
            world.clean_up()


@dataclass
class World:
    """The topics, producers and sessions of one test, as each broker identifies them."""

    pair: Pair
    kafka_names: Identities
    barnabas_names: Identities
    touched: set[str] = field(default_factory=set)
    #: (type, name) of the resources whose configs were altered
    configured: list[tuple[int, Any]] = field(default_factory=list)

    def exchange(self, request: Message, version: int) -> list[Difference]:
        """Send the request to both; return the differences between responses and between topics.

        Those that `listed` allows are left out.
        """
        return [each for each in self.compare(request, version) if listed.reason_for(each) is None]

    def compare(
        self, request: Message, version: int, timeout_s: float = VISIBLE_TIMEOUT_S
    ) -> list[Difference]:
        """Send the request to both; return every difference, allowed or not, that remains after `timeout_s`."""
        spec = self.pair.apis[request.API_KEY]
        if isinstance(request, APPENDS):
            _await_next_millisecond()
        answers: list[Answer] = []
        for side, names in self.sides():
            sent = symbols.resolve(request, names)
            answer = side.exchange(sent, spec.response, version)
            if answer.body is not None:
                names.learn(sent, answer.body)
            answers.append(answer)
            names.pending.clear()
        differences = compare(
            spec.name, version, answers[0], answers[1], self.kafka_names, self.barnabas_names
        )
        differences = [difference._replace(request=request) for difference in differences]
        if isinstance(request, CHANGES_CONFIGS) and not request.validate_only:
            differences += self.await_configs(request, timeout_s)
        if isinstance(request, CHANGES_TOPICS) and self.names_in(request):
            differences += self.await_topics(spec.name, version, timeout_s)
        if isinstance(request, AlterClientQuotasRequest):
            differences += self.await_quotas(timeout_s)
        return differences

    def names_in(self, request: Message) -> bool:
        """Remember the topics that a request names; return whether there are any."""
        topics = getattr(request, "topics", None) or []
        names = [topic.name for topic in topics] + list(getattr(request, "topic_names", []))
        ids = [getattr(topic, "topic_id", b"") for topic in topics]
        found = {each.name for each in names if isinstance(each, symbols.Name)}
        found |= {each.name for each in ids if isinstance(each, symbols.TopicId)}
        self.touched |= found
        return bool(found)

    def await_configs(self, request: AnyAlteration, timeout_s: float) -> list[Difference]:
        """Wait until Kafka's broker describes altered configs as Barnabas does."""
        named = {(each.resource_type, repr(each.resource_name)): each for each in request.resources}
        resources = [
            DescribeConfigsResource(each.resource_type, each.resource_name)
            for each in named.values()
            if each.resource_type in CONFIGURED
        ]
        self.configured += [(each.resource_type, each.resource_name) for each in resources]
        deadline_s = time.monotonic() + timeout_s
        while True:
            described = DescribeConfigsRequest(resources, include_synonyms=True)
            differences = self.exchange(described, 4)
            if not differences or time.monotonic() > deadline_s:
                return differences
            time.sleep(VISIBLE_INTERVAL_S)

    def sides(self) -> list[tuple[Side, Identities]]:
        return [(self.pair.kafka, self.kafka_names), (self.pair.barnabas, self.barnabas_names)]

    def await_topics(self, api: str, version: int, timeout_s: float = VISIBLE_TIMEOUT_S) -> list[Difference]:
        """Wait until Kafka shows Barnabas's topics as ready."""
        expected = self.topics(self.pair.barnabas, self.barnabas_names)
        deadline_s = time.monotonic() + timeout_s
        while (found := self._ready(expected)) != expected:
            if time.monotonic() > deadline_s:
                return [Difference(api, version, "topics afterwards", "topics afterwards", found, expected)]
            time.sleep(VISIBLE_INTERVAL_S)
        return []

    def await_quotas(self, timeout_s: float) -> list[Difference]:
        """Wait until Kafka shows Barnabas's quotas; return the differences at the timeout."""
        deadline_s = time.monotonic() + timeout_s
        while True:
            request = DescribeClientQuotasRequest()
            left, right = (
                side.exchange(request, DescribeClientQuotasResponse, 0) for side, _ in self.sides()
            )
            differences = compare(
                "DescribeClientQuotas", 0, left, right, self.kafka_names, self.barnabas_names
            )
            if not differences or time.monotonic() > deadline_s:
                return differences
            time.sleep(VISIBLE_INTERVAL_S)

    def _ready(self, expected: Topics) -> Topics | None:
        found = self.topics(self.pair.kafka, self.kafka_names)
        if found != expected:
            return found
        request = ListOffsetsRequest(replica_id=-1)
        for name in sorted(self.touched):
            indexes = range(expected.get(name, 1))
            partitions = [ListOffsetsPartition(partition_index=index, timestamp=-2) for index in indexes]
            topic = ListOffsetsTopic(name=self.kafka_names.prefix + name, partitions=partitions)
            request.topics.append(topic)
        answer = self.pair.kafka.exchange(request, ListOffsetsResponse, 3).body
        assert isinstance(answer, ListOffsetsResponse)
        for topic_answer in answer.topics:
            there = self.kafka_names.plain_name(topic_answer.name) in expected
            if any((partition.error_code == 0) != there for partition in topic_answer.partitions):
                return None
        return found

    def topics(self, side: Side, names: Identities) -> Topics:
        """Return the existing topics among those that were named; learn their ids."""
        named_topics = [MetadataRequestTopic(name=names.prefix + name) for name in sorted(self.touched)]
        request = MetadataRequest(topics=named_topics, allow_auto_topic_creation=False)
        answer = side.exchange(request, MetadataResponse, 12).body
        assert isinstance(answer, MetadataResponse)
        names.learn(request, answer)
        return {
            names.plain_name(topic.name) or "": len(topic.partitions)
            for topic in answer.topics
            if not topic.error_code
        }

    def clean_up(self) -> None:
        """Delete the remaining resources on both sides."""
        self._clean_up_configs()
        for side, names in self.sides():
            left = [names.prefix + name for name in self.topics(side, names)]
            request = DeleteTopicsRequest(topic_names=left, timeout_ms=10_000)
            side.exchange(request, DeleteTopicsResponse, 5)
        self.await_topics("DeleteTopics", 5)

    def _clean_up_configs(self) -> None:
        """Remove the configs of resources other than topics, whose configs are deleted with them."""
        left = {(kind, repr(name)): (kind, name) for kind, name in self.configured if kind != TOPIC and name}
        if left:
            resources = [AlterConfigsResource(kind, name, []) for kind, name in left.values()]
            self.compare(AlterConfigsRequest(resources), 2)


def _await_next_millisecond() -> None:
    """Wait until the next append has a later append time than all before.

    Otherwise two appends may have the same time on one broker and different times on the other.
    """
    now_ms = _wall_ms()
    while _wall_ms() == now_ms:
        time.sleep(CLOCK_INTERVAL_S)


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000
