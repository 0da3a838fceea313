"""The operations that a resource has, and the bit fields that tell a client which of them it may do (KIP-430)."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from barnabas.metadata.topics import AUDIT_TOPIC
from barnabas.wire.acls import AclOperation as Op
from barnabas.wire.acls import ResourceType

#: What the protocol writes where nobody asked for the operations.
NOT_ASKED = -(2**31)

#: Resource type -> what can be done to such a resource (`AclEntry.supportedOperations`).
OPERATIONS: Mapping[ResourceType, frozenset[Op]] = MappingProxyType(
    {
        ResourceType.TOPIC: frozenset(
            {
                Op.READ, Op.WRITE, Op.CREATE, Op.DELETE, Op.ALTER, Op.DESCRIBE,
                Op.DESCRIBE_CONFIGS, Op.ALTER_CONFIGS,
            }
        ),
        ResourceType.GROUP: frozenset(
            {Op.READ, Op.DELETE, Op.DESCRIBE, Op.DESCRIBE_CONFIGS, Op.ALTER_CONFIGS}
        ),
        ResourceType.CLUSTER: frozenset(
            {
                Op.CREATE, Op.ALTER, Op.DESCRIBE, Op.CLUSTER_ACTION, Op.DESCRIBE_CONFIGS, Op.ALTER_CONFIGS,
                Op.IDEMPOTENT_WRITE,
            }
        ),
        ResourceType.TRANSACTIONAL_ID: frozenset({Op.WRITE, Op.DESCRIBE, Op.TWO_PHASE_COMMIT}),
        ResourceType.DELEGATION_TOKEN: frozenset({Op.DESCRIBE}),
        ResourceType.USER: frozenset({Op.CREATE_TOKENS, Op.DESCRIBE_TOKENS}),
    }
)  # fmt: skip


def bit_field(operations: Iterable[Op]) -> int:
    """A bit for each operation, as `*_authorized_operations` fields hold them."""
    return sum(1 << operation for operation in operations)


#: What changes a topic or its records.
CHANGING_TOPIC = frozenset({Op.WRITE, Op.CREATE, Op.DELETE, Op.ALTER, Op.ALTER_CONFIGS})


def needs_cluster_alter(operation: Op, resource_type: ResourceType, name: str) -> bool:
    """Whether ALTER on the cluster is needed as well: who may change any topic must not change the audit."""
    return name == AUDIT_TOPIC and resource_type is ResourceType.TOPIC and operation in CHANGING_TOPIC


#: Resource type -> the bit field of all its operations.
ALL_OPERATIONS: Mapping[ResourceType, int] = MappingProxyType(
    {resource_type: bit_field(operations) for resource_type, operations in OPERATIONS.items()}
)
