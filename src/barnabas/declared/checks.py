"""Checks of changes that need no cluster: deleted records, removed access, moved keys. Pure."""

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from barnabas.declared.diff import (
    PARTITIONS,
    REPLICATION_FACTOR,
    ChangeAction,
    Diagnostic,
    Level,
    ResourceChange,
)
from barnabas.declared.live import CLEANUP_POLICY
from barnabas.declared.state import ClusterState, Credential, Section
from barnabas.wire.acls import (
    WILDCARD_PRINCIPAL,
    AclBinding,
    AclOperation,
    AclPermission,
    ResourceType,
)

RETENTION_MS = "retention.ms"
RETENTION_BYTES = "retention.bytes"
UNLIMITED = -1
#: Broker configs that topics inherit and that decide what is deleted.
_INHERITED = tuple(f"log.{key}" for key in (RETENTION_MS, RETENTION_BYTES, CLEANUP_POLICY))

_ALTERING = (AclOperation.ALTER, AclOperation.ALL)
_BY_HAND = "set it in the broker's configuration and restart the broker"


def with_diagnostic(change: ResourceChange, *diagnostics: Diagnostic) -> ResourceChange:
    """Return the change with these diagnostics added."""
    return replace(change, diagnostics=change.diagnostics + diagnostics) if diagnostics else change


def moved_share(before: int, after: int) -> float:
    """Return the share of keys that move to another partition when a topic grows from `before` to `after` partitions.

    A key stays if its hash has the same remainder for both: `before` of every `lcm(before, after)` hashes.
    """
    return 1 - min(before, after) / math.lcm(before, after)


def check_changes(changes: Iterable[ResourceChange], live: ClusterState) -> list[ResourceChange]:
    """Return the changes with the diagnostics of each change by itself."""
    return [with_diagnostic(change, *_diagnostics(change, live)) for change in changes]


def _diagnostics(change: ResourceChange, live: ClusterState) -> list[Diagnostic]:
    if change.action is ChangeAction.EXPECT:
        return [Diagnostic(Level.NOTE, _BY_HAND)]
    if change.section is Section.TOPICS:
        return _of_topic(change, live)
    if change.section is Section.BROKERS:
        return _of_broker(change)
    if change.section is Section.USERS:
        return _of_user(change)
    if change.section is Section.ACLS and change.action is ChangeAction.DELETE:
        assert isinstance(change.name, AclBinding)
        allows = change.name.permission is AclPermission.ALLOW
        what = "what it allows is no longer allowed" if allows else "what it denies is no longer denied"
        return [Diagnostic(Level.DESTRUCTIVE, what)]
    return []


def _of_topic(change: ResourceChange, live: ClusterState) -> list[Diagnostic]:
    if change.key == PARTITIONS and change.action is ChangeAction.DELETE:
        return [Diagnostic(Level.DESTRUCTIVE, "deletes the topic and all its records")]
    if change.key == PARTITIONS and change.action is ChangeAction.ALTER:
        return [_of_partitions(change, live)]
    if change.key == REPLICATION_FACTOR and change.action is ChangeAction.ALTER:
        text = (
            f"apply cannot change the replication factor from {change.before} to {change.after}: "
            "use 'barnabas reassignments start'"
        )
        return [Diagnostic(Level.IMPOSSIBLE, text)]
    if change.key == CLEANUP_POLICY and change.name in live.topics:
        return _of_cleanup(change)
    if change.key in (RETENTION_MS, RETENTION_BYTES) and change.action is ChangeAction.DELETE:
        text = "back to the broker's default, which may keep less"
        return [Diagnostic(Level.DESTRUCTIVE, text)]
    return []


def _of_partitions(change: ResourceChange, live: ClusterState) -> Diagnostic:
    before, after = change.before, change.after
    if after < before:
        text = f"the number of partitions cannot be reduced from {before}: keep it, or delete and recreate the topic"
        return Diagnostic(Level.IMPOSSIBLE, text)
    text = f"{moved_share(before, after):.0%} of keys will move to another partition"
    if _is_compacted(live.topics[str(change.name)].configs.get(CLEANUP_POLICY)):
        hint = f"{text}: on a compacted topic their old values stay behind; see 'barnabas jobs rekey'"
        return Diagnostic(Level.WARNING, hint)
    return Diagnostic(Level.NOTE, f"{text}, without their earlier records")


def _is_compacted(policy: object) -> bool:
    return "compact" in str(policy).split(",")


def _of_cleanup(change: ResourceChange) -> list[Diagnostic]:
    if _is_compacted(change.after) and not _is_compacted(change.before):
        return [Diagnostic(Level.DESTRUCTIVE, "deletes all but the last record of each key")]
    return [Diagnostic(Level.DESTRUCTIVE, "other records are deleted than before")]


def _of_broker(change: ResourceChange) -> list[Diagnostic]:
    """Warn about a broker's retention, which deletes records of topics that inherit it."""
    key = change.key.removeprefix("log.")
    before, after = _limit(change.before), _limit(change.after)
    if change.key not in _INHERITED or _keeps_more(before, after):
        return []
    what = (
        "delete other records than before" if key == CLEANUP_POLICY else "may keep less, and delete the rest"
    )
    return [Diagnostic(Level.DESTRUCTIVE, f"topics without their own {key} {what}")]


