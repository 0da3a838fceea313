"""What administration deals in, and its translation to and from the messages of the protocol."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from barnabas.base.ids import TopicPartition
from barnabas.client.core.address import BrokerAddress
from barnabas.client.core.errors import error_for
from barnabas.client.core.metadata import Metadata, Node
from barnabas.config.alter_op import AlterConfigOp
from barnabas.config.config_resource import Resource, ResourceKind
from barnabas.config.describe import ConfigSource
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages import alter_configs
from barnabas.wire.messages.create_partitions import CreatePartitionsAssignment, CreatePartitionsTopic
from barnabas.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
)
from barnabas.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from barnabas.wire.messages.describe_cluster import DescribeClusterResponse
from barnabas.wire.messages.describe_configs import (
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResult,
)
from barnabas.wire.messages.incremental_alter_configs import AlterableConfig, AlterConfigsResource
from barnabas.wire.messages.list_config_resources import ListConfigResourcesResponse

#: The partition count or replication factor that the broker is configured with (KIP-464).
BROKER_DEFAULT = -1
#: DeleteRecords up to the high watermark.
HIGH_WATERMARK = -1


@dataclass(frozen=True)
class NewTopic:
    """A topic to create; `assignments` (partition -> node ids) excludes counts."""

    name: str
    partitions: int = BROKER_DEFAULT
    replication_factor: int = BROKER_DEFAULT
    configs: Mapping[str, str | None] = field(default_factory=dict)
    assignments: Mapping[int, Sequence[int]] = field(default_factory=dict)


class CreatedTopic(NamedTuple):
    """What the broker made; counts are -1 where it may not tell (or is older than 2.4)."""

    name: str
    topic_id: bytes
    partitions: int
    replication_factor: int
    configs: Mapping[str, str | None]


class ConfigSynonym(NamedTuple):
    """A place from which a config may have its value; a sensitive value is None."""

    name: str
    value: str | None
    source: ConfigSource


class ConfigEntry(NamedTuple):
    """One config as the broker describes it; a sensitive value is None."""

    name: str
    value: str | None
    source: ConfigSource
    read_only: bool
    sensitive: bool
    synonyms: tuple[ConfigSynonym, ...] = ()  #: where values were found, the one that holds first
    documentation: str = ""  #: where it was asked for


class ClusterDescription(NamedTuple):
    """The cluster as DescribeCluster tells it."""

    cluster_id: str
    controller_id: int
    nodes: tuple[Node, ...]
    fenced: frozenset[int] = frozenset()  #: node ids of those that do not serve at present


def creatable(topic: NewTopic) -> CreatableTopic:
    """The topic as CreateTopics carries it."""
    assignments = [
        CreatableReplicaAssignment(partition_index=index, broker_ids=list(nodes))
        for index, nodes in topic.assignments.items()
    ]
    return CreatableTopic(
        name=topic.name,
        num_partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        assignments=assignments,
        configs=[CreatableTopicConfig(name=name, value=value) for name, value in topic.configs.items()],
    )


def created(result: CreatableTopicResult) -> CreatedTopic | KafkaError:
    """What CreateTopics answered for one topic."""
    error = error_for(result.error_code, result.error_message)
    configs = {config.name: config.value for config in result.configs or ()}
    return error or CreatedTopic(
        result.name, result.topic_id, result.num_partitions, result.replication_factor, configs
    )


def growing(name: str, count: int, assignments: Sequence[Sequence[int]] | None) -> CreatePartitionsTopic:
    """One topic of CreatePartitions; without assignments the broker places the new partitions."""
    partitions = None
    if assignments is not None:
        partitions = [CreatePartitionsAssignment(broker_ids=list(nodes)) for nodes in assignments]
    return CreatePartitionsTopic(name=name, count=count, assignments=partitions)


def responsible_node(resource: Resource) -> int | None:
    """The one broker that knows a resource's configs: a broker its own; None where any does."""
    own = resource.kind in (ResourceKind.BROKER, ResourceKind.BROKER_LOGGER) and resource.name
    return int(resource.name) if own else None


