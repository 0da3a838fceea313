import asyncio
import threading
from pathlib import Path

from barnabas.base.ids import TopicPartition
from barnabas.testing import EmbeddedBroker
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from support.loop import on_loop
from support.nodes import running_node
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

        async def no_checkpoint() -> None:
            pass

        answers = await runtime.query_each(lambda shard, now_ms: shard, no_checkpoint)
        assert sorted(answers) == indexes
        failed = answers.pop(indexes[0])
        assert isinstance(failed, KafkaError)
        assert failed.code == ErrorCode.NOT_COORDINATOR
        assert answers
        assert not any(isinstance(answer, KafkaError) for answer in answers.values())
