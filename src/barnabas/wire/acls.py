"""The vocabulary of ACLs as the protocol numbers it: resource types, pattern types, operations, permissions.

A number that nobody knows is UNKNOWN, as in Apache Kafka.
"""

import enum
from typing import NamedTuple, TypeVar

#: The one resource of type CLUSTER.
CLUSTER_NAME = "kafka-cluster"

#: A literal resource name that stands for all, and a host that does; of principals, `User:*` does.
WILDCARD = "*"
WILDCARD_PRINCIPAL = "User:*"

CodeT = TypeVar("CodeT", bound=enum.IntEnum)


def from_code(kind: type[CodeT], code: int) -> CodeT:
    """The member with that number, UNKNOWN (0) where there is none."""
    return kind(code) if code in kind._value2member_map_ else kind(0)


class ResourceType(enum.IntEnum):
    """What an ACL protects."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(enum.IntEnum):
    """How an ACL's resource name is meant; ANY and MATCH are for filters alone (KIP-290)."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class AclOperation(enum.IntEnum):
    """What can be done to a resource; ANY is for filters alone."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class AclPermission(enum.IntEnum):
    """Whether an ACL lets or forbids; ANY is for filters alone."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


class AclBinding(NamedTuple):
    """One ACL. `principal` is `User:alice` or `User:*`, `host` an address or `*`."""

    resource_type: ResourceType
    resource_name: str
    pattern_type: PatternType
    principal: str
    host: str
    operation: AclOperation
    permission: AclPermission

    @classmethod
    def from_codes(
        cls,
        resource_type: int,
        resource_name: str,
        pattern_type: int,
        principal: str,
        host: str,
        operation: int,
        permission: int,
    ) -> "AclBinding":
        """An ACL as messages carry it."""
        return cls(
            from_code(ResourceType, resource_type),
            resource_name,
            from_code(PatternType, pattern_type),
            principal,
            host,
            from_code(AclOperation, operation),
            from_code(AclPermission, permission),
        )


class AclFilter(NamedTuple):
    """What matches bindings; None and ANY match everything (KIP-290)."""

    resource_type: ResourceType = ResourceType.ANY
    resource_name: str | None = None
    pattern_type: PatternType = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: AclOperation = AclOperation.ANY
    permission: AclPermission = AclPermission.ANY

    @property
    def is_unknown(self) -> bool:
        """Whether a part of it is none that Kafka knows; such a filter matches nothing."""
        return 0 in (self.resource_type, self.pattern_type, self.operation, self.permission)

    @property
    def binding(self) -> AclBinding | None:
        """The one binding that the filter can match; None where it can match others."""
        is_exact = (
            None not in self
            and self.pattern_type in (PatternType.LITERAL, PatternType.PREFIXED)
            and self.resource_type is not ResourceType.ANY
            and self.operation is not AclOperation.ANY
            and self.permission is not AclPermission.ANY
        )
        return AclBinding(*self) if is_exact else None  # type: ignore[arg-type]  # None is not among them

    def matches(self, binding: AclBinding) -> bool:
        """Whether the filter means this binding."""
        return (
            self.resource_type in (ResourceType.ANY, binding.resource_type)
            and self.principal in (None, binding.principal)
            and self.host in (None, binding.host)
            and self.operation in (AclOperation.ANY, binding.operation)
            and self.permission in (AclPermission.ANY, binding.permission)
            and self._matches_name(binding)
        )

    def _matches_name(self, binding: AclBinding) -> bool:
        """MATCH means whatever applies to a resource of that name, any other type the pattern's own name."""
        if self.pattern_type not in (PatternType.ANY, PatternType.MATCH, binding.pattern_type):
            return False
        if self.resource_name is None or self.resource_name == binding.resource_name:
            return True
        if self.pattern_type is not PatternType.MATCH:
            return False
        if binding.pattern_type is PatternType.LITERAL:
            return binding.resource_name == WILDCARD
        return self.resource_name.startswith(binding.resource_name)
