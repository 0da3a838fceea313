"""Decides whether a principal is authorized."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from barnabas.base.clock import Clock
from barnabas.config.authorization import allows_if_no_acl, super_users
from barnabas.config.broker_config import BrokerConfig
from barnabas.metadata.acls import ACLS
from barnabas.metadata.changed_keys import ChangedKeys
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.writer import MetadataWriter
from barnabas.security.acl_index import decide, decide_any, indexes
from barnabas.security.acl_use import AclUseRecord, read_acl_use
from barnabas.security.operations import needs_cluster_alter
from barnabas.security.recorded_decisions import KEPT_NAME_LENGTH_MAX, Question, RecordedDecisions
from barnabas.telemetry.logs import get_logger
from barnabas.wire.acls import (
    CLUSTER_NAME,
    AclBinding,
    AclOperation,
    AclPermission,
    DecisionRecord,
    ResourceType,
)

_log = get_logger("barnabas.security")

#: The size of the decision cache, which is cleared when full and when ACLs change.
DECISIONS_COUNT_MAX = 20_000

#: ACLs to add before other work gets a turn.
PUT_AT_ONCE_COUNT = 200

#: A name that no resource has: what is allowed on it is allowed on any resource (KIP-679).
_ANY_NAME = "hardcode"


#: An operation on a resource.
Action = tuple[AclOperation, ResourceType, str]


class AclTimes(NamedTuple):
    """An ACL, and when it was last used and created, in ms since the epoch; None if that is not known."""

    binding: AclBinding
    last_used_ms: int | None
    created_ms: int | None


class BrokerAuthorizer(Protocol):
    """Decides for a principal (`User:alice`) at a host (its address)."""

    @property
    def version(self) -> int:
        """The number of changes of permissions: a decision that is known holds while it stays."""
        ...

    @property
    def since_ms(self) -> int:
        """The start of the record of used ACLs, in ms since the epoch."""
        ...

    @property
    def asks(self) -> bool:
        """Whether some decisions are only made when they are asked for."""
        ...

    def known(
        self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType, name: str
    ) -> bool | None:
        """Whether the operation on the resource is allowed; None if that has to be asked for."""
        ...

    def reported(
        self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType, name: str
    ) -> bool | None:
        """As `known`, for a response that lists what is allowed. It does not count as use and is not recorded."""
        ...

    async def ask(self, principal: str, host: str, actions: Sequence[Action]) -> list[bool]: ...

    async def allows_any(
        self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType
    ) -> bool:
        """Whether the operation is allowed on some resource of that type (KIP-679)."""
        ...

    def used(self) -> list[AclTimes]:
        """Return the ACLs that were created or used for a decision since `since_ms`."""
        ...

    def take_use_record(self) -> AclUseRecord:
        """Return what is to be kept over a restart; from now on cached decisions and responses count again."""
        ...

    def decision_record(self) -> DecisionRecord:
        """Return the decisions by ACLs. Times are exact to ten minutes."""
        ...


class StandardAuthorizer:
    """Decides by the cluster's ACLs, like Apache Kafka's class of that name.

    :param users: Principals that are allowed everything.
    :param allow_if_no_acl: The decision for resources to which no ACL applies.
    :param use: The record of the authorizer before a restart.
    """

    asks = False

    def __init__(
        self,
        acls: Mapping[str, AclBinding],
        users: Collection[str],
        *,
        allow_if_no_acl: bool,
        clock: Clock,
        use: AclUseRecord,
    ) -> None:
        self.since_ms = use.since_ms
        self._clock = clock
        self._super_users = frozenset(users)
        self._allow_if_no_acl = allow_if_no_acl
        self._indexes = indexes()
        self._decisions: dict[Question, bool] = {}
        self._recorded = RecordedDecisions(use.decisions_since_ms, use.decisions, use.left_out_count)
        #: entries of the indexes by identity, because hashing one takes as long as deciding
        self._last_used_ms: dict[int, int] = {}
        self._created_ms: dict[str, int] = {}  #: by the key of the ACL
        self._acls: dict[
            str, tuple[AclBinding, AclBinding]
        ] = {}  #: (the ACL as created, its entry in an index)
        self.version = 0  #: changes when cached responses must be made again
        for key, binding in acls.items():
            self._put(key, binding)
            if key in use.last_used_ms:
                self._last_used_ms[id(self._acls[key][1])] = use.last_used_ms[key]
            if key in use.created_ms:
                self._created_ms[key] = use.created_ms[key]

    async def apply(self, before: MetadataImage, after: MetadataImage, changed: ChangedKeys) -> None:
        """Apply a change of the cluster's state; a metadata listener."""
        keys = changed.of(ACLS)
        if not keys:
            return
        now_ms = self._clock.wall_ms()
        for number, key in enumerate(keys, 1):
            self._put(key, after.acls.get(key))
            if key in self._acls:
                self._created_ms[key] = now_ms
            if number % PUT_AT_ONCE_COUNT == 0:
                await asyncio.sleep(0)
        self._decisions.clear()
        self.version += 1

    def _put(self, key: str, binding: AclBinding | None) -> None:
        removed = self._acls.pop(key, None)
        if removed is not None:
            entry = self._indexes[removed[0].resource_type].remove(removed[0])
            self._last_used_ms.pop(id(entry), None)
            self._created_ms.pop(key, None)
        if binding is not None:
            self._acls[key] = binding, self._indexes[binding.resource_type].add(binding)

    def known(
        self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType, name: str
    ) -> bool:
        """Whether the operation on the resource is allowed; cached until ACLs change."""
        question = (principal, host, operation, resource_type, name)
        known = self._decisions.get(question)
        if known is None:
            known, by = self._decide(principal, host, operation, resource_type, name)
            self._record(question, by, is_allowed=known)
            if len(name) <= KEPT_NAME_LENGTH_MAX:
                self._keep(question, known)
        return known

    def _keep(self, question: Question, decision: bool) -> None:
        if len(self._decisions) >= DECISIONS_COUNT_MAX:
            self._decisions.clear()
        self._decisions[question] = decision

    def _record(self, question: Question, by: Sequence[AclBinding], *, is_allowed: bool) -> None:
        now_ms = self._clock.wall_ms()
        for entry in by:
            self._last_used_ms[id(entry)] = now_ms
        self._recorded.add(question, now_ms, is_allowed=is_allowed)
        if not is_allowed and _log.is_debug_enabled:
            principal, host, operation, resource_type, name = question
            what = f"{operation.name} on {resource_type.name} {name or '(any)'}"
            _log.debug("not allowed", principal=principal, host=host, what=what)

    def _decide(
        self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType, name: str
    ) -> tuple[bool, Sequence[AclBinding]]:
        """Return whether the operation is allowed, and the entries that decide that."""
        if principal in self._super_users:
            return True, ()
        permission, by = decide(self._indexes[resource_type], principal, host, operation, name)
        allowed = self._allow_if_no_acl if permission is None else permission is AclPermission.ALLOW
        if allowed and needs_cluster_alter(operation, resource_type, name):
            action = AclOperation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME
            allowed, more = self._decide(principal, host, *action)
            by = (*by, *more)
        return allowed, by

    def reported(
        self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType, name: str
    ) -> bool:
        known = self._decisions.get((principal, host, operation, resource_type, name))
        return self._decide(principal, host, operation, resource_type, name)[0] if known is None else known

    def is_super_user(self, principal: str) -> bool:
        return principal in self._super_users

    @property
    def may_deny_everyone(self) -> bool:
        """Whether nothing is allowed until there is an ACL."""
        return not (self._super_users or self._allow_if_no_acl)

    async def ask(self, principal: str, host: str, actions: Sequence[Action]) -> list[bool]:
        return [self.known(principal, host, *action) for action in actions]

    async def allows_any(
        self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType
    ) -> bool:
        return self.known_any(principal, host, operation, resource_type)

    def known_any(
        self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType
    ) -> bool:
        """Whether the operation is allowed on some resource of that type."""
        allowed, by = self._decide(principal, host, operation, resource_type, _ANY_NAME)
        if not allowed:
            allowed = decide_any(self._indexes[resource_type], principal, host, operation)
        self._record((principal, host, operation, resource_type, None), by, is_allowed=allowed)
        return allowed

    def used(self) -> list[AclTimes]:
        """Return the ACLs whose creation or use is known.

        A cached decision counts once, when it is made, so that later ones cost nothing.
        """
        found = [
            AclTimes(acl, self._last_used_ms.get(id(entry)), self._created_ms.get(key))
            for key, (acl, entry) in self._acls.items()
        ]
        return [each for each in found if (each.last_used_ms, each.created_ms) != (None, None)]

    def take_use_record(self) -> AclUseRecord:
        """Return what is to be kept over a restart; see `BrokerAuthorizer`."""
        self._decisions.clear()
        self.version += 1
        last_ms = self._last_used_ms
        used = {key: last_ms[id(entry)] for key, (_, entry) in self._acls.items() if id(entry) in last_ms}
        recorded = self._recorded
        return AclUseRecord(
            self.since_ms,
            recorded.since_ms,
            used,
            dict(self._created_ms),
            recorded.all(),
            recorded.left_out_count,
        )

    def decision_record(self) -> DecisionRecord:
        recorded = self._recorded
        return DecisionRecord(
            recorded.since_ms,
            recorded.all(),
            recorded.left_out_count,
            self._super_users,
            self._allow_if_no_acl,
        )

    def statistics(self) -> dict[str, int]:
        return {
            "acls_count": len(self._acls),
            "acls_used_count": len(self._last_used_ms),
            "decisions_count": len(self._decisions),
            "recorded_decisions_count": len(self._recorded),
        }


def standard_authorizer(
    config: BrokerConfig, metadata: MetadataWriter, clock: Clock, directory: Path
) -> StandardAuthorizer:
    """Return an authorizer that follows the cluster's ACLs.

    :param directory: Has the record of used ACLs.
    """
    users, allow_if_no_acl = super_users(config), allows_if_no_acl(config)
    authorizer = StandardAuthorizer(
        metadata.image.acls,
        users,
        allow_if_no_acl=allow_if_no_acl,
        clock=clock,
        use=read_acl_use(directory, config.node_id, clock.wall_ms()),
    )
    metadata.listen(authorizer.apply)
    return authorizer
