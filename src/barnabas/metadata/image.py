"""Cluster state as one node knows it: immutable, at a revision of the store."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from barnabas.config.config_resource import Resource
from barnabas.metadata.acls import ACLS
from barnabas.metadata.audit.historical_value import FORMER_VALUES, HISTORY_START, FormerValue
from barnabas.metadata.audit.records import AUDIT, AuditRecord
from barnabas.metadata.brokers import BROKERS, BrokerRegistration
from barnabas.metadata.cluster import CLUSTER, ClusterRecord
from barnabas.metadata.configs import (
    BROKER_CONFIGS,
    CLIENT_METRICS_CONFIGS,
    CONFIG_RECORD_TYPES,
    GROUP_CONFIGS,
    TOPIC_CONFIGS,
    Overrides,
)
from barnabas.metadata.features import FINALIZED_FEATURES
from barnabas.metadata.producer_ids import PRODUCER_IDS
from barnabas.metadata.quotas import QUOTAS, ClientQuota
from barnabas.metadata.record_type import Table
from barnabas.metadata.scram import SCRAM_CREDENTIALS, Credentials
from barnabas.metadata.store import Commit, Item
from barnabas.metadata.topics import (
    DELETED_TOPICS,
    PARTITION_STATES,
    TAKEN_NAMES,
    TOPICS,
    DeletedTopic,
    PartitionRegistration,
    TopicImage,
    initial_state,
    partition_key,
)
from barnabas.metadata.trash import TRASHED_TOPICS, TrashRecord
from barnabas.wire.acls import AclBinding

#: What the cluster knows of, by the first part of a key.
RECORD_TYPES = MappingProxyType(
    {
        record_type.name: record_type
        for record_type in (
            ACLS,
            AUDIT,
            BROKERS,
            BROKER_CONFIGS,
            CLIENT_METRICS_CONFIGS,
            CLUSTER,
            GROUP_CONFIGS,
            TOPIC_CONFIGS,
            PRODUCER_IDS,
            SCRAM_CREDENTIALS,
            QUOTAS,
            DELETED_TOPICS,
            FINALIZED_FEATURES,
            FORMER_VALUES,
            HISTORY_START,
            PARTITION_STATES,
            TAKEN_NAMES,
            TOPICS,
            TRASHED_TOPICS,
        )
    }
)


@dataclass(frozen=True, slots=True)
class MetadataImage:
    """Everything the cluster knows, noun by noun. Decisions read it; only `replay` makes the next one."""

    revision: int = 0
    cluster: Table[ClusterRecord] = field(default_factory=Table)
    brokers: Table[BrokerRegistration] = field(default_factory=Table)
    topics: Table[TopicImage] = field(default_factory=Table)
    taken_names: Table[str] = field(default_factory=Table)
    partition_states: Table[PartitionRegistration] = field(default_factory=Table)
    deleted_topics: Table[DeletedTopic] = field(default_factory=Table)
    trashed_topics: Table[TrashRecord] = field(default_factory=Table)
    topic_configs: Table[Overrides] = field(default_factory=Table)
    broker_configs: Table[Overrides] = field(default_factory=Table)
    group_configs: Table[Overrides] = field(default_factory=Table)
    client_metrics_configs: Table[Overrides] = field(default_factory=Table)
    producer_ids: Table[int] = field(default_factory=Table)
    acls: Table[AclBinding] = field(default_factory=Table)
    scram_credentials: Table[Credentials] = field(default_factory=Table)
    quotas: Table[ClientQuota] = field(default_factory=Table)
    finalized_features: Table[int] = field(default_factory=Table)
    audit: Table[AuditRecord] = field(default_factory=Table)  #: what has not been published yet
    former_values: Table[FormerValue] = field(default_factory=Table)
    history_start: Table[int] = field(default_factory=Table)
    #: topic id -> name
    topic_names: Mapping[bytes, str] = field(default_factory=dict)

    @staticmethod
    def load(revision: int, items: Iterable[Item]) -> "MetadataImage":
        """The image of a whole store."""
        tables: dict[str, dict[str, Any]] = {name: {} for name in RECORD_TYPES}
        revisions: dict[str, dict[str, int]] = {name: {} for name in RECORD_TYPES}
        for item in items:
            name, _, key = item.key.partition("/")
            tables[name][key] = RECORD_TYPES[name].decode(item.value)
            revisions[name][key] = item.revision
        loaded = {name: Table(tables[name], revisions[name]) for name in RECORD_TYPES}
        names = {topic.topic_id: topic.name for topic in loaded[TOPICS.name].values()}
        return MetadataImage(revision=revision, topic_names=names, **loaded)

    def replay(self, commit: Commit) -> "MetadataImage":
        """The image after one committed transaction. It never fails: what is committed is so."""
        assert commit.revision > self.revision, (commit.revision, self.revision)
        changed: dict[str, dict[str, Any]] = {}
        for change in commit.changes:
            name, _, key = change.key.partition("/")
            value = None if change.value is None else RECORD_TYPES[name].decode(change.value)
            changed.setdefault(name, {})[key] = value
        tables = {
            name: getattr(self, name).replay(commit.revision, changes) for name, changes in changed.items()
        }
        names = self._replay_topic_names(changed.get(TOPICS.name, {}))
        return replace(self, revision=commit.revision, topic_names=names, **tables)

    def _replay_topic_names(self, changed: Mapping[str, TopicImage | None]) -> Mapping[bytes, str]:
        if not changed:
            return self.topic_names
        names = dict(self.topic_names)
        for name, topic in changed.items():
            before = self.topics.get(name)
            if before is not None:
                names.pop(before.topic_id, None)
            if topic is not None:
                names[topic.topic_id] = name
        return names

    def revision_of(self, key: str) -> int:
        """The revision that last wrote a key of the store; NEVER where there is none."""
        name, _, row = key.partition("/")
        table: Table[Any] = getattr(self, name)
        return table.revision(row)

    def topic_by_id(self, topic_id: bytes) -> TopicImage | None:
        """The topic with an id; None when there is none."""
        name = self.topic_names.get(topic_id)
        return None if name is None else self.topics.get(name)

    def configs(self, resource: Resource) -> Overrides:
        """What is set for a resource; nothing for one that nobody has configured."""
        return self._configs(resource).get(resource.name, {})

    def config_revision(self, resource: Resource) -> int:
        """The revision that last wrote a resource's configs; NEVER where there are none."""
        return self._configs(resource).revision(resource.name)

    def _configs(self, resource: Resource) -> Table[Overrides]:
        table: Table[Overrides] = getattr(self, CONFIG_RECORD_TYPES[resource.kind].name)
        return table

    def partition(self, topic: TopicImage, index: int) -> PartitionRegistration:
        """A partition's replicas, leader and in-sync replicas: as last written, else as the topic was made."""
        state = self.partition_states.get(partition_key(topic.topic_id, index))
        if state is None:
            return initial_state(topic.assignments[index])
        return state if state.replicas else replace(state, replicas=topic.assignments[index])

    def partition_revision(self, topic: TopicImage, index: int) -> int:
        """The revision that last wrote a partition's state; NEVER while it is as the topic was made."""
        return self.partition_states.revision(partition_key(topic.topic_id, index))
