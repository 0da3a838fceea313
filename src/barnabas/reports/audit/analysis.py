"""Analysis of audit events: use of ACLs, drift of settings, recommendations. No IO."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from barnabas.client.admin.acls import AclUse
from barnabas.wire.acls import AclBinding, AclOperation, AclPermission, PatternType, ResourceType

#: Prefix of the keys of events about ACLs.
ACL_KEY = "acl "
#: Kind of these events; other events have the kind of their resource.
ACL_KIND = "acl"

_CONFIGS = ("AlterConfigs", "IncrementalAlterConfigs")
#: Requests that create topics; brokers also auto-create them on Metadata requests.
_CREATING = ("CreateTopics", "Metadata", "UndeleteTopic")
_OP, _TYPE = AclOperation, ResourceType


class Need(NamedTuple):
    """Permission that a request needs to change a kind of resource.

    If there are several for the same request and kind, one is enough.
    """

    api: str
    kind: str  #: of the event's resource, as topic
    operation: AclOperation
    resource_type: ResourceType
    is_own: bool  #: on the resource itself; else on the cluster


def _on_cluster(operation: AclOperation, kinds: Mapping[str, Sequence[str]]) -> list[Need]:
    return [
        Need(api, kind, operation, _TYPE.CLUSTER, is_own=False)
        for api, api_kinds in kinds.items()
        for kind in api_kinds
    ]


#: Kinds of resources of denied ACL requests; granted ones have the kind `ACL_KIND`.
_ACL_RESOURCE_KINDS = ("topic", "group", "cluster", "transactional-id", "delegation-token", "user")
_ROLLBACK = "RollbackResource"

#: Permissions that brokers check for the requests in the audit.
NEEDS: tuple[Need, ...] = (
    *(Need(api, "topic", _OP.CREATE, _TYPE.TOPIC, is_own=True) for api in _CREATING),
    *_on_cluster(_OP.CREATE, dict.fromkeys(_CREATING, ("topic",))),
    *(Need(api, "topic", _OP.DELETE, _TYPE.TOPIC, is_own=True) for api in ("DeleteTopics", "DeleteRecords")),
    *(Need(api, "topic", _OP.DELETE, _TYPE.TOPIC, is_own=True) for api in ("UndeleteTopic", "PurgeTopics")),
    *(Need(api, "group", _OP.DELETE, _TYPE.GROUP, is_own=True) for api in ("DeleteGroups", "OffsetDelete")),
    Need("CreateDelegationToken", "user", _OP.CREATE_TOKENS, _TYPE.USER, is_own=True),
    Need("CreatePartitions", "topic", _OP.ALTER, _TYPE.TOPIC, is_own=True),
    *(Need(api, "topic", _OP.ALTER_CONFIGS, _TYPE.TOPIC, is_own=True) for api in (*_CONFIGS, _ROLLBACK)),
    *(Need(api, "group", _OP.ALTER_CONFIGS, _TYPE.GROUP, is_own=True) for api in (*_CONFIGS, _ROLLBACK)),
    *_on_cluster(_OP.ALTER_CONFIGS, dict.fromkeys(_CONFIGS, ("broker", "broker-logger", "client-metrics"))),
    *_on_cluster(_OP.ALTER_CONFIGS, {"AlterClientQuotas": ("quota",)}),
    *_on_cluster(_OP.ALTER_CONFIGS, {_ROLLBACK: ("broker", "client-metrics", "quota")}),
    *_on_cluster(_OP.ALTER, dict.fromkeys(("CreateAcls", "DeleteAcls"), (ACL_KIND, *_ACL_RESOURCE_KINDS))),
    *_on_cluster(_OP.ALTER, {_ROLLBACK: (ACL_KIND, "user"), "AlterUserScramCredentials": ("user",)}),
    *_on_cluster(_OP.ALTER, dict.fromkeys(("AlterPartitionReassignments", "ElectLeaders"), ("topic", "cluster"))),
    *_on_cluster(_OP.ALTER, dict.fromkeys(("AlterReplicaLogDirs", "WriteTxnMarkers"), ("topic", "cluster"))),
    *_on_cluster(_OP.ALTER, {"ImportSegments": ("topic", "cluster")}),
    *_on_cluster(_OP.CLUSTER_ACTION, {"WriteTxnMarkers": ("topic", "cluster")}),
    *_on_cluster(_OP.ALTER, {"UpdateFeatures": ("feature", "cluster"), "UnregisterBroker": ("broker", "cluster")}),
    *_on_cluster(_OP.ALTER, dict.fromkeys(("AddRaftVoter", "RemoveRaftVoter"), ("cluster",))),
)  # fmt: skip

_AUDITED_PERMISSIONS = frozenset((need.operation, need.resource_type) for need in NEEDS)


class AclChange(NamedTuple):
    """An ACL was created, or removed if `is_made` is false; time in ms since the epoch."""

    time: int
    principal: str  #: who did it
    binding: AclBinding
    is_made: bool


class Grant(NamedTuple):
    """Lifetime of an ACL as far as the audit covers it: `made` is None for before the audit, `removed` if it exists."""

    binding: AclBinding
    made: int | None = None
    made_by: str | None = None
    removed: int | None = None
    removed_by: str | None = None

    @property
    def is_standing(self) -> bool:
        """Whether the ACL exists now."""
        return self.removed is None


class Use(NamedTuple):
    """How often an ACL decided audited requests; `grant` is the index in the list of grants."""

    grant: int
    requests_count: int
    last: int  #: ms since the epoch


class GrantUse(NamedTuple):
    """An ACL and its use; `status` is one of the values of `use_status`."""

    grant: Grant
    uses_count: int  #: in the audit
    last_used: int | None
    principal_seen: int | None  #: when its principal last changed something or tried to
    status: str
    #: since when no broker has used it in a decision; None if one has, or if brokers do not report it
    unused_since: int | None = None


USED, UNUSED, UNCHANGED, NOT_AUDITED = "used", "unused", "no change", "not audited"


def grants_of(changes: Iterable[AclChange], standing: Iterable[AclBinding] | None) -> list[Grant]:
    """Return every ACL that existed, in the order of creation.

    :param changes: In the order of their events.
    :param standing: The ACLs that brokers have now; None if brokers do not report them and only the audit is used.
    """
    open_: dict[AclBinding, Grant] = {}
    grants: list[Grant] = []
    for time, principal, binding, is_made in changes:
        if is_made:
            open_[binding] = Grant(binding, time, principal)
        else:
            grants.append(open_.pop(binding, Grant(binding))._replace(removed=time, removed_by=principal))
    if standing is None:
        grants += open_.values()
    else:
        grants += [open_.get(binding, Grant(binding)) for binding in standing]
    return sorted(grants, key=lambda grant: (grant.made or 0, grant.binding))


def use_status(grant: Grant, uses_count: int, acl_use: AclUse | None) -> str:
    """Return the use of an ACL as one of four values.

    `used`: the audit or a broker has seen it decide a request. `unused`: the ACL exists and no broker that reports its
    decisions has used it. Without such reports only the audit counts, which has the requests that change the cluster:
    `no change` if the ACL permits audited changes (and perhaps descriptions, which are not audited), `not audited` if
    it permits none (records, groups, transactions).
    """
    binding = grant.binding
    if uses_count or (acl_use is not None and grant.is_standing and binding in acl_use.last_used_ms):
        return USED
    if acl_use is not None and grant.is_standing:
        return UNUSED
    types = {
        kind for operation, kind in _AUDITED_PERMISSIONS if binding.operation in (operation, AclOperation.ALL)
    }
    return UNCHANGED if binding.resource_type in types else NOT_AUDITED


def grant_uses(
    grants: Sequence[Grant], uses: Iterable[Use], seen: Mapping[str, int], acl_use: AclUse | None = None
) -> list[GrantUse]:
    """Return each grant with its uses.

    :param seen: Time of each principal's last event, in ms since the epoch.
    :param acl_use: What brokers report about existing ACLs; None if they report nothing.
    """
    by_grant = {use.grant: use for use in uses}
    result = []
    for number, grant in enumerate(grants):
        use = by_grant.get(number)
        count = 0 if use is None else use.requests_count
        is_unused = acl_use is not None and grant.is_standing and grant.binding not in acl_use.last_used_ms
        result.append(
            GrantUse(
                grant,
                count,
                None if use is None else use.last,
                seen.get(grant.binding.principal),
                use_status(grant, count, acl_use),
                max(acl_use.since_ms, grant.made or 0) if acl_use is not None and is_unused else None,
            )
        )
    return result


class KeyDay(NamedTuple):
    """A key of a resource at the end of a day (UTC) on which it was changed."""

    resource: str
    key: str
    date: str
    before: str | None  #: at the start of the day
    after: str | None


class DriftCount(NamedTuple):
    """Drift at the end of a day: the number of keys whose values differ from their first known value."""

    date: str
    keys_count: int
    changed_count: int  #: keys that were changed on that day


def drift_of(days: Iterable[KeyDay]) -> list[DriftCount]:
    """Return the drift of each day with changes, in order."""
    by_date: defaultdict[str, list[KeyDay]] = defaultdict(list)
    for key_day in days:
        by_date[key_day.date].append(key_day)
    first: dict[tuple[str, str], str | None] = {}
    drifted: set[tuple[str, str]] = set()
    counts = []
    for date in sorted(by_date):
        for day in by_date[date]:
            key = day.resource, day.key
            if day.after == first.setdefault(key, day.before):
                drifted.discard(key)
            else:
                drifted.add(key)
        counts.append(DriftCount(date, len(drifted), len(by_date[date])))
    return counts


def acl_text(binding: AclBinding) -> str:
    """Format an ACL, for example as `ALLOW READ on topic/ord* from *`."""
    star = "*" if binding.pattern_type is PatternType.PREFIXED else ""
    kind = binding.resource_type.name.lower().replace("_", "-")
    permission = f"{binding.permission.name} {binding.operation.name} on {kind}/{binding.resource_name}{star}"
    return f"{permission} from {binding.host}"


def advice(grants: Sequence[GrantUse], refusals: Mapping[str, int]) -> list[str]:
    """Return recommendations for an operator.

    :param refusals: Number of authorization errors of each principal.
    """
    lines = []
    for grant_use in grants:
        binding = grant_use.grant.binding
        if not grant_use.grant.is_standing or binding.permission is not AclPermission.ALLOW:
            continue
        if grant_use.status == UNUSED:
            lines.append(
                f"{binding.principal}: {acl_text(binding)} is not used; check since when its use has been counted"
            )
        elif grant_use.status == UNCHANGED:
            lines.append(
                f"{binding.principal}: no change used {acl_text(binding)}; remove it unless it is needed to describe "
                "resources, which is not audited"
            )
    for principal, count in sorted(refusals.items(), key=lambda item: (-item[1], item[0])):
        lines.append(
            f"{principal} had {count} authorization errors: grant the permission, or find out which client sends "
            "the requests"
        )
    return lines
