"""OffsetCommit and TxnOffsetCommit: checks and records."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

from barnabas.base.ids import ZERO_UUID
from barnabas.coordinator.result import CoordinatorResult, Pending
from barnabas.groups.context import GroupCoordinatorContext
from barnabas.groups.group import CommitCheck, Group
from barnabas.metadata.image import MetadataImage
from barnabas.wire.coordinator_records.committed_offset import (
    NEVER_MS,
    CommittedOffset,
    encode_group,
    encode_partition,
    encode_value,
)
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from barnabas.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

#: Generations and member epochs below this mean a commit without a member.
FIRST_GENERATION = 0

#: First version of OffsetCommit with errors for consumer groups (KIP-848).
FIRST_VERSION_OF_MEMBER_EPOCHS = 9

#: The largest timestamp of a record (int64).
EXPIRE_MS_MAX = (1 << 63) - 1

#: A commit timestamp that means the broker's time, and a retention that means the broker's.
NOW_MS = NO_RETENTION_MS = -1

#: Partition index, offset, leader epoch, metadata, commit timestamp.
PartitionCommit: TypeAlias = tuple[int, int, int, str, int]
#: A topic's name, or its id from version 10 on, and its partitions.
TopicCommit: TypeAlias = tuple[str | bytes, Sequence[PartitionCommit]]

METADATA_MAX = "offset.metadata.max.bytes"


class OffsetCommit(NamedTuple):
    """An OffsetCommit request."""

    group_id: str
    generation_or_member_epoch: int
    member_id: str
    group_instance_id: str | None
    retention_ms: int
    topics: Sequence[TopicCommit]


class Commits:
    """Appends committed offsets."""

    def __init__(
        self,
        groups: Mapping[str, Group],
        context: GroupCoordinatorContext,
    ) -> None:
        self._groups = groups
        self._context = context

    def commit(
        self,
        result: CoordinatorResult,
        pending: Pending[OffsetCommitResponse],
        request: OffsetCommitRequest,
        version: int,
    ) -> None:
        """Handle a decoded request; see `commit_offsets`."""
        topics: list[TopicCommit] = [
            (
                topic.name,
                [
                    (
                        partition.partition_index,
                        partition.committed_offset,
                        partition.committed_leader_epoch,
                        partition.committed_metadata or "",
                        partition.commit_timestamp,
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
        commit = OffsetCommit(
            request.group_id,
            request.generation_id_or_member_epoch,
            request.member_id,
            request.group_instance_id,
            request.retention_time_ms,
            topics,
        )
        codes_by_topic = self.commit_offsets(result, commit, version)
        response = OffsetCommitResponse()
        for topic, codes in zip(request.topics, codes_by_topic, strict=True):
            partitions = [
                OffsetCommitResponsePartition(partition.partition_index, code)
                for partition, code in zip(topic.partitions, codes, strict=True)
            ]
            response.topics.append(OffsetCommitResponseTopic(topic.name, topic.topic_id, partitions))
        result.answer(pending, response)

    def commit_offsets(
        self, result: CoordinatorResult, commit: OffsetCommit, version: int
    ) -> list[list[ErrorCode]]:
        """Append offsets; return the error code of each partition of each topic.

        A commit without a generation needs no group. Topics are identified by name.

        :raises KafkaError: GROUP_ID_NOT_FOUND, ILLEGAL_GENERATION, and those of `Group.check_offset_commit`.
        """
        group_id, generation, member_id, group_instance_id, retention_ms, topics = commit
        group = self._groups.get(group_id)
        check = self._check(group, group_id, generation, member_id, group_instance_id, version)
        committer = self._committer(result, group_id, check)
        expire_ms = NEVER_MS
        if retention_ms != NO_RETENTION_MS:
            expire_ms = min(result.now_ms + retention_ms, EXPIRE_MS_MAX)
        codes = [committer.commit_topic(str(name), partitions, expire_ms) for name, partitions in topics]
        if group is not None:
            group.on_commit(result, member_id)
        self._context.counts.offset_commits_count += len(result.records)
        return codes

    def _check(
        self,
        group: Group | None,
        group_id: str,
        generation: int,
        member_id: str,
        group_instance_id: str | None,
        version: int,
    ) -> CommitCheck | None:
        if group is not None:
            return group.check_offset_commit(
                member_id, group_instance_id, generation, is_transactional=False, version=version
            )
        if generation < FIRST_GENERATION:
            return None
        if version >= FIRST_VERSION_OF_MEMBER_EPOCHS:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        raise _no_generation(group_id, generation)

    def commit_in_transaction(
        self,
        result: CoordinatorResult,
        pending: Pending[TxnOffsetCommitResponse],
        request: TxnOffsetCommitRequest,
        version: int,
    ) -> None:
        """Append offsets of a transaction, whose producer the caller has set in the result.

        :raises KafkaError: ILLEGAL_GENERATION, and those of `Group.check_offset_commit`.
        """
        check = self._check_in_transaction(request, version)
        committer = self._committer(result, request.group_id, check)
        topics = []
        for topic in request.topics:
            topic_id, partitions = committer.topic_id(topic.name), []
            for requested in topic.partitions:
                committed = CommittedOffset(
                    requested.committed_offset,
                    requested.committed_leader_epoch,
                    requested.committed_metadata or "",
                    result.now_ms,
                    NEVER_MS,
                    topic_id,
                )
                code = committer.commit(topic.name, requested.partition_index, committed)
                partitions.append(TxnOffsetCommitResponsePartition(requested.partition_index, code))
            topics.append(TxnOffsetCommitResponseTopic(topic.name, partitions))
        self._context.counts.offset_commits_count += len(result.records)
        result.answer(pending, TxnOffsetCommitResponse(topics=topics))

    def _check_in_transaction(self, request: TxnOffsetCommitRequest, version: int) -> CommitCheck | None:
        group = self._groups.get(request.group_id)
        if group is None:
            if request.generation_id < FIRST_GENERATION:
                return None
            raise _no_generation(request.group_id, request.generation_id)
        try:
            return group.check_offset_commit(
                request.member_id,
                request.group_instance_id,
                request.generation_id,
                is_transactional=True,
                version=version,
            )
        except KafkaError as error:
            if error.code is not ErrorCode.STALE_MEMBER_EPOCH:
                raise
            raise KafkaError(
                ErrorCode.ILLEGAL_GENERATION, error.message
            ) from error  # the corresponding error of this API

    def _committer(self, result: CoordinatorResult, group_id: str, check: CommitCheck | None) -> "_Committer":
        metadata_max = self._context.config().integer(METADATA_MAX)
        return _Committer(result, encode_group(group_id), check, metadata_max, self._context.image())


class _Committer(NamedTuple):
    """Appends the offsets of one request."""

    result: CoordinatorResult
    key_head: bytes
    check: CommitCheck | None
    metadata_max: int  #: in UTF-16 units, as Kafka counts
    image: MetadataImage

    def topic_id(self, topic: str) -> bytes:
        """Return the id of a topic; ZERO_UUID if it was deleted meanwhile."""
        known = self.image.topics.rows.get(topic)
        return ZERO_UUID if known is None else known.topic_id

    def commit(self, topic: str, index: int, committed: CommittedOffset) -> ErrorCode:
        """Append one offset; return its error code.

        :raises KafkaError: STALE_MEMBER_EPOCH or ILLEGAL_GENERATION for a partition that the member does not own.
        """
        code = self._check_partition(committed.topic_id, index, committed.metadata)
        if code is ErrorCode.NONE:
            self.result.append_encoded(
                self.key_head + encode_partition(topic, index), encode_value(committed)
            )
        return code

    def commit_topic(
        self, topic: str, partitions: Sequence[PartitionCommit], expire_ms: int
    ) -> list[ErrorCode]:
        """Append the offsets of one topic; return the error code of each.

        :raises KafkaError: As `commit`.
        """
        topic_id, now_ms = self.topic_id(topic), self.result.now_ms
        codes = []
        for index, offset, leader_epoch, metadata, timestamp_ms in partitions:
            at_ms = now_ms if timestamp_ms == NOW_MS else timestamp_ms
            committed = CommittedOffset(offset, leader_epoch, metadata, at_ms, expire_ms, topic_id)
            codes.append(self.commit(topic, index, committed))
        return codes

    def _check_partition(self, topic_id: bytes, index: int, metadata: str) -> ErrorCode:
        """Return the error code of a partition; raises as `commit`."""
        if _utf16_size(metadata) > self.metadata_max:
            return ErrorCode.OFFSET_METADATA_TOO_LARGE
        if self.check is not None:
            self.check(topic_id, index)
        return ErrorCode.NONE


def _utf16_size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2


def _no_generation(group_id: str, generation: int) -> KafkaError:
    message = f"Group '{group_id}' not found; generation {generation} requires an existing group."
    return KafkaError(ErrorCode.ILLEGAL_GENERATION, message)
