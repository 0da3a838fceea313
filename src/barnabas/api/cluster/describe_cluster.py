"""DescribeCluster (60), v0-v2: the cluster id, the controller and the brokers.

v1: endpoint type (KIP-919).  v2: fenced brokers on request (KIP-1073).
Errors: MISMATCHED_ENDPOINT_TYPE for a request for controllers, UNSUPPORTED_ENDPOINT_TYPE.
"""

from barnabas.api.authorization import authorized_cluster_operations
from barnabas.api.cluster.brokers import reachable_brokers
from barnabas.api.context import RequestContext
from barnabas.api.registry import serves
from barnabas.security.operations import NOT_ASKED
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

BROKERS, CONTROLLERS = 1, 2


def error_response(request: DescribeClusterRequest, error: KafkaError) -> DescribeClusterResponse:
    return DescribeClusterResponse(error_code=error.code, error_message=error.message)


@serves(DescribeClusterRequest, DescribeClusterResponse, 0, 2, error_response=error_response)
async def handle(context: RequestContext, request: DescribeClusterRequest) -> DescribeClusterResponse:
    if request.endpoint_type == CONTROLLERS:
        message = (
            "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER"
        )
        raise KafkaError(ErrorCode.MISMATCHED_ENDPOINT_TYPE, message)
    if request.endpoint_type != BROKERS:
        message = f"Endpoint type {request.endpoint_type} is unknown: only 1 (brokers) is supported."
        raise KafkaError(ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, message)
    brokers = reachable_brokers(context, include_fenced=request.include_fenced_brokers)
    return DescribeClusterResponse(
        endpoint_type=BROKERS,
        cluster_id=context.broker.cluster_id,
        controller_id=context.broker.controller_id,
        brokers=[
            DescribeClusterBroker(
                broker_id=broker.broker_id,
                host=endpoint.host,
                port=endpoint.port,
                rack=broker.rack,
                is_fenced=broker.fenced,
            )
            for broker, endpoint in brokers
        ],
        cluster_authorized_operations=(
            await authorized_cluster_operations(context)
            if request.include_cluster_authorized_operations
            else NOT_ASKED
        ),
    )
