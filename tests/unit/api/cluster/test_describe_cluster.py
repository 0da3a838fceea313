from pathlib import Path

import pytest

from barnabas.metadata.brokers import decide_register
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.describe_cluster import DescribeClusterRequest
from support.images import broker
from support.loop import on_loop
from support.nodes import running_node


@pytest.mark.parametrize(("include_fenced", "expected"), [(False, [1]), (True, [1, 2])])
def test_brokers_are_described_fenced_ones_on_request(
    tmp_path: Path, include_fenced: bool, expected: list[int]
) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            fenced = broker(2, fenced=True, rack="r")
            await node.broker.metadata.write(lambda image: decide_register(image.brokers, fenced))
            answer = await node.ask(DescribeClusterRequest(include_fenced_brokers=include_fenced))
            assert [found.broker_id for found in answer.brokers] == expected
            assert (answer.cluster_id, answer.controller_id) == (node.broker.cluster_id, 1)
            assert [found.is_fenced for found in answer.brokers] == [False, True][: len(expected)]

    scenario()


@pytest.mark.parametrize(
    ("endpoint_type", "code", "words"),
    [
        (1, 0, ""),
        (
            2,
            ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            "The request was sent to an endpoint of type BROKER, but we wanted",
        ),
        (0, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, "Endpoint type 0 is unknown"),
    ],
)
def test_only_broker_endpoints_are_described(
    tmp_path: Path, endpoint_type: int, code: int, words: str
) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            answer = await node.ask(DescribeClusterRequest(endpoint_type=endpoint_type))
            assert answer.error_code == code
            assert words in (answer.error_message or "")
            assert bool(answer.brokers) is (code == 0)

    scenario()
