"""Partition changes beyond a quota are rejected or throttled as by Kafka."""

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
from barnabas.wire.schema import Message
from differential import symbols
from differential.sequences import create, topic
from differential.symbols import Name
from differential.world import World

A: Any = Name("a")

#: Changes per second, so low that the bucket hardly refills during a test. It holds eleven seconds of them.
RATE = 1e-3

#: (error codes, whether the client is throttled)
Outcome = tuple[list[int], bool]


@pytest.fixture
def limited(world: World) -> Iterator[World]:
    """Return both brokers with a full bucket."""
    alter(world, OpData("controller_mutation_rate", 1e9))
    outcome(world, creation("fills"), 7)
    alter(world, OpData("controller_mutation_rate", RATE))
    yield world
    alter(world, OpData("controller_mutation_rate", RATE, True))


def alter(world: World, operation: OpData) -> None:
    entry = EntryData([EntityData("client-id", "differential")], [operation])
    assert world.exchange(AlterClientQuotasRequest([entry]), 1) == []


def outcome(world: World, request: Message, version: int) -> Outcome:
    """Return both brokers' responses; each request has a connection of its own, since throttled connections are
    muted.
    """
    world.names_in(request)
    spec = world.pair.apis[request.API_KEY]
    found: list[Outcome] = []
    for side, names in world.sides():
        side.disconnect()
        body: Any = side.exchange(symbols.resolve(request, names), spec.response, version).body
        side.disconnect()
        results = getattr(body, "topics", None) or getattr(body, "results", None) or body.responses
        found.append(([each.error_code for each in results], body.throttle_time_ms > 0))
    assert world.await_topics(spec.name, version) == []
    assert found[0] == found[1], found
    return found[0]


REFUSED, DONE, DONE_BUT_WAIT = ([89], True), ([0], False), ([0], True)


def creation(name: str, partitions: int = 1, *, validate_only: bool = False) -> Any:
    request: Any = create(topic(name, partitions))[0]
    request.validate_only = validate_only
    return request


def test_creations_beyond_the_quota_fail_in_versions_that_have_the_error(limited: World) -> None:
    assert outcome(limited, creation("a", 20), 7) == DONE
    assert outcome(limited, creation("b"), 7) == REFUSED
    assert outcome(limited, creation("b"), 6) == REFUSED
    assert outcome(limited, creation("b"), 5) == DONE_BUT_WAIT


def test_adding_partitions_and_deleting_topics_beyond_the_quota_fail_as_in_kafka(limited: World) -> None:
    assert outcome(limited, creation("a", 20), 7) == DONE
    grow = CreatePartitionsRequest([CreatePartitionsTopic(A, 21, None)], 10_000)
    assert outcome(limited, grow, 3) == REFUSED
    assert outcome(limited, grow, 2) == DONE_BUT_WAIT
    by_state = DeleteTopicsRequest(topics=[DeleteTopicState(A)], timeout_ms=10_000)
    by_name = DeleteTopicsRequest(topic_names=[A], timeout_ms=10_000)
    assert outcome(limited, by_state, 6) == REFUSED
    assert outcome(limited, by_name, 5) == REFUSED
    assert outcome(limited, by_name, 4) == DONE_BUT_WAIT


@pytest.mark.parametrize("version", [4, 7])
def test_validate_only_requests_count_against_the_quota(limited: World, version: int) -> None:
    assert outcome(limited, creation("a", 20, validate_only=True), version)[0] == [0]
    assert outcome(limited, creation("b"), 7) == REFUSED


def test_invalid_requests_do_not_count_against_the_quota(limited: World) -> None:
    assert outcome(limited, creation("a", 20), 7) == DONE
    assert outcome(limited, creation("a", 20), 7)[0] == [36]
