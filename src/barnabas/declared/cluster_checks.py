"""Checks of changes by the cluster: errors that it would return, and records that it would delete."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from barnabas.base.ids import TopicPartition
from barnabas.base.plurals import plural
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.log_dirs import LogDirDescription
from barnabas.client.admin.offsets import EARLIEST, LATEST, ListedOffset, OffsetSpec
from barnabas.client.core.errors import check
from barnabas.config.config_resource import Resource, ResourceKind
from barnabas.declared.checks import RETENTION_MS, Applicant, lowered, with_diagnostic
from barnabas.declared.diff import Diagnostic, Level, ResourceChange
from barnabas.declared.executor import VALIDATABLE, batches_of, execute_batch, is_transient, tasks_of
from barnabas.declared.secrets import SecretMissing, Secrets
from barnabas.declared.state import Credential, SecretRef
from barnabas.wire.acls import AclOperation
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.describe_cluster import DescribeClusterRequest

#: A broker reports that keys of an authorizer are set, but hides their values.
_OPEN_WITHOUT_ACL = "allow.everyone.if.no.acl.found"


def refused_diagnostic(error: KafkaError) -> Diagnostic:
    """Return the diagnostic for a broker's refusal."""
    return Diagnostic(Level.IMPOSSIBLE, f"refused: {error}")


async def with_refusals(
    admin: Admin, changes: Sequence[ResourceChange], secrets: Secrets
) -> tuple[list[ResourceChange], set[ErrorCode]]:
    """Return the changes with the refusals of the cluster or one of its policies, asked with `validate_only`.

    A change that cannot be validated now, for example because of a quota, is not refused. Returns the error codes of
    the refusals, too.
    """
    found: dict[int, KafkaError] = {}
    tasks = tasks_of([each for each in changes if each.is_possible])
    for batch in batches_of(task for task in tasks if task.kind in VALIDATABLE):
        errors = await execute_batch(admin, batch, secrets, validate_only=True)
        for task in batch:
            error = errors.get(task.name)
            if error is not None:
                found.update((id(each), error) for each in task.changes)
    checked = [
        with_diagnostic(each, _diagnostic(found[id(each)])) if id(each) in found else each for each in changes
    ]
    return checked, {error.code for error in found.values() if not is_transient(error)}


def _diagnostic(error: KafkaError) -> Diagnostic:
    """Return the diagnostic for an error of a validation."""
    if is_transient(error):
        return Diagnostic(Level.NOTE, f"not validated: {error}")
    return refused_diagnostic(error)


def with_missing_secrets(changes: Iterable[ResourceChange], secrets: Secrets) -> list[ResourceChange]:
    """Return the changes, with a diagnostic on those whose secret is missing."""
    return [with_diagnostic(change, *_missing(change, secrets)) for change in changes]


def _missing(change: ResourceChange, secrets: Secrets) -> list[Diagnostic]:
    secret = change.after.password if isinstance(change.after, Credential) else change.after
    if not isinstance(secret, SecretRef) or not change.is_possible:
        return []
    try:
        secrets.value(secret)
    except SecretMissing as error:
        return [Diagnostic(Level.IMPOSSIBLE, str(error))]
    return []


async def applicant(admin: Admin, principal: str | None) -> Applicant:
    """Return the principal that applies a plan, and what the cluster reports about authorization; super users are not
    reported.
    """
    response = await admin.send(DescribeClusterRequest(include_cluster_authorized_operations=True))
    check(response.error_code, response.error_message)
    may_alter = bool(response.cluster_authorized_operations & 1 << AclOperation.ALTER)
    resource = Resource(ResourceKind.BROKER, str(min(admin.cluster.metadata.nodes)))
    entries = (await admin.describe_configs([resource], [_OPEN_WITHOUT_ACL]))[resource]
    values = [] if isinstance(entries, KafkaError) else [entry.value for entry in entries]
    return Applicant(principal, may_alter, any(value != "false" for value in values))


# Records that a lower limit deletes


