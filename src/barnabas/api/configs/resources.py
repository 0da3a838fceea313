"""Config resources of requests: whether they exist, and which permission they need."""

import re

from barnabas.api.authorization import require, require_cluster
from barnabas.api.context import RequestContext
from barnabas.config.config_resource import EVERY_BROKER, Resource, ResourceKind
from barnabas.wire.acls import AclOperation, ResourceType
from barnabas.wire.errors import ErrorCode, KafkaError

_NUMBER = re.compile(r"[+-]?[0-9]+")
_INT32_MAX = (1 << 31) - 1


def kind_of(resource_type: int) -> ResourceKind:
    """Return the kind of resource.

    :raises KafkaError: INVALID_REQUEST for an unknown type.
    """
    try:
        return ResourceKind(resource_type)
    except ValueError:
        known = ", ".join(f"{kind.value} ({kind.name})" for kind in ResourceKind)
        message = f"Resource type {resource_type} is unknown: there are {known}."
        raise KafkaError(ErrorCode.INVALID_REQUEST, message) from None


def resource_of(kind: ResourceKind, name: str, broker_id: int) -> Resource:
    """Return the resource of a name; broker ids are normalized.

    :raises KafkaError: INVALID_REQUEST for another broker.
    """
    if kind is ResourceKind.BROKER and name == EVERY_BROKER:
        return Resource(kind, name)
    if kind in (ResourceKind.BROKER, ResourceKind.BROKER_LOGGER):
        return Resource(kind, str(_own_id(kind, name, broker_id)))
    return Resource(kind, name)


def check_named(resource: Resource) -> None:
    """Check that a group or a client metrics subscription has a name.

    :raises KafkaError: INVALID_REQUEST.
    """
    if not resource.name and resource.kind in (ResourceKind.GROUP, ResourceKind.CLIENT_METRICS):
        what = "group" if resource.kind is ResourceKind.GROUP else "client metrics subscription"
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"The name of a {what} is empty.")


def _own_id(kind: ResourceKind, name: str, broker_id: int) -> int:
    number = int(name) if _NUMBER.fullmatch(name) else None
    if number is None or abs(number) > _INT32_MAX:
        message = f"Invalid broker id '{name}': it must be a 32-bit integer."
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)
    if number != broker_id:
        what = "The loggers of broker" if kind is ResourceKind.BROKER_LOGGER else "Broker"
        message = f"{what} '{name}' is not this broker: this is broker {broker_id}."
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)
    return number


async def require_for(context: RequestContext, operation: AclOperation, resource: Resource) -> None:
    """Check that the principal may describe or alter the configs of a resource.

    :raises KafkaError: TOPIC_, GROUP_ or, for all other kinds, CLUSTER_AUTHORIZATION_FAILED.
    """
    if resource.kind is ResourceKind.TOPIC:
        await require(context, operation, ResourceType.TOPIC, resource.name)
    elif resource.kind is ResourceKind.GROUP:
        await require(context, operation, ResourceType.GROUP, resource.name)
    else:
        await require_cluster(context, operation)
