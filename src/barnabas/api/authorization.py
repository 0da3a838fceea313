"""Authorization of requests: the checks that handlers make.

Without an authorizer everything is allowed, as in Apache Kafka. A check waits only if the authorizer is a user's class
that has to be asked. Code that cannot wait uses `allowed_now` or `require_now`, after `ask_authorizer`.
"""

from collections.abc import Collection, Iterable

from barnabas.api.context import RequestContext
from barnabas.security.authorizer import Action
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


#: Actions in one question to a user's authorizer.
ACTIONS_AT_ONCE_COUNT = 1_000


def allowed_now(
    context: RequestContext, operation: AclOperation, resource_type: ResourceType, name: str
) -> bool | None:
    """Return whether the principal has the operation on the resource; None if the authorizer must be asked first.

    A decision holds for the rest of the request. After `ask_authorizer` it is not None.
    """
    authorizer = context.broker.authorizer
    if authorizer is None:
        return True
    connection = context.connection
    if not authorizer.asks:
        return authorizer.known(connection.principal, connection.client_host, operation, resource_type, name)
    action = operation, resource_type, name
    decision = context.decisions.get(action)
    if decision is None:
        decision = authorizer.known(connection.principal, connection.client_host, *action)
        if decision is not None:  # it may expire before the request ends
            context.decisions[action] = decision
    return decision


async def ask_authorizer(
    context: RequestContext, operation: AclOperation, resource_type: ResourceType, names: Iterable[str]
) -> None:
    """Ask the authorizer for what is not known yet. The decisions hold for the rest of the request."""
    await _ask(context, ((operation, resource_type, name) for name in names))


async def _ask(context: RequestContext, actions: Iterable[Action]) -> None:
    authorizer = context.broker.authorizer
    if authorizer is None or not authorizer.asks:
        return
    unknown = [
        action
        async for action in context.each(dict.fromkeys(actions))
        if allowed_now(context, *action) is None
    ]
    connection = context.connection
    for at in range(0, len(unknown), ACTIONS_AT_ONCE_COUNT):
        part = unknown[at : at + ACTIONS_AT_ONCE_COUNT]
        decisions = await authorizer.ask(connection.principal, connection.client_host, part)
        context.decisions.update(zip(part, decisions, strict=True))


def must_ask(
    context: RequestContext, operation: AclOperation, resource_type: ResourceType, names: Iterable[str]
) -> bool:
    """Return whether `ask_authorizer` would wait."""
    authorizer = context.broker.authorizer
    return (
        authorizer is not None
        and authorizer.asks
        and any(allowed_now(context, operation, resource_type, name) is None for name in names)
    )


async def allowed(
    context: RequestContext, operation: AclOperation, resource_type: ResourceType, name: str
) -> bool:
    """Return whether the principal has the operation on the resource."""
    known = allowed_now(context, operation, resource_type, name)
    if known is None:
        await _ask(context, ((operation, resource_type, name),))
        known = allowed_now(context, operation, resource_type, name)
    return bool(known)


async def allowed_cluster(context: RequestContext, operation: AclOperation) -> bool:
    """Return whether the principal has the operation on the cluster."""
    return await allowed(context, operation, ResourceType.CLUSTER, CLUSTER_NAME)


async def allowed_any(context: RequestContext, operation: AclOperation, resource_type: ResourceType) -> bool:
    """Return whether the principal has the operation on any resource of the type, existing or not (KIP-679)."""
    authorizer = context.broker.authorizer
    connection = context.connection
    return authorizer is None or await authorizer.allows_any(
        connection.principal, connection.client_host, operation, resource_type
    )


async def filter_allowed(
    context: RequestContext, operation: AclOperation, resource_type: ResourceType, names: Collection[str]
) -> set[str]:
    """Return those of `names` on which the principal has the operation."""
    if context.broker.authorizer is None:
        return set(names)
    await ask_authorizer(context, operation, resource_type, names)
    return {
        name async for name in context.each(names) if allowed_now(context, operation, resource_type, name)
    }


