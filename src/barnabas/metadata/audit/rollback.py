"""RollbackResource: restore a resource to its state at a revision, in one change or not at all.

Each part is decided as by its own API, so that nothing is restored that is no longer valid.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from barnabas.metadata import acls
from barnabas.metadata.audit.changes import differences
from barnabas.metadata.audit.difference import Difference
from barnabas.metadata.audit.history import history_start, states_of, value_at
from barnabas.metadata.configs import AlterationRules, ConfigAlterationResult
from barnabas.metadata.decision import Decision
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.record_type import split_key
from barnabas.metadata.registry import record_types
from barnabas.metadata.store import StoreChange
from barnabas.metadata.topics import TOPICS, TopicImage
from barnabas.wire.errors import ErrorCode, KafkaError

TOPIC_PREFIX = "topic/"


@dataclass(frozen=True, slots=True)
class RollbackRules:
    """What the broker requires of configs and ACLs."""

    configs: AlterationRules
    check_new_acl: acls.Check
    check_removed_acl: acls.Check
    #: called with the names of the changed record types; raises KafkaError if the principal is not authorized
    authorize: Callable[[frozenset[str]], None]


@dataclass(frozen=True, slots=True)
class RolledBack:
    """The differences by key, without secrets, and notes for the user."""

    differences: tuple[Difference, ...] = ()
    notes: tuple[str, ...] = ()
    altered: ConfigAlterationResult | None = None  #: the altered configs, for the policies


def decide_rollback(
    image: MetadataImage, resource: str, revision: int, rules: RollbackRules, *, validate_only: bool
) -> Decision[RolledBack]:
    """Restore the configs, ACLs, quotas and credentials that a resource had, named as in the audit.

    :raises KafkaError: INVALID_REQUEST for an unknown revision, RESOURCE_NOT_FOUND for a resource without any such
        records, UNKNOWN_TOPIC_OR_PARTITION for a deleted topic, and the errors of each part.
    """
    _check_revision(image, revision)
    notes = _topic_notes(image, resource.removeprefix(TOPIC_PREFIX), revision) if _is_topic(resource) else ()
    states = states_of(image, resource, revision)
    if not states and not (_is_topic(resource) and resource.removeprefix(TOPIC_PREFIX) in image.topics):
        message = f"{resource} has no configs, ACLs, quotas or users, and its history has none either."
        raise KafkaError(ErrorCode.RESOURCE_NOT_FOUND, message)
    restored = _restore(image, states, rules)
    rules.authorize(frozenset(split_key(change.key)[0] for change in restored.changes))
    response = RolledBack(tuple(differences(image, restored.changes)), notes, restored.response)
    return Decision(response) if validate_only else Decision(response, restored.changes, restored.reads)


def _restore(
    image: MetadataImage, states: Mapping[str, Any], rules: RollbackRules
) -> Decision[ConfigAlterationResult | None]:
    """Decide what restores the records of a resource, given by their keys in the store."""
    by_type: defaultdict[str, dict[str, Any]] = defaultdict(dict)
    for key, state in states.items():
        name, row_key = split_key(key)
        by_type[name][row_key] = state
    changes: list[StoreChange] = []
    reads: dict[str, int] = {}
    altered: ConfigAlterationResult | None = None
    for name, rows in by_type.items():
        rollback = record_types()[name].rollback
        assert rollback is not None
        decision = rollback.restore(image, rows, rules)
        changes += decision.changes
        reads |= decision.reads
        altered = decision.response or altered
    return Decision(altered, tuple(changes), reads)


def _is_topic(resource: str) -> bool:
    return resource.startswith(TOPIC_PREFIX) and not resource.endswith("*")


def _check_revision(image: MetadataImage, revision: int) -> None:
    start = history_start(image)
    if start is None:
        message = "The cluster keeps no history: barnabas.audit.enable is false."
    elif revision > image.revision:
        message = f"Revision {revision} does not exist yet: the cluster is at revision {image.revision}."
    elif revision < start:
        message = f"Revision {revision} is no longer in the history, which begins with revision {start}."
    else:
        return
    raise KafkaError(ErrorCode.INVALID_REQUEST, message)


def _topic_notes(image: MetadataImage, name: str, revision: int) -> tuple[str, ...]:
    """Return notes about what a rollback of the topic does not restore.

    :raises KafkaError: If the topic exists only now, or existed only then.
    """
    then: TopicImage | None = value_at(image, TOPICS.key(name), revision)
    now = image.topics.get(name)
    if then is None and now is None:
        return ()
    if now is None:
        message = f"Topic '{name}' has been deleted since revision {revision}"
        is_trashed = any(trashed.name == name for trashed in image.trashed_topics.values())
        message += ": restore it from the trash with 'barnabas topics undelete'." if is_trashed else "."
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
    if then is None:
        message = f"Topic '{name}' did not exist at revision {revision}."
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)
    if then.topic_id != now.topic_id:
        return (f"At revision {revision} '{name}' was another topic, which has been deleted since.",)
    if then.partition_count == now.partition_count:
        return ()
    counts = f"{now.partition_count} partitions, at revision {revision} it had {then.partition_count}"
    return (f"Topic '{name}' has {counts}: partitions cannot be removed.",)
