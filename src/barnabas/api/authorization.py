"""Authorization of requests: the checks that handlers make.

Without an authorizer everything is allowed, as in Apache Kafka.
"""

from collections.abc import Iterable

from barnabas.api.context import RequestContext
from barnabas.security.operations import ALL_OPERATIONS, OPERATIONS, bit_field, needs_cluster_alter
from barnabas.wire.acls import CLUSTER_NAME, AclOperation, ResourceType
from barnabas.wire.errors import ErrorCode, KafkaError

_AUTHORIZATION_ERRORS = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ResourceType.DELEGATION_TOKEN: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    ResourceType.USER: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
}


def allowed(context: RequestContext, operation: AclOperation, resource_type: ResourceType, name: str) -> bool:
    """Return whether the principal has the operation on the resource."""
    authorizer = context.broker.authorizer
    connection = context.connection
    return authorizer is None or authorizer.allows(
        connection.principal, connection.client_host, operation, resource_type, name
    )


def allowed_cluster(context: RequestContext, operation: AclOperation) -> bool:
    """Return whether the principal has the operation on the cluster."""
    return allowed(context, operation, ResourceType.CLUSTER, CLUSTER_NAME)


def allowed_any(context: RequestContext, operation: AclOperation, resource_type: ResourceType) -> bool:
    """Return whether the principal has the operation on any resource of the type, existing or not (KIP-679)."""
    authorizer = context.broker.authorizer
    connection = context.connection
    return authorizer is None or authorizer.allows_any(
        connection.principal, connection.client_host, operation, resource_type
    )


def filter_allowed(
    context: RequestContext, operation: AclOperation, resource_type: ResourceType, names: Iterable[str]
) -> set[str]:
    """Return those of `names` on which the principal has the operation."""
    return {name for name in names if allowed(context, operation, resource_type, name)}


async def filter_allowed_in_turns(
    context: RequestContext, operation: AclOperation, resource_type: ResourceType, names: Iterable[str]
) -> set[str]:
    """Call `filter_allowed` for many names."""
    if context.broker.authorizer is None:
        return set(names)
    return {name async for name in context.each(names) if allowed(context, operation, resource_type, name)}


async def authorization_errors_in_turns(
    context: RequestContext, operation: AclOperation, resource_type: ResourceType, names: Iterable[str]
) -> dict[str, KafkaError]:
    """Call `authorization_errors` for many names."""
    if context.broker.authorizer is None:
        return {}
    return {
        name: denied(context, operation, resource_type, name)
        async for name in context.each(names)
        if not allowed(context, operation, resource_type, name)
    }


async def topic_refusals_in_turns(
    context: RequestContext, operation: AclOperation, names: Iterable[str]
) -> dict[str, KafkaError]:
    """Call `topic_refusals` for many names."""
    refused: dict[str, KafkaError] = {}
    if context.broker.authorizer is not None:
        async for name in context.each(names):
            refused |= topic_refusals(context, operation, [name])
    return refused


def authorization_errors(
    context: RequestContext, operation: AclOperation, resource_type: ResourceType, names: Iterable[str]
) -> dict[str, KafkaError]:
    """Return those of `names` on which the principal lacks the operation, with their errors."""
    if context.broker.authorizer is None:
        return {}
    return {
        name: denied(context, operation, resource_type, name)
        for name in names
        if not allowed(context, operation, resource_type, name)
    }


def topic_refusals(
    context: RequestContext, operation: AclOperation, names: Iterable[str]
) -> dict[str, KafkaError]:
    """Return those of `names` for which the principal has the operation neither on the topic nor on the cluster."""
    if not allowed_cluster(context, operation):
        return authorization_errors(context, operation, ResourceType.TOPIC, names)
    if allowed_cluster(context, AclOperation.ALTER):
        return {}
    return {
        name: denied(context, operation, ResourceType.TOPIC, name)
        for name in names
        if needs_cluster_alter(operation, ResourceType.TOPIC, name)
    }


def denied(
    context: RequestContext, operation: AclOperation, resource_type: ResourceType, name: str
) -> KafkaError:
    """Log that the principal lacks a permission; return the error for the response."""
    connection = context.connection
    context.broker.security_log.denied(
        connection.principal, connection.client_host, operation, resource_type, name, context.api.name
    )
    return authorization_error(operation, resource_type, name)


def authorization_error(operation: AclOperation, resource_type: ResourceType, name: str) -> KafkaError:
    """Return the error for a principal that lacks the permission."""
    what = "the cluster" if resource_type is ResourceType.CLUSTER else f"{_words(resource_type)} '{name}'"
    if needs_cluster_alter(operation, resource_type, name):
        what += f" and {AclOperation.ALTER.name} on the cluster"
    return KafkaError(
        _AUTHORIZATION_ERRORS[resource_type], f"Not authorized: {operation.name} on {what} is needed."
    )


def require(context: RequestContext, operation: AclOperation, resource_type: ResourceType, name: str) -> None:
    """Check that the principal has the operation on the resource.

    :raises KafkaError: TOPIC_, GROUP_, CLUSTER_, TRANSACTIONAL_ID_ or DELEGATION_TOKEN_AUTHORIZATION_FAILED.
    """
    if not allowed(context, operation, resource_type, name):
        raise denied(context, operation, resource_type, name)


def require_cluster(context: RequestContext, operation: AclOperation) -> None:
    """Check that the principal has the operation on the cluster.

    :raises KafkaError: CLUSTER_AUTHORIZATION_FAILED.
    """
    require(context, operation, ResourceType.CLUSTER, CLUSTER_NAME)


def authorized_operations(context: RequestContext, resource_type: ResourceType, name: str) -> int:
    """Return the operations that the principal has on the resource, as a bit field (KIP-430)."""
    if context.broker.authorizer is None:
        return ALL_OPERATIONS[resource_type]
    operations = OPERATIONS[resource_type]
    return bit_field(
        operation for operation in operations if allowed(context, operation, resource_type, name)
    )


def authorized_cluster_operations(context: RequestContext) -> int:
    """Return the operations that the principal has on the cluster, as a bit field; 0 without DESCRIBE."""
    if not allowed_cluster(context, AclOperation.DESCRIBE):
        return 0
    return authorized_operations(context, ResourceType.CLUSTER, CLUSTER_NAME)


def _words(resource_type: ResourceType) -> str:
    return resource_type.name.lower().replace("_", " ")
