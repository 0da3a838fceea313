"""Dynamic configs of topics, brokers, groups and client metrics, and their alteration.

AlterConfigs and IncrementalAlterConfigs decide each resource on its own: one that fails does not affect the others.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from barnabas.base.resource_names import resource_name
from barnabas.config.alter_op import AlterConfigOp, OpType
from barnabas.config.config_resource import EVERY_BROKER, Resource, ResourceKind
from barnabas.config.describe import is_sensitive
from barnabas.metadata.audit.difference import Difference, compare
from barnabas.metadata.decision import Decision
from barnabas.metadata.features import ELR_VERSION
from barnabas.metadata.record_type import AuditView, RecordRollback, RecordType, RowKeys
from barnabas.metadata.store import StoreChange
from barnabas.metadata.topics import TOPICS
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.metadata.audit.rollback import RollbackRules
    from barnabas.metadata.image import MetadataImage

#: The configs that are set for a resource; a resource without any has no record.
Overrides = Mapping[str, str]


def config_resource(kind: ResourceKind, name: str) -> str:
    """Return the audit name of a config resource."""
    return resource_name(kind.name, name)


def _audit(kind: ResourceKind) -> AuditView[Overrides]:
    def view(
        _image: "MetadataImage", name: str, before: Overrides | None, after: Overrides | None
    ) -> Iterator[Difference]:
        old, new = dict(before or {}), dict(after or {})
        has_secrets = kind is ResourceKind.BROKER
        secrets = filter(is_sensitive, old.keys() | new.keys()) if has_secrets else ()
        return compare(config_resource(kind, name), old, new, secrets)

    return view


def _rollback(kind: ResourceKind) -> RecordRollback[Overrides]:
    def restore(
        image: "MetadataImage", states: Mapping[str, Overrides | None], rules: "RollbackRules"
    ) -> Decision["ConfigAlterationResult | None"]:
        [(name, configs)] = ((name, state or {}) for name, state in states.items())
        resource = Resource(kind, name)
        existing = image.configs(resource)
        edits = [
            AlterConfigOp(key, OpType.SET, value)
            for key, value in configs.items()
            if existing.get(key) != value
        ]
        edits += [AlterConfigOp(key, OpType.DELETE) for key in existing if key not in configs]
        if not edits:
            return Decision(None)
        alteration = ConfigAlteration(resource, edits)
        decision = decide_alter(image, [alteration], rules.configs, validate_only=False)
        [result] = decision.response
        if result.error is not None:
            raise result.error
        return Decision(result, decision.changes, decision.reads)

    def row_keys(resource: str) -> RowKeys:
        prefix = config_resource(kind, "")
        return RowKeys((resource.removeprefix(prefix),)) if resource.startswith(prefix) else RowKeys()

    return RecordRollback(row_keys, restore)


def _record_type(name: str, kind: ResourceKind) -> RecordType[Overrides]:
    return RecordType(name, dict, dict, _audit(kind), keeps_history=True, rollback=_rollback(kind))


#: topic name -> its configs
TOPIC_CONFIGS = _record_type("topic_configs", ResourceKind.TOPIC)
#: broker id as text, or "" for the default of all brokers -> its configs
BROKER_CONFIGS = _record_type("broker_configs", ResourceKind.BROKER)
#: group id -> its configs
GROUP_CONFIGS = _record_type("group_configs", ResourceKind.GROUP)
#: subscription name -> its configs (KIP-714)
CLIENT_METRICS_CONFIGS = _record_type("client_metrics_configs", ResourceKind.CLIENT_METRICS)

#: Levels of loggers are not stored: they belong to a broker process, and end with it.
CONFIG_RECORD_TYPES: Mapping[ResourceKind, RecordType[Overrides]] = {
    ResourceKind.TOPIC: TOPIC_CONFIGS,
    ResourceKind.BROKER: BROKER_CONFIGS,
    ResourceKind.CLIENT_METRICS: CLIENT_METRICS_CONFIGS,
    ResourceKind.GROUP: GROUP_CONFIGS,
}


@dataclass(frozen=True, slots=True)
class ConfigAlteration:
    """The requested alteration of one resource's configs."""

    resource: Resource
    edits: Sequence[AlterConfigOp]
    #: remove all configs that no edit names, as AlterConfigs does
    replaces: bool = False


@dataclass(frozen=True, slots=True)
class AlterationRules:
    """What the broker requires of configs."""

    #: (resource, key) -> the default of a LIST key as text, to which entries are added; None for other keys
    list_default: Callable[[Resource, str], str | None]
    #: (resource, configs before, configs after); raises KafkaError if they are not valid
    check: Callable[[Resource, Overrides, Overrides], None]


@dataclass(frozen=True, slots=True)
class ConfigAlterationResult:
    """The result for one resource: its new configs, or the error."""

    resource: Resource
    #: key -> new value, or None if it is removed; for brokers, as in Kafka, also unchanged values
    edited: Mapping[str, str | None] = field(default_factory=dict)
    #: keys that are removed without being named
    removed: frozenset[str] = frozenset()
    error: KafkaError | None = None


