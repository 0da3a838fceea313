"""What events of the audit say of a cluster: whose grants are used, what drifts, what to look at. No IO."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from barnabas.client.admin.acls import AclUse
from barnabas.wire.acls import AclBinding, AclOperation, AclPermission, PatternType, ResourceType

#: What keys of events begin with that tell of ACLs.
ACL_KEY = "acl "
#: What they are of; of all others the kind of their resource.
ACL_KIND = "acl"

_CONFIGS = ("AlterConfigs", "IncrementalAlterConfigs")
#: Brokers make topics for who asks for their metadata, too.
_CREATING = ("CreateTopics", "Metadata", "UndeleteTopic")
_OP, _TYPE = AclOperation, ResourceType


class Need(NamedTuple):
    """What a principal must be allowed so that a request may change a kind of resource.

    Of several for the same request and kind, one is enough.
    """

    api: str
    kind: str  #: of the event's resource, as topic
    operation: AclOperation
    resource_type: ResourceType
    is_own: bool  #: on the resource itself; else on the cluster


def _on_cluster(operation: AclOperation, kinds: Mapping[str, Sequence[str]]) -> list[Need]:
    return [
        Need(api, kind, operation, _TYPE.CLUSTER, is_own=False) for api, its in kinds.items() for kind in its
    ]


#: What ACLs are on, of requests that were refused; those that were granted tell of an ACL.
_BEARERS = ("topic", "group", "cluster", "transactional-id", "delegation-token", "user")
_ROLLBACK = "RollbackResource"

#: As the brokers ask, of requests that the audit tells of.
NEEDS: tuple[Need, ...] = (
    *(Need(api, "topic", _OP.CREATE, _TYPE.TOPIC, is_own=True) for api in _CREATING),
    *_on_cluster(_OP.CREATE, dict.fromkeys(_CREATING, ("topic",))),
    *(Need(api, "topic", _OP.DELETE, _TYPE.TOPIC, is_own=True) for api in ("DeleteTopics", "DeleteRecords")),
    *(Need(api, "topic", _OP.DELETE, _TYPE.TOPIC, is_own=True) for api in ("UndeleteTopic", "PurgeTopics")),
    *(Need(api, "group", _OP.DELETE, _TYPE.GROUP, is_own=True) for api in ("DeleteGroups", "OffsetDelete")),
    Need("CreatePartitions", "topic", _OP.ALTER, _TYPE.TOPIC, is_own=True),
    *(Need(api, "topic", _OP.ALTER_CONFIGS, _TYPE.TOPIC, is_own=True) for api in (*_CONFIGS, _ROLLBACK)),
    *(Need(api, "group", _OP.ALTER_CONFIGS, _TYPE.GROUP, is_own=True) for api in (*_CONFIGS, _ROLLBACK)),
    *_on_cluster(_OP.ALTER_CONFIGS, dict.fromkeys(_CONFIGS, ("broker", "broker-logger", "client-metrics"))),
    *_on_cluster(_OP.ALTER_CONFIGS, {"AlterClientQuotas": ("quota",)}),
    *_on_cluster(_OP.ALTER_CONFIGS, {_ROLLBACK: ("broker", "client-metrics", "quota")}),
    *_on_cluster(_OP.ALTER, dict.fromkeys(("CreateAcls", "DeleteAcls"), (ACL_KIND, *_BEARERS))),
    *_on_cluster(_OP.ALTER, {_ROLLBACK: (ACL_KIND, "user"), "AlterUserScramCredentials": ("user",)}),
    *_on_cluster(_OP.ALTER, dict.fromkeys(("AlterPartitionReassignments", "ElectLeaders"), ("topic", "cluster"))),
    *_on_cluster(_OP.ALTER, dict.fromkeys(("AlterReplicaLogDirs", "WriteTxnMarkers"), ("topic", "cluster"))),
    *_on_cluster(_OP.CLUSTER_ACTION, {"WriteTxnMarkers": ("topic", "cluster")}),
    *_on_cluster(_OP.ALTER, {"UpdateFeatures": ("feature", "cluster"), "UnregisterBroker": ("broker", "cluster")}),
    *_on_cluster(_OP.ALTER, dict.fromkeys(("AddRaftVoter", "RemoveRaftVoter"), ("cluster",))),
)  # fmt: skip

_TOLD = frozenset((need.operation, need.resource_type) for need in NEEDS)


class AclChange(NamedTuple):
    """An event that tells of an ACL: made, or with `is_made` false removed; time in ms since the epoch."""

    time: int
    principal: str  #: who did it
    binding: AclBinding
    is_made: bool


class Grant(NamedTuple):
    """An ACL from when to when it stood, as far as the audit tells; None for before the audit, and for still."""

    binding: AclBinding
    made: int | None = None
    made_by: str | None = None
    removed: int | None = None
    removed_by: str | None = None

    @property
    def is_standing(self) -> bool:
        """Whether it is there now."""
        return self.removed is None


class Use(NamedTuple):
    """How often an ACL decided what the audit tells of, by its place in the list of grants."""

    grant: int
    requests_count: int
    last: int  #: ms since the epoch


class GrantUse(NamedTuple):
    """An ACL and what became of it; `verdict` is one of the words of `verdict_of`."""

    grant: Grant
    uses_count: int  #: of which the audit tells
    last_used: int | None
    principal_seen: int | None  #: when its principal last changed anything, or wanted to
    verdict: str
    #: from when on no broker has decided anything by it; None where one has, or none tells
    unused_since: int | None = None


USED, UNUSED, UNCHANGED, UNTOLD = "used", "unused", "no change", "not told"


def grants_of(changes: Iterable[AclChange], standing: Iterable[AclBinding] | None) -> list[Grant]:
    """Every ACL that there was, in the order of their making.

    :param changes: In order.
    :param standing: What the brokers have now; None where they do not tell, and the audit alone counts.
    """
    open_: dict[AclBinding, Grant] = {}
    found: list[Grant] = []
    for time, principal, binding, is_made in changes:
        if is_made:
            open_[binding] = Grant(binding, time, principal)
        else:
            found.append(open_.pop(binding, Grant(binding))._replace(removed=time, removed_by=principal))
    if standing is None:
        found += open_.values()
    else:
        found += [open_.get(binding, Grant(binding)) for binding in standing]
    return sorted(found, key=lambda each: (each.made or 0, each.binding))


def verdict_of(grant: Grant, uses_count: int, told: AclUse | None) -> str:
    """What can be said of an ACL.

    `used`, as the audit or a broker tells. Else, of one that stands where brokers tell of their decisions, `unused`.
    Else the audit alone counts, which tells of requests that change the cluster, and of no others: `no change`, where
    changes are among what it is for (and descriptions, which are not told); `not told`, as none are: the data
    itself, groups, transactions.
    """
    binding = grant.binding
    if uses_count or (told is not None and grant.is_standing and binding in told.used):
        return USED
    if told is not None and grant.is_standing:
        return UNUSED
    types = {kind for operation, kind in _TOLD if binding.operation in (operation, AclOperation.ALL)}
    return UNCHANGED if binding.resource_type in types else UNTOLD


def judged(
    grants: Sequence[Grant], uses: Iterable[Use], seen: Mapping[str, int], told: AclUse | None = None
) -> list[GrantUse]:
    """Each grant with its uses.

    :param seen: When each principal was last told of, in ms since the epoch.
    :param told: What brokers say of the ACLs that stand; None where they say nothing.
    """
    by_grant = {each.grant: each for each in uses}
    found = []
    for number, grant in enumerate(grants):
        use = by_grant.get(number)
        count = 0 if use is None else use.requests_count
        is_unused = told is not None and grant.is_standing and grant.binding not in told.used
        found.append(
            GrantUse(
                grant,
                count,
                None if use is None else use.last,
                seen.get(grant.binding.principal),
                verdict_of(grant, count, told),
                max(told.since_ms, grant.made or 0) if told is not None and is_unused else None,
            )
        )
    return found


class KeyDay(NamedTuple):
    """A key of a resource at the end of a day (UTC) on which it was changed."""

    resource: str
    key: str
    date: str
    before: str | None  #: at the day's begin
    after: str | None


class DriftCount(NamedTuple):
    """How far the cluster was from its beginning at the end of a day: keys whose values differ from their first."""

    date: str
    keys_count: int
    changed_count: int  #: keys that were changed on that day


def drift_of(days: Iterable[KeyDay]) -> list[DriftCount]:
    """Each day on which something was changed, in order."""
    by_date: defaultdict[str, list[KeyDay]] = defaultdict(list)
    for each in days:
        by_date[each.date].append(each)
    first: dict[tuple[str, str], str | None] = {}
    away: set[tuple[str, str]] = set()
    found = []
    for date in sorted(by_date):
        for day in by_date[date]:
            place = day.resource, day.key
            if day.after == first.setdefault(place, day.before):
                away.discard(place)
            else:
                away.add(place)
        found.append(DriftCount(date, len(away), len(by_date[date])))
    return found


def acl_text(binding: AclBinding) -> str:
    """An ACL in words, as `ALLOW READ on topic/ord* from *`."""
    star = "*" if binding.pattern_type is PatternType.PREFIXED else ""
    kind = binding.resource_type.name.lower().replace("_", "-")
    what = f"{binding.permission.name} {binding.operation.name} on {kind}/{binding.resource_name}{star}"
    return f"{what} from {binding.host}"


def advice(grants: Sequence[GrantUse], refusals: Mapping[str, int]) -> list[str]:
    """What an operator might look at.

    :param refusals: How often each principal was refused for want of a right.
    """
    said = []
    for each in grants:
        binding = each.grant.binding
        if not each.grant.is_standing or binding.permission is not AclPermission.ALLOW:
            continue
        if each.verdict == UNUSED:
            said.append(
                f"{binding.principal}: {acl_text(binding)} is not used; see from when on that was counted"
            )
        elif each.verdict == UNCHANGED:
            said.append(
                f"{binding.principal}: nothing was changed by {acl_text(binding)}; take it away, unless it is there "
                "to describe, which the audit does not tell"
            )
    for principal, count in sorted(refusals.items(), key=lambda item: (-item[1], item[0])):
        said.append(
            f"{principal} was refused {count} times for want of a right: grant it, or find out who asks"
        )
    return said
