"""Sizes in the list of topics: what brokers tell of them, and what they leave out."""

import asyncio
from collections.abc import Collection, Mapping

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.log_dirs import LogDirDescription, LogDirReplica
from barnabas.client.core.address import BrokerAddress
from barnabas.client.core.cluster import ClusterClient
from barnabas.client.core.errors import ConnectionLost
from barnabas.console.topic_list import TopicRow, TopicSize, topic_sizes


def directory(replicas: Mapping[TopicPartition, LogDirReplica]) -> LogDirDescription:
    return LogDirDescription("/d", None, -1, -1, False, replicas)


class Brokers(Admin):
    """Brokers that tell what they are given, or are lost."""

    def __init__(self, told: Mapping[int, list[LogDirDescription] | None]) -> None:
        super().__init__(ClusterClient("127.0.0.1:1"))
        self.told = told
        self.asked: list[tuple[int, set[TopicPartition]]] = []

    async def describe_log_dirs(
        self, node_id: int, partitions: Collection[TopicPartition] | None = None
    ) -> list[LogDirDescription]:
        self.asked.append((node_id, set(partitions or ())))
        found = self.told[node_id]
        if found is None:
            raise ConnectionLost(BrokerAddress("h", 1), "lost")
        return found


def row(name: str, partitions_count: int) -> TopicRow:
    return TopicRow(name, False, partitions_count, 2, 0, 0, 2 * partitions_count)


def test_replicas_of_all_brokers_and_directories_count_but_not_those_on_their_way() -> None:
    a0, a1 = TopicPartition("a", 0), TopicPartition("a", 1)
    brokers = Brokers(
        {
            1: [
                directory({a0: LogDirReplica(10, 0, False)}),
                directory({a0: LogDirReplica(7, 3, True), a1: LogDirReplica(20, 0, False)}),
            ],
            2: [directory({a0: LogDirReplica(10, 0, False)})],
        }
    )
    sizes = asyncio.run(topic_sizes(brokers, [1, 2], [row("a", 2), row("b", 1)]))
    assert sizes == {"a": TopicSize(40, 3)}
    partitions = {a0, a1, TopicPartition("b", 0)}
    assert brokers.asked == [(1, partitions), (2, partitions)], "each is asked once, for what is shown"


def test_a_broker_that_is_lost_tells_nothing_and_the_others_do() -> None:
    told = [directory({TopicPartition("a", 0): LogDirReplica(10, 0, False)})]
    brokers = Brokers({1: None, 2: told})
    assert asyncio.run(topic_sizes(brokers, [1, 2], [row("a", 1)])) == {"a": TopicSize(10, 1)}


def test_nobody_is_asked_about_no_topics() -> None:
    brokers = Brokers({1: None})
    assert asyncio.run(topic_sizes(brokers, [1], [])) == {}
    assert brokers.asked == []
