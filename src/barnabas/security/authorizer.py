"""Who decides what a principal may do."""

from typing import Protocol

from barnabas.wire.acls import AclOperation, ResourceType


class Authorizer(Protocol):
    """Answers for a principal (`User:alice`) at a host (its address)."""

    def allows(
        self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType, name: str
    ) -> bool:
        """Whether the operation may be done to the resource."""
        ...

    def allows_any(
        self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType
    ) -> bool:
        """Whether there could be a resource of that type to which the operation may be done (KIP-679)."""
        ...
