"""Batches and markers of transactions, without a coordinator."""

from typing import Any

from barnabas.replication.partition import Partition
from barnabas.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from support.batches import batch

TRANSACTIONAL_ID = "payments"
#: The last version of Produce that names topics, without implicit transactions.
BEFORE_IMPLICIT, IMPLICIT = 11, 12


def transactional(
    producer_id: int,
    sequence: int,
    *values: bytes,
    epoch: int = 0,
    transactional: bool = True,
    **options: Any,
) -> memoryview:
    """Encode one batch of a transaction; the options are those of `batch`."""
    return batch(
        *values,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        transactional=transactional,
        **options,
    )


def begin_transaction(partition: Partition, producer_id: int, *values: bytes, sequence: int = 0) -> None:
    """Append the first batch of a transaction, as if its coordinator had verified it."""
    verification = partition.log.producers.start_verification(producer_id, 0, sequence, bumps_epochs=False)
    partition.append_as_leader(transactional(producer_id, sequence, *values), -1, verification)


def transactional_produce_request(
    topic: str, *batches: memoryview, transactional_id: str | None = TRANSACTIONAL_ID
) -> ProduceRequest:
    """Build a Produce request of batches for successive partitions."""
    data = [PartitionProduceData(index=index, records=bytes(each)) for index, each in enumerate(batches)]
    return ProduceRequest(
        transactional_id=transactional_id,
        acks=-1,
        timeout_ms=5000,
        topic_data=[TopicProduceData(name=topic, partition_data=data)],
    )


def marker(
    producer_id: int,
    *topics: str,
    commit: bool,
    epoch: int = 0,
    coordinator_epoch: int = 0,
    partitions: tuple[int, ...] = (0,),
    transaction_version: int = 0,
) -> WritableTxnMarker:
    """Build a transaction marker for partitions of topics."""
    return WritableTxnMarker(
        producer_id=producer_id,
        producer_epoch=epoch,
        transaction_result=commit,
        topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=list(partitions)) for topic in topics],
        coordinator_epoch=coordinator_epoch,
        transaction_version=transaction_version,
    )


def write_markers_request(*markers: WritableTxnMarker) -> WriteTxnMarkersRequest:
    """Build the WriteTxnMarkers request with these markers."""
    return WriteTxnMarkersRequest(markers=list(markers))


def outcomes(response: WriteTxnMarkersResponse) -> dict[tuple[int, str, int], int]:
    """Return (producer id, topic, partition) -> error code."""
    return {
        (result.producer_id, topic.name, partition.partition_index): partition.error_code
        for result in response.markers
        for topic in result.topics
        for partition in topic.partitions
    }
