"""Asking the brokers of a cluster for its status; `tests/node/test_cluster_command.py` asks several."""

from typing import Any

import pytest

from barnabas.client.admin.extensions.cluster_status import BrokerLiveness, MetadataState
from barnabas.client.admin.status import describe_cluster_status
from barnabas.client.core.cluster import ClusterClient
from barnabas.client.core.errors import BrokerUnreachable
from barnabas.wire.barnabas_messages.describe_cluster_status import (
    DescribeClusterStatusRequest,
    DescribeClusterStatusResponse,
    MetadataHash,
    RegisteredBroker,
)
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from barnabas.wire.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from barnabas.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from support.loop import on_loop
from unit.client.fake_broker import HANG, FakeBroker


def reported(_: Any) -> DescribeClusterStatusResponse:
    return DescribeClusterStatusResponse(
        broker_id=1,
        software_version="1.0",
        store="sqlite",
        revision=7,
        hashes=[MetadataHash(7, b"seven")],
        brokers=[RegisteredBroker(1, 3, False, True, 5)],
        log_bytes=9,
    )


@on_loop
async def test_a_broker_reports_its_own_view() -> None:
    broker = FakeBroker()
    broker.create("t", 2)
    broker.serve(DescribeClusterStatusRequest, reported)
    async with broker, ClusterClient(broker.bootstrap) as client:
        status = await describe_cluster_status(client)
        [one] = status.brokers
        assert (one.state, one.epoch, one.since_ms, one.log_bytes) == (BrokerLiveness.LIVE, 3, 5, 9)
        assert (one.metadata_state, one.leaders_count, one.replicas_count) == (MetadataState.SAME, 2, 2)
        assert (status.store, status.revision, status.partitions_count) == ("sqlite", 7, 2)
        assert status.problems == []


@on_loop
async def test_a_broker_without_the_api_shows_the_sizes_of_its_log_directories() -> None:
    partitions = [DescribeLogDirsPartition(0, 10), DescribeLogDirsPartition(1, 5)]
    result = DescribeLogDirsResult(0, "/x", [DescribeLogDirsTopic("t", partitions)])
    broker = FakeBroker()
    broker.serve(DescribeLogDirsRequest, lambda _: DescribeLogDirsResponse(results=[result]))
    async with broker, ClusterClient(broker.bootstrap) as client:
        [one] = (await describe_cluster_status(client)).brokers
        assert (one.state, one.software_version, one.log_bytes) == (BrokerLiveness.LIVE, None, 15)


@on_loop
async def test_without_permission_the_size_of_logs_is_not_known() -> None:
    refused = DescribeLogDirsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    broker = FakeBroker()
    broker.serve(DescribeLogDirsRequest, lambda _: refused)
    async with broker, ClusterClient(broker.bootstrap) as client:
        [one] = (await describe_cluster_status(client)).brokers
        assert one.log_bytes is None


@on_loop
async def test_a_slow_log_directory_is_not_a_broker_that_does_not_respond() -> None:
    broker = FakeBroker()
    broker.serve(DescribeLogDirsRequest, lambda _: HANG)
    async with broker, ClusterClient(broker.bootstrap) as client:
        [one] = (await describe_cluster_status(client, report_timeout_ms=100)).brokers
        assert (one.state, one.log_bytes) == (BrokerLiveness.LIVE, None)


@on_loop
async def test_a_refused_report_is_an_error() -> None:
    refused = DescribeClusterStatusResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    broker = FakeBroker()
    broker.serve(DescribeClusterStatusRequest, lambda _: refused)
    async with broker, ClusterClient(broker.bootstrap) as client:
        with pytest.raises(KafkaError, match="CLUSTER_AUTHORIZATION_FAILED"):
            await describe_cluster_status(client)


@on_loop
async def test_it_is_an_error_if_no_broker_reports() -> None:
    broker = FakeBroker()
    broker.serve(DescribeClusterStatusRequest, lambda _: HANG)
    async with broker, ClusterClient(broker.bootstrap) as client:
        with pytest.raises(BrokerUnreachable, match="no broker responds: no response within 10 ms"):
            await describe_cluster_status(client, report_timeout_ms=10)


@on_loop
async def test_a_broker_that_sees_itself_as_fenced_is_described_by_itself() -> None:
    broker = FakeBroker()
    broker.create("t")
    broker.serve(DescribeClusterStatusRequest, reported)
    async with broker, ClusterClient(broker.bootstrap) as client:
        node = DescribeClusterBroker(1, "127.0.0.1", broker.port, None, is_fenced=True)
        partition = MetadataResponsePartition(
            partition_index=0, leader_id=-1, replica_nodes=[1], isr_nodes=[1]
        )
        topic = MetadataResponseTopic(name="t", partitions=[partition])
        broker.answer(MetadataRequest, lambda _: MetadataResponse(topics=[topic]))
        broker.answer(DescribeClusterRequest, lambda _: DescribeClusterResponse(brokers=[node]))
        status = await describe_cluster_status(client)
        assert status.problems == ["broker 1 is fenced", "1 partition is offline"]
