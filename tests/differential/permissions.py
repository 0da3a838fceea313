"""Principals with one permission each, whose requests both brokers must authorize alike.

A principal is an address of this machine: ACLs can name hosts, so no login is needed.
"""

from typing import NamedTuple

from barnabas.client.admin.acls import acl_creation
from barnabas.security.operations import OPERATIONS
from barnabas.wire.acls import (
    CLUSTER_NAME,
    WILDCARD,
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from barnabas.wire.messages.create_acls import CreateAclsRequest

ADMIN_HOST = "127.0.0.1"  #: the address of the reference's own broker and controller, too
ANONYMOUS = "User:ANONYMOUS"

SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",  # so that the first ACLs can be created
}

_Op = AclOperation
_Type = ResourceType

#: The resources of a principal's permission, by type.
MINE = "mine"


class Grant(NamedTuple):
    """An ACL on the resources called "mine"."""

    operation: AclOperation
    resource_type: ResourceType
    permission: AclPermission = AclPermission.ALLOW
    everywhere: bool = False  #: on every topic of the test

    def binding(self, host: str, prefix: str) -> AclBinding:
        """Return the ACL, in a world whose topics have the prefix."""
        name, pattern_type = MINE, PatternType.PREFIXED
        if self.resource_type is _Type.TOPIC:
            name = prefix + MINE
        if self.everywhere:
            name = prefix
        if self.resource_type is _Type.CLUSTER:
            name, pattern_type = CLUSTER_NAME, PatternType.LITERAL
        return AclBinding(
            self.resource_type, name, pattern_type, ANONYMOUS, host, self.operation, self.permission
        )


def _single_grants() -> dict[str, tuple[Grant, ...]]:
    return {
        f"{operation.name} {resource_type.name}": (Grant(operation, resource_type),)
        for resource_type, operations in OPERATIONS.items()
        for operation in sorted(operations)
    }


#: Each principal's grants, by a name.
PRINCIPALS: dict[str, tuple[Grant, ...]] = {
    "nothing": (),
    **_single_grants(),
    "ALL GROUP": (Grant(_Op.ALL, _Type.GROUP),),
    "ALL TRANSACTIONAL_ID": (Grant(_Op.ALL, _Type.TRANSACTIONAL_ID),),
    "READ GROUP and TOPIC": (Grant(_Op.READ, _Type.GROUP), Grant(_Op.READ, _Type.TOPIC)),
    "READ GROUP and DESCRIBE TOPIC": (Grant(_Op.READ, _Type.GROUP), Grant(_Op.DESCRIBE, _Type.TOPIC)),
    "DESCRIBE GROUP and TOPIC": (Grant(_Op.DESCRIBE, _Type.GROUP), Grant(_Op.DESCRIBE, _Type.TOPIC)),
    "DESCRIBE GROUP and all TOPICs": (
        Grant(_Op.DESCRIBE, _Type.GROUP),
        Grant(_Op.DESCRIBE, _Type.TOPIC, everywhere=True),
    ),
    "DELETE GROUP and READ TOPIC": (Grant(_Op.DELETE, _Type.GROUP), Grant(_Op.READ, _Type.TOPIC)),
    "WRITE TRANSACTIONAL_ID and READ GROUP": (
        Grant(_Op.WRITE, _Type.TRANSACTIONAL_ID),
        Grant(_Op.READ, _Type.GROUP),
    ),
    "WRITE TRANSACTIONAL_ID and READ GROUP and TOPIC": (
        Grant(_Op.WRITE, _Type.TRANSACTIONAL_ID),
        Grant(_Op.READ, _Type.GROUP),
        Grant(_Op.READ, _Type.TOPIC),
    ),
    "DESCRIBE TRANSACTIONAL_ID and TOPIC": (
        Grant(_Op.DESCRIBE, _Type.TRANSACTIONAL_ID),
        Grant(_Op.DESCRIBE, _Type.TOPIC),
    ),
    "ALL TOPIC": (Grant(_Op.ALL, _Type.TOPIC),),
    "ALL CLUSTER": (Grant(_Op.ALL, _Type.CLUSTER),),
    "CREATE and DESCRIBE TOPIC": (Grant(_Op.CREATE, _Type.TOPIC), Grant(_Op.DESCRIBE, _Type.TOPIC)),
    "CREATE and DESCRIBE_CONFIGS TOPIC": (
        Grant(_Op.CREATE, _Type.TOPIC),
        Grant(_Op.DESCRIBE_CONFIGS, _Type.TOPIC),
    ),
    "CREATE CLUSTER and DESCRIBE TOPIC": (Grant(_Op.CREATE, _Type.CLUSTER), Grant(_Op.DESCRIBE, _Type.TOPIC)),
    "WRITE TOPIC and TRANSACTIONAL_ID": (
        Grant(_Op.WRITE, _Type.TOPIC),
        Grant(_Op.WRITE, _Type.TRANSACTIONAL_ID),
    ),
    "ALL TOPIC but DESCRIBE": (
        Grant(_Op.ALL, _Type.TOPIC, everywhere=True),
        Grant(_Op.DESCRIBE, _Type.TOPIC, AclPermission.DENY),
    ),
    "ALL TOPIC but DELETE": (
        Grant(_Op.ALL, _Type.TOPIC, everywhere=True),
        Grant(_Op.DELETE, _Type.TOPIC, AclPermission.DENY),
    ),
    "ALL TOPIC but WRITE": (
        Grant(_Op.ALL, _Type.TOPIC, everywhere=True),
        Grant(_Op.WRITE, _Type.TOPIC, AclPermission.DENY),
    ),
}

HOSTS = {name: f"127.0.1.{number}" for number, name in enumerate(PRINCIPALS, 1)}


def acls(prefix: str) -> CreateAclsRequest:
    """Return all permissions of the administrator, and each principal's grants."""
    admin = [
        AclBinding(
            resource_type,
            CLUSTER_NAME if resource_type is _Type.CLUSTER else WILDCARD,
            PatternType.LITERAL,
            ANONYMOUS,
            ADMIN_HOST,
            _Op.ALL,
            AclPermission.ALLOW,
        )
        for resource_type in OPERATIONS
    ]
    granted = [grant.binding(HOSTS[name], prefix) for name, grants in PRINCIPALS.items() for grant in grants]
    return CreateAclsRequest(creations=[acl_creation(binding) for binding in (*admin, *granted)])


#: The numbers of a filter that matches every ACL.
ANY_ACL = {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1}
