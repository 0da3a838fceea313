"""RollbackResource, decided: what a resource had at a revision comes back in one change, or nothing does.

Each part is decided as if its own API had asked for it, so that what may not be now does not come back.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from barnabas.config.alter_op import AlterConfigOp, OpType
from barnabas.config.config_resource import Resource
from barnabas.metadata import acls, config_alteration, quotas
from barnabas.metadata.acls import ACLS
from barnabas.metadata.audit.changes import differences
from barnabas.metadata.audit.records import Difference
from barnabas.metadata.audit.stored_history import history_start, states_of, value_at
from barnabas.metadata.config_alteration import AlterationRules, ConfigAlteration, ConfigAlterationResult
from barnabas.metadata.configs import CONFIG_RECORD_TYPES, Overrides
from barnabas.metadata.decision import Decision
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.quotas import QUOTAS, ClientQuota
from barnabas.metadata.scram import SCRAM_CREDENTIALS, decide_restore_credentials
from barnabas.metadata.store import StoreChange
from barnabas.metadata.topics import TOPICS, TopicImage
from barnabas.wire.acls import AclBinding, AclFilter
from barnabas.wire.errors import ErrorCode, KafkaError

_KINDS = {record_type.name: kind for kind, record_type in CONFIG_RECORD_TYPES.items()}

TOPIC_PREFIX = "topic/"


@dataclass(frozen=True, slots=True)
class RollbackRules:
    """What the broker says about configs and ACLs."""

    configs: AlterationRules
    check_new_acl: acls.Check
    check_removed_acl: acls.Check
    #: called with the nouns of which something is to be changed; raises KafkaError for who may not
    authorize: Callable[[frozenset[str]], None]


@dataclass(frozen=True, slots=True)
class RolledBack:
    """What changes, key by key and without secrets, and what people should know besides."""

    differences: tuple[Difference, ...] = ()
    notes: tuple[str, ...] = ()
    altered: ConfigAlterationResult | None = (
        None  #: the configs that change, as policies are asked about them
    )


@dataclass(slots=True)
class _Parts:
    """The changes as they come together."""

    changes: list[StoreChange] = field(default_factory=list)
    reads: dict[str, int] = field(default_factory=dict)

    def add(self, decision: Decision[Any]) -> Any:
        self.changes += decision.changes
        self.reads |= decision.reads
        return decision.response


def decide_rollback(
    image: MetadataImage, resource: str, revision: int, rules: RollbackRules, *, validate_only: bool
) -> Decision[RolledBack]:
    """Let a resource, named as in the audit, have the configs, ACLs, quotas and credentials that it had.

    :raises KafkaError: INVALID_REQUEST for a revision that is not known, RESOURCE_NOT_FOUND for a resource that never
        had anything, UNKNOWN_TOPIC_OR_PARTITION for a topic that is gone, and whatever speaks against one of the parts.
    """
    _check_revision(image, revision)
    notes = _topic_notes(image, resource.removeprefix(TOPIC_PREFIX), revision) if _is_topic(resource) else ()
    states = states_of(image, resource, revision)
    if not states and not (_is_topic(resource) and resource.removeprefix(TOPIC_PREFIX) in image.topics):
        message = f"{resource} has no configs, ACLs, quotas or users, and none are known of from before."
        raise KafkaError(ErrorCode.RESOURCE_NOT_FOUND, message)
    parts, altered = _Parts(), None
    for key, state in states.items():
        name, _, row = key.partition("/")
        if name in _KINDS:
            altered = (
                _restore_configs(image, Resource(_KINDS[name], row), state or {}, rules, parts) or altered
            )
        elif name == QUOTAS.name:
            _restore_quota(image, row, state, parts)
        elif name == SCRAM_CREDENTIALS.name:
            parts.add(decide_restore_credentials(image.scram_credentials, row, state))
    _restore_acls(
        image, {key: state for key, state in states.items() if key.startswith(ACLS.key(""))}, rules, parts
    )
    rules.authorize(frozenset(change.key.partition("/")[0] for change in parts.changes))
    response = RolledBack(tuple(differences(image, parts.changes)), notes, altered)
    return Decision(response) if validate_only else Decision(response, tuple(parts.changes), parts.reads)


def _is_topic(resource: str) -> bool:
    return resource.startswith(TOPIC_PREFIX) and not resource.endswith("*")


def _check_revision(image: MetadataImage, revision: int) -> None:
    start = history_start(image)
    if start is None:
        message = "Nothing is kept of what was before: barnabas.audit.enable is false."
    elif revision > image.revision:
        message = f"Revision {revision} is yet to come: the cluster is at {image.revision}."
    elif revision < start:
        message = f"Revision {revision} is not known any more: the history begins with revision {start}."
    else:
        return
    raise KafkaError(ErrorCode.INVALID_REQUEST, message)


def _topic_notes(image: MetadataImage, name: str, revision: int) -> tuple[str, ...]:
    """What about a topic does not come back.

    :raises KafkaError: When there is no such topic, now or then, while there was one, then or now.
    """
    then: TopicImage | None = value_at(image, TOPICS.key(name), revision)
    now = image.topics.get(name)
    if then is None and now is None:
        return ()
    if now is None:
        message = f"Topic '{name}' has been deleted since revision {revision}"
        is_trashed = any(each.name == name for each in image.trashed_topics.values())
        message += ": 'barnabas topics undelete' brings it back from the trash." if is_trashed else "."
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
    if then is None:
        message = f"There was no topic '{name}' at revision {revision}."
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)
    if then.topic_id != now.topic_id:
        return (f"At revision {revision} '{name}' was another topic, which has been deleted since.",)
    if then.partition_count == now.partition_count:
        return ()
    counts = f"{now.partition_count} partitions, at revision {revision} it had {then.partition_count}"
    return (f"Topic '{name}' has {counts}: partitions cannot be taken away.",)


def _restore_configs(
    image: MetadataImage, resource: Resource, wanted: Overrides, rules: RollbackRules, parts: _Parts
) -> ConfigAlterationResult | None:
    existing = image.configs(resource)
    edits = [
        AlterConfigOp(key, OpType.SET, value) for key, value in wanted.items() if existing.get(key) != value
    ]
    edits += [AlterConfigOp(key, OpType.DELETE) for key in existing if key not in wanted]
    if not edits:
        return None
    decision = config_alteration.decide_alter(
        image, [ConfigAlteration(resource, edits)], rules.configs, validate_only=False
    )
    parts.add(decision)
    [altered] = decision.response
    if altered.error is not None:
        raise altered.error
    return altered


def _restore_quota(image: MetadataImage, row: str, state: ClientQuota | None, parts: _Parts) -> None:
    now = image.quotas.get(row)
    quota = state or now
    if quota is None:
        return
    before, after = (dict(each.values) if each else {} for each in (now, state))
    operations = [(key, after.get(key)) for key in {**before, **after} if before.get(key) != after.get(key)]
    if operations:
        alteration = quotas.QuotaAlteration(quota.entity, operations)
        [altered] = parts.add(quotas.decide_alter(image.quotas, [alteration]))
        if altered.error is not None:
            raise altered.error


def _restore_acls(
    image: MetadataImage, states: dict[str, AclBinding | None], rules: RollbackRules, parts: _Parts
) -> None:
    rows = {key.removeprefix(ACLS.key("")): state for key, state in states.items()}
    gone = [image.acls[row] for row, state in rows.items() if state is None and row in image.acls]
    new = [state for row, state in rows.items() if state is not None and row not in image.acls]
    created = acls.decide_create_acls(image.acls, new, rules.check_new_acl)
    removed = acls.decide_delete_acls(
        image.acls, [AclFilter(*binding) for binding in gone], rules.check_removed_acl
    )
    errors = [*parts.add(created), *(each.error for found in parts.add(removed) for each in found)]
    for error in errors:
        if error is not None:
            raise error
