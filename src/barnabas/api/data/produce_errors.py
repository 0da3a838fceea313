"""The errors of partitions in a Produce response."""

from collections.abc import Iterable

from barnabas.api.context import RequestContext
from barnabas.api.data.leader_hints import LeaderHint, find_leader
from barnabas.api.data.produce_codec import FIRST_VERSION_WITH_LEADER_HINTS
from barnabas.replication.partition import Partition
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.produce import LeaderIdAndEpoch, PartitionProduceResponse

NO_OFFSET = -1

#: Errors without the log start offset, as in Apache Kafka; producers use it for the others.
_WITHOUT_LOG_START = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.CORRUPT_MESSAGE, ErrorCode.KAFKA_STORAGE_ERROR,
}  # fmt: skip


def failed(index: int, error: KafkaError, partition: Partition | None = None) -> PartitionProduceResponse:
    """Return the error of a partition, with its log start offset if Apache Kafka returns it."""
    has_log_start = partition is not None and error.code not in _WITHOUT_LOG_START
    return PartitionProduceResponse(
        index=index,
        error_code=error.code,
        base_offset=NO_OFFSET,
        log_start_offset=partition.log.log_start_offset if partition and has_log_start else NO_OFFSET,
        error_message=error.message or None,
        current_leader=LeaderIdAndEpoch(),
    )


def name_leaders(
    context: RequestContext, refused: Iterable[tuple[str | bytes, PartitionProduceResponse]]
) -> list[LeaderHint]:
    """Add the leaders to the errors of partitions that other brokers lead, and return them."""
    if context.api_version < FIRST_VERSION_WITH_LEADER_HINTS:
        return []
    leaders: list[LeaderHint] = []
    for topic, response in refused:
        if response.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
            leader = find_leader(context, topic, response.index)
            if leader is not None:
                response.current_leader = LeaderIdAndEpoch(*leader)
                leaders.append(leader)
    return leaders
