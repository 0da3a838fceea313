"""FindCoordinator (10), v0-v6: the broker that coordinates a group or a transactional id.

It leads the partition of the coordinators' topic to which the id belongs; the topic is created when it is first needed.
v1: key type.  v4: many keys at once (KIP-699).  v6: share groups (KIP-932).
Errors, per key: GROUP_AUTHORIZATION_FAILED, TRANSACTIONAL_ID_AUTHORIZATION_FAILED, COORDINATOR_NOT_AVAILABLE while the
partition has no leader, and always for share groups; for all keys INVALID_REQUEST for an unknown key type,
CLUSTER_AUTHORIZATION_FAILED for share groups.
"""

from barnabas.api.authorization import ask_authorizer, require, require_cluster
from barnabas.api.cluster.brokers import reachable_brokers
from barnabas.api.context import RequestContext
from barnabas.api.registry import serves
from barnabas.api.topics.topic_creator import create_missing_topics
from barnabas.base.ids import uuid_from_text
from barnabas.base.topic_names import GROUP_TOPIC, TRANSACTION_TOPIC
from barnabas.coordinator.partition_of import partition_of
from barnabas.wire.acls import AclOperation, ResourceType
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

GROUP, TRANSACTION, SHARE = 0, 1, 2
#: Key type -> the coordinators' topic, and the resource that the principal must be able to describe.
COORDINATED = {
    GROUP: (GROUP_TOPIC, ResourceType.GROUP),
    TRANSACTION: (TRANSACTION_TOPIC, ResourceType.TRANSACTIONAL_ID),
}
NO_BROKER = -1

FIRST_VERSION_WITH_MANY_KEYS = 4
FIRST_VERSION_WITH_SHARE_GROUPS = 6
#: Apache Kafka's message for success in versions 1 to 3.
NO_ERROR_MESSAGE = "NONE"


def error_response(request: FindCoordinatorRequest, error: KafkaError) -> FindCoordinatorResponse:
    return _single_response(
        _error_result(request.key, error), [_error_result(key, error) for key in request.coordinator_keys]
    )


@serves(FindCoordinatorRequest, FindCoordinatorResponse, 0, 6, error_response=error_response)
async def handle(context: RequestContext, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    await _check(context, request.key_type)
    if context.api_version >= FIRST_VERSION_WITH_MANY_KEYS:
        if request.key_type in COORDINATED:
            _, resource_type = COORDINATED[request.key_type]
            await ask_authorizer(context, AclOperation.DESCRIBE, resource_type, request.coordinator_keys)
        keys = context.each(request.coordinator_keys)
        coordinators = [await _find(context, request.key_type, key) async for key in keys]
        return FindCoordinatorResponse(coordinators=coordinators)
    return _single_response(await _find(context, request.key_type, request.key), [])


async def _check(context: RequestContext, key_type: int) -> None:
    """Check the key type.

    :raises KafkaError: INVALID_REQUEST or CLUSTER_AUTHORIZATION_FAILED.
    """
    if key_type == SHARE:  # only brokers look for share coordinators
        if context.api_version < FIRST_VERSION_WITH_SHARE_GROUPS:
            message = (
                f"FindCoordinator version {context.api_version} does not support share groups: use version 6."
            )
            raise KafkaError(ErrorCode.INVALID_REQUEST, message)
        await require_cluster(context, AclOperation.CLUSTER_ACTION)
    elif key_type not in COORDINATED:
        message = f"Key type {key_type} is unknown: it must be 0 (group), 1 (transaction) or 2 (share)."
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)


async def _find(context: RequestContext, key_type: int, key: str) -> Coordinator:
    """Return the coordinator of one key, or the error."""
    try:
        if key_type == SHARE:
            _check_share_key(key)
            raise _not_available("Share groups are not supported.")
        topic_name, resource_type = COORDINATED[key_type]
        await require(context, AclOperation.DESCRIBE, resource_type, key)
        return await _leader(context, topic_name, key)
    except KafkaError as error:
        return _error_result(key, error)


async def _leader(context: RequestContext, topic_name: str, key: str) -> Coordinator:
    """Return the leader of a key's partition.

    :raises KafkaError: COORDINATOR_NOT_AVAILABLE; clients retry.
    """
    if topic_name not in context.broker.image.topics:
        [created] = await create_missing_topics(context, [topic_name])
        if created.error is not None and topic_name not in context.broker.image.topics:
            raise _not_available(f"Topic {topic_name} cannot be created: {created.error.message}")
    image = context.broker.image
    topic = image.topics[topic_name]
    index = partition_of(key, topic.partition_count)
    leader = image.partition(topic, index).leader
    for broker, endpoint in reachable_brokers(context):
        if broker.broker_id == leader:
            return Coordinator(key=key, node_id=leader, host=endpoint.host, port=endpoint.port)
    raise _not_available(f"Partition {topic_name}-{index} has no leader.")


def _check_share_key(key: str) -> None:
    """Check the key of a share group's partition.

    :raises KafkaError: INVALID_REQUEST.
    """
    try:
        _group_id, topic_id, partition = key.split(":")
        uuid_from_text(topic_id)
        int(partition)
    except ValueError as error:
        message = f"'{key}' is not the key of a share group's partition: GROUP:TOPIC_ID:PARTITION."
        raise KafkaError(ErrorCode.INVALID_REQUEST, message) from error


def _not_available(message: str) -> KafkaError:
    return KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, message)


def _error_result(key: str, error: KafkaError) -> Coordinator:
    return Coordinator(
        key=key,
        node_id=NO_BROKER,
        port=NO_BROKER,
        error_code=error.code,
        error_message=error.message or None,
    )


def _single_response(coordinator: Coordinator, coordinators: list[Coordinator]) -> FindCoordinatorResponse:
    """Return the response for clients before v4: the coordinator at the top."""
    return FindCoordinatorResponse(
        error_code=coordinator.error_code,
        error_message=coordinator.error_message if coordinator.error_code else NO_ERROR_MESSAGE,
        node_id=coordinator.node_id,
        host=coordinator.host,
        port=coordinator.port,
        coordinators=coordinators,
    )
