"""The cluster's metadata at a revision of the store. Immutable."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from barnabas.config.config_resource import Resource
from barnabas.metadata.acls import ACLS
from barnabas.metadata.audit.former_value import FORMER_VALUES, HISTORY_START, FormerValue
from barnabas.metadata.audit.records import AUDIT, AuditRecord
from barnabas.metadata.brokers import BROKERS, SESSIONS, BrokerRegistration
from barnabas.metadata.cluster import CLUSTER, ClusterRecord
from barnabas.metadata.configs import (
    BROKER_CONFIGS,
    CLIENT_METRICS_CONFIGS,
    CONFIG_RECORD_TYPES,
    GROUP_CONFIGS,
    TOPIC_CONFIGS,
    Overrides,
)
from barnabas.metadata.delegation_tokens import DELEGATION_TOKENS, DelegationToken
from barnabas.metadata.features import FINALIZED_FEATURES
from barnabas.metadata.producer_ids import PRODUCER_IDS
from barnabas.metadata.quotas import QUOTAS, ClientQuota
from barnabas.metadata.record_format import check_format
from barnabas.metadata.record_type import RecordType, Table, ValueT, split_key
from barnabas.metadata.registry import record_type
from barnabas.metadata.scram import SCRAM_CREDENTIALS, Credentials
from barnabas.metadata.store import Commit, Item, StoreChange, WentBack
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

_EMPTY: Table[Any] = Table()


@dataclass(frozen=True, slots=True)
class MetadataImage:
    """The cluster's metadata as one broker knows it. Decisions read it; only `replay` makes the next one."""

    revision: int = 0
    #: record type -> its records; types without records have no table
    tables: Mapping[str, Table[Any]] = field(default_factory=dict)
    #: topic id -> name
    topic_names: Mapping[bytes, str] = field(default_factory=dict)

    def table(self, record_type: RecordType[ValueT]) -> Table[ValueT]:
        return self.tables.get(record_type.name, _EMPTY)

    @property
    def cluster(self) -> Table[ClusterRecord]:
        return self.table(CLUSTER)

    @property
    def brokers(self) -> Table[BrokerRegistration]:
        return self.table(BROKERS)

    @property
    def sessions(self) -> Table[int]:
        """The brokers that live, by id."""
        return self.table(SESSIONS)

    @property
    def topics(self) -> Table[TopicImage]:
        return self.table(TOPICS)

    @property
    def taken_names(self) -> Table[str]:
        return self.table(TAKEN_NAMES)

    @property
    def partition_states(self) -> Table[PartitionRegistration]:
        return self.table(PARTITION_STATES)

    @property
    def deleted_topics(self) -> Table[DeletedTopic]:
        return self.table(DELETED_TOPICS)

    @property
    def trashed_topics(self) -> Table[TrashRecord]:
        return self.table(TRASHED_TOPICS)

    @property
    def topic_configs(self) -> Table[Overrides]:
        return self.table(TOPIC_CONFIGS)

    @property
    def broker_configs(self) -> Table[Overrides]:
        return self.table(BROKER_CONFIGS)

    @property
    def group_configs(self) -> Table[Overrides]:
        return self.table(GROUP_CONFIGS)

    @property
    def client_metrics_configs(self) -> Table[Overrides]:
        return self.table(CLIENT_METRICS_CONFIGS)

    @property
    def producer_ids(self) -> Table[int]:
        return self.table(PRODUCER_IDS)

    @property
    def acls(self) -> Table[AclBinding]:
        return self.table(ACLS)

    @property
    def scram_credentials(self) -> Table[Credentials]:
        return self.table(SCRAM_CREDENTIALS)

    @property
    def delegation_tokens(self) -> Table[DelegationToken]:
        return self.table(DELEGATION_TOKENS)

    @property
    def quotas(self) -> Table[ClientQuota]:
        return self.table(QUOTAS)

    @property
    def finalized_features(self) -> Table[int]:
        return self.table(FINALIZED_FEATURES)

    @property
    def audit(self) -> Table[AuditRecord]:
        """Audit records that are not published yet."""
        return self.table(AUDIT)

    @property
    def former_values(self) -> Table[FormerValue]:
        return self.table(FORMER_VALUES)

    @property
    def history_start(self) -> Table[int]:
        return self.table(HISTORY_START)

    @staticmethod
    def load(revision: int, items: Collection[Item]) -> "MetadataImage":
        """Return the image of a whole store.

        :raises UnknownFormat: If a newer version has written it.
        """
        check_format(items)
        rows: defaultdict[str, dict[str, Any]] = defaultdict(dict)
        revisions: defaultdict[str, dict[str, int]] = defaultdict(dict)
        for item in items:
            name, row_key = split_key(item.key)
            rows[name][row_key] = record_type(name).decode(item.value)
            revisions[name][row_key] = item.revision
        tables = {name: Table(rows[name], revisions[name]) for name in rows}
        names = {topic.topic_id: topic.name for topic in rows[TOPICS.name].values()}
        return MetadataImage(revision, tables, names)

    def replay(self, commit: Commit) -> "MetadataImage":
        """Return the image after a commit. This must not fail, because the commit cannot be undone.

        :raises UnknownFormat: If a newer version has made the commit; the broker then stops.
        """
        assert commit.revision > self.revision, (commit.revision, self.revision)
        changed: defaultdict[str, dict[str, Any]] = defaultdict(dict)
        for change in commit.changes:
            name, row_key = split_key(change.key)
            changed[name][row_key] = None if change.value is None else record_type(name).decode(change.value)
        tables = dict(self.tables)
        for name, changes in changed.items():
            tables[name] = self.table(record_type(name)).replay(commit.revision, changes)
            if not tables[name]:
                del tables[name]
        names = self._replay_topic_names(changed.get(TOPICS.name, {}))
        return MetadataImage(commit.revision, tables, names)

    def changes_to(self, after: "MetadataImage", items: Iterable[Item]) -> Iterator[StoreChange]:
        """Yield the differences between this image and a later one, which was loaded from `items`."""
        for item in items:
            if self.revision_of(item.key) != item.revision:
                yield StoreChange(item.key, item.value)
        for name, table in self.tables.items():
            later = after.tables.get(name, _EMPTY)
            yield from (StoreChange(f"{name}/{key}", None) for key in table if key not in later)

    def load_later(self, revision: int, items: Sequence[Item]) -> "MetadataImage":
        """Return the image of a whole store, which continues this one.

        :raises WentBack: If it does not, as when a backup is restored.
        """
        if not self._is_continued_by(revision, items):
            raise WentBack("the metadata store", self.revision, revision)
        return MetadataImage.load(revision, items)

    def _is_continued_by(self, revision: int, items: Sequence[Item]) -> bool:
        """Whether the image has all items that were written up to its revision."""
        return revision >= self.revision and all(
            item.revision > self.revision or item.revision == self.revision_of(item.key) for item in items
        )

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
        """Return the revision that last wrote a key of the store; NEVER if it does not exist."""
        name, row_key = split_key(key)
        return self.tables.get(name, _EMPTY).revision(row_key)

    def topic_by_id(self, topic_id: bytes) -> TopicImage | None:
        name = self.topic_names.get(topic_id)
        return None if name is None else self.topics.get(name)

    def configs(self, resource: Resource) -> Overrides:
        """Return the dynamic configs of a resource."""
        return self._configs(resource).get(resource.name, {})

    def config_revision(self, resource: Resource) -> int:
        """Return the revision that last wrote a resource's configs; NEVER if it has none."""
        return self._configs(resource).revision(resource.name)

    def _configs(self, resource: Resource) -> Table[Overrides]:
        return self.table(CONFIG_RECORD_TYPES[resource.kind])

    def partition(self, topic: TopicImage, index: int) -> PartitionRegistration:
        """Return the state of a partition: as last written, else as its topic was created."""
        state = self.partition_states.get(partition_key(topic.topic_id, index))
        if state is None:
            return initial_state(topic.assignments[index])
        return state if state.replicas else replace(state, replicas=topic.assignments[index])

    def partition_revision(self, topic: TopicImage, index: int) -> int:
        """Return the revision that last wrote a partition's state; NEVER if it is as the topic was created."""
        return self.partition_states.revision(partition_key(topic.topic_id, index))
