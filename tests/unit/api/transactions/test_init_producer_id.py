from pathlib import Path

import pytest

from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest
from support.loop import on_loop
from support.nodes import running_node


@on_loop
async def test_every_producer_gets_its_own_id_with_epoch_0(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        found = [
            await node.ask(InitProducerIdRequest(transactional_id=None), version) for version in range(7)
        ]
        assert [answer.producer_id for answer in found] == list(range(7))
        assert {(answer.error_code, answer.producer_epoch) for answer in found} == {(0, 0)}


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (InitProducerIdRequest(transactional_id=""), ErrorCode.INVALID_REQUEST),
        (InitProducerIdRequest(transactional_id=None, producer_id=5), ErrorCode.INVALID_REQUEST),
        (InitProducerIdRequest(transactional_id=None, producer_epoch=5), ErrorCode.INVALID_REQUEST),
    ],
)
def test_invalid_requests_are_rejected(
    tmp_path: Path, request_: InitProducerIdRequest, code: ErrorCode
) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            answer = await node.ask(request_)
            assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (code, -1, -1)

    scenario()
