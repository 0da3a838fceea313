"""The topic of marks and decisions. It never has records, so that tools see no lag of the groups of a sink."""

from barnabas.client.admin.admin import Admin
from barnabas.client.admin.model import NewTopic
from barnabas.client.core.cluster import ClusterClient
from barnabas.wire.errors import ErrorCode, KafkaError

TOPIC = "__barnabas_sinks"

#: Partitions of the topic; the parts of a decision need one each, which suffices for some thousand tasks.
PARTITIONS_COUNT = 8

#: Errors after which the topic is not used: the client may not see, create or read it, or a policy forbids it.
REFUSED = frozenset(
    {
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.POLICY_VIOLATION,
        ErrorCode.INVALID_REPLICATION_FACTOR,
        ErrorCode.UNSUPPORTED_VERSION,
    }
)

_KNOWN_WITHIN_MS = 10_000


async def bookkeeping_topic(cluster: ClusterClient) -> str | None:
    """Return the topic, created if it does not exist; None if this client may not use it."""
    if cluster.cached_topic(TOPIC) is not None:
        return TOPIC
    found = (await Admin(cluster).describe_topics([TOPIC]))[TOPIC]
    if isinstance(found, KafkaError):
        if found.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return await _created(cluster)
        if found.code not in REFUSED:
            raise found
        return None
    return TOPIC


async def _created(cluster: ClusterClient) -> str | None:
    new = NewTopic(TOPIC, PARTITIONS_COUNT, configs={"cleanup.policy": "compact"})
    created = (await Admin(cluster).create_topics([new]))[TOPIC]
    if isinstance(created, KafkaError) and created.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
        if created.code in REFUSED:
            return None
        raise created
    await cluster.retrying(lambda: cluster.topic(TOPIC), _KNOWN_WITHIN_MS)
    return TOPIC
