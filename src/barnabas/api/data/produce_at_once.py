"""The short way for the Produce request that nearly every producer sends: one batch for one partition.

The same checks, the same append and the same answer, byte for byte, as by `produce.handle`, without building
messages in between. Whatever is not of that form, must wait, or fails, is left to the long way: nothing has been
appended then.
"""

import struct

from barnabas.api.context import Node
from barnabas.api.data.produce import is_transactional
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
#: One partition: its index, no error, base offset, append time and log start; no errors of records, no message, no
#: tagged fields of it and of its topic; no throttle time, no tagged fields of the answer.
_ANSWER_END = struct.Struct(">BihqqqBBBBiB")
_ANSWER_BYTES = _ANSWER_START.size + _ANSWER_END.size - 4  # without the size itself and the topic


def produce_at_once(node: Node, frame: memoryview) -> bytes | None:
    """Append and answer, if that is all there is to do; None when the long way must be taken."""
    try:
        _, version, correlation_id, client_id_bytes = _HEADER.unpack_from(frame)
        if version < FIRST_VERSION or node.tracer.enabled:
            return None
        at = _HEADER.size + client_id_bytes if client_id_bytes > 0 else _HEADER.size
        tags, transactional_id, acks, _, topics = _START.unpack_from(frame, at)
        topic_at = at + _START.size
        if version >= FIRST_VERSION_WITH_TOPIC_IDS:
            topic = bytes(frame[topic_at : topic_at + 16])
            partition_at = topic_at + 16
        else:
            partition_at = topic_at + frame[topic_at]  # a name of over 126 bytes leads nowhere
            topic = bytes(frame[topic_at:partition_at])
        partitions, index = _PARTITION.unpack_from(frame, partition_at)
        size, records_at = read_uvarint(frame, partition_at + _PARTITION.size)
        records_end = records_at + size - 1
        if tags or transactional_id or topics != _ONE or partitions != _ONE or frame[records_end:] != _END:
            return None
        partition = _find(node, version, topic, index)
        records = frame[records_at:records_end]
        if partition is None or acks not in partition.acks_at_once or is_transactional(records):
            return None
        appended = partition.append_as_leader(records, acks)
    except (KafkaError, IndexError, ValueError, struct.error):
        return None  # the long way finds the same, and says so
    end = _ANSWER_END.pack(
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
    )
    return _ANSWER_START.pack(_ANSWER_BYTES + len(topic), correlation_id, 0, _ONE) + topic + end


def _find(node: Node, version: int, topic: bytes, index: int) -> Partition | None:
    if version >= FIRST_VERSION_WITH_TOPIC_IDS:
        return node.replicas.find_by_id(topic, index)
    return node.replicas.find(str(topic[1:], "utf-8"), index)
