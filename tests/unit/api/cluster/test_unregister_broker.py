from pathlib import Path

from barnabas.metadata.brokers import decide_register
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.unregister_broker import UnregisterBrokerRequest
from support.images import broker
from support.loop import on_loop
from support.nodes import running_node


@on_loop
async def test_a_dead_broker_is_unregistered(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.broker.metadata.write(lambda image: decide_register(image.brokers, broker(2, fenced=True)))
        response = await node.ask(UnregisterBrokerRequest(2))
        assert (response.error_code, response.error_message) == (ErrorCode.NONE, "")
        again = await node.ask(UnregisterBrokerRequest(2))
        assert ErrorCode(again.error_code) is ErrorCode.BROKER_ID_NOT_REGISTERED
        assert "2" in again.error_message
        assert set(node.broker.image.brokers) == {"1"}


@on_loop
async def test_a_broker_does_not_unregister_itself(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        response = await node.ask(UnregisterBrokerRequest(1))
        assert ErrorCode(response.error_code) is ErrorCode.INVALID_REQUEST
        assert set(node.broker.image.brokers) == {"1"}
