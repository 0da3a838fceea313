import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from barnabas.base.clock import ManualClock
from barnabas.base.ids import TopicPartition
from barnabas.base.topic_names import GROUP_TOPIC
from barnabas.coordinator.runner import WRITE_TIMEOUT_MS, ShardRunner
from barnabas.coordinator.runtime import CoordinatorRuntime
from barnabas.coordinator.shard_log import ShardLog
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.topic_creation import decide_create
from barnabas.metadata.topic_deletion import TopicToDelete, decide_delete
from barnabas.testing import EmbeddedBroker
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from support.images import RULES, new_topic
from support.loop import in_virtual_time, on_loop, turns
from support.nodes import running_node
from support.shards import CountingShard, MemoryShardLog
from support.waiting import reached


def test_a_coordinator_that_has_stopped_loads_no_shards_for_a_late_commit() -> None:
    with EmbeddedBroker() as kafka:
        kafka.create_topic("t")
        kafka.client.groups.commit_offsets("g", {TopicPartition("t", 0): 1})
        runtime = kafka.server.broker.groups
        assert runtime._runners
        stopped = threading.Event()

        async def stop_and_follow() -> None:
            await runtime.stop()
            runtime.load(kafka.server.broker.metadata.image)
            stopped.set()

        stopping: list[asyncio.Future[None]] = []
        kafka.call_soon(lambda: stopping.append(asyncio.ensure_future(stop_and_follow())))
        assert stopped.wait(10)
        assert not runtime._runners


@on_loop
async def test_a_shard_that_cannot_answer_does_not_hide_the_others(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.ask(FindCoordinatorRequest(coordinator_keys=["g"]))
        runtime = node.broker.groups
        await reached(lambda: bool(runtime._runners) and not runtime.is_loading)
        indexes = sorted(runtime._runners)
        runtime._runners[indexes[0]].close("a test")

        answers = await runtime.query_each(lambda shard, now_ms: shard, no_checkpoint)
        assert sorted(answers) == indexes
        failed = answers.pop(indexes[0])
        assert isinstance(failed, KafkaError)
        assert failed.code == ErrorCode.NOT_COORDINATOR
        assert answers
        assert not any(isinstance(answer, KafkaError) for answer in answers.values())


async def runtime_with(*logs: MemoryShardLog) -> CoordinatorRuntime[CountingShard]:
    """Return a runtime with a shard for each log."""
    anything: Any = None
    runtime: CoordinatorRuntime[CountingShard] = CoordinatorRuntime(
        "counts", lambda index: CountingShard(), anything, anything, anything, ManualClock()
    )
    for index, log in enumerate(logs):
        runner = ShardRunner(CountingShard(), log, ManualClock())
        await runner.load()
        runtime._runners[index] = runner
    return runtime


async def no_checkpoint() -> None:
    pass


def never_storing() -> MemoryShardLog:
    log = MemoryShardLog()
    log.storing = asyncio.get_running_loop().create_future()
    return log


@pytest.mark.parametrize(("timeout_s", "took_s"), [(None, WRITE_TIMEOUT_MS / 1000), (2, 2)])
@in_virtual_time
async def test_shards_whose_records_are_not_stored_are_awaited_together(
    timeout_s: float | None, took_s: float
) -> None:
    runtime = await runtime_with(never_storing(), MemoryShardLog(), never_storing(), never_storing())
    loop = asyncio.get_running_loop()
    answers = await runtime.query_each(lambda shard, now_ms: shard.counts, no_checkpoint, timeout_s)
    assert loop.time() == took_s
    errors = {index: answer.code for index, answer in answers.items() if isinstance(answer, KafkaError)}
    assert errors == dict.fromkeys((0, 2, 3), ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert answers[1] == {}
    await turns()


@on_loop
async def test_a_query_that_is_cancelled_leaves_nothing_behind() -> None:
    runtime = await runtime_with(never_storing(), never_storing())
    asking = asyncio.ensure_future(runtime.query_each(lambda shard, now_ms: shard.counts, no_checkpoint))
    await turns()
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    await turns()


@on_loop
async def test_shards_follow_an_internal_topic_that_was_replaced_while_commits_were_missed(
    tmp_path: Path,
) -> None:
    async with running_node(tmp_path) as node:
        await node.ask(FindCoordinatorRequest(coordinator_keys=["g"]))
        runtime, store = node.broker.groups, node.store
        await reached(lambda: bool(runtime._runners) and not runtime.is_loading)
        former_id = node.topic_id(GROUP_TOPIC)
        deletion = decide_delete(node.broker.image, [TopicToDelete(GROUP_TOPIC)])
        store.write(deletion.reads, deletion.changes)
        image = MetadataImage.load(*await store.load())
        topics = [new_topic(GROUP_TOPIC, len(runtime._runners))]
        creation = decide_create(image, topics, RULES, node.broker.rng, validate_only=False)
        store.write(creation.reads, creation.changes)
        store.lose_history()
        await node.broker.metadata.wait_for_revision(store.revision)

        assert node.topic_id(GROUP_TOPIC) != former_id
        await reached(lambda: bool(runtime._runners) and not runtime.is_loading)
        for index, runner in runtime._runners.items():
            assert isinstance(runner.log, ShardLog)
            assert runner.log.partition is node.partition(GROUP_TOPIC, index)