def described(resource: Resource, keys: Collection[str] | None) -> DescribeConfigsResource:
    """One resource of DescribeConfigs; `keys` of None asks for all."""
    wanted = None if keys is None else list(keys)
    return DescribeConfigsResource(
        resource_type=resource.kind, resource_name=resource.name, configuration_keys=wanted
    )


def config_entries(result: DescribeConfigsResult) -> list[ConfigEntry] | KafkaError:
    """What DescribeConfigs answered for one resource."""
    error = error_for(result.error_code, result.error_message)
    return error or [_config_entry(config) for config in result.configs]


def listed_resources(response: ListConfigResourcesResponse) -> list[Resource]:
    """The resources that ListConfigResources names, but for kinds that are newer than this client."""
    return [
        Resource(ResourceKind(each.resource_type), each.resource_name)
        for each in response.config_resources
        if each.resource_type in set(ResourceKind)
    ]


def _config_entry(config: DescribeConfigsResourceResult) -> ConfigEntry:
    synonyms = tuple(
        ConfigSynonym(synonym.name, synonym.value, _source(synonym.source)) for synonym in config.synonyms
    )
    source = _source(config.config_source)
    return ConfigEntry(
        config.name,
        config.value,
        source,
        config.read_only,
        config.is_sensitive,
        synonyms,
        config.documentation or "",
    )


def _source(number: int) -> ConfigSource:
    return ConfigSource(number) if number in set(ConfigSource) else ConfigSource.UNKNOWN


def altered(resource: Resource, edits: Sequence[AlterConfigOp]) -> AlterConfigsResource:
    """One resource of IncrementalAlterConfigs."""
    configs = [AlterableConfig(edit.key, edit.operation, edit.value) for edit in edits]
    return AlterConfigsResource(resource_type=resource.kind, resource_name=resource.name, configs=configs)


def replaced(resource: Resource, values: Mapping[str, str]) -> alter_configs.AlterConfigsResource:
    """One resource of AlterConfigs."""
    configs = [alter_configs.AlterableConfig(key, value) for key, value in values.items()]
    return alter_configs.AlterConfigsResource(resource.kind, resource.name, configs)


def deletion(offsets: Mapping[TopicPartition, int], timeout_ms: int) -> DeleteRecordsRequest:
    """DeleteRecords for partitions of one leader."""
    topics: dict[str, DeleteRecordsTopic] = {}
    for tp, offset in offsets.items():
        topic = topics.setdefault(tp.topic, DeleteRecordsTopic(name=tp.topic))
        topic.partitions.append(DeleteRecordsPartition(partition_index=tp.partition, offset=offset))
    return DeleteRecordsRequest(topics=list(topics.values()), timeout_ms=timeout_ms)


def low_watermarks(response: DeleteRecordsResponse) -> dict[TopicPartition, int | KafkaError]:
    """The first offset that each partition has now, or why nothing was deleted."""
    outcomes: dict[TopicPartition, int | KafkaError] = {}
    for topic in response.topics:
        for partition in topic.partitions:
            tp = TopicPartition(topic.name, partition.partition_index)
            error = error_for(partition.error_code, f"records of partition {tp}")
            outcomes[tp] = error or partition.low_watermark
    return outcomes


def description(response: DescribeClusterResponse) -> ClusterDescription:
    """The cluster that DescribeCluster answered with."""
    nodes = tuple(
        Node(each.broker_id, BrokerAddress(each.host, each.port), each.rack) for each in response.brokers
    )
    fenced = frozenset(each.broker_id for each in response.brokers if each.is_fenced)
    return ClusterDescription(response.cluster_id, response.controller_id, nodes, fenced)


def description_from(metadata: Metadata) -> ClusterDescription:
    """The same from Metadata, for brokers that have no DescribeCluster (before 2.8)."""
    return ClusterDescription(
        metadata.cluster_id or "", metadata.controller_id, tuple(metadata.nodes.values())
    )
