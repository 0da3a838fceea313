"""A principal's permissions, as brokers report them in `*_authorized_operations` (KIP-430)."""

from barnabas.wire.acls import AclOperation

#: The value if they were not requested, or the broker is too old.
_UNKNOWN = -(2**31)
#: Every operation: if permissions are unknown everything is offered, and the broker refuses.
EVERYTHING = frozenset(operation.name for operation in AclOperation)


def operations_in(bits: int) -> frozenset[str]:
    """Names of the operations in a bit field."""
    if bits == _UNKNOWN:
        return EVERYTHING
    return frozenset(operation.name for operation in AclOperation if bits >> operation & 1)
