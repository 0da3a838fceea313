"""Turns changes into requests, ordered so that a change follows those that it depends on.

Access is granted before any is removed, and deletions come last.
"""

import enum
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from barnabas.client.admin.admin import Admin
from barnabas.client.admin.model import BROKER_DEFAULT, NewTopic
from barnabas.client.admin.quotas import ClientQuotaAlteration
from barnabas.client.admin.scram import ITERATIONS, Upsertion, UserScramCredentialDeletion
from barnabas.client.core.errors import ThrottlingQuotaExceeded
from barnabas.config.alter_op import AlterConfigOp, OpType
from barnabas.config.config_resource import Resource
from barnabas.declared.diff import PARTITIONS, REPLICATION_FACTOR, ChangeAction, Name, ResourceChange
from barnabas.declared.secrets import Secrets, without_secrets
from barnabas.declared.state import CONFIG_SECTIONS, Credential, SecretRef, Section
from barnabas.wire.acls import AclBinding, AclFilter, AclPermission
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.scram import MECHANISMS_BY_TITLE


class RequestKind(enum.IntEnum):
    """Kinds of requests, in the order in which they are sent."""

    SET_CREDENTIALS = enum.auto()
    ALLOW = enum.auto()
    CONFIGURE_BROKERS = enum.auto()
    CREATE_TOPICS = enum.auto()
    CREATE_PARTITIONS = enum.auto()
    CONFIGURE_TOPICS = enum.auto()
    CONFIGURE_GROUPS = enum.auto()
    CONFIGURE_CLIENT_METRICS = enum.auto()
    SET_QUOTAS = enum.auto()
    FORBID = enum.auto()
    REMOVE_ACLS = enum.auto()
    REMOVE_CREDENTIALS = enum.auto()
    DELETE_TOPICS = enum.auto()


class Task(NamedTuple):
    """The changes of one resource that one kind of request makes."""

    kind: RequestKind
    name: Name
    changes: tuple[ResourceChange, ...]

    @property
    def weight(self) -> int:
        """The task's share of a request: each new partition counts."""
        counts = [change.after for change in self.changes if change.key == PARTITIONS]
        return max([1, *(count for count in counts if isinstance(count, int))])


#: The largest weight of one request. Kafka creates at most 10,000 partitions at a time.
BATCH_WEIGHT = 500

Errors: TypeAlias = Mapping[Any, KafkaError | None]

_TRANSIENT = (
    ErrorCode.THROTTLING_QUOTA_EXCEEDED,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NOT_CONTROLLER,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
)

_CONFIGURE = {
    Section.GROUPS: RequestKind.CONFIGURE_GROUPS,
    Section.BROKERS: RequestKind.CONFIGURE_BROKERS,
    Section.CLIENT_METRICS: RequestKind.CONFIGURE_CLIENT_METRICS,
}


def kind_of(change: ResourceChange) -> RequestKind:
    """Return the kind of request that makes a change; creating a topic is recognised by its partition counts, which
    come first.
    """
    removes = change.action is ChangeAction.DELETE
    if change.section in _CONFIGURE:
        return _CONFIGURE[change.section]
    if change.section is Section.QUOTAS:
        return RequestKind.SET_QUOTAS
    if change.section is Section.USERS:
        return RequestKind.REMOVE_CREDENTIALS if removes else RequestKind.SET_CREDENTIALS
    if change.section is Section.ACLS:
        assert isinstance(change.name, AclBinding)
        allows = change.name.permission is AclPermission.ALLOW
        return RequestKind.REMOVE_ACLS if removes else RequestKind.ALLOW if allows else RequestKind.FORBID
    if change.key == PARTITIONS:
        return _KINDS_OF_PARTITION_CHANGES[change.action]
    return RequestKind.CONFIGURE_TOPICS


_KINDS_OF_PARTITION_CHANGES = {
    ChangeAction.CREATE: RequestKind.CREATE_TOPICS,
    ChangeAction.ALTER: RequestKind.CREATE_PARTITIONS,
    ChangeAction.DELETE: RequestKind.DELETE_TOPICS,
}


