"""ACLs as tests write them: "allow User:alice READ topic t" in arguments."""

from typing import Any

from barnabas.wire.acls import (
    CLUSTER_NAME,
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)

#: What makes a node authorize; User:root may do everything.
AUTHORIZED = {
    "authorizer_class_name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super_users": "User:root",
}
ROOT, ALICE = "User:root", "User:alice"

#: The fields of a filter that means every ACL.
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
    """One ACL."""
    return AclBinding(resource_type, name, pattern_type, principal, host, operation, permission)


def deny(operation: AclOperation, *rest: object, **fields: object) -> AclBinding:
    """The same, forbidding."""
    return allow(operation, *rest, **fields)._replace(permission=AclPermission.DENY)  # type: ignore[arg-type]


def allow_cluster(operation: AclOperation, principal: str = ALICE) -> AclBinding:
    """An ACL on the cluster."""
    return allow(operation, ResourceType.CLUSTER, CLUSTER_NAME, principal)