def _keeps_more(before: int | None, after: int | None) -> bool:
    return after == UNLIMITED or (
        before is not None and after is not None and before != UNLIMITED and before <= after
    )


def _of_user(change: ResourceChange) -> list[Diagnostic]:
    if change.action is ChangeAction.DELETE:
        return [Diagnostic(Level.DESTRUCTIVE, "the user can no longer log in with it")]
    assert isinstance(change.after, Credential)
    if change.after.password is None:
        text = "a new credential requires a password: set password: {env: NAME} or {file: PATH}"
        return [Diagnostic(Level.IMPOSSIBLE, text)]
    return []


def lowered(change: ResourceChange) -> int | None:
    """Return the new limit of a retention config, if it is lower than before or than the default."""
    if change.section is not Section.TOPICS or change.key not in (RETENTION_MS, RETENTION_BYTES):
        return None
    before, after = _limit(change.before), _limit(change.after)
    is_new = change.action is ChangeAction.CREATE and change.before is None
    if after in (None, UNLIMITED) or (before is None and not is_new):
        return None
    assert after is not None
    return after if before in (None, UNLIMITED) or after < before else None


def _limit(value: object) -> int | None:
    text = str(value)
    return int(text) if text.removeprefix("-").isdecimal() else None


# Lockout


@dataclass(frozen=True)
class Applicant:
    """The principal that applies a plan, and the authorizer's settings that decide what it may do."""

    principal: str | None  #: None if only the brokers know it
    may_alter: bool = True  #: as the cluster says (KIP-430)
    open_without_acl: bool = (
        False  #: whether operations on resources without any ACL are allowed for all principals
    )

    def loses(self, before: Collection[AclBinding], after: Collection[AclBinding]) -> bool:
        """Whether the principal would lose the right to alter ACLs; super users have it without an ACL."""
        if not self.may_alter or self._is_allowed(after):
            return False
        if self._is_allowed(before):
            return True
        return self.open_without_acl and not _of_cluster(before) and bool(_of_cluster(after))

    def _is_allowed(self, acls: Iterable[AclBinding]) -> bool:
        """Return whether ACLs alone allow it, from at least one host."""
        mine = [acl for acl in _of_cluster(acls) if acl.principal in (self.principal, WILDCARD_PRINCIPAL)]
        meant = [acl for acl in mine if acl.operation in _ALTERING]
        denied = any(acl.permission is AclPermission.DENY for acl in meant)
        return not denied and any(acl.permission is AclPermission.ALLOW for acl in meant)


def _of_cluster(acls: Iterable[AclBinding]) -> list[AclBinding]:
    return [acl for acl in acls if acl.resource_type is ResourceType.CLUSTER]


def acls_after(acls: Collection[AclBinding], changes: Iterable[ResourceChange]) -> set[AclBinding]:
    """Return what remains of ACLs, and what is added to them, after the changes."""
    after = set(acls)
    for change in changes:
        if isinstance(change.name, AclBinding):
            (after.discard if change.action is ChangeAction.DELETE else after.add)(change.name)
    return after


def with_lockout(
    changes: Sequence[ResourceChange], live: ClusterState, applicant: Applicant
) -> list[ResourceChange]:
    """Return the changes, with a diagnostic on those that remove the applicant's right to alter the cluster."""
    if applicant.principal is None:
        return _with_possible_lockout(changes, live, applicant)
    if not applicant.loses(live.acls, acls_after(live.acls, changes)):
        return list(changes)
    text = f"{applicant.principal} applies this plan, and could then ALTER the cluster only as a super user"
    return [
        with_diagnostic(each, Diagnostic(Level.LOCKOUT, text)) if _is_about_cluster(each) else each
        for each in changes
    ]


def _with_possible_lockout(
    changes: Sequence[ResourceChange], live: ClusterState, applicant: Applicant
) -> list[ResourceChange]:
    """Return the changes, with a diagnostic on those that may remove the right of an unknown principal."""
    if not applicant.may_alter:
        return list(changes)
    text = "only the brokers know the principal that applies this plan, and it may then be unable to ALTER the cluster"
    closes = applicant.open_without_acl and not _of_cluster(live.acls)
    return [
        with_diagnostic(each, Diagnostic(Level.LOCKOUT, text))
        if _is_about_cluster(each) and (closes or _limits_alter(each))
        else each
        for each in changes
    ]


def _limits_alter(change: ResourceChange) -> bool:
    """Whether the change of an ACL denies to ALTER, or no longer allows it."""
    acl = change.name
    if not isinstance(acl, AclBinding) or acl.operation not in _ALTERING:
        return False
    removes = change.action is ChangeAction.DELETE
    return removes is (acl.permission is AclPermission.ALLOW)


def with_own_user(changes: Iterable[ResourceChange], principal: str | None) -> list[ResourceChange]:
    """Return the changes, with a diagnostic on those that remove a credential of the applicant."""
    diagnostic = Diagnostic(
        Level.LOCKOUT, f"{principal} applies this plan, and could then no longer log in with this credential"
    )
    return [
        with_diagnostic(each, diagnostic)
        if each.section is Section.USERS
        and each.action is ChangeAction.DELETE
        and f"User:{each.name}" == principal
        else each
        for each in changes
    ]


def _is_about_cluster(change: ResourceChange) -> bool:
    return isinstance(change.name, AclBinding) and change.name.resource_type is ResourceType.CLUSTER