def tasks_of(changes: Sequence[ResourceChange]) -> list[Task]:
    """Return all tasks in order; a new topic and its configs are one task."""
    grouped: dict[tuple[RequestKind, Any], list[ResourceChange]] = {}
    new = {
        change.name
        for change in changes
        if change.section is Section.TOPICS
        and change.key == PARTITIONS
        and change.action is ChangeAction.CREATE
    }
    for change in changes:
        is_new = change.section is Section.TOPICS and change.name in new
        kind = RequestKind.CREATE_TOPICS if is_new else kind_of(change)
        grouped.setdefault((kind, change.name), []).append(change)
    tasks = [Task(kind, name, tuple(group)) for (kind, name), group in grouped.items()]
    return sorted(tasks, key=lambda task: task.kind)


def batches_of(tasks: Iterable[Task]) -> Iterator[list[Task]]:
    """Yield the tasks of one kind after the other, as many together as fit one request."""
    batch: list[Task] = []
    weight = 0
    for task in tasks:
        if batch and (batch[-1].kind is not task.kind or weight + task.weight > BATCH_WEIGHT):
            yield batch
            batch, weight = [], 0
        batch.append(task)
        weight += task.weight
    if batch:
        yield batch


def is_transient(error: KafkaError) -> bool:
    """Whether the same change may succeed later."""
    return error.code in _TRANSIENT


async def execute_batch(
    admin: Admin, batch: Sequence[Task], secrets: Secrets, *, validate_only: bool = False
) -> Errors:
    """Send the requests for tasks of one kind; return the error of each by resource name, None for success.

    That is one request, except one for each named broker, and one for each SCRAM mechanism.

    :raises SecretMissing: When a secret is missing.
    """
    errors = await _SENDERS[batch[0].kind](admin, batch, secrets, validate_only)
    values = [
        secrets.value(change.after)
        for task in batch
        for change in task.changes
        if isinstance(change.after, SecretRef)
    ]
    return (
        {name: error and _redacted_error(error, values) for name, error in errors.items()}
        if values
        else errors
    )


def _redacted_error(error: KafkaError, secrets: Collection[str]) -> KafkaError:
    """Return the error without secrets: brokers quote invalid values."""
    message = without_secrets(error.message, secrets)
    if isinstance(error, ThrottlingQuotaExceeded):
        return ThrottlingQuotaExceeded(message, error.throttle_time_ms)
    return KafkaError(error.code, message)


# Topics


async def _create_topics(
    admin: Admin, batch: Sequence[Task], secrets: Secrets, validate_only: bool
) -> Errors:
    topics = [_new_topic(task, secrets) for task in batch]
    results = await admin.create_topics(topics, validate_only=validate_only)
    return {name: result if isinstance(result, KafkaError) else None for name, result in results.items()}


def _new_topic(task: Task, secrets: Secrets) -> NewTopic:
    values = {change.key: change.after for change in task.changes}
    partitions, factor = values.pop(PARTITIONS), values.pop(REPLICATION_FACTOR)
    configs = {key: _text(value, secrets) for key, value in values.items()}
    return NewTopic(str(task.name), _count(partitions), _count(factor), configs)


def _count(value: Any) -> int:
    return value if isinstance(value, int) else BROKER_DEFAULT


async def _create_partitions(
    admin: Admin, batch: Sequence[Task], secrets: Secrets, validate_only: bool
) -> Errors:
    counts = {str(task.name): task.changes[0].after for task in batch}
    return await admin.create_partitions(counts, validate_only=validate_only)


async def _delete_topics(
    admin: Admin, batch: Sequence[Task], secrets: Secrets, validate_only: bool
) -> Errors:
    return await admin.delete_topics([str(task.name) for task in batch])


# Configs


async def _configure(admin: Admin, batch: Sequence[Task], secrets: Secrets, validate_only: bool) -> Errors:
    """Alter configs, broker by broker: an unavailable one does not affect the others."""
    edits = {_config_resource(task): [_edit(change, secrets) for change in task.changes] for task in batch}
    errors: dict[Any, KafkaError | None] = {}
    for part in _requests(edits):
        try:
            results = await admin.alter_configs(part, validate_only=validate_only)
        except KafkaError as error:
            results = dict.fromkeys(part, error)
        errors.update({resource.name: error for resource, error in results.items()})
    return errors


def _requests(
    edits: Mapping[Resource, Sequence[AlterConfigOp]],
) -> list[Mapping[Resource, Sequence[AlterConfigOp]]]:
    named = {
        each: edits[each] for each in edits if each.kind == CONFIG_SECTIONS[Section.BROKERS] and each.name
    }
    others = {each: edits[each] for each in edits if each not in named}
    return [*({each: named[each]} for each in named), *([others] if others else [])]


