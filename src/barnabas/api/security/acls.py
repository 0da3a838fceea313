"""What the three ACL APIs share: ACLs and filters as messages carry them, and the broker that has none."""

from barnabas.api.context import RequestContext
from barnabas.metadata.acls import acl_resource
from barnabas.security.authorizer import Authorizer
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


def require_authorizer(context: RequestContext) -> Authorizer:
    """Let pass where ACLs mean something; gives who decides by them.

    :raises KafkaError: SECURITY_DISABLED.
    """
    if context.node.authorizer is None:
        message = "ACLs mean nothing here: no authorizer is configured. Set authorizer.class.name."
        raise KafkaError(ErrorCode.SECURITY_DISABLED, message)
    return context.node.authorizer


def binding_of(creation: AclCreation) -> AclBinding:
    """The ACL that is to be made."""
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
    """The filter that a request describes or deletes by."""
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
    """Whether it has Kafka's number for UNKNOWN: Apache Kafka closes the connection of who sends that.

    Numbers that Kafka has no names for are unknown as well, but answered.
    """
    if isinstance(message, AclCreation):
        kinds = (message.resource_type, message.resource_pattern_type)
    else:
        kinds = (message.resource_type_filter, message.pattern_type_filter)
    return 0 in (*kinds, message.operation, message.permission_type)


def audited_acl(resource_type: int, name: str, pattern: int) -> str:
    """Return the resource name of an ACL in the audit, from the codes of the protocol."""
    return acl_resource(from_code(ResourceType, resource_type), name, from_code(PatternType, pattern))
