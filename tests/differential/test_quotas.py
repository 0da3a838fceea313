"""Changes to partitions beyond a quota are refused, or waited for, as by Kafka."""

from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from barnabas.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from differential.sequences import Step, create, topic
from differential.symbols import Name
from differential.world import World

A: Any = Name("a")


def quota(rate: float, *, remove: bool = False) -> Step:
    entry = EntryData(
        [EntityData("client-id", "differential")], [OpData("controller_mutation_rate", rate, remove)]
    )
    return AlterClientQuotasRequest([entry]), 1


@pytest.fixture
def limited(world: World) -> Iterator[World]:
    """Eleven changes at once, and hardly any later."""
    same(world, quota(1e-3), (create(topic("warm"))[0], 7))
    yield world
    same(world, quota(1.0, remove=True))


def same(world: World, *steps: Step) -> None:
    for request, version in steps:
        differences = world.exchange(request, version)
        assert not differences, "\n".join(map(str, differences))


def test_creations_are_refused_by_the_versions_that_know_how(limited: World) -> None:
    many = create(topic("a", 20))[0]
    same(limited, (many, 7), (create(topic("b"))[0], 7), (create(topic("b"))[0], 6))
    same(limited, (create(topic("c"))[0], 5))


def test_growing_and_deleting_are_refused_alike(limited: World) -> None:
    same(limited, (create(topic("a", 20))[0], 7))
    grow = CreatePartitionsRequest([CreatePartitionsTopic(A, 21, None)], 10_000)
    same(limited, (grow, 3), (grow, 2))
    delete = DeleteTopicsRequest(topics=[DeleteTopicState(A)], timeout_ms=10_000)
    same(limited, (delete, 6))
    same(limited, (DeleteTopicsRequest(topic_names=[A], timeout_ms=10_000), 4))


@pytest.mark.parametrize("version", [4, 7])
def test_validating_counts_as_doing_it(limited: World, version: int) -> None:
    request = create(topic("a", 20))[0]
    request.validate_only = True  # type: ignore[attr-defined]
    same(limited, (request, version), (create(topic("b"))[0], 7))