def _config_resource(task: Task) -> Resource:
    return Resource(CONFIG_SECTIONS[task.changes[0].section], str(task.name))


def _edit(change: ResourceChange, secrets: Secrets) -> AlterConfigOp:
    if change.after is None:
        return AlterConfigOp(change.key, OpType.DELETE)
    return AlterConfigOp(change.key, OpType.SET, _text(change.after, secrets))


def _text(value: Any, secrets: Secrets) -> str:
    return secrets.value(value) if isinstance(value, SecretRef) else str(value)


# Quotas, users, ACLs


async def _set_quotas(admin: Admin, batch: Sequence[Task], secrets: Secrets, validate_only: bool) -> Errors:
    alterations = [
        ClientQuotaAlteration(task.name, {change.key: change.after for change in task.changes})  # type: ignore[arg-type]
        for task in batch
    ]
    return await admin.alter_client_quotas(alterations, validate_only=validate_only)


async def _set_credentials(
    admin: Admin, batch: Sequence[Task], secrets: Secrets, validate_only: bool
) -> Errors:
    """Send a user's mechanisms one after the other, because a request may name a user once."""
    errors: dict[Any, KafkaError | None] = {}
    for title, mechanism in MECHANISMS_BY_TITLE.items():
        those = [each for task in batch for each in task.changes if each.key == title]
        alterations: list[Upsertion | UserScramCredentialDeletion] = []
        for change in those:
            user = str(change.name)
            if change.after is None:
                alterations.append(UserScramCredentialDeletion(user, mechanism))
                continue
            assert isinstance(change.after, Credential)
            assert change.after.password is not None
            password = secrets.value(change.after.password)
            iterations = change.after.iterations or ITERATIONS
            alterations.append(Upsertion(user, mechanism, password, iterations))
        if alterations:
            results = await admin.alter_user_scram_credentials(alterations)
            errors.update({user: errors.get(user) or error for user, error in results.items()})
    return errors


async def _create_acls(admin: Admin, batch: Sequence[Task], secrets: Secrets, validate_only: bool) -> Errors:
    acls = [_acl(task) for task in batch]
    return dict(zip(acls, await admin.create_acls(acls), strict=True))


async def _remove_acls(admin: Admin, batch: Sequence[Task], secrets: Secrets, validate_only: bool) -> Errors:
    """Remove ACLs; one that no longer exists counts as removed."""
    acls = [_acl(task) for task in batch]
    errors: dict[Any, KafkaError | None] = {}
    for acl, removed in zip(acls, await admin.delete_acls([AclFilter(*acl) for acl in acls]), strict=True):
        errors[acl] = removed if isinstance(removed, KafkaError) else removed.get(acl)
    return errors


def _acl(task: Task) -> AclBinding:
    assert isinstance(task.name, AclBinding)
    return task.name


_SENDERS: Mapping[RequestKind, Callable[[Admin, Sequence[Task], Secrets, bool], Awaitable[Errors]]] = (
    MappingProxyType(
        {
            RequestKind.SET_CREDENTIALS: _set_credentials,
            RequestKind.ALLOW: _create_acls,
            RequestKind.CONFIGURE_BROKERS: _configure,
            RequestKind.CREATE_TOPICS: _create_topics,
            RequestKind.CREATE_PARTITIONS: _create_partitions,
            RequestKind.CONFIGURE_TOPICS: _configure,
            RequestKind.CONFIGURE_GROUPS: _configure,
            RequestKind.CONFIGURE_CLIENT_METRICS: _configure,
            RequestKind.SET_QUOTAS: _set_quotas,
            RequestKind.FORBID: _create_acls,
            RequestKind.REMOVE_ACLS: _remove_acls,
            RequestKind.REMOVE_CREDENTIALS: _set_credentials,
            RequestKind.DELETE_TOPICS: _delete_topics,
        }
    )
)

#: Kinds of requests that support `validate_only`.
VALIDATABLE = (
    RequestKind.CONFIGURE_BROKERS,
    RequestKind.CREATE_TOPICS,
    RequestKind.CREATE_PARTITIONS,
    RequestKind.CONFIGURE_TOPICS,
    RequestKind.CONFIGURE_GROUPS,
    RequestKind.CONFIGURE_CLIENT_METRICS,
    RequestKind.SET_QUOTAS,
)
