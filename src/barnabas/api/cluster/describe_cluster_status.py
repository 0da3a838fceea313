"""DescribeClusterStatus (32007), v0: the state of the brokers and of the metadata, as this broker sees them.

An API of Barnabas. A client asks each broker and compares: brokers with the same metadata have the same hash at the
same revision. Where times and rates are not known, and the load if it is not requested, they are -1. The members of
the metadata store are asked if the load is requested.

Errors: CLUSTER_AUTHORIZATION_FAILED.
"""

from barnabas import __version__
from barnabas.api.authorization import require_cluster
from barnabas.api.context import RequestContext
from barnabas.api.registry import serves
from barnabas.base.store_member import StoreMember
from barnabas.wire.acls import AclOperation
from barnabas.wire.barnabas_messages.describe_cluster_status import (
    DescribeClusterStatusRequest,
    DescribeClusterStatusResponse,
    MetadataHash,
    MetadataStoreMember,
    RegisteredBroker,
)
from barnabas.wire.errors import KafkaError


def error_response(
    _request: DescribeClusterStatusRequest, error: KafkaError
) -> DescribeClusterStatusResponse:
    return DescribeClusterStatusResponse(error_code=error.code, error_message=error.message or None)


@serves(DescribeClusterStatusRequest, DescribeClusterStatusResponse, 0, 0, error_response=error_response)
async def handle(
    context: RequestContext, request: DescribeClusterStatusRequest
) -> DescribeClusterStatusResponse:
    await require_cluster(context, AclOperation.DESCRIBE)
    broker = context.broker
    log_bytes = await _log_bytes(context) if request.include_load else -1
    members = await broker.metadata.store_members() if request.include_load else []
    in_rate, out_rate = broker.byte_rates.per_second() if request.include_load else (-1, -1)
    return DescribeClusterStatusResponse(
        broker_id=broker.broker_id,
        software_version=__version__,
        store=broker.metadata.store_kind,
        store_members=[_encoded(member) for member in members],
        revision=broker.image.revision,
        hashes=[MetadataHash(*each) for each in broker.metadata.recent_hashes.items()],
        brokers=_registered_brokers(context),
        log_bytes=log_bytes,
        in_bytes_per_second=in_rate,
        out_bytes_per_second=out_rate,
    )


def _encoded(member: StoreMember) -> MetadataStoreMember:
    return MetadataStoreMember(
        address=member.address,
        name=member.name,
        role=member.role or "",
        version=member.version,
        size_bytes=-1 if member.size_bytes is None else member.size_bytes,
        reason=member.reason,
    )


def _registered_brokers(context: RequestContext) -> list[RegisteredBroker]:
    image, times = context.broker.image, context.broker.broker_times
    return [
        RegisteredBroker(
            registration.broker_id,
            registration.epoch,
            registration.fenced,
            key in image.sessions,
            times.since_ms(registration.broker_id),
        )
        for key, registration in sorted(image.brokers.items(), key=lambda row: row[1].broker_id)
    ]


async def _log_bytes(context: RequestContext) -> int:
    """Return the size of all logs of this broker."""
    return sum([partition.log.size_bytes async for partition in context.each(list(context.broker.replicas))])
