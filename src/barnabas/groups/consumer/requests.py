"""Validation of heartbeats, before the group is looked up."""

from collections.abc import Collection

from barnabas.groups.consumer.assignors.group_spec import Partitions
from barnabas.groups.consumer.member import JOIN_EPOCH, LEAVE_EPOCH, STATIC_LEAVE_EPOCH
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions

#: The first version in which members choose their ids (KIP-1082).
FIRST_VERSION_WITH_OWN_MEMBER_ID = 1


def check_heartbeat(request: ConsumerGroupHeartbeatRequest, version: int, assignors: Collection[str]) -> None:
    """Check the fields of a heartbeat.

    :raises KafkaError: INVALID_REQUEST, UNSUPPORTED_ASSIGNOR.
    """
    epoch = request.member_epoch
    if version >= FIRST_VERSION_WITH_OWN_MEMBER_ID or epoch > JOIN_EPOCH or epoch == LEAVE_EPOCH:
        _check_not_empty("MemberId", request.member_id)
    _check_not_empty("GroupId", request.group_id)
    _check_not_empty("InstanceId", request.instance_id)
    _check_not_empty("RackId", request.rack_id)
    if epoch == JOIN_EPOCH:
        _check_join(request)
    elif epoch == STATIC_LEAVE_EPOCH and request.instance_id is None:
        raise _invalid("InstanceId can't be null.")
    elif epoch < STATIC_LEAVE_EPOCH:
        raise _invalid(f"MemberEpoch is invalid: {epoch}.")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        message = f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: "
        raise KafkaError(ErrorCode.UNSUPPORTED_ASSIGNOR, f"{message}{', '.join(assignors)}.")


def _check_join(request: ConsumerGroupHeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == -1:
        raise _invalid("RebalanceTimeoutMs must be provided in first request.")
    if request.topic_partitions is None or request.topic_partitions:
        raise _invalid("TopicPartitions must be empty when (re-)joining.")
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        message = "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
        raise _invalid(message)


def _check_not_empty(field: str, value: str | None) -> None:
    if value is not None and not value.strip():
        raise _invalid(f"{field} can't be empty.")


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)


def is_full(request: ConsumerGroupHeartbeatRequest) -> bool:
    """Return whether a heartbeat has all fields, as after an error: the response then has them, too."""
    has_subscription = not (request.subscribed_topic_names is None and request.subscribed_topic_regex is None)
    return request.rebalance_timeout_ms != -1 and has_subscription and request.topic_partitions is not None


def owned_partitions(topics: list[TopicPartitions] | None) -> Partitions | None:
    """Return the owned partitions; None if the request does not have them because they have not changed."""
    if topics is None:
        return None
    owned: dict[bytes, frozenset[int]] = {}
    for topic in topics:
        owned[topic.topic_id] = owned.get(topic.topic_id, frozenset()) | frozenset(topic.partitions)
    return owned
