"""The short way for the Produce requests that nearly every producer sends: one batch for one partition each.

A connection mostly sends to one partition again and again: what its requests have in common is their form.
"""

import struct
from dataclasses import dataclass

from barnabas.api.context import ConnectionInfo, Node
from barnabas.api.data.produce_run import AlikeRequests, Run
from barnabas.api.short_way import COMMON_AT, CORRELATION_AT, KEY_AND_VERSION, Asker, client_id, client_id_end
from barnabas.quotas.manager import ClientQuotas
from barnabas.replication.partition import Partition
from barnabas.wire.acls import AclOperation, ResourceType
from barnabas.wire.errors import KafkaError
from barnabas.wire.framing import SIZE_BYTES, FrameReader
from barnabas.wire.messages.produce import ProduceRequest

#: From the first flexible version on the answer has one form; from the last but one on topics go by id.
FIRST_VERSION, FIRST_VERSION_WITH_TOPIC_IDS = ProduceRequest.FLEXIBLE.first, 13

_START = struct.Struct(">BBhiB")  # no tagged fields, no transactional id, acks, timeout, one topic
_PARTITION = struct.Struct(">Bi")  # one partition, its index
_ONE = 2  #: a compact array of one element

_ANSWER_START = struct.Struct(">BB")  # no tagged fields, one topic
_ANSWER_PARTITION = struct.Struct(">Bih")  # one partition, its index, no error
#: Behind the base offset: append time and log start; no errors of records, no message, no tagged fields of the
#: partition and of its topic; no throttle time, no tagged fields of the answer.
_ANSWER_END = struct.Struct(">qqBBBBiB")
_NO_APPEND_TIME = -1


@dataclass(slots=True, frozen=True)
class _Form:
    """What Produce requests to one partition have in common."""

    requests: AlikeRequests
    acks: int
    partition: Partition
    permit: object  #: what the permission to write, and the quotas, rest on: they hold while that is the same
    quotas: ClientQuotas | None  #: None: nothing is counted
    answer_start: bytes  #: of the answer, from behind the correlation id up to the error code
    #: size, correlation id, `answer_start`, base offset, and what `_ANSWER_END` has packed
    answer: struct.Struct


class ProduceAtOnce:
    """The short way of one connection."""

    def __init__(self, node: Node, connection: ConnectionInfo) -> None:
        self._replicas = node.replicas
        self._asker = Asker(node, connection)
        self._form: _Form | None = None
        self._taken_bytes = 0  #: of the requests that were taken last, without their sizes

    def take(self, frames: FrameReader) -> tuple[bytes, int]:
        """Append what stands next in `frames` as far as the short way leads, and move `frames` behind it.

        Gives back the answers in one piece, and how many they are.
        """
        if frames.position == frames.end:
            return b"", 0
        try:
            run = self._next_run(frames)
            form = self._form
            if form is None or not run.ends:
                return b"", 0
            if form.quotas is not None and not form.quotas.admit(run.ends[-1] - frames.position):
                return b"", 0  # its client would be told to wait
            offsets = form.partition.append_at_once(run.batches)
        except (KafkaError, IndexError, ValueError, struct.error):
            return b"", 0  # the long way finds the same, and says so
        if not offsets:
            return b"", 0
        position = frames.position
        answers = _answer(frames, form, offsets, run)
        self._taken_bytes = frames.position - position - SIZE_BYTES * len(offsets)
        return answers, len(offsets)

    def _next_run(self, frames: FrameReader) -> Run:
        """The requests that stand next and have one form, mostly that of the last."""
        form = self._form
        if (
            form is not None
            and form.acks in form.partition.acks_at_once
            and form.permit == self._asker.permit()
        ):
            run = form.requests.collect(frames)
            if run.ends:
                return run
        form = self._form = self._recognise(frames)
        return Run() if form is None else form.requests.collect(frames)

    def charge(self, elapsed_ns: int) -> None:
        """Count what was taken last, in `elapsed_ns`; nobody has to wait for that, as it was looked at before."""
        if self._form is not None and self._form.quotas is not None:
            self._form.quotas.took(self._taken_bytes, elapsed_ns)

    def _recognise(self, frames: FrameReader) -> _Form | None:
        """The form of the next request; None when the short way does not lead there."""
        data, position = frames.data, frames.position
        _, version = KEY_AND_VERSION.unpack_from(data, position + SIZE_BYTES)
        if version < FIRST_VERSION:
            return None
        at = client_id_end(frames, position)
        tags, transactional_id, acks, _, topics = _START.unpack_from(data, at)
        at += _START.size
        topic_bytes = 16 if version >= FIRST_VERSION_WITH_TOPIC_IDS else data[at]
        topic = bytes(data[at : at + topic_bytes])  # a name of over 126 bytes leads nowhere
        at += topic_bytes
        partitions, index = _PARTITION.unpack_from(data, at)
        at += _PARTITION.size
        if tags or transactional_id or topics != _ONE or partitions != _ONE or at > frames.end:
            return None
        partition = self._find(version, topic, index)
        permit = self._asker.permit()
        if partition is None or acks not in partition.acks_at_once:
            return None
        if not self._asker.may(AclOperation.WRITE, ResourceType.TOPIC, partition.topic):
            return None
        answer_start = _ANSWER_START.pack(0, _ONE) + topic + _ANSWER_PARTITION.pack(_ONE, index, 0)
        return _Form(
            requests=AlikeRequests(
                start=bytes(data[position + SIZE_BYTES : position + CORRELATION_AT]),
                common=bytes(data[position + COMMON_AT : at]),
            ),
            acks=acks,
            partition=partition,
            permit=permit,
            quotas=self._quotas(client_id(frames, position)),
            answer_start=answer_start,
            answer=struct.Struct(f">4s4s{len(answer_start)}sq{_ANSWER_END.size}s"),
        )

    def _quotas(self, client_id: str) -> ClientQuotas | None:
        found = self._asker.quotas(client_id)
        return found if found is not None and (found.produce or found.request) else None

    def _find(self, version: int, topic: bytes, index: int) -> Partition | None:
        if version >= FIRST_VERSION_WITH_TOPIC_IDS:
            return self._replicas.find_by_id(topic, index)
        return self._replicas.find(str(topic[1:], "utf-8"), index)


def _answer(frames: FrameReader, form: _Form, offsets: list[int], run: Run) -> bytes:
    """Answers to as many requests as there are offsets; `frames` then stands behind them."""
    start, pack = form.answer_start, form.answer.pack
    size = (form.answer.size - SIZE_BYTES).to_bytes(SIZE_BYTES, "big")
    end = _ANSWER_END.pack(_NO_APPEND_TIME, form.partition.log.log_start_offset, 1, 0, 0, 0, 0, 0)
    answers = [
        pack(size, correlation_id, start, offset, end)
        for correlation_id, offset in zip(run.correlation_ids, offsets, strict=False)
    ]
    frames.position = run.ends[len(offsets) - 1]
    return b"".join(answers)