def decide_alter(
    image: "MetadataImage",
    alterations: Sequence[ConfigAlteration],
    rules: AlterationRules,
    *,
    validate_only: bool,
) -> Decision[list[ConfigAlterationResult]]:
    """Decide each alteration, in order; each resource must occur once."""
    outcomes: list[ConfigAlterationResult] = []
    changes: list[StoreChange] = []
    reads: dict[str, int] = {}
    for alteration in alterations:
        resource = alteration.resource
        existing = image.configs(resource)
        try:
            check_edits(alteration.edits)
            edited = _edited_configs(existing, alteration, rules)
            altered = _altered_configs(existing, edited, replaces=alteration.replaces)
            rules.check(resource, existing, altered)
            _check_min_isr(image, resource, edited)
        except KafkaError as error:
            outcomes.append(ConfigAlterationResult(resource, error=error.without_traceback()))
            continue
        removed = existing.keys() - altered.keys() - edited.keys()
        outcomes.append(
            ConfigAlterationResult(resource, _changed_keys(resource, existing, edited), frozenset(removed))
        )
        if altered != existing and not validate_only:
            changes.append(_change(resource, altered))
            reads.update(_reads(image, resource))
    return Decision(outcomes, tuple(changes), reads)


def check_edits(edits: Sequence[AlterConfigOp]) -> None:
    """Check that no key is edited twice, and that values are present.

    :raises KafkaError: INVALID_REQUEST.
    """
    [*twice] = (key for key, count in Counter(edit.key for edit in edits).items() if count > 1)
    if twice:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Config '{twice[0]}' is named more than once.")
    for edit in edits:
        if edit.value is None and edit.operation is not OpType.DELETE:
            message = f"Config '{edit.key}' has no value: {edit.operation.name} requires one."
            raise KafkaError(ErrorCode.INVALID_REQUEST, message)


def _check_min_isr(image: "MetadataImage", resource: Resource, edited: Mapping[str, str | None]) -> None:
    """Refuse min.insync.replicas of one broker: any broker decides which replicas are eligible leaders (KIP-966)."""
    is_of_one_broker = resource.kind is ResourceKind.BROKER and resource.name != EVERY_BROKER
    if is_of_one_broker and "min.insync.replicas" in edited and image.finalized_features.get(ELR_VERSION, 0):
        message = "Broker-level min.insync.replicas cannot be altered while ELR is enabled."
        raise KafkaError(ErrorCode.INVALID_CONFIG, message)


def _edited_configs(
    existing: Overrides, alteration: ConfigAlteration, rules: AlterationRules
) -> dict[str, str | None]:
    edited: dict[str, str | None] = {}
    for key, operation, value in alteration.edits:
        if operation is OpType.DELETE:
            edited[key] = None
        elif operation is OpType.SET:
            edited[key] = value
        else:
            default = rules.list_default(alteration.resource, key)
            if default is None:
                message = f"{operation.name} applies to lists only; set '{key}' with SET."
                raise KafkaError(ErrorCode.INVALID_CONFIG, message)
            edited[key] = _edited_list(existing.get(key, default), operation, value or "")
    return edited


def _edited_list(text: str, operation: OpType, value: str) -> str:
    """Add or remove entries of a list, which are compared as written, including blanks."""
    entries = _entries(text) if text else []
    named = dict.fromkeys(_entries(value))
    if operation is OpType.SUBTRACT:
        return ",".join(entry for entry in entries if entry not in named)
    present = frozenset(entries)
    return ",".join([*entries, *(entry for entry in named if entry not in present)])


def _entries(text: str) -> list[str]:
    """Split a list as Kafka does: an empty text is one empty entry, and empty entries at the end are left out."""
    return (text.rstrip(",").split(",") if text.strip(",") else []) if text else [""]


def _changed_keys(
    resource: Resource, existing: Overrides, edited: Mapping[str, str | None]
) -> Mapping[str, str | None]:
    if resource.kind is ResourceKind.BROKER:
        return edited
    return {key: value for key, value in edited.items() if value != existing.get(key)}


def _altered_configs(
    existing: Overrides, edited: Mapping[str, str | None], *, replaces: bool
) -> dict[str, str]:
    merged = {**({} if replaces else existing), **edited}
    return {key: value for key, value in merged.items() if value is not None}


def _change(resource: Resource, altered: Overrides) -> StoreChange:
    record_type = CONFIG_RECORD_TYPES[resource.kind]
    return record_type.put(resource.name, altered) if altered else record_type.remove(resource.name)


def _reads(image: "MetadataImage", resource: Resource) -> dict[str, int]:
    record_type = CONFIG_RECORD_TYPES[resource.kind]
    reads = {record_type.key(resource.name): image.config_revision(resource)}
    if resource.kind is ResourceKind.TOPIC:
        reads[TOPICS.key(resource.name)] = image.topics.revision(resource.name)
    return reads
