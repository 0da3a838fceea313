"""DescribeQuorum (55), v0-v2: voters, leader and offsets of the metadata quorum (KIP-595).

v1: times of fetches (KIP-836).  v2: directory ids, endpoints, error messages (KIP-853).
Errors, per partition: UNKNOWN_TOPIC_OR_PARTITION for all, unless only partition 0 of __cluster_metadata is requested;
for the whole request CLUSTER_AUTHORIZATION_FAILED.
"""

from barnabas.api.authorization import require_cluster
from barnabas.api.context import RequestContext
from barnabas.api.registry import serves
from barnabas.base.topic_names import METADATA_TOPIC
from barnabas.metadata.quorum import LEADER_EPOCH, Quorum, quorum_of
from barnabas.wire.acls import AclOperation
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    Listener,
    Node,
    ReplicaState,
    ResponsePartitionData,
    ResponseTopicData,
)


def error_response(request: DescribeQuorumRequest, error: KafkaError) -> DescribeQuorumResponse:
    return DescribeQuorumResponse(error_code=error.code, error_message=error.message or None)


@serves(DescribeQuorumRequest, DescribeQuorumResponse, 0, 2, error_response=error_response)
async def handle(context: RequestContext, request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    """Describe the controller as a quorum of one."""
    await require_cluster(context, AclOperation.DESCRIBE)
    requested = await context.compute(_requested_partitions, request)
    if requested != [(METADATA_TOPIC, [0])]:
        unknown = [
            ResponseTopicData(
                name, [_unknown_partition(name, index) async for index in context.each(indexes)]
            )
            async for name, indexes in context.each(requested)
        ]
        return DescribeQuorumResponse(topics=unknown)
    quorum = quorum_of(context.broker.image, context.broker.controller_id)
    partition = _partition(quorum, context.broker.clock.wall_ms())
    listeners = [Listener(*endpoint) for endpoint in quorum.endpoints]
    return DescribeQuorumResponse(
        topics=[ResponseTopicData(METADATA_TOPIC, [partition])],
        nodes=[Node(quorum.voter.voter_id, listeners)],
    )


def _requested_partitions(request: DescribeQuorumRequest) -> list[tuple[str, list[int]]]:
    return [
        (topic.topic_name, [partition.partition_index for partition in topic.partitions])
        for topic in request.topics
    ]


def _unknown_partition(name: str, index: int) -> ResponsePartitionData:
    message = f"{name}-{index} is not the metadata log: request {METADATA_TOPIC}-0 alone."
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ResponsePartitionData(partition_index=index, error_code=code, error_message=message)


def _partition(quorum: Quorum, now_ms: int) -> ResponsePartitionData:
    """Return the metadata log, whose leader is always caught up."""
    voter = ReplicaState(
        replica_id=quorum.voter.voter_id,
        replica_directory_id=quorum.voter.directory_id,
        log_end_offset=quorum.high_watermark,
        last_fetch_timestamp=now_ms,
        last_caught_up_timestamp=now_ms,
    )
    return ResponsePartitionData(
        leader_id=quorum.voter.voter_id,
        leader_epoch=LEADER_EPOCH,
        high_watermark=quorum.high_watermark,
        current_voters=[voter],
    )
