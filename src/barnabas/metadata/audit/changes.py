"""The differences that a commit makes, by resource and key, without secrets.

A resource is named by its kind and name: `topic/orders`, `topic/ord*` for what a prefixed ACL covers, `broker/1`,
`broker/` for every broker, `quota/user=alice,client-id` where a missing name stands for the default, `user/alice`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

from barnabas.base.resource_names import quota_resource, resource_name
from barnabas.config.config_resource import ResourceKind
from barnabas.config.describe import is_sensitive
from barnabas.metadata.acls import ACLS
from barnabas.metadata.audit.historical_value import FORMER_VALUES, HISTORY_START
from barnabas.metadata.audit.records import AUDIT, Difference
from barnabas.metadata.brokers import BROKERS, BrokerRegistration
from barnabas.metadata.cluster import CLUSTER
from barnabas.metadata.configs import (
    BROKER_CONFIGS,
    CLIENT_METRICS_CONFIGS,
    GROUP_CONFIGS,
    TOPIC_CONFIGS,
    Overrides,
)
from barnabas.metadata.features import FINALIZED_FEATURES
from barnabas.metadata.image import RECORD_TYPES, MetadataImage
from barnabas.metadata.producer_ids import PRODUCER_IDS
from barnabas.metadata.quotas import QUOTAS, ClientQuota
from barnabas.metadata.scram import SCRAM_CREDENTIALS, Credentials
from barnabas.metadata.store import StoreChange
from barnabas.metadata.topics import (
    DELETED_TOPICS,
    PARTITION_STATES,
    TAKEN_NAMES,
    TOPICS,
    PartitionRegistration,
    TopicImage,
)
from barnabas.metadata.trash import TRASHED_TOPICS, TrashRecord
from barnabas.wire.acls import AclBinding, PatternType, ResourceType

#: Stands for a secret value; a difference still shows that the value has changed.
HIDDEN = "(hidden)"

#: A row of the store as keys and values; {} for a row that does not exist.
View: TypeAlias = dict[str, Any]

#: Record types that brokers use internally; their changes are not audited.
UNTOLD = frozenset(
    record_type.name
    for record_type in (
        AUDIT,
        CLUSTER,
        DELETED_TOPICS,
        FORMER_VALUES,
        HISTORY_START,
        PARTITION_STATES,
        PRODUCER_IDS,
        TAKEN_NAMES,
    )
)


def differences(image: MetadataImage, changes: Iterable[StoreChange]) -> Iterator[Difference]:
    """Yield the differences that `changes` would make to the cluster state `image`."""
    for change in changes:
        name, _, row = change.key.partition("/")
        after: Any = None if change.value is None else RECORD_TYPES[name].decode(change.value)
        if name == PARTITION_STATES.name:
            yield from _partition_differences(image, row, after)
        elif name not in UNTOLD:
            before = getattr(image, name).get(row)
            if before != after:
                yield from _VIEWS[name](row, before, after)


def _compared(resource: str, before: View, after: View, secrets: Iterable[str] = ()) -> Iterator[Difference]:
    hidden = frozenset(secrets)
    for key in sorted(before.keys() | after.keys()):
        old, new = before.get(key), after.get(key)
        if old == new:
            continue
        if key in hidden:
            old, new = (None if value is None else HIDDEN for value in (old, new))
        yield Difference(resource, key, old, new)


def _topic(row: str, before: TopicImage | None, after: TopicImage | None) -> Iterator[Difference]:
    def view(topic: TopicImage | None) -> View:
        if topic is None:
            return {}
        replicas = [list(brokers) for brokers in topic.assignments]
        return {"topic id": topic.topic_id.hex(), "partitions": topic.partition_count, "replicas": replicas}

    return _compared(f"topic/{row}", view(before), view(after))


def _trashed(row: str, before: TrashRecord | None, after: TrashRecord | None) -> Iterator[Difference]:
    trashed = after or before
    assert trashed is not None
    yield Difference(f"topic/{trashed.name}", "in the trash", before and row, after and row)


def _partition_differences(
    image: MetadataImage, row: str, after: PartitionRegistration | None
) -> Iterator[Difference]:
    """Return the differences in replicas and leader; none for topics that do not exist any more, or not yet."""
    topic_id, _, index = row.partition("/")
    topic = image.topic_by_id(bytes.fromhex(topic_id))
    if topic is None or after is None or int(index) >= topic.partition_count:
        return iter(())

    def view(state: PartitionRegistration) -> View:
        fields = {"replicas": state.replicas or topic.assignments[int(index)], "leader": state.leader}
        fields |= {"isr": state.isr, "adding": state.adding, "removing": state.removing}
        return {f"partition {index} {key}": _to_json(value) for key, value in fields.items()}

    return _compared(f"topic/{topic.name}", view(image.partition(topic, int(index))), view(after))


def _to_json(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def config_resource(kind: ResourceKind, name: str) -> str:
    """Return the audit name of a config resource."""
    return resource_name(kind.name, name)


def _configs(kind: ResourceKind) -> Callable[[str, Overrides | None, Overrides | None], Iterator[Difference]]:
    def view(row: str, before: Overrides | None, after: Overrides | None) -> Iterator[Difference]:
        old, new = dict(before or {}), dict(after or {})
        has_secrets = kind is ResourceKind.BROKER
        secrets = filter(is_sensitive, old.keys() | new.keys()) if has_secrets else ()
        return _compared(config_resource(kind, row), old, new, secrets)

    return view


def acl_resource(resource_type: ResourceType, name: str, pattern: PatternType) -> str:
    """Return the audit name of the resource that an ACL covers."""
    return resource_name(resource_type.name, name, prefixed=pattern is PatternType.PREFIXED)


def _acl(_row: str, before: AclBinding | None, after: AclBinding | None) -> Iterator[Difference]:
    binding = after or before
    assert binding is not None
    permission, operation = binding.permission.name, binding.operation.name
    key = f"acl {binding.principal} {permission} {operation} from {binding.host}"
    yield Difference(
        acl_resource(binding.resource_type, binding.resource_name, binding.pattern_type),
        key,
        None if before is None else list(before),
        None if after is None else list(after),
    )


def _quota(_row: str, before: ClientQuota | None, after: ClientQuota | None) -> Iterator[Difference]:
    quota = after or before
    assert quota is not None
    values = (dict(quota.values) if quota else {} for quota in (before, after))
    return _compared(quota_resource(quota.entity), *values)


def _user(row: str, before: Credentials | None, after: Credentials | None) -> Iterator[Difference]:
    """Yield the iterations of each mechanism; a new password with the same iterations is a difference, too."""
    old, new = before or {}, after or {}
    for mechanism in sorted(old.keys() | new.keys()):
        credentials = old.get(mechanism), new.get(mechanism)
        if credentials[0] != credentials[1]:
            values = (None if each is None else {"iterations": each.iterations} for each in credentials)
            yield Difference(f"user/{row}", mechanism.title, *values)


def _broker(
    row: str, before: BrokerRegistration | None, after: BrokerRegistration | None
) -> Iterator[Difference]:
    def view(broker: BrokerRegistration | None) -> View:
        if broker is None:
            return {}
        endpoints = [
            f"{endpoint.listener}://{endpoint.host}:{endpoint.port}" for endpoint in broker.endpoints
        ]
        state = {"fenced": broker.fenced, "cordoned": broker.cordoned}
        return {"endpoints": endpoints, "rack": broker.rack, **state}

    return _compared(f"broker/{row}", view(before), view(after))


def _feature(row: str, before: int | None, after: int | None) -> Iterator[Difference]:
    yield Difference(f"feature/{row}", "level", before, after)


_VIEWS: Mapping[str, Callable[[str, Any, Any], Iterator[Difference]]] = MappingProxyType(
    {
        ACLS.name: _acl,
        BROKERS.name: _broker,
        BROKER_CONFIGS.name: _configs(ResourceKind.BROKER),
        CLIENT_METRICS_CONFIGS.name: _configs(ResourceKind.CLIENT_METRICS),
        FINALIZED_FEATURES.name: _feature,
        GROUP_CONFIGS.name: _configs(ResourceKind.GROUP),
        QUOTAS.name: _quota,
        SCRAM_CREDENTIALS.name: _user,
        TOPICS.name: _topic,
        TOPIC_CONFIGS.name: _configs(ResourceKind.TOPIC),
        TRASHED_TOPICS.name: _trashed,
    }
)
