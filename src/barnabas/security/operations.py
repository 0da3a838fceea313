"""The operations of resource types, and the bit fields of allowed operations in responses (KIP-430)."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from barnabas.base.topic_names import OWN_TOPICS
from barnabas.wire.acls import AclOperation as Op
from barnabas.wire.acls import ResourceType

#: The protocol's value if the request did not ask for the operations.
NOT_ASKED = -(2**31)

#: Resource type -> its operations (`AclEntry.supportedOperations`).
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
    """Return a bit for each operation, as in the `*_authorized_operations` fields."""
    return sum(1 << operation for operation in operations)


#: Operations that change a topic or its records.
CHANGING_TOPIC = frozenset({Op.WRITE, Op.CREATE, Op.DELETE, Op.ALTER, Op.ALTER_CONFIGS})


def needs_cluster_alter(operation: Op, resource_type: ResourceType, name: str) -> bool:
    """Whether ALTER on the cluster is needed as well: permission to change any topic must not extend to those of the
    audit and of the security log.
    """
    return name in OWN_TOPICS and resource_type is ResourceType.TOPIC and operation in CHANGING_TOPIC


#: Resource type -> the bit field of all its operations.
ALL_OPERATIONS: Mapping[ResourceType, int] = MappingProxyType(
    {resource_type: bit_field(operations) for resource_type, operations in OPERATIONS.items()}
)
