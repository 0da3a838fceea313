"""The short way for OffsetCommit requests: a member mostly commits for the same partitions again and again.

Such requests have one size, and differ in nothing but how far each partition was read: the rest is compared, and the
positions are cut out, by one call for each request.
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from barnabas.api.context import ConnectionInfo, Node
from barnabas.api.groups.offset_commit import FIRST_VERSION_WITH_TOPIC_IDS, about, by_id
from barnabas.api.short_way import (
    COMMON_AT,
    CORRELATION_AT,
    KEY_AND_VERSION,
    Asker,
    client_id,
    client_id_end,
    frame_bytes_at,
)
from barnabas.coordinator.runner import ShardRunner
from barnabas.groups.shard import GroupShard
from barnabas.metadata.topics import Topic
from barnabas.quotas.manager import ClientQuotas
from barnabas.wire import primitives
from barnabas.wire.acls import AclOperation, ResourceType
from barnabas.wire.codec import Malformed, decode, encode
from barnabas.wire.coordinator_records.committed_offset import POSITION_BYTES
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.framing import SIZE_BYTES, FrameReader
from barnabas.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

#: From the first flexible version on the answer has one form, and a position no timestamp beside it.
FIRST_VERSION = OffsetCommitRequest.FLEXIBLE.first

#: Offsets that are committed at once at most: one batch holds them.
RUN_OFFSETS_MAX = 500

#: Larger requests are not worth remembering; neither are more sizes than these.
REQUEST_BYTES_MAX, FORMS_COUNT_MAX = 16 << 10, 8

_INDEX_BYTES = 4


class _Run(NamedTuple):
    """Requests that were found; the lists are of one length."""

    correlation_ids: list[bytes]
    positions: list[Sequence[bytes]]  #: of each request: offset and leader epoch of each partition


@dataclass(slots=True, frozen=True)
class _Form:
    """What requests of one size have in common."""

    start: bytes  #: size, API key and version
    rest: tuple[bytes, ...]  #: what stands behind the correlation id, around the positions
    #: `start`, correlation id, then the parts of `rest` with a position between each two
    fields: struct.Struct
    version: int
    request: OffsetCommitRequest  #: one of them, its topics by their names
    topics: Sequence[tuple[str, Topic]]  #: as they were when the request was looked at
    runner: ShardRunner[GroupShard]
    permit: object  #: what the permissions, and the quotas, rest on: they hold while that is the same
    quotas: ClientQuotas | None  #: None: nothing is counted
    answer_start: bytes  #: the size of an answer
    answer_end: bytes  #: what stands behind its correlation id

    def collect(self, frames: FrameReader) -> _Run:
        """The requests of this form that stand next in `frames`, which is left where it is."""
        run, fields = _Run([], []), self.fields
        count_max = max(1, RUN_OFFSETS_MAX // (len(self.rest) - 1))
        whole_count = min((frames.end - frames.position) // fields.size, count_max)
        several = frames.view[frames.position : frames.position + whole_count * fields.size]
        start, rest = self.start, self.rest
        for found in fields.iter_unpack(several):
            if found[0] != start or found[2::2] != rest:
                break
            run.correlation_ids.append(found[1])
            run.positions.append(found[3::2])
        return run

    def answer(self, correlation_ids: Sequence[bytes]) -> bytes:
        """That all offsets were taken, to each of these requests."""
        start, end = self.answer_start, self.answer_end
        return b"".join([start + correlation_id + end for correlation_id in correlation_ids])


class CommitsAtOnce:
    """The short way of one connection."""

    def __init__(self, node: Node, connection: ConnectionInfo) -> None:
        self._node = node
        self._asker = Asker(node, connection)
        self._forms: dict[int, _Form] = {}  #: by the size of a request
        self._quotas: ClientQuotas | None = None  #: of what was taken last

    def take(self, frames: FrameReader) -> tuple[bytes, int]:
        """Commit what stands next in `frames` as far as the short way leads, and move `frames` behind it.

        Gives back the answers in one piece, and how many they are.
        """
        try:
            found = self._next_run(frames)
            if found is None:
                return b"", 0
            form, run = found
            form.runner.at_once(
                lambda shard, step: shard.offsets.commit_run(step, form.request, form.version, run.positions)
            )
        except (KafkaError, Malformed, IndexError, ValueError, struct.error):
            return b"", 0  # the handler finds the same, and says so
        self._quotas = form.quotas
        count = len(run.correlation_ids)
        frames.position += count * form.fields.size
        return form.answer(run.correlation_ids), count

    def charge(self, elapsed_ns: int) -> None:
        """Count the time of what was taken last; nobody has to wait for that, as it was looked at before."""
        if self._quotas is not None:
            self._quotas.took(0, elapsed_ns)

    def _next_run(self, frames: FrameReader) -> tuple[_Form, _Run] | None:
        """The requests that stand next and have one form; None when the short way does not lead there."""
        frame_bytes = frame_bytes_at(frames, frames.position)
        bytes_max = min(REQUEST_BYTES_MAX, frames.frame_bytes_max, frames.end - frames.position - SIZE_BYTES)
        if not 0 < frame_bytes <= bytes_max:
            return None
        form = self._forms.get(frame_bytes)
        run = form.collect(frames) if form is not None and self._holds(form) else None
        if run is None or not run.positions:
            form = self._recognise(frames, frames.position + SIZE_BYTES + frame_bytes)
            if form is None:
                return None
            if len(self._forms) >= FORMS_COUNT_MAX:
                self._forms.clear()
            self._forms[frame_bytes] = form
            run = form.collect(frames)
        assert form is not None
        if form.quotas is not None and not form.quotas.admit(0):
            return None
        return form, run

    def _holds(self, form: _Form) -> bool:
        """Whether what was found out about a request is still so."""
        if not form.runner.answers_at_once or form.permit != self._asker.permit():
            return False
        there = self._node.image.topics.rows
        return all(there.get(name) is topic for name, topic in form.topics)

    def _recognise(self, frames: FrameReader, end: int) -> _Form | None:
        """The form of the request that stands next and ends at `end`; None when the short way does not lead there."""
        data, position = frames.data, frames.position
        _, version = KEY_AND_VERSION.unpack_from(data, position + SIZE_BYTES)
        body_at = client_id_end(frames, position)
        has_tags = data[body_at] != 0
        if has_tags or not FIRST_VERSION <= version <= OffsetCommitRequest.VERSIONS.last:
            return None
        group_id, _ = primitives.read_compact_string(data, body_at + 1)
        runner = self._node.groups.runner(group_id)
        if not runner.answers_at_once:
            return None
        body = bytes(data[body_at + 1 : end])
        request = decode(OffsetCommitRequest, version, body)
        if encode(request, version) != body:
            return None  # written in another way, or with fields that we do not know
        named = _with_names(self._node, request, version)
        if named is None or not self._may_commit(named):
            return None
        rows = self._node.image.topics.rows
        parts, fields = _cut(
            bytes(data[position:end]), list(_positions_at(request, version, body_at + 1 - position))
        )
        answer_end = b"\0" + encode(_answer(named), version)
        return _Form(
            start=parts[0][:CORRELATION_AT],
            rest=(parts[0][COMMON_AT:], *parts[1:]),
            fields=fields,
            version=version,
            request=named,
            topics=[(topic.name, rows[topic.name]) for topic in named.topics],
            runner=runner,
            permit=self._asker.permit(),
            quotas=self._request_quotas(client_id(frames, position)),
            answer_start=(CORRELATION_AT - SIZE_BYTES + len(answer_end)).to_bytes(SIZE_BYTES),
            answer_end=answer_end,
        )

    def _may_commit(self, request: OffsetCommitRequest) -> bool:
        may = self._asker.may
        return may(AclOperation.READ, ResourceType.GROUP, request.group_id) and all(
            may(AclOperation.READ, ResourceType.TOPIC, topic.name) for topic in request.topics
        )

    def _request_quotas(self, name: str) -> ClientQuotas | None:
        found = self._asker.quotas(name)
        return found if found is not None and found.request else None


def _with_names(node: Node, request: OffsetCommitRequest, version: int) -> OffsetCommitRequest | None:
    """The request with its topics by name; None when there are none, or a partition is not there."""
    topics: list[OffsetCommitRequestTopic] = request.topics
    if version >= FIRST_VERSION_WITH_TOPIC_IDS:
        topics, unknown = by_id(node.image, topics)
        if unknown:
            return None
    rows = node.image.topics.rows
    for topic in topics:
        row = rows.get(topic.name)
        if row is None or not all(
            0 <= each.partition_index < row.partition_count for each in topic.partitions
        ):
            return None
    names = [topic.name for topic in topics]
    if not any(topic.partitions for topic in topics) or len(set(names)) < len(names):
        return None
    return about(request, topics)


def _positions_at(request: OffsetCommitRequest, version: int, body_at: int) -> Iterator[int]:
    """Where the position of each partition stands in a request whose body begins at `body_at`."""
    at = body_at + len(encode(about(request, []), version)) - 2  # without the count of topics and the end
    at += _size_bytes(len(request.topics))
    for topic in request.topics:
        at += 16 if version >= FIRST_VERSION_WITH_TOPIC_IDS else _text_bytes(topic.name)
        at += _size_bytes(len(topic.partitions))
        for partition in topic.partitions:
            at += _INDEX_BYTES
            yield at
            at += POSITION_BYTES + _text_bytes(partition.committed_metadata) + 1
        at += 1


def _cut(request: bytes, positions_at: Sequence[int]) -> tuple[list[bytes], struct.Struct]:
    """What stands around the positions of a request, and the fields that such a request has."""
    starts = [0, *(at + POSITION_BYTES for at in positions_at)]
    parts = [request[start:end] for start, end in zip(starts, [*positions_at, len(request)], strict=True)]
    first = f"{CORRELATION_AT}s{COMMON_AT - CORRELATION_AT}s{len(parts[0]) - COMMON_AT}s"
    others = "".join(f"{POSITION_BYTES}s{len(part)}s" for part in parts[1:])
    return parts, struct.Struct(f">{first}{others}")


def _answer(request: OffsetCommitRequest) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                topic.name,
                topic.topic_id,
                [
                    OffsetCommitResponsePartition(each.partition_index, ErrorCode.NONE)
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _size_bytes(size: int) -> int:
    out = bytearray()
    primitives.write_compact_size(out, size)
    return len(out)


def _text_bytes(text: str | None) -> int:
    out = bytearray()
    primitives.write_compact_nullable_string(out, text)
    return len(out)
