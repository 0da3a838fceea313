"""Users with one permission each, or with all but one, whose requests both brokers must authorize alike."""

from collections.abc import Iterator
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
from differential.secured import ANONYMOUS, SUPER_USER

HERE, ELSEWHERE = "127.0.0.1", "127.0.1.1"  #: addresses of this machine

_Op = AclOperation
_Type = ResourceType
_DENY = AclPermission.DENY

#: The resources of a user's permission begin with this.
MINE = "mine"

Permission = tuple[AclOperation, ResourceType]

#: The names of the users who have no permission, and all of them.
NOTHING, EVERYTHING = "nothing", "everything"


class Grant(NamedTuple):
    """An ACL on the resources whose names begin with "mine"."""

    operation: AclOperation
    resource_type: ResourceType
    permission: AclPermission = AclPermission.ALLOW
    everywhere: bool = False  #: on every topic of the test
    host: str = WILDCARD
    is_literal: bool = False  #: only on the resource "mine"
    of_all: bool = False  #: on every resource of the type

    def binding(self, user: str, prefix: str) -> AclBinding:
        """Return the user's ACL, in a world whose topics have the prefix."""
        name, pattern_type = self._pattern(prefix)
        return AclBinding(
            self.resource_type, name, pattern_type, f"User:{user}", self.host, self.operation, self.permission
        )

    def _pattern(self, prefix: str) -> tuple[str, PatternType]:
        if self.resource_type is _Type.CLUSTER:
            return CLUSTER_NAME, PatternType.LITERAL
        if self.of_all or self.resource_type is _Type.DELEGATION_TOKEN:  # brokers choose the ids of tokens
            return WILDCARD, PatternType.LITERAL
        name = {_Type.TOPIC: prefix + MINE, _Type.USER: f"User:{MINE}"}.get(self.resource_type, MINE)
        if self.everywhere:
            name = prefix
        return name, PatternType.LITERAL if self.is_literal else PatternType.PREFIXED


def each_permission() -> Iterator[Permission]:
    """Return every operation of every resource type."""
    for resource_type, operations in OPERATIONS.items():
        for operation in sorted(operations):
            yield operation, resource_type


def only(permission: Permission) -> str:
    """Return the name of the user who has only this permission."""
    operation, resource_type = permission
    return f"{operation.name} {resource_type.name}"


def all_but(permission: Permission) -> str:
    """Return the name of the user to whom only this permission is denied."""
    return f"everything but {only(permission)}"


_EVERYTHING = tuple(Grant(_Op.ALL, resource_type, of_all=True) for resource_type in OPERATIONS)
_ALL_TOPICS = Grant(_Op.ALL, _Type.TOPIC, everywhere=True)


def _all_topics_but(operation: AclOperation, host: str = WILDCARD) -> tuple[Grant, ...]:
    return _ALL_TOPICS, Grant(operation, _Type.TOPIC, _DENY, host=host)


#: Each user's grants, by a name.
PRINCIPALS: dict[str, tuple[Grant, ...]] = {
    NOTHING: (),
    EVERYTHING: _EVERYTHING,
    **{only(each): (Grant(*each),) for each in each_permission()},
    **{all_but(each): (*_EVERYTHING, Grant(*each, _DENY)) for each in each_permission()},
    **{
        all_but((_Op.ALL, resource_type)): (*_EVERYTHING, Grant(_Op.ALL, resource_type, _DENY))
        for resource_type in OPERATIONS
    },
    SUPER_USER: tuple(Grant(_Op.ALL, resource_type, _DENY, of_all=True) for resource_type in OPERATIONS),
    ANONYMOUS: (Grant(_Op.READ, _Type.TOPIC), Grant(_Op.READ, _Type.GROUP)),
    "ALL TOPIC here": (Grant(_Op.ALL, _Type.TOPIC, host=HERE),),
    "ALL TOPIC elsewhere": (Grant(_Op.ALL, _Type.TOPIC, host=ELSEWHERE),),
    "ALL TOPIC but READ here": _all_topics_but(_Op.READ, HERE),
    "ALL TOPIC but READ elsewhere": _all_topics_but(_Op.READ, ELSEWHERE),
    "READ TOPIC of that name": (Grant(_Op.READ, _Type.TOPIC, is_literal=True),),
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
    "ALL TOPIC but DESCRIBE": _all_topics_but(_Op.DESCRIBE),
    "ALL TOPIC but DELETE": _all_topics_but(_Op.DELETE),
    "ALL TOPIC but WRITE": _all_topics_but(_Op.WRITE),
}


def user_of(name: str) -> str:
    """Return the user's name as the brokers know it."""
    return name if name == ANONYMOUS else name.lower().replace(" ", "-").replace("_", "-")


def acls(prefix: str) -> CreateAclsRequest:
    """Return each user's grants."""
    bindings = [
        grant.binding(user_of(name), prefix) for name, grants in PRINCIPALS.items() for grant in grants
    ]
    return CreateAclsRequest(creations=[acl_creation(binding) for binding in bindings])


#: The numbers of a filter that matches every ACL.
ANY_ACL = {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1}
