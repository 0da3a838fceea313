"""Short forms of administrative requests."""

from collections.abc import Mapping, Sequence

from barnabas.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from barnabas.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
)
from barnabas.wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from barnabas.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from support.wire import Wire


def new_topic(
    name: str,
    partitions: int = -1,
    factor: int = -1,
    configs: Mapping[str, str | None] | None = None,
    assignments: Mapping[int, Sequence[int]] | None = None,
) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=list(brokers))
            for index, brokers in (assignments or {}).items()
        ],
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()],
    )


def create(
    wire: Wire, *topics: CreatableTopic, version: int | None = None, validate_only: bool = False
) -> dict[str, CreatableTopicResult]:
    request = CreateTopicsRequest(topics=list(topics), validate_only=validate_only)
    return {result.name: result for result in wire.ask(request, version).topics}


def delete(
    wire: Wire, *topics: str | bytes | DeleteTopicState, version: int | None = None
) -> list[DeletableTopicResult]:
    """Delete topics by name or by id."""
    states = []
    for topic in topics:
        if isinstance(topic, str):
            states.append(DeleteTopicState(name=topic))
        else:
            states.append(DeleteTopicState(topic_id=topic) if isinstance(topic, bytes) else topic)
    names = [topic for topic in topics if isinstance(topic, str)]
    request = DeleteTopicsRequest(topics=states, topic_names=names, timeout_ms=5000)
    responses: list[DeletableTopicResult] = wire.ask(request, version).responses
    return responses


def more_partitions(
    name: str, count: int, assignments: Sequence[Sequence[int]] | None = None
) -> CreatePartitionsTopic:
    given = assignments and [CreatePartitionsAssignment(broker_ids=list(brokers)) for brokers in assignments]
    return CreatePartitionsTopic(name=name, count=count, assignments=given)


def grow(
    wire: Wire, *topics: CreatePartitionsTopic, version: int | None = None, validate_only: bool = False
) -> dict[str, CreatePartitionsTopicResult]:
    request = CreatePartitionsRequest(topics=list(topics), timeout_ms=5000, validate_only=validate_only)
    return {result.name: result for result in wire.ask(request, version).results}


def describe(
    wire: Wire,
    *names: str | bytes,
    version: int | None = None,
    auto_create: bool = False,
    everything: bool = False,
) -> MetadataResponse:
    """Request metadata of topics by name or id, or of all topics with `everything`."""
    topics = [
        MetadataRequestTopic(name=name) if isinstance(name, str) else MetadataRequestTopic(None, name)
        for name in names
    ]
    for topic, name in zip(topics, names, strict=True):
        if isinstance(name, bytes):
            topic.name, topic.topic_id = None, name
    request = MetadataRequest(topics=None if everything else topics, allow_auto_topic_creation=auto_create)
    response: MetadataResponse = wire.ask(request, version)
    return response


def described(wire: Wire, name: str | bytes, version: int | None = None) -> MetadataResponseTopic:
    return describe(wire, name, version=version).topics[0]
