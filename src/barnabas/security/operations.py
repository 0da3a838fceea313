"""Operations on resources, and the bit fields in which the protocol tells a client which of them it may do."""

import enum
from collections.abc import Iterable


class AclOperation(enum.IntEnum):
    """What can be done to a resource, by Kafka's numbers."""

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


def bit_field(operations: Iterable[AclOperation]) -> int:
    """A bit for each operation, as `*_authorized_operations` fields hold them (KIP-430)."""
    return sum(1 << operation for operation in operations)


#: What the protocol writes where nobody asked for the operations.
NOT_ASKED = -(2**31)

_Op = AclOperation
TOPIC_OPERATIONS = bit_field(
    {
        _Op.READ, _Op.WRITE, _Op.CREATE, _Op.DELETE, _Op.ALTER, _Op.DESCRIBE,
        _Op.DESCRIBE_CONFIGS, _Op.ALTER_CONFIGS,
    }
)  # fmt: skip
CLUSTER_OPERATIONS = bit_field(
    {
        _Op.CREATE, _Op.ALTER, _Op.DESCRIBE, _Op.CLUSTER_ACTION, _Op.DESCRIBE_CONFIGS, _Op.ALTER_CONFIGS,
        _Op.IDEMPOTENT_WRITE,
    }
)  # fmt: skip