async def authorization_errors(
    context: RequestContext, operation: AclOperation, resource_type: ResourceType, names: Collection[str]
) -> dict[str, KafkaError]:
    """Return those of `names` on which the principal lacks the operation, with their errors."""
    if context.broker.authorizer is None:
        return {}
    await ask_authorizer(context, operation, resource_type, names)
    return {
        name: log_denial(context, operation, resource_type, name)
        async for name in context.each(names)
        if not allowed_now(context, operation, resource_type, name)
    }


async def topic_authorization_errors(
    context: RequestContext, operation: AclOperation, names: Collection[str]
) -> dict[str, KafkaError]:
    """Return those of `names` for which the principal has the operation neither on the topic nor on the cluster."""
    if context.broker.authorizer is None:
        return {}
    if not await allowed_cluster(context, operation):
        return await authorization_errors(context, operation, ResourceType.TOPIC, names)
    if await allowed_cluster(context, AclOperation.ALTER):
        return {}
    return {
        name: log_denial(context, operation, ResourceType.TOPIC, name)
        async for name in context.each(names)
        if needs_cluster_alter(operation, ResourceType.TOPIC, name)
    }


def log_denial(
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


async def require(
    context: RequestContext, operation: AclOperation, resource_type: ResourceType, name: str
) -> None:
    """Check that the principal has the operation on the resource.

    :raises KafkaError: TOPIC_, GROUP_, CLUSTER_, TRANSACTIONAL_ID_ or DELEGATION_TOKEN_AUTHORIZATION_FAILED.
    """
    if not await allowed(context, operation, resource_type, name):
        raise log_denial(context, operation, resource_type, name)


def require_now(
    context: RequestContext, operation: AclOperation, resource_type: ResourceType, name: str
) -> None:
    """Check as `require` does, after `ask_authorizer`.

    :raises KafkaError: As `require`.
    """
    if not allowed_now(context, operation, resource_type, name):
        raise log_denial(context, operation, resource_type, name)


async def require_cluster(context: RequestContext, operation: AclOperation) -> None:
    """Check that the principal has the operation on the cluster.

    :raises KafkaError: CLUSTER_AUTHORIZATION_FAILED.
    """
    await require(context, operation, ResourceType.CLUSTER, CLUSTER_NAME)


async def require_broker(context: RequestContext) -> None:
    """Check that the client is a broker, and exempt the request from quotas: they must not slow replication down.

    :raises KafkaError: CLUSTER_AUTHORIZATION_FAILED.
    """
    await require_cluster(context, AclOperation.CLUSTER_ACTION)
    context.is_exempt = True


async def authorized_operations(context: RequestContext, resource_type: ResourceType, name: str) -> int:
    """Return the operations that the principal has on the resource, as a bit field (KIP-430)."""
    await ask_for_operations(context, resource_type, (name,))
    return authorized_operations_now(context, resource_type, name)


async def ask_for_operations(
    context: RequestContext, resource_type: ResourceType, names: Iterable[str]
) -> None:
    """Ask the authorizer for all operations on the resources, as far as they are not known yet."""
    operations = OPERATIONS[resource_type]
    await _ask(context, ((operation, resource_type, name) for name in names for operation in operations))


def authorized_operations_now(context: RequestContext, resource_type: ResourceType, name: str) -> int:
    """Return what `authorized_operations` does, after `ask_for_operations`."""
    if context.broker.authorizer is None:
        return ALL_OPERATIONS[resource_type]
    operations = OPERATIONS[resource_type]
    return bit_field(
        operation for operation in operations if _reported(context, operation, resource_type, name)
    )


def _reported(
    context: RequestContext, operation: AclOperation, resource_type: ResourceType, name: str
) -> bool | None:
    """As `allowed_now`, but not recorded as a use of the ACL, because it only describes permissions."""
    authorizer = context.broker.authorizer
    assert authorizer is not None
    connection = context.connection
    known = authorizer.reported(connection.principal, connection.client_host, operation, resource_type, name)
    return context.decisions.get((operation, resource_type, name)) if known is None else known


async def authorized_cluster_operations(context: RequestContext) -> int:
    """Return the operations that the principal has on the cluster, as a bit field; 0 without DESCRIBE."""
    if not await allowed_cluster(context, AclOperation.DESCRIBE):
        return 0
    return await authorized_operations(context, ResourceType.CLUSTER, CLUSTER_NAME)


def _words(resource_type: ResourceType) -> str:
    return resource_type.name.lower().replace("_", " ")
