import json
from pathlib import Path
from typing import Any

import pytest

from barnabas.base.topic_names import SECURITY_TOPIC
from barnabas.client.core.address import BrokerAddress
from barnabas.client.core.errors import BrokerUnreachable
from barnabas.config.config_resource import Resource, ResourceKind
from barnabas.metadata.brokers import decide_register
from barnabas.server import security_log_publisher as module
from barnabas.server.security_log_publisher import BATCH_COUNT_MAX, WAITING_COUNT_MAX, SecurityLogPublisher
from barnabas.wire.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from barnabas.wire.records.record import decode_all
from support.images import broker, manually_assigned
from support.loop import on_loop, turns
from support.nodes import RunningNode, running_node


class OtherBroker:
    """The client of a leader that responds with the next of `codes`, or cannot be reached."""

    def __init__(self, *codes: int | None) -> None:
        self._codes = list(codes)
        self.events: list[str] = []

    async def send(self, broker_id: int, request: ProduceRequest) -> ProduceResponse:
        code = self._codes.pop(0) if self._codes else 0
        if code is None:
            raise BrokerUnreachable(BrokerAddress("b", 1), "not there")
        [topic] = request.topic_data
        [data] = topic.partition_data
        assert (broker_id, topic.name, request.acks) == (2, SECURITY_TOPIC, -1)
        if not code:
            self.events += [
                json.loads(record.value or b"")["event"] for record in decode_all(data.records or b"")
            ]
        partition = PartitionProduceResponse(index=0, error_code=code)
        return ProduceResponse(responses=[TopicProduceResponse(partition_responses=[partition])])


def publisher_of(running: RunningNode, client: object) -> SecurityLogPublisher:
    publisher = SecurityLogPublisher(running.broker, client)  # type: ignore[arg-type]
    publisher.start()
    return publisher


def write(running: RunningNode, *events: str) -> None:
    for event in events:
        running.broker.security_log.on_line(event, {"principal": "User:alice"})


async def published(
    running: RunningNode, publisher: SecurityLogPublisher, count: int
) -> list[dict[str, Any]]:
    while publisher.published_count < count:
        await turns(1)
    log = running.broker.replicas.partition(SECURITY_TOPIC, 0).log
    data = log.read(0, 1 << 20, log.log_end_offset).data
    return [json.loads(record.value or b"") for record in decode_all(data)]


@on_loop
async def test_lines_are_appended_in_their_order_to_a_topic_that_is_created(tmp_path: Path) -> None:
    async with running_node(tmp_path) as running:
        publisher = publisher_of(running, OtherBroker())
        write(running, *"abc")
        lines = await published(running, publisher, 3)
        assert [line["event"] for line in lines] == ["a", "b", "c"]
        assert lines[0] == {
            "time": running.broker.clock.wall_ms(),
            "broker": 1,
            "event": "a",
            "principal": "User:alice",
        }
        configs = running.broker.image.configs(Resource(ResourceKind.TOPIC, SECURITY_TOPIC))
        assert configs["retention.bytes"] == str(1 << 30)
        await publisher.stop()


@on_loop
async def test_the_oldest_lines_are_lost_if_too_many_wait(tmp_path: Path) -> None:
    async with running_node(tmp_path) as running:
        publisher = publisher_of(running, OtherBroker())
        write(running, *map(str, range(WAITING_COUNT_MAX + 5)))
        assert publisher.statistics()["lost_count"] == 5
        lines = await published(running, publisher, WAITING_COUNT_MAX)
        assert [line["event"] for line in lines][:BATCH_COUNT_MAX] == [
            str(5 + at) for at in range(BATCH_COUNT_MAX)
        ]
        await publisher.stop()


@on_loop
async def test_lines_are_sent_to_the_leader_until_it_has_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RETRY_S", 0)
    async with running_node(tmp_path) as running:
        await running.broker.metadata.write(lambda image: decide_register(image.brokers, broker(2)))
        await running.create(manually_assigned(SECURITY_TOPIC, [2]))
        not_leader = 6
        leader = OtherBroker(None, not_leader)
        publisher = publisher_of(running, leader)
        write(running, *"ab")
        while publisher.published_count < 2:
            await turns(1)
        assert leader.events == ["a", "b"]
        await publisher.stop()


@on_loop
async def test_a_stop_publishes_what_is_left(tmp_path: Path) -> None:
    async with running_node(tmp_path) as running:
        publisher = publisher_of(running, OtherBroker())
        write(running, "last")
        await publisher.stop()
        assert publisher.published_count == 1
