"""Ask all brokers of a cluster for its status. A broker that does not respond delays it by seconds, and no more."""

import asyncio
from collections.abc import Collection, Iterable, Mapping

from barnabas import __version__
from barnabas.client.admin.extensions.cluster_status import (
    BrokerReport,
    ClusterStatus,
    NoReport,
    is_unhealthy,
    merge_status,
    parse_status_response,
    reference_broker,
)
from barnabas.client.admin.log_dirs import describe_log_dirs_request, parse_describe_log_dirs_response
from barnabas.client.admin.model import (
    ClusterDescription,
    cluster_from_metadata,
    config_entries,
    describe_configs_resource,
    parse_describe_cluster_response,
)
from barnabas.client.core.cluster import ClusterClient
from barnabas.client.core.connection import BrokerConnection
from barnabas.client.core.errors import BrokerConnectionError, BrokerUnreachable, check
from barnabas.client.core.metadata import TopicInfo
from barnabas.config.config_resource import Resource, ResourceKind
from barnabas.wire.barnabas_messages.describe_cluster_status import DescribeClusterStatusRequest
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.describe_cluster import DescribeClusterRequest
from barnabas.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from barnabas.wire.messages.metadata import MetadataRequest

#: How long a broker may take to report.
REPORT_TIMEOUT_MS = 2_000

_MIN_ISR = "min.insync.replicas"

Reports = Mapping[int, BrokerReport | NoReport]


async def describe_cluster_status(
    cluster: ClusterClient, *, report_timeout_ms: int = REPORT_TIMEOUT_MS
) -> ClusterStatus:
    """Return the status of a cluster, as the broker sees it that has the latest metadata of those that respond.

    :raises KafkaError: CLUSTER_AUTHORIZATION_FAILED, or another error of a broker.
    :raises BrokerConnectionError: If no broker responds.
    """
    reports = await _ask(cluster, cluster.metadata.nodes, report_timeout_ms)
    reference = reference_broker(reports, cluster.metadata.controller_id)
    if reference is None:  # the known brokers may have left
        await cluster.refresh([])
        reports = await _ask(cluster, cluster.metadata.nodes, report_timeout_ms)
        reference = reference_broker(reports, cluster.metadata.controller_id)
    if reference is None:
        reasons = "; ".join(report.reason for report in reports.values() if isinstance(report, NoReport))
        raise BrokerUnreachable(cluster.bootstrap[0], f"no broker responds: {reasons}")
    connection = await cluster.connection(reference)  # kept, because the broker may see that it is fenced
    topics = await _describe_topics(cluster, connection)
    description = await _describe_cluster(cluster, connection)
    nodes = cluster.metadata.nodes.keys()
    again = nodes - reports.keys()
    if any(isinstance(report, NoReport) for report in reports.values()):
        again |= nodes & {reference}  # the others were awaited since its report
    reports = {**reports, **await _ask(cluster, again, report_timeout_ms)}
    affected = [topic.name for topic in topics if any(map(is_unhealthy, topic.partitions))]
    min_isr = await _min_isr(connection, affected)
    return merge_status(description, topics, min_isr, reports)


async def _ask(cluster: ClusterClient, nodes: Collection[int], timeout_ms: int) -> Reports:
    ordered = sorted(nodes)
    reports = await asyncio.gather(*(_report(cluster, node, timeout_ms) for node in ordered))
    return dict(zip(ordered, reports, strict=True))


async def _report(cluster: ClusterClient, node: int, timeout_ms: int) -> BrokerReport | NoReport:
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            return parse_status_response(await cluster.send(DescribeClusterStatusRequest(), node))
    except TimeoutError:
        return NoReport(f"no response within {timeout_ms} ms")
    except BrokerConnectionError as error:
        return NoReport(str(error))
    except KafkaError as error:
        if error.code is ErrorCode.BROKER_NOT_AVAILABLE:  # it has left meanwhile
            return NoReport(error.message)
        if error.code is not ErrorCode.UNSUPPORTED_VERSION:
            raise
    return await _report_of_other_broker(cluster, node, timeout_ms)


async def _report_of_other_broker(
    cluster: ClusterClient, node: int, timeout_ms: int
) -> BrokerReport | NoReport:
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            await cluster.send(ApiVersionsRequest("barnabas", __version__), node)
        return BrokerReport(log_bytes=await _log_bytes(cluster, node, timeout_ms))
    except TimeoutError:
        return NoReport(f"no response within {timeout_ms} ms")
    except BrokerConnectionError as error:
        return NoReport(str(error))


async def _log_bytes(cluster: ClusterClient, node: int, timeout_ms: int) -> int | None:
    """Return the size of a broker's logs; None if it does not permit that, or takes long."""
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            response = await cluster.send(describe_log_dirs_request(None), node)
        log_dirs = parse_describe_log_dirs_response(response)
    except (KafkaError, TimeoutError):
        return None
    return sum(replica.size_bytes for log_dir in log_dirs for replica in log_dir.replicas.values())


async def _describe_cluster(cluster: ClusterClient, connection: BrokerConnection) -> ClusterDescription:
    try:
        response = await connection.send(DescribeClusterRequest(include_fenced_brokers=True))
    except KafkaError as error:
        if error.code is not ErrorCode.UNSUPPORTED_VERSION:
            raise
        return cluster_from_metadata(cluster.metadata)
    check(response.error_code, response.error_message)
    return parse_describe_cluster_response(response)


async def _describe_topics(cluster: ClusterClient, connection: BrokerConnection) -> list[TopicInfo]:
    """Return all topics, and refresh the brokers that the client knows."""
    response = await connection.send(MetadataRequest(topics=None, allow_auto_topic_creation=False))
    cluster.metadata = cluster.metadata.updated(response, complete=True)
    return list(cluster.metadata.topics.values())


async def _min_isr(connection: BrokerConnection, topics: Iterable[str]) -> Mapping[str, int]:
    """Return min.insync.replicas of those topics whose configs may be described."""
    resources = [describe_configs_resource(Resource(ResourceKind.TOPIC, name), [_MIN_ISR]) for name in topics]
    if not resources:
        return {}
    response: DescribeConfigsResponse = await connection.send(DescribeConfigsRequest(resources=resources))
    found: dict[str, int] = {}
    for result in response.results:
        entries = config_entries(result)
        if not isinstance(entries, KafkaError):
            values = {entry.name: entry.value for entry in entries}
            found[result.resource_name] = int(values.get(_MIN_ISR) or 1)
    return found
