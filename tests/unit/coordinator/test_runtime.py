import threading

from barnabas.base.ids import TopicPartition
from barnabas.testing import EmbeddedBroker


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

        kafka.call_soon(lambda: kafka.server.parts.background_tasks.spawn(stop_and_follow()))
        assert stopped.wait(10)
        assert not runtime._runners
