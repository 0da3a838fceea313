"""Sizes in the list of topics, from the brokers' log directories."""

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
    """A fake cluster whose brokers return given directories or are unreachable."""

    def __init__(self, responses: Mapping[int, list[LogDirDescription] | None]) -> None:
        super().__init__(ClusterClient("127.0.0.1:1"))
        self.responses = responses
        self.calls: list[tuple[int, set[TopicPartition]]] = []

    async def describe_log_dirs(
        self, node_id: int, partitions: Collection[TopicPartition] | None = None
    ) -> list[LogDirDescription]:
        self.calls.append((node_id, set(partitions or ())))
        found = self.responses[node_id]
        if found is None:
            raise ConnectionLost(BrokerAddress("h", 1), "lost")
        return found


def row(name: str, partitions_count: int) -> TopicRow:
    return TopicRow(name, False, partitions_count, 2, 0, 0, 2 * partitions_count)


def test_current_replicas_of_all_brokers_and_directories_count() -> None:
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
    assert brokers.calls == [(1, partitions), (2, partitions)], "each is calls once, for what is shown"


def test_an_unreachable_broker_is_skipped() -> None:
    responses = [directory({TopicPartition("a", 0): LogDirReplica(10, 0, False)})]
    brokers = Brokers({1: None, 2: responses})
    assert asyncio.run(topic_sizes(brokers, [1, 2], [row("a", 1)])) == {"a": TopicSize(10, 1)}


def test_without_topics_no_broker_is_requested() -> None:
    brokers = Brokers({1: None})
    assert asyncio.run(topic_sizes(brokers, [1], [])) == {}
    assert brokers.calls == []
