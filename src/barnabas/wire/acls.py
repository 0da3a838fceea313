"""The vocabulary of ACLs as the protocol numbers it: resource types, pattern types, operations, permissions.

A number that nobody knows is UNKNOWN, as in Apache Kafka.
"""

import enum
from typing import TypeVar

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
