"""Resource types, pattern types, operations and permissions of ACLs, with the protocol's numbers.

As in Apache Kafka, an unknown number becomes UNKNOWN.
"""

import enum
from collections.abc import Iterable
from typing import NamedTuple, TypeVar

#: The only resource of type CLUSTER.
CLUSTER_NAME = "kafka-cluster"

#: A literal resource name that means all resources, and a host that means all hosts; for all principals it is
#: `User:*`.
WILDCARD = "*"
WILDCARD_PRINCIPAL = "User:*"

#: The principal of clients that have neither logged in nor a certificate.
ANONYMOUS_PRINCIPAL = "User:ANONYMOUS"

CodeT = TypeVar("CodeT", bound=enum.IntEnum)


def principal_of(text: str) -> str:
    """Return the full name of a principal: `alice` is short for `User:alice`."""
    return text if ":" in text else f"User:{text}"


def split_principal(principal: str) -> tuple[str, str]:
    """Return type and name of `User:alice`."""
    kind, _, name = principal.partition(":")
    return kind, name


def from_code(kind: type[CodeT], code: int) -> CodeT:
    """Return the member with that number, UNKNOWN (0) if there is none."""
    return kind(code) if code in kind._value2member_map_ else kind(0)


class ResourceType(enum.IntEnum):
    """The resource that an ACL protects."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(enum.IntEnum):
    """How an ACL's resource name is matched; ANY and MATCH are for filters only (KIP-290)."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class AclOperation(enum.IntEnum):
    """The operation of an ACL; ANY is for filters only."""

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


#: Operation -> operations that an ALLOW for it implies; a DENY implies none.
_IMPLIED = {
    AclOperation.READ: {AclOperation.DESCRIBE},
    AclOperation.WRITE: {AclOperation.DESCRIBE},
    AclOperation.DELETE: {AclOperation.DESCRIBE},
    AclOperation.ALTER: {AclOperation.DESCRIBE},
    AclOperation.ALTER_CONFIGS: {AclOperation.DESCRIBE_CONFIGS},
}

#: Requested operation -> operations of ALLOW entries that grant it, and of DENY entries that forbid it.
GRANTING = {
    asked: frozenset(
        {asked, AclOperation.ALL} | {held for held, implied in _IMPLIED.items() if asked in implied}
    )
    for asked in AclOperation
}
FORBIDDING = {asked: frozenset({asked, AclOperation.ALL}) for asked in AclOperation}


class AclPermission(enum.IntEnum):
    """Whether an ACL allows or denies; ANY is for filters only."""

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
        """Return an ACL from the numbers in messages."""
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
    """Matches ACLs; None and ANY match everything (KIP-290)."""

    resource_type: ResourceType = ResourceType.ANY
    resource_name: str | None = None
    pattern_type: PatternType = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: AclOperation = AclOperation.ANY
    permission: AclPermission = AclPermission.ANY

    @property
    def is_unknown(self) -> bool:
        """Whether one of its numbers is unknown; such a filter matches nothing."""
        return 0 in (self.resource_type, self.pattern_type, self.operation, self.permission)

    @property
    def binding(self) -> AclBinding | None:
        """The only binding that the filter can match; None if it can match several."""
        is_exact = (
            None not in self
            and self.pattern_type in (PatternType.LITERAL, PatternType.PREFIXED)
            and self.resource_type is not ResourceType.ANY
            and self.operation is not AclOperation.ANY
            and self.permission is not AclPermission.ANY
        )
        return AclBinding(*self) if is_exact else None  # type: ignore[arg-type]  # None is not among them

    def matches(self, binding: AclBinding) -> bool:
        return (
            self.resource_type in (ResourceType.ANY, binding.resource_type)
            and self.principal in (None, binding.principal)
            and self.host in (None, binding.host)
            and self.operation in (AclOperation.ANY, binding.operation)
            and self.permission in (AclPermission.ANY, binding.permission)
            and self._matches_name(binding)
        )

    def _matches_name(self, binding: AclBinding) -> bool:
        """Return whether the name matches: MATCH matches every ACL that applies to the name, other types the name
        itself.
        """
        if self.pattern_type not in (PatternType.ANY, PatternType.MATCH, binding.pattern_type):
            return False
        if self.resource_name is None or self.resource_name == binding.resource_name:
            return True
        if self.pattern_type is not PatternType.MATCH:
            return False
        if binding.pattern_type is PatternType.LITERAL:
            return binding.resource_name == WILDCARD
        return self.resource_name.startswith(binding.resource_name)


class AclDecision(NamedTuple):
    """What a principal at a host (its address) wanted to do, and whether ACLs allowed it."""

    principal: str
    host: str
    operation: AclOperation
    resource_type: ResourceType
    name: str | None  #: None for the question whether it is allowed on any resource of the type (KIP-679)
    is_allowed: bool
    last_used_ms: int  #: since the epoch


class DecisionRecord(NamedTuple):
    """Distinct decisions by ACLs, and what they depended on beside the ACLs."""

    since_ms: int
    decisions: Iterable[AclDecision]
    left_out_count: int = 0  #: decisions that had no room, or a name that is too long
    super_users: frozenset[str] = frozenset()
    allows_if_no_acl: bool = False
