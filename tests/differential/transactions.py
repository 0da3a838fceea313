"""Histories of transactions without a coordinator: their records, their markers, and reads of both."""

from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from barnabas.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from barnabas.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from barnabas.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from barnabas.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from differential.batches import Batch
from differential.sequences import Step, create, new_producer, topic
from differential.symbols import Name, Producer

#: Topics of different kinds: several partitions, small segments with dense and sparse indexes, LogAppendTime.
TOPICS = ("a", "tiny", "dense", "stamped")
PARTITIONS = [*[("a", 0), ("tiny", 0), ("dense", 0)] * 3, ("a", 1), ("stamped", 0)]
#: Partitions with one segment each. DeleteRecords of all records of a segment shows a listed difference otherwise.
OF_ONE_SEGMENT = [("a", 0), ("a", 0), ("a", 1), ("stamped", 0)]
PRODUCERS_COUNT = 3
STEPS_MAX = 40
ALL_BYTES = 2**31 - 1
RECORDS = ((1000, b"k", b"v" * 60), (2000, b"k", b"w"))
EVERY_TIME = (-1, -2, -3, 0, 1500, 3000)


def beginning() -> list[Step]:
    """Create the topics and the producers.

    Records are from 1970 and markers from now: with the default `segment.ms`, each marker would begin a segment, in
    Kafka even a marker that is refused.
    """
    long = {"segment_ms": str(2**63 - 1)}
    return [
        create(
            topic("a", 2, **long),
            topic("tiny", internal_segment_bytes="700", **long),
            topic("dense", internal_segment_bytes="2000", index_interval_bytes="150", **long),
            topic("stamped", message_timestamp_type="LogAppendTime", **long),
        ),
        *[new_producer() for _ in range(PRODUCERS_COUNT)],
    ]


def write(tp: tuple[str, int], batch: Batch, transactional_id: str | None = "tx", version: int = 9) -> Step:
    name, index = tp
    symbol: Any = Name(name)
    records: Any = batch
    data = TopicProduceData(name=symbol, partition_data=[PartitionProduceData(index=index, records=records)])
    request = ProduceRequest(transactional_id=transactional_id, acks=-1, timeout_ms=10_000, topic_data=[data])
    return request, version


def of_transaction(producer: int, **fields: Any) -> Batch:
    """Build a batch of a producer's transaction."""
    return Batch(RECORDS[: fields.pop("count", 1)], producer=producer, flaw="transactional", **fields)


def end(
    producer: int,
    *partitions: tuple[str, int],
    commit: bool,
    epoch: int = 0,
    coordinator_epoch: int = 0,
    transaction_version: int = 0,
    version: int = 2,
) -> Step:
    """Write one marker in each partition."""
    symbol: Any = Producer(producer) if producer >= 0 else producer
    names: list[Any] = [Name(name) for name, _ in partitions]
    marker = WritableTxnMarker(
        producer_id=symbol,
        producer_epoch=epoch,
        transaction_result=commit,
        topics=[
            WritableTxnMarkerTopic(name=name, partition_indexes=[index])
            for name, (_, index) in zip(names, partitions, strict=True)
        ],
        coordinator_epoch=coordinator_epoch,
        transaction_version=transaction_version,
    )
    return WriteTxnMarkersRequest(markers=[marker]), version


def read(
    tp: tuple[str, int],
    offset: int = 0,
    *,
    committed: bool = True,
    max_bytes: int = ALL_BYTES,
    version: int = 11,
) -> Step:
    name, index = tp
    symbol: Any = Name(name)
    partition = FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=max_bytes)
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=ALL_BYTES,
        isolation_level=int(committed),
        topics=[FetchTopic(topic=symbol, partitions=[partition])],
    )
    return request, version


def find(tp: tuple[str, int], timestamp: int, *, committed: bool = True, version: int = 7) -> Step:
    name, index = tp
    symbol: Any = Name(name)
    committed_reads = ListOffsetsPartition(partition_index=index, timestamp=timestamp)
    topics = [ListOffsetsTopic(name=symbol, partitions=[committed_reads])]
    return ListOffsetsRequest(replica_id=-1, isolation_level=int(committed), topics=topics), version


def describe(*partitions: tuple[str, int]) -> Step:
    names: list[Any] = [Name(name) for name, _ in partitions]
    topics = [
        TopicRequest(name=name, partition_indexes=[index])
        for name, (_, index) in zip(names, partitions, strict=True)
    ]
    return DescribeProducersRequest(topics=topics), 0


def delete(tp: tuple[str, int], offset: int) -> Step:
    name, index = tp
    symbol: Any = Name(name)
    partition = DeleteRecordsPartition(partition_index=index, offset=offset)
    topics = [DeleteRecordsTopic(name=symbol, partitions=[partition])]
    return DeleteRecordsRequest(topics=topics, timeout_ms=10_000), 2


def ending() -> list[Step]:
    """Read everything, at every isolation level."""
    partitions = sorted(set(PARTITIONS))
    reads = [read(tp, offset, committed=c) for tp in partitions for offset in range(6) for c in (True, False)]
    finds = [find(tp, stamp, committed=c) for tp in partitions for stamp in EVERY_TIME for c in (True, False)]
    return [*reads, *finds, describe(*partitions)]


def steps() -> SearchStrategy[Step]:
    """Generate one step."""
    tp, producer = st.sampled_from(PARTITIONS), st.integers(0, PRODUCERS_COUNT - 1)
    epoch = st.sampled_from([0, 0, 0, 0, 1])
    transactional = st.builds(
        of_transaction,
        producer,
        epoch=epoch,
        sequence=st.sampled_from([0, 0, 0, 0, 0, 1, -1]),
        restarts=st.sampled_from([False, False, False, True]),
        count=st.sampled_from([1, 1, 2]),
    )
    idempotent = st.builds(Batch, producer=producer, epoch=epoch)
    markers = st.builds(
        end,
        producer,
        tp,
        commit=st.booleans(),
        epoch=epoch,
        coordinator_epoch=st.sampled_from([0, 0, 0, 1]),
        transaction_version=st.sampled_from([0, 0, 0, 1, 2]),
        version=st.sampled_from([1, 2, 2]),
    )
    writes = st.builds(write, tp, transactional, version=st.integers(3, 11))
    return st.one_of(
        *[writes] * 4,
        *[markers] * 3,
        st.builds(write, tp, idempotent, st.none()),
        st.builds(write, tp, st.builds(Batch), st.none()),
        st.builds(
            read,
            tp,
            st.integers(0, 12),
            committed=st.booleans(),
            max_bytes=st.sampled_from([ALL_BYTES, 1, 100, 300]),
            version=st.integers(4, 12),
        ),
        st.builds(find, tp, st.sampled_from(EVERY_TIME), committed=st.booleans()),
        st.builds(delete, st.sampled_from(OF_ONE_SEGMENT), st.sampled_from([-1, 0])),
    )


def histories() -> SearchStrategy[list[Step]]:
    """Generate sequences of steps."""
    return st.lists(steps(), min_size=1, max_size=STEPS_MAX)
