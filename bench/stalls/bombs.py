"""Small expensive requests, written manually: data that decompresses to megabytes, and searches."""

import struct
from collections.abc import Sequence

from barnabas.telemetry.client_instances import DEFAULT_INTERVAL_MS, subscription_id
from barnabas.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from barnabas.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from barnabas.wire.messages.list_transactions import ListTransactionsRequest
from barnabas.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.wire.messages.push_telemetry import PushTelemetryRequest
from barnabas.wire.records.batch import read_header
from barnabas.wire.records.compression import Compression, compress
from barnabas.wire.records.record import Record, assemble, encode_batch
from barnabas.wire.schema import Message
from bench.stalls.forms import APIS, frame_of

MIB = 1 << 20

#: Metrics that consist of empty messages, at the depths that have lists.
METRICS = {
    "resources": b"\x0a\x00" * (3 * MIB),
    "unknown fields": b"\x7a\x00" * (3 * MIB),
    "one message of empty ones": b"\x0a" + b"\x80\x80\x80\x02" + b"\x12\x00" * (2 * MIB),
}

RECORDS_COUNT = 100_000

#: Of one Produce request; with its topics the broker reads 20,000.
PARTITIONS_COUNT = 19_999


def pushes(count: int) -> list[PushTelemetryRequest]:
    """Build pushes of different clients, each about a hundred bytes that decompress to megabytes."""
    packed = [compress(Compression.ZSTD, metrics) for metrics in METRICS.values()]
    return [_push(number, packed[number % len(packed)]) for number in range(count)]


def _push(number: int, packed: bytes) -> PushTelemetryRequest:
    instance_id = b"bomb" + number.to_bytes(12, "big")
    return PushTelemetryRequest(
        client_instance_id=instance_id,
        subscription_id=subscription_id((), DEFAULT_INTERVAL_MS, instance_id),
        compression_type=Compression.ZSTD,
        metrics=packed,
    )


def lying_batches(topic_id: bytes, count: int) -> list[ProduceRequest]:
    """Build batches of many records whose headers claim a timestamp that no record has."""
    records = [Record(0, 1_000, None, b"") for _ in range(RECORDS_COUNT)]
    batch = encode_batch(records, compression=Compression.ZSTD)
    header = read_header(batch)
    lie = header._replace(max_timestamp=1_000_000)
    assemble(batch, lie, bytes(batch[-(header.size_bytes - 61) :]))
    return [_produce(topic_id, bytes(batch)) for _ in range(count)]


def headers_bomb(topic_id: bytes, headers_count: int = 1_000_000) -> ProduceRequest:
    """Build one record with millions of record headers, which zstd compresses to kilobytes."""
    record = b"\x00\x00\x00\x01\x01" + _varint(headers_count) + b"\x00\x01" * headers_count
    body = compress(Compression.ZSTD, _varint(len(record)) + record)
    batch = encode_batch([Record(0, 1_000, None, b"")], compression=Compression.ZSTD)
    header = read_header(batch)._replace(batch_length=49 + len(body))
    return _produce(topic_id, bytes(assemble(bytearray(61 + len(body)), header, body)))


def many_partitions(topic_id: bytes, *batches: bytes, transactional_id: str | None = None) -> ProduceRequest:
    """Build a request that names a partition as often as allowed; each batch but the last one occurs once."""
    *first, last = batches
    data = [PartitionProduceData(index=0, records=each) for each in first]
    data += [PartitionProduceData(index=0, records=last)] * (PARTITIONS_COUNT - len(data))
    topics = [TopicProduceData(topic_id=topic_id, partition_data=data)]
    return ProduceRequest(transactional_id=transactional_id, acks=-1, timeout_ms=10_000, topic_data=topics)


def _transactional(producer_id: int) -> bytes:
    record = Record(0, 1_000, None, b"")
    return bytes(
        encode_batch([record], producer_id=producer_id, producer_epoch=0, base_sequence=0, transactional=True)
    )


def _varint(number: int) -> bytes:
    number <<= 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _produce(topic_id: bytes, batch: bytes) -> ProduceRequest:
    data = [PartitionProduceData(index=0, records=batch)]
    return ProduceRequest(
        acks=-1, timeout_ms=10_000, topic_data=[TopicProduceData(topic_id=topic_id, partition_data=data)]
    )


def lookups(topic: str, timestamp_ms: int) -> ListOffsetsRequest:
    """Build a search by time in one partition."""
    partitions = [ListOffsetsPartition(partition_index=0, timestamp=timestamp_ms)]
    return ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=partitions)])


def bombs(topic: str, topic_id: bytes, broker_id: int) -> dict[str, Sequence[Message]]:
    """Return requests by name; those of one name are sent together."""
    brokers = [DescribeConfigsResource(resource_type=4, resource_name=str(broker_id))] * 10_000
    described = DescribeConfigsRequest(resources=brokers, include_synonyms=True, include_documentation=True)
    return {
        "PushTelemetry: 30 that unpack to 6 MiB": pushes(30),
        "DescribeConfigs: one broker 10,000 times": [described],
        "Produce: a record with a million headers": [headers_bomb(topic_id)],
        "Produce: ten batches that lie about time": lying_batches(topic_id, 10),
        "Produce: an unknown partition 20,000 times": [many_partitions(b"?" * 16, b"")],
        "Produce: 20,000 batches without their transaction": [many_partitions(topic_id, _transactional(1))],
        "Produce: 20,000 batches of a transaction": [
            many_partitions(topic_id, _transactional(1), transactional_id="bomb")
        ],
        "Produce: 20,000 batches of two transactions": [
            many_partitions(topic_id, _transactional(1), _transactional(2), transactional_id="bomb")
        ],
        "ListOffsets: five searches of batches that lie": [lookups(topic, 500_000)] * 5,
        "ListOffsets: the largest timestamp": [lookups(topic, -3)] * 5,
        "ListTransactions: a long pattern": [
            ListTransactionsRequest(transactional_id_pattern="(a?){1000}" * 30)
        ],
        "ConsumerGroupHeartbeat: a long pattern": [
            _pattern("((((a*)*)*)*)*" * 200),
            _pattern("(x+x+)+y" * 500),
        ],
    }


def _pattern(regex: str) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id="patterns",
        member_id="a-member",
        member_epoch=0,
        rebalance_timeout_ms=30_000,
        subscribed_topic_regex=regex,
        topic_partitions=[],
    )


def joined_frames(requests: Sequence[Message]) -> bytes:
    """Concatenate requests, each in its frame, as one write."""
    out = bytearray()
    for number, request in enumerate(requests):
        spec = APIS[request.API_KEY]
        frame = frame_of(spec, request, spec.versions.last, number)
        out += struct.pack(">i", len(frame)) + frame
    return bytes(out)
