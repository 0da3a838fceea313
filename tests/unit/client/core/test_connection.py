import asyncio
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from barnabas.client.core.address import BrokerAddress
from barnabas.client.core.connection import BrokerConnection
from barnabas.client.core.errors import BrokerUnreachable, ConnectionLost, NotKafka, RequestTimedOut
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.describe_acls import DescribeAclsRequest
from barnabas.wire.messages.describe_cluster import DescribeClusterRequest
from barnabas.wire.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.wire.messages.produce import ProduceRequest
from barnabas.wire.schema import Versions
from unit.client.fake_broker import HANG, HANG_UP, FakeBroker


@asynccontextmanager
async def connected(broker: FakeBroker, **options: Any) -> AsyncIterator[BrokerConnection]:
    connection = await BrokerConnection.open(BrokerAddress("127.0.0.1", broker.port), **options)
    try:
        yield connection
    finally:
        await connection.close()


@asynccontextmanager
async def server(answer: Callable[[bytes], bytes]) -> AsyncIterator[BrokerAddress]:
    """Run a server that is not Kafka: it answers the first bytes and closes."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(await reader.read(1024)))
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as listening:
        yield BrokerAddress("127.0.0.1", listening.sockets[0].getsockname()[1])


def test_versions_are_negotiated_and_the_highest_common_one_is_used() -> None:
    async def scenario() -> None:
        async with FakeBroker({MetadataRequest: Versions(0, 5)}) as broker, connected(broker) as connection:
            assert connection.version_of(MetadataRequest) == 5
            assert connection.version_of(MetadataRequest, 3) == 3
            assert connection.version_of(ProduceRequest) == ProduceRequest.VERSIONS.last
            response = await connection.send(MetadataRequest(topics=[]))
            assert isinstance(response, MetadataResponse)
            assert response.cluster_id == "fake"

    asyncio.run(scenario())


@pytest.mark.parametrize("last", [0, 2, 3])
def test_an_older_broker_is_sent_api_versions_in_its_own_version(last: int) -> None:
    async def scenario() -> None:
        async with (
            FakeBroker({ApiVersionsRequest: Versions(0, last)}) as broker,
            connected(broker) as connection,
        ):
            assert connection.version_of(ApiVersionsRequest) == last
            assert connection.version_of(MetadataRequest) == MetadataRequest.VERSIONS.last

    asyncio.run(scenario())


def test_an_api_without_a_common_version_is_unsupported_version() -> None:
    async def scenario() -> None:
        async with FakeBroker() as broker, connected(broker) as connection:
            with pytest.raises(KafkaError, match="does not serve DescribeAcls") as raised:
                await connection.send(DescribeAclsRequest())
            assert raised.value.code is ErrorCode.UNSUPPORTED_VERSION
            connection.versions = {60: Versions(99, 100)}
            with pytest.raises(KafkaError, match=r"supports 99-100, this client 0-2"):
                await connection.send(DescribeClusterRequest())

    asyncio.run(scenario())


def test_requests_are_pipelined_and_matched_to_responses() -> None:
    async def scenario() -> None:
        async with FakeBroker() as broker, connected(broker) as connection:
            for name in ("a", "b", "c"):
                broker.create(name)
            requests = [
                MetadataRequest(topics=None),
                MetadataRequest(topics=[]),
                MetadataRequest(topics=None),
            ]
            answers = await asyncio.gather(*(connection.send(request) for request in requests))
            assert [len(answer.topics) for answer in answers] == [3, 0, 3]
            assert broker.connections == 1

    asyncio.run(scenario())


def test_a_cancelled_request_leaves_the_connection_usable() -> None:
    async def scenario() -> None:
        async with FakeBroker() as broker, connected(broker) as connection:
            waiting = asyncio.ensure_future(connection.send(MetadataRequest(topics=[])))
            await asyncio.sleep(0)
            waiting.cancel()
            assert (await connection.send(MetadataRequest(topics=[]))).cluster_id == "fake"
            assert connection.is_open

    asyncio.run(scenario())


def test_a_request_timeout_names_the_broker_and_closes_the_connection() -> None:
    async def scenario() -> None:
        async with FakeBroker() as broker, connected(broker, request_timeout_ms=60_000) as connection:
            broker.answer(MetadataRequest, lambda _: HANG, lambda _: HANG)
            other = asyncio.ensure_future(connection.send(MetadataRequest(topics=[])))
            await asyncio.sleep(0)
            with pytest.raises(RequestTimedOut, match=f"{broker.port} did not answer Metadata within 20 ms"):
                await connection.send(MetadataRequest(topics=[]), timeout_ms=20)
            with pytest.raises(RequestTimedOut):
                await other
            assert not connection.is_open
            with pytest.raises(RequestTimedOut):
                await connection.send(MetadataRequest(topics=[]))

    asyncio.run(scenario())


def test_pending_requests_fail_when_the_broker_closes() -> None:
    async def scenario() -> None:
        async with FakeBroker() as broker, connected(broker) as connection:
            broker.answer(MetadataRequest, lambda _: HANG_UP)
            assert connection.failed_s is None
            with pytest.raises(ConnectionLost, match="the broker closed it"):
                await connection.send(MetadataRequest(topics=[]))
            assert connection.failed_s is not None
            assert connection.failed_s <= asyncio.get_running_loop().time()

    asyncio.run(scenario())


def test_pending_requests_fail_on_close() -> None:
    async def scenario() -> None:
        async with FakeBroker() as broker:
            async with connected(broker) as connection:
                broker.answer(MetadataRequest, lambda _: HANG)
                waiting = asyncio.ensure_future(connection.send(MetadataRequest(topics=[])))
                await asyncio.sleep(0)
            with pytest.raises(ConnectionLost, match="this client closed it"):
                await waiting

    asyncio.run(scenario())


def test_a_refused_connection_is_reported_with_address_and_reason() -> None:
    async def scenario() -> None:
        async with FakeBroker() as broker:
            address = BrokerAddress("127.0.0.1", broker.port)
        with pytest.raises(
            BrokerUnreachable, match=f"no connection to a broker at {address}: Connection refused"
        ):
            await BrokerConnection.open(address)

    asyncio.run(scenario())


def test_a_listener_that_closes_at_once_may_expect_tls() -> None:
    async def scenario() -> None:
        async with server(lambda _: b"") as address:
            with pytest.raises(ConnectionLost, match="is it a Kafka listener without TLS"):
                await BrokerConnection.open(address)

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        struct.pack(">i", -1),
        struct.pack(">ii", 4, 99),
        struct.pack(">iih", 6, 0, 0),
    ],
)
def test_bytes_that_are_not_kafka_are_reported_as_such(answer: bytes) -> None:
    async def scenario() -> None:
        async with server(lambda _: answer) as address:
            with pytest.raises(NotKafka, match="does not speak Kafka's protocol"):
                await BrokerConnection.open(address)

    asyncio.run(scenario())
