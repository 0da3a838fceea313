"""What a principal may do, as brokers tell it in `*_authorized_operations` (KIP-430)."""

from barnabas.wire.acls import AclOperation

#: What brokers answer that were not asked, or are too old to know.
_UNKNOWN = -(2**31)
#: Every operation: where nothing is known everything is offered, and the broker refuses.
EVERYTHING = frozenset(operation.name for operation in AclOperation)


def operations_in(bits: int) -> frozenset[str]:
    """Names of the operations that a bit field allows."""
    if bits == _UNKNOWN:
        return EVERYTHING
    return frozenset(operation.name for operation in AclOperation if bits >> operation & 1)
