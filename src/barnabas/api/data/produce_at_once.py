"""The short way for the Produce request that nearly every producer sends: one batch for one partition.

The same checks, the same append and the same answer, byte for byte, as by `produce.handle`, without building
messages in between. Whatever is not of that form, must wait, or fails, is left to the long way: nothing has been
appended then.
"""

import struct

from barnabas.api.context import Node
from barnabas.api.data.produce import ALL_REPLICAS, is_transactional
from barnabas.metadata.topics import INTERNAL_TOPICS
from barnabas.replication.partition import Partition
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.produce import ProduceRequest
from barnabas.wire.primitives import read_uvarint

#: From the first flexible version on the answer has one form; from the last but one on topics go by id.
FIRST_VERSION, FIRST_VERSION_WITH_TOPIC_IDS = ProduceRequest.FLEXIBLE.first, 13

_HEADER = struct.Struct(">hhih")  # api key, api version, correlation id, length of the client id
_START = struct.Struct(">BBhiB")  # no tagged fields, no transactional id, acks, timeout, one topic
_PARTITION = struct.Struct(">Bi")  # one partition, its index
_ONE = 2  #: a compact array of one element
_END = b"\0\0\0"  #: no tagged fields of partition, topic and request

_ANSWER_START = struct.Struct(">iiBB")  # size, correlation id, no tagged fields, one topic
#: One partition: index, error, base offset, append time, log start, no record errors, no message; no tagged
#: fields of it and of its topic, throttle time, no tagged fields of the answer.
_ANSWER_END = struct.Struct(">BihqqqBBBBiB")


def produce_at_once(node: Node, frame: memoryview) -> bytes | None:
    """Append and answer, if that is all there is to do; None when the long way must be taken."""
    try:
        _, version, correlation_id, client_id_bytes = _HEADER.unpack_from(frame)
        if version < FIRST_VERSION or node.tracer.enabled:
            return None
        at = _HEADER.size + max(client_id_bytes, 0)
        tags, transactional_id, acks, _, topics = _START.unpack_from(frame, at)
        if tags or transactional_id or topics != _ONE or acks not in (1, ALL_REPLICAS):
            return None
        topic_at = at + _START.size
        topic_end = topic_at + (16 if version >= FIRST_VERSION_WITH_TOPIC_IDS else max(frame[topic_at], 1))
        partitions, index = _PARTITION.unpack_from(frame, topic_end)
        size, records_at = read_uvarint(frame, topic_end + _PARTITION.size)
        records_end = records_at + size - 1
        if partitions != _ONE or size < 1 or frame[records_end:] != _END:
            return None
        topic = frame[topic_at:topic_end]
        partition = _find(node, version, topic, index)
        records = frame[records_at:records_end]
        if partition is None or not partition.answers_at_once(acks) or is_transactional(records):
            return None
        appended = partition.append_as_leader(records, acks)
    except (KafkaError, IndexError, ValueError, struct.error):
        return None  # the long way finds the same, and says so
    return b"".join(
        (
            _ANSWER_START.pack(
                len(topic) + _ANSWER_START.size + _ANSWER_END.size - 4, correlation_id, 0, _ONE
            ),
            topic,
            _ANSWER_END.pack(
                _ONE,
                index,
                0,
                appended.first_offset,
                appended.log_append_time_ms,
                appended.log_start_offset,
                1,
                0,
                0,
                0,
                0,
                0,
            ),
        )
    )


def _find(node: Node, version: int, topic: memoryview, index: int) -> Partition | None:
    if version >= FIRST_VERSION_WITH_TOPIC_IDS:
        partition = node.replicas.find_by_id(bytes(topic), index)
    elif topic[0] > 0x7F:
        return None  # a name whose length takes two bytes
    else:
        partition = node.replicas.find(str(topic[1:], "utf-8"), index)
    return partition if partition is not None and partition.topic not in INTERNAL_TOPICS else None
