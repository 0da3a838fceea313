"""Policies run between the decision and the commit."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from barnabas.api.topics.topic_creator import create_topics
from barnabas.metadata.topic_creation import TopicCreationResult, TopicToCreate
from barnabas.policy import CreateTopicPolicy
from barnabas.policy.policies import Policies, PolicySettings
from barnabas.wire.errors import ErrorCode
from support.images import manually_assigned
from support.loop import on_loop
from support.nodes import RunningNode, running_node
from support.policies import NAMING, PolicyModule, policy_module


@asynccontextmanager
async def guarded_node(directory: Path) -> AsyncIterator[tuple[RunningNode, PolicyModule]]:
    """Run a node whose topic names must start with "team."."""
    data = directory / "data"
    data.mkdir()
    with policy_module(directory, NAMING) as module:
        async with running_node(data, num_partitions="3") as running:
            running.broker.policies = Policies(PolicySettings(module.named("Naming"), time_limit_ms=30_000))
            await running.broker.policies.load()
            yield running, module
            await running.broker.policies.close()


async def create(
    running: RunningNode, *topics: TopicToCreate, validate_only: bool = False
) -> list[TopicCreationResult]:
    return await create_topics(running.context(), topics, validate_only=validate_only)


def codes(results: list[TopicCreationResult]) -> list[tuple[str, ErrorCode]]:
    return [(each.name, each.error.code if each.error else ErrorCode.NONE) for each in results]


def policy_calls(module: PolicyModule) -> list[object]:
    """Return the policy's calls."""
    return [call[1] for call in module.calls if call[0] == "validate"]


@on_loop
async def _only_the_refused_topic_fails(directory: Path) -> None:
    async with guarded_node(directory) as (running, _):
        results = await create(running, TopicToCreate("team.a"), TopicToCreate("b"), TopicToCreate("team.c"))
        assert codes(results) == [
            ("team.a", ErrorCode.NONE),
            ("b", ErrorCode.POLICY_VIOLATION),
            ("team.c", ErrorCode.NONE),
        ]
        assert results[1].error
        assert results[1].error.message == "b must begin with team."
        assert set(running.broker.image.topics) == {"team.a", "team.c"}


def test_only_the_topic_that_violates_the_policy_fails(tmp_path: Path) -> None:
    _only_the_refused_topic_fails(tmp_path)


def test_validate_only_runs_the_policy(tmp_path: Path) -> None:
    @on_loop
    async def scenario() -> None:
        async with guarded_node(tmp_path) as (running, _):
            results = await create(running, TopicToCreate("team.a"), TopicToCreate("b"), validate_only=True)
            assert codes(results) == [("team.a", ErrorCode.NONE), ("b", ErrorCode.POLICY_VIOLATION)]
            assert not running.broker.image.topics

    scenario()


def test_the_policy_receives_the_resulting_counts_or_assignments(tmp_path: Path) -> None:
    @on_loop
    async def scenario() -> None:
        async with guarded_node(tmp_path) as (running, module):
            configs = {"retention.ms": "5"}
            await create(
                running, TopicToCreate("team.a", configs=configs), manually_assigned("team.b", [1], [1])
            )
            metadata = CreateTopicPolicy.RequestMetadata
            assert policy_calls(module) == [
                metadata("team.a", 3, 1, None, configs),
                metadata("team.b", None, None, {0: [1], 1: [1]}, {}),
            ]

    scenario()


@pytest.mark.parametrize(
    ("topics", "code"),
    [
        ([TopicToCreate("?")], ErrorCode.INVALID_TOPIC_EXCEPTION),
        ([TopicToCreate("there")], ErrorCode.TOPIC_ALREADY_EXISTS),
        ([TopicToCreate("t", 1, 2)], ErrorCode.INVALID_REPLICATION_FACTOR),
        ([TopicToCreate("t"), TopicToCreate("t")], ErrorCode.INVALID_REQUEST),
        ([TopicToCreate("t", configs={"retention.ms": "x"})], ErrorCode.INVALID_CONFIG),
    ],
)
def test_topics_that_fail_anyway_are_not_checked_by_the_policy(
    tmp_path: Path, topics: list[TopicToCreate], code: ErrorCode
) -> None:
    @on_loop
    async def scenario() -> None:
        async with guarded_node(tmp_path) as (running, module):
            await running.create(TopicToCreate("there", 1, 1))
            assert codes(await create(running, *topics)) == [(topics[0].name, code)]
            assert policy_calls(module) == []

    scenario()
