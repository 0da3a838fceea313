"""Types of administration, and their conversion to and from messages of the protocol."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from barnabas.base.ids import TopicPartition
from barnabas.client.core.address import BrokerAddress
from barnabas.client.core.errors import error_for
from barnabas.client.core.metadata import Metadata, Node
from barnabas.config.alter_op import AlterConfigOp
from barnabas.config.config_resource import Resource, ResourceKind
from barnabas.config.config_source import ConfigSource
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

#: The broker's default partition count or replication factor (KIP-464).
BROKER_DEFAULT = -1
#: DeleteRecords up to the high watermark.
HIGH_WATERMARK = -1


@dataclass(frozen=True)
class NewTopic:
    """A topic to create; `assignments` (partition -> node ids) exclude counts."""

    name: str
    partitions: int = BROKER_DEFAULT
    replication_factor: int = BROKER_DEFAULT
    configs: Mapping[str, str | None] = field(default_factory=dict)
    assignments: Mapping[int, Sequence[int]] = field(default_factory=dict)


class CreatedTopic(NamedTuple):
    """A created topic; counts are -1 if the broker does not return them (before 2.4, or without permission)."""

    name: str
    topic_id: bytes
    partitions: int
    replication_factor: int
    configs: Mapping[str, str | None]


class ConfigSynonym(NamedTuple):
    """A source of a config's value; a sensitive value is None."""

    name: str
    value: str | None
    source: ConfigSource


class ConfigEntry(NamedTuple):
    """A described config; a sensitive value is None."""

    name: str
    value: str | None
    source: ConfigSource
    read_only: bool
    sensitive: bool
    synonyms: tuple[ConfigSynonym, ...] = ()  #: the sources that have a value, in order of precedence
    documentation: str = ""  #: if requested


class ClusterDescription(NamedTuple):
    """The result of DescribeCluster."""

    cluster_id: str
    controller_id: int
    nodes: tuple[Node, ...]
    fenced: frozenset[int] = frozenset()  #: node ids of brokers that do not serve at present


def creatable_topic(topic: NewTopic) -> CreatableTopic:
    """Return a topic of a CreateTopics request."""
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


def parse_created_topic(result: CreatableTopicResult, throttle_time_ms: int) -> CreatedTopic | KafkaError:
    """Return a topic of a CreateTopics response."""
    error = error_for(result.error_code, result.error_message, throttle_time_ms)
    configs = {config.name: config.value for config in result.configs or ()}
    return error or CreatedTopic(
        result.name, result.topic_id, result.num_partitions, result.replication_factor, configs
    )


def create_partitions_topic(
    name: str, count: int, assignments: Sequence[Sequence[int]] | None
) -> CreatePartitionsTopic:
    """Return a topic of a CreatePartitions request; without assignments the broker places the new partitions."""
    partitions = None
    if assignments is not None:
        partitions = [CreatePartitionsAssignment(broker_ids=list(nodes)) for nodes in assignments]
    return CreatePartitionsTopic(name=name, count=count, assignments=partitions)


def responsible_node(resource: Resource) -> int | None:
    """Return the broker that a config resource must be sent to; None for any."""
    own = resource.kind in (ResourceKind.BROKER, ResourceKind.BROKER_LOGGER) and resource.name
    return int(resource.name) if own else None


def describe_configs_resource(resource: Resource, keys: Collection[str] | None) -> DescribeConfigsResource:
    """Return a resource of a DescribeConfigs request; `keys` of None requests all."""
    key_list = None if keys is None else list(keys)
    return DescribeConfigsResource(
        resource_type=resource.kind, resource_name=resource.name, configuration_keys=key_list
    )


def config_entries(result: DescribeConfigsResult) -> list[ConfigEntry] | KafkaError:
    """Return a resource of a DescribeConfigs response."""
    error = error_for(result.error_code, result.error_message)
    return error or [_config_entry(config) for config in result.configs]


def parse_list_config_resources_response(response: ListConfigResourcesResponse) -> list[Resource]:
    """Return the resources of a ListConfigResources response, without unknown kinds."""
    return [
        Resource(ResourceKind(resource.resource_type), resource.resource_name)
        for resource in response.config_resources
        if resource.resource_type in set(ResourceKind)
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


def alter_configs_resource(resource: Resource, edits: Sequence[AlterConfigOp]) -> AlterConfigsResource:
    """Return a resource of an IncrementalAlterConfigs request."""
    configs = [AlterableConfig(edit.key, edit.operation, edit.value) for edit in edits]
    return AlterConfigsResource(resource_type=resource.kind, resource_name=resource.name, configs=configs)


def replace_configs_resource(
    resource: Resource, values: Mapping[str, str]
) -> alter_configs.AlterConfigsResource:
    """Return a resource of an AlterConfigs request."""
    configs = [alter_configs.AlterableConfig(key, value) for key, value in values.items()]
    return alter_configs.AlterConfigsResource(resource.kind, resource.name, configs)


def delete_records_request(offsets: Mapping[TopicPartition, int], timeout_ms: int) -> DeleteRecordsRequest:
    """Return a DeleteRecords request for partitions of one leader."""
    topics: dict[str, DeleteRecordsTopic] = {}
    for tp, offset in offsets.items():
        topic = topics.setdefault(tp.topic, DeleteRecordsTopic(name=tp.topic))
        topic.partitions.append(DeleteRecordsPartition(partition_index=tp.partition, offset=offset))
    return DeleteRecordsRequest(topics=list(topics.values()), timeout_ms=timeout_ms)


def parse_delete_records_response(response: DeleteRecordsResponse) -> dict[TopicPartition, int | KafkaError]:
    """Return the new log start offset of each partition, or the error."""
    outcomes: dict[TopicPartition, int | KafkaError] = {}
    for topic in response.topics:
        for partition in topic.partitions:
            tp = TopicPartition(topic.name, partition.partition_index)
            error = error_for(partition.error_code, f"records of partition {tp} are not deleted")
            outcomes[tp] = error or partition.low_watermark
    return outcomes


def parse_describe_cluster_response(response: DescribeClusterResponse) -> ClusterDescription:
    """Return the cluster of a DescribeCluster response."""
    nodes = tuple(
        Node(broker.broker_id, BrokerAddress(broker.host, broker.port), broker.rack)
        for broker in response.brokers
    )
    fenced = frozenset(broker.broker_id for broker in response.brokers if broker.is_fenced)
    return ClusterDescription(response.cluster_id, response.controller_id, nodes, fenced)


def cluster_from_metadata(metadata: Metadata) -> ClusterDescription:
    """Return the cluster of a Metadata response, for brokers without DescribeCluster (before 2.8)."""
    return ClusterDescription(
        metadata.cluster_id or "", metadata.controller_id, tuple(metadata.nodes.values())
    )
