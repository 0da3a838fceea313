"""Requests with timeout 0 are not started; changes of voters, features and replicas are validated as in Kafka."""

from typing import Any

import pytest

from barnabas.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from barnabas.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from barnabas.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from barnabas.wire.schema import Message
from differential.listed_control import WITHOUT_TIME, add_voter
from differential.sequences import Step, create, topic
from differential.symbols import Name
from differential.world import World

A: Any = Name("a")
GONE: Any = Name("gone")


def check(world: World, *steps: Step) -> None:
    for request, version in steps:
        differences = world.exchange(request, version)
        assert not differences, "\n".join([*map(str, differences), str(request)])


def in_all_versions(world: World, request: Message) -> None:
    versions = world.pair.apis[request.API_KEY].versions
    check(world, *((request, version) for version in range(versions.first, versions.last + 1)))


@pytest.mark.parametrize("timeout_ms", [0, -1])
@pytest.mark.parametrize(
    "step", [step for _, _, step in WITHOUT_TIME], ids=[api for api, _, _ in WITHOUT_TIME]
)
def test_requests_with_timeout_0_fail_without_being_started(
    world: World, step: Step, timeout_ms: int
) -> None:
    request: Any = step[0]
    request.timeout_ms = timeout_ms
    there = MetadataRequest([MetadataRequestTopic(name=name) for name in (A, Name("b"))])  # type: ignore[arg-type]
    there.allow_auto_topic_creation = False
    check(world, create(topic("a", 2)), (request, step[1]), (there, 12))


@pytest.mark.parametrize("topics", [None, [], [(A, [0, 5, 0, -1]), (GONE, [0]), (A, [1]), ("", [])]])
@pytest.mark.parametrize("election_type", [0, 1, 2, -1])
def test_elections(world: World, election_type: int, topics: Any) -> None:
    check(world, create(topic("a", 2)))
    named = topics and [TopicPartitions(name, indexes) for name, indexes in topics]
    in_all_versions(world, ElectLeadersRequest(election_type, named))


TARGETS = [[1], None, [], [2], [1, 1], [1, 2], [-1]]


@pytest.mark.parametrize("allowed", [True, False])
def test_reassignments(world: World, allowed: bool) -> None:
    partitions = [ReassignablePartition(index, target) for target in TARGETS for index in (0, 1, 2, -1)]
    topics = [ReassignableTopic(name, partitions) for name in (A, GONE, "", A)] + [ReassignableTopic(A)]
    check(world, create(topic("a", 2)))
    in_all_versions(world, AlterPartitionReassignmentsRequest(10_000, allowed, topics))
    in_all_versions(world, AlterPartitionReassignmentsRequest(10_000, allowed, []))
    for listed in (None, [], [ListPartitionReassignmentsTopics(name, [0, 1, 9]) for name in (A, GONE, "")]):
        in_all_versions(world, ListPartitionReassignmentsRequest(0, listed))


@pytest.mark.parametrize("upgrade_type", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("level", [-1, 0, 6, 7, 29, 30, 31])
def test_features(world: World, upgrade_type: int, level: int) -> None:
    for names in (["metadata.version"], ["nope"], ["metadata.version", "nope"], ["metadata.version"] * 2, []):
        updates = [FeatureUpdateKey(name, level, upgrade_type > 1, upgrade_type) for name in names]
        in_all_versions(world, UpdateFeaturesRequest(0, updates))


@pytest.mark.parametrize("listener", ["CONTROLLER", "PLAINTEXT"])
def test_an_unknown_voter(world: World, listener: str) -> None:
    check(world, add_voter(listener))
