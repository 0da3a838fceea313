"""Builds Produce requests from batches, and reads responses as outcomes per partition."""

from collections.abc import Iterable

from barnabas.base.ids import ZERO_UUID, TopicPartition
from barnabas.client.core.metadata import Metadata
from barnabas.client.producer.accumulator import Batch
from barnabas.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

#: The last version that names topics; later ones carry only their ids (KIP-516).
_VERSION_BY_NAME_MAX = 12


def produce_request(
    batches: Iterable[Batch], metadata: Metadata, acks: int, timeout_ms: int
) -> ProduceRequest:
    """Return a request with one batch per partition, with topics by name and id."""
    topics: dict[str, TopicProduceData] = {}
    for batch in batches:
        name, index = batch.tp
        if name not in topics:
            topics[name] = TopicProduceData(name=name, topic_id=metadata.topic(name).topic_id)
        topics[name].partition_data.append(PartitionProduceData(index=index, records=batch.encoded))
    return ProduceRequest(acks=acks, timeout_ms=timeout_ms, topic_data=list(topics.values()))


def version_max(request: ProduceRequest) -> int | None:
    """Return the newest version that can carry the request; without the ids of all topics, the last one that names
    topics.
    """
    unknown = any(topic.topic_id == ZERO_UUID for topic in request.topic_data)
    return _VERSION_BY_NAME_MAX if unknown else None


def outcomes_by_partition(
    response: ProduceResponse, metadata: Metadata
) -> dict[TopicPartition, PartitionProduceResponse | Exception]:
    """Return the outcome of each partition in the response."""
    return {
        TopicPartition(topic.name or metadata.topic_name(topic.topic_id) or "", partition.index): partition
        for topic in response.responses
        for partition in topic.partition_responses
    }
