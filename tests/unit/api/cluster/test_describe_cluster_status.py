from pathlib import Path

from barnabas import __version__
from barnabas.metadata.brokers import SESSIONS, decide_register
from barnabas.metadata.decision import Decision
from barnabas.wire.barnabas_messages.describe_cluster_status import (
    DescribeClusterStatusRequest,
    RegisteredBroker,
)
from support.images import broker, new_topic
from support.loop import on_loop
from support.nodes import running_node


@on_loop
async def test_a_broker_reports_itself_its_metadata_and_its_load(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t"))
        node.parts.statistics.in_bytes += 3_000
        node.clock.advance(1_500)
        response = await node.ask(DescribeClusterStatusRequest())
        assert (response.broker_id, response.software_version, response.store) == (1, __version__, "memory")
        assert response.revision == node.broker.image.revision
        hashes = {each.revision: each.hash for each in response.hashes}
        assert hashes == node.broker.metadata.recent_hashes
        assert max(hashes) == response.revision
        assert (response.log_bytes, response.in_bytes_per_second) == (0, 2_000)


@on_loop
async def test_a_broker_reports_the_registrations_that_it_knows(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        metadata = node.broker.metadata
        await metadata.write(lambda image: decide_register(image.brokers, broker(2, fenced=True)))
        await metadata.write(lambda _: Decision(None, (SESSIONS.put("1", 0),)))
        response = await node.ask(DescribeClusterStatusRequest())
        now_ms = node.clock.wall_ms()
        assert response.brokers == [
            RegisteredBroker(1, 0, False, True, now_ms),
            RegisteredBroker(2, 0, True, False, now_ms),
        ]


@on_loop
async def test_the_load_is_left_out_if_it_is_not_requested(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        node.clock.advance(1_500)
        response = await node.ask(DescribeClusterStatusRequest(include_load=False))
        load = (response.log_bytes, response.in_bytes_per_second, response.out_bytes_per_second)
        assert load == (-1, -1, -1)
