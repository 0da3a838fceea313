"""The partition that a Produce request names, if its client may write to it here."""

from barnabas.api.authorization import require_now
from barnabas.api.context import RequestContext
from barnabas.base.topic_names import INTERNAL_TOPICS, SECURITY_TOPIC
from barnabas.replication.partition import Partition
from barnabas.wire.acls import CLUSTER_NAME, AclOperation, ResourceType
from barnabas.wire.errors import ErrorCode, KafkaError


def find_writable(context: RequestContext, topic: str | bytes, index: int) -> Partition:
    """Return the partition of a topic, by its name or id.

    :raises KafkaError: TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID,
        NOT_LEADER_OR_FOLLOWER; INVALID_TOPIC_EXCEPTION for an internal topic.
    """
    broker = context.broker
    if isinstance(topic, bytes):
        name = broker.image.topic_names.get(topic) if broker.authorizer is not None else None
        if name is not None:  # an unknown id reveals nothing
            _authorize(context, name)
        partition = broker.replicas.partition_by_id(topic, index)
    else:
        if broker.authorizer is not None:
            _authorize(context, topic)
        partition = broker.replicas.partition(topic, index)
    partition.check_leader()
    if partition.topic in INTERNAL_TOPICS and partition.topic != SECURITY_TOPIC:
        message = f"Topic '{partition.topic}' is internal: clients cannot produce to it."
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, message)
    return partition


def _authorize(context: RequestContext, topic: str) -> None:
    """Check the permission to write. To the topic of the security log, the other brokers write."""
    if topic == SECURITY_TOPIC:
        require_now(context, AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME)
    else:
        require_now(context, AclOperation.WRITE, ResourceType.TOPIC, topic)