async def with_deleted_records(
    admin: Admin, changes: Sequence[ResourceChange], now_ms: int
) -> list[ResourceChange]:
    """Return the changes, with the records that a lower retention would delete now."""
    there = {name for name, topic in admin.cluster.metadata.topics.items() if topic.error is None}
    limits = {
        change: limit for change in changes if (limit := lowered(change)) is not None and change.name in there
    }
    by_time = {str(each.name): limit for each, limit in limits.items() if each.key == RETENTION_MS}
    by_size = {str(each.name): limit for each, limit in limits.items() if each.key != RETENTION_MS}
    old = await _older(admin, {name: max(now_ms - limit, 0) for name, limit in by_time.items()})
    big = await _bigger(admin, by_size)
    return [
        with_diagnostic(each, _deleted_records(each, old if each.key == RETENTION_MS else big))
        if each in limits
        else each
        for each in changes
    ]


def _deleted_records(change: ResourceChange, texts_by_topic: Mapping[str, str]) -> Diagnostic:
    if str(change.name) not in texts_by_topic:
        return Diagnostic(Level.NOTE, "deletes no record that exists now")
    return Diagnostic(Level.DESTRUCTIVE, texts_by_topic[str(change.name)])


async def _older(admin: Admin, times_ms: Mapping[str, int]) -> dict[str, str]:
    """Return the topics with records older than a time, with the number of these records."""
    if not times_ms:
        return {}
    partitions = _partitions(admin, times_ms)
    earliest = await admin.list_offsets(dict.fromkeys(partitions, EARLIEST))
    latest = await admin.list_offsets(dict.fromkeys(partitions, LATEST))
    first_kept = await admin.list_offsets({each: OffsetSpec.at(times_ms[each.topic]) for each in partitions})
    counts: defaultdict[str, int] = defaultdict(int)
    silent = _leaderless(admin, times_ms)
    for tp in partitions:
        first, last, new = earliest[tp], latest[tp], first_kept[tp]
        if (
            isinstance(first, ListedOffset)
            and isinstance(last, ListedOffset)
            and isinstance(new, ListedOffset)
        ):
            counts[tp.topic] += (last.offset if new.offset < 0 else new.offset) - first.offset
        else:
            silent.add(tp)
    return {
        **{name: f"deletes about {plural(count, 'record')}" for name, count in counts.items() if count > 0},
        **_unknown_size_warnings(silent),
    }


async def _bigger(admin: Admin, limits: Mapping[str, int]) -> dict[str, str]:
    """Return the topics with partitions above a size limit, with the bytes above it."""
    if not limits:
        return {}
    partitions = _partitions(admin, limits)
    above: defaultdict[str, int] = defaultdict(int)
    silent = _leaderless(admin, limits) | set(partitions)
    for node in admin.cluster.metadata.nodes:
        for tp, size_bytes in _sizes(await admin.describe_log_dirs(node, partitions)).items():
            if admin.cluster.metadata.partition(tp).leader != node:
                continue
            silent.discard(tp)
            if size_bytes > limits[tp.topic]:
                above[tp.topic] += size_bytes - limits[tp.topic]
    return {
        **{name: f"deletes up to {count} bytes of records" for name, count in above.items()},
        **_unknown_size_warnings(silent),
    }


def _unknown_size_warnings(silent: Iterable[TopicPartition]) -> dict[str, str]:
    """Return warnings for topics with unknown sizes and offsets, which may lose records."""
    return {
        name.topic: f"may delete records: {name} does not report its sizes and offsets" for name in silent
    }


def _leaderless(admin: Admin, names: Collection[str]) -> set[TopicPartition]:
    topics = admin.cluster.metadata.topics
    return {
        TopicPartition(name, partition.partition_index)
        for name in names
        for partition in topics[name].partitions
        if partition.leader < 0
    }


def _sizes(directories: Iterable[LogDirDescription]) -> dict[TopicPartition, int]:
    return {
        tp: replica.size_bytes
        for directory in directories
        for tp, replica in directory.replicas.items()
        if not replica.is_future
    }


def _partitions(admin: Admin, names: Collection[str]) -> list[TopicPartition]:
    """Return the partitions that have a leader."""
    topics = admin.cluster.metadata.topics
    return [
        TopicPartition(name, partition.partition_index)
        for name in names
        for partition in topics[name].partitions
        if partition.leader >= 0
    ]
