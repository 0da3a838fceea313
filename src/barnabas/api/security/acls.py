"""The common part of the ACL APIs: conversion of ACLs and filters, and brokers without an authorizer."""

from barnabas.api.context import RequestContext
from barnabas.metadata.acls import acl_resource
from barnabas.security.authorizer import BrokerAuthorizer
from barnabas.wire.acls import (
    AclBinding,
    AclFilter,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
    from_code,
)
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.create_acls import AclCreation
from barnabas.wire.messages.delete_acls import DeleteAclsFilter
from barnabas.wire.messages.describe_acls import DescribeAclsRequest


def require_authorizer(context: RequestContext) -> BrokerAuthorizer:
    """Return the authorizer.

    :raises KafkaError: SECURITY_DISABLED if there is none.
    """
    if context.broker.authorizer is None:
        message = "No authorizer is configured: set authorizer.class.name to use ACLs."
        raise KafkaError(ErrorCode.SECURITY_DISABLED, message)
    return context.broker.authorizer


def binding_of(creation: AclCreation) -> AclBinding:
    """Return the ACL of a creation."""
    return AclBinding.from_codes(
        creation.resource_type,
        creation.resource_name,
        creation.resource_pattern_type,
        creation.principal,
        creation.host,
        creation.operation,
        creation.permission_type,
    )


def filter_of(request: DescribeAclsRequest | DeleteAclsFilter) -> AclFilter:
    """Return the filter of a request."""
    return AclFilter(
        from_code(ResourceType, request.resource_type_filter),
        request.resource_name_filter,
        from_code(PatternType, request.pattern_type_filter),
        request.principal_filter,
        request.host_filter,
        from_code(AclOperation, request.operation),
        from_code(AclPermission, request.permission_type),
    )


def has_unknown(message: AclCreation | DescribeAclsRequest | DeleteAclsFilter) -> bool:
    """Return whether a number is Kafka's UNKNOWN, for which Apache Kafka closes the connection.

    Numbers that Kafka does not define are unknown as well, but get a response.
    """
    if isinstance(message, AclCreation):
        kinds = (message.resource_type, message.resource_pattern_type)
    else:
        kinds = (message.resource_type_filter, message.pattern_type_filter)
    return 0 in (*kinds, message.operation, message.permission_type)


def audited_acl(resource_type: int, name: str, pattern: int) -> str:
    """Return the resource name of an ACL in the audit, from the codes of the protocol."""
    return acl_resource(from_code(ResourceType, resource_type), name, from_code(PatternType, pattern))
