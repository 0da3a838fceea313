"""Short notation for ACLs in tests: "allow User:alice READ topic t" as arguments."""

from typing import Any

from barnabas.wire.acls import (
    CLUSTER_NAME,
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)

#: Settings of a node that authorizes requests; User:root is a superuser.
AUTHORIZED = {
    "authorizer_class_name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super_users": "User:root",
}
ROOT, ALICE = "User:root", "User:alice"

#: Fields of a filter that matches every ACL.
EVERY_ACL: dict[str, Any] = {
    "resource_type_filter": ResourceType.ANY,
    "resource_name_filter": None,
    "pattern_type_filter": PatternType.ANY,
    "principal_filter": None,
    "host_filter": None,
    "operation": AclOperation.ANY,
    "permission_type": AclPermission.ANY,
}


def allow(
    operation: AclOperation,
    resource_type: ResourceType = ResourceType.TOPIC,
    name: str = "t",
    principal: str = ALICE,
    *,
    pattern_type: PatternType = PatternType.LITERAL,
    host: str = "*",
    permission: AclPermission = AclPermission.ALLOW,
) -> AclBinding:
    return AclBinding(resource_type, name, pattern_type, principal, host, operation, permission)


def deny(operation: AclOperation, *rest: object, **fields: object) -> AclBinding:
    """Build the same ACL as `allow`, with permission DENY."""
    return allow(operation, *rest, **fields)._replace(permission=AclPermission.DENY)  # type: ignore[arg-type]


def allow_cluster(operation: AclOperation, principal: str = ALICE) -> AclBinding:
    return allow(operation, ResourceType.CLUSTER, CLUSTER_NAME, principal)
