"""Who decides what a principal may do."""

import asyncio
from collections.abc import Collection, Mapping
from typing import Protocol

from barnabas.base.clock import Clock
from barnabas.config.authorization import allows_if_no_acl, super_users
from barnabas.config.broker_config import BrokerConfig
from barnabas.metadata.acls import ACLS
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.store import StoreChange
from barnabas.metadata.writer import MetadataWriter
from barnabas.security.acl_index import decide, decide_any, indexes
from barnabas.security.operations import needs_cluster_alter
from barnabas.telemetry.logs import get_logger
from barnabas.wire.acls import CLUSTER_NAME, AclBinding, AclOperation, AclPermission, ResourceType

_log = get_logger("barnabas.security")

#: Decisions that are kept; all are dropped when there are so many, and when ACLs change.
DECISIONS_COUNT_MAX = 20_000

#: Decisions on longer names, of which no topic has one, are not kept: who makes up names must not fill the memory.
KEPT_NAME_LENGTH_MAX = 255

#: ACLs that are taken over before others are served.
PUT_AT_ONCE_COUNT = 200

#: No resource has this name: what may be done to it may be done to any (KIP-679).
_ANY_NAME = "hardcode"

_ACL_PREFIX = ACLS.key("")

_Question = tuple[str, str, AclOperation, ResourceType, str]


class Authorizer(Protocol):
    """Answers for a principal (`User:alice`) at a host (its address)."""

    #: Counts every change of what is allowed: answers of one version hold until the next.
    version: int

    #: From when on it remembers which ACLs have decided something, in ms since the epoch.
    since_ms: int

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

    def used(self) -> list[AclBinding]:
        """The ACLs that have decided something, as far as this authorizer remembers."""
        ...


class StandardAuthorizer:
    """Decides by the ACLs of the cluster, as Apache Kafka's class of that name.

    :param users: Principals that may do everything.
    :param allow_if_no_acl: What holds for resources to which no ACL applies.
    :param since_ms: When it begins, in ms since the epoch.
    """

    def __init__(
        self, acls: Mapping[str, AclBinding], users: Collection[str], *, allow_if_no_acl: bool, since_ms: int
    ) -> None:
        self.since_ms = since_ms
        self._super_users = frozenset(users)
        self._allow_if_no_acl = allow_if_no_acl
        self._indexes = indexes()
        self._decisions: dict[_Question, bool] = {}
        #: entries of the indexes by their identity, since to hash one takes as long as to decide
        self._used: dict[int, AclBinding] = {}
        self._acls: dict[str, tuple[AclBinding, AclBinding]] = {}  #: (as it was made, entry of an index)
        self.version = 0
        for key, binding in acls.items():
            self._put(key, binding)

    async def apply(
        self, before: MetadataImage, after: MetadataImage, changes: tuple[StoreChange, ...]
    ) -> None:
        """Follow the cluster's state: a metadata listener."""
        keys = [
            change.key.removeprefix(_ACL_PREFIX) for change in changes if change.key.startswith(_ACL_PREFIX)
        ]
        if not keys:
            return
        for number, key in enumerate(keys, 1):
            self._put(key, after.acls.get(key))
            if number % PUT_AT_ONCE_COUNT == 0:
                await asyncio.sleep(0)
        self._decisions.clear()
        self.version += 1

    def _put(self, key: str, binding: AclBinding | None) -> None:
        gone = self._acls.pop(key, None)
        if gone is not None:
            entry = self._indexes[gone[0].resource_type].remove(gone[0])
            self._used.pop(id(entry), None)
        if binding is not None:
            self._acls[key] = binding, self._indexes[binding.resource_type].add(binding)

    def allows(
        self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType, name: str
    ) -> bool:
        """Whether the operation may be done to the resource; kept until ACLs change."""
        question = (principal, host, operation, resource_type, name)
        known = self._decisions.get(question)
        if known is None:
            known = self._decide(principal, host, operation, resource_type, name)
            if len(name) <= KEPT_NAME_LENGTH_MAX:
                self._keep(question, known)
        return known

    def _keep(self, question: _Question, decision: bool) -> None:
        if len(self._decisions) >= DECISIONS_COUNT_MAX:
            self._decisions.clear()
        self._decisions[question] = decision

    def _decide(
        self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType, name: str
    ) -> bool:
        if principal in self._super_users:
            return True
        permission, by = decide(self._indexes[resource_type], principal, host, operation, name)
        for entry in by:
            self._used[id(entry)] = entry
        allowed = self._allow_if_no_acl if permission is None else permission is AclPermission.ALLOW
        if allowed and needs_cluster_alter(operation, resource_type, name):
            allowed = self.allows(principal, host, AclOperation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME)
        if not allowed and _log.is_debug_enabled:
            what = f"{operation.name} on {resource_type.name} {name}"
            _log.debug("not allowed", principal=principal, host=host, what=what)
        return allowed

    def allows_any(
        self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType
    ) -> bool:
        """Whether there could be a resource of that type to which the operation may be done."""
        return self.allows(principal, host, operation, resource_type, _ANY_NAME) or decide_any(
            self._indexes[resource_type], principal, host, operation
        )

    def used(self) -> list[AclBinding]:
        """The ACLs that have decided something since they were made, or since this authorizer was.

        A decision that is kept counts when it is made, which costs the many that come after it nothing.
        """
        return [binding for binding, entry in self._acls.values() if id(entry) in self._used]

    def statistics(self) -> dict[str, int]:
        """How many ACLs count, how many of them have decided something, and how many decisions are kept."""
        return {
            "acls_count": len(self._acls),
            "acls_used_count": len(self._used),
            "decisions_count": len(self._decisions),
        }


def configured_authorizer(
    config: BrokerConfig, metadata: MetadataWriter, clock: Clock
) -> StandardAuthorizer | None:
    """The authorizer that `authorizer.class.name` asks for, following the cluster's ACLs; None for none."""
    if not config.part("authorizer.class.name"):
        return None
    users, allow_if_no_acl = super_users(config), allows_if_no_acl(config)
    if not (users or allow_if_no_acl or metadata.image.acls):
        _log.warning("all requests will be denied: no ACLs and no super.users are configured")
    authorizer = StandardAuthorizer(
        metadata.image.acls, users, allow_if_no_acl=allow_if_no_acl, since_ms=clock.wall_ms()
    )
    metadata.listen(authorizer.apply)
    return authorizer
