"""A log directory of one broker fails, and other brokers take its partitions over."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from barnabas.client.admin.admin import raise_errors
from barnabas.client.admin.model import NewTopic
from barnabas.testing import EmbeddedBroker
from barnabas.testing.cluster import QUICK_SETTINGS
from barnabas.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    TopicRequest,
)
from support.waiting import until
from support.wire import Wire


def settings(directory: Path, node_id: int) -> dict[str, str]:
    own = directory / str(node_id)
    return {
        **QUICK_SETTINGS,
        "node.id": str(node_id),
        "barnabas.store": f"sqlite:{directory / 'metadata.sqlite'}",
        "log.dirs": f"{own / 'a'},{own / 'b'}",
    }


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[dict[int, EmbeddedBroker]]:
    """Run two brokers with two log directories each."""
    with ExitStack() as stack:
        yield {
            node_id: stack.enter_context(EmbeddedBroker(settings(tmp_path, node_id))) for node_id in (1, 2)
        }


def described(broker: EmbeddedBroker, index: int) -> DescribeTopicPartitionsResponsePartition:
    with Wire(int(broker.bootstrap.rpartition(":")[2])) as wire:
        response: DescribeTopicPartitionsResponse = wire.ask(
            DescribeTopicPartitionsRequest([TopicRequest("t")])
        )
    [topic] = response.topics
    return topic.partitions[index]


def fail_directory(broker: EmbeddedBroker, index: int) -> None:
    broker.server.broker.replicas.partition("t", index).log.take_offline(OSError(5, "Input/output error"))


def test_another_broker_leads_what_was_in_a_failed_directory(brokers: dict[int, EmbeddedBroker]) -> None:
    first, second = brokers[1], brokers[2]
    raise_errors(
        first.client.admin.create_topics([NewTopic("t", assignments={0: [1, 2], 1: [1, 2]})]).values()
    )
    first.produce("t", b"before", partition=0)
    until(lambda: sorted(described(second, 0).isr_nodes) == [1, 2])
    fail_directory(first, 0)
    until(lambda: described(second, 0).leader_id == 2)
    partition = described(second, 0)
    assert (partition.isr_nodes, partition.offline_replicas, partition.leader_epoch) == ([2], [1], 1)
    assert described(second, 1).leader_id == 1
    first.produce("t", b"after", partition=0)
    assert [record.value for record in first.records("t", count=2)] == [b"before", b"after"]

    first.stop()
    first.start()
    until(lambda: sorted(described(second, 0).isr_nodes) == [1, 2])
    assert described(second, 0).offline_replicas == []


def test_a_partition_without_another_replica_has_no_leader_until_the_directory_is_back(
    brokers: dict[int, EmbeddedBroker],
) -> None:
    first, second = brokers[1], brokers[2]
    raise_errors(first.client.admin.create_topics([NewTopic("t", assignments={0: [1], 1: [1]})]).values())
    first.produce("t", b"before", partition=0)
    fail_directory(first, 0)
    until(lambda: described(second, 0).leader_id == -1)
    partition = described(second, 0)
    assert (partition.isr_nodes, partition.eligible_leader_replicas) == ([], [1])
    assert (partition.last_known_elr, partition.offline_replicas) == ([1], [1])

    first.stop()
    first.start()
    until(lambda: described(second, 0).leader_id == 1)
    assert [record.value for record in first.records("t", count=1)] == [b"before"]
