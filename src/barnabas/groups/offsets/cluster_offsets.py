"""The committed offsets of deleted topics, which the group coordinators of all brokers keep for the trash."""

import asyncio
import itertools
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from barnabas.base.topic_names import GROUP_TOPIC
from barnabas.client.core.errors import BrokerConnectionError
from barnabas.coordinator.partition_of import coordinator_of
from barnabas.coordinator.result import CoordinatorResult, Pending
from barnabas.coordinator.runtime import CoordinatorRuntime
from barnabas.groups.offsets.trash import GroupOffset
from barnabas.groups.shard import GroupShard
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.topics import NO_LEADER
from barnabas.metadata.trash import TopicOffsets, TrashRecord, group_bytes, offset_bytes, too_large
from barnabas.replication.broker_client import BrokerClient
from barnabas.telemetry.logs import get_logger
from barnabas.wire.barnabas_messages.describe_topic_offsets import (
    DescribeTopicOffsetsRequest,
    DescribeTopicOffsetsResponse,
)
from barnabas.wire.barnabas_messages.restore_topic_offsets import (
    RestoredGroup,
    RestoreTopicOffsetsRequest,
    RestoreTopicOffsetsResponse,
)
from barnabas.wire.barnabas_messages.topic_offsets import GroupPartitionOffset
from barnabas.wire.coordinator_records.committed_offset import CommittedOffset, encode_topic
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.schema import Message

#: Maximum number of committed offsets that go to the trash with topics that are deleted together.
OFFSETS_MAX = 20_000
#: Maximum of their bytes. They are in the row of their topic, and etcd refuses requests of more than 1.5 MiB.
OFFSETS_BYTES_MAX = 1 << 20

#: How long another broker may take to answer.
REQUEST_TIMEOUT_S = 5.0

#: How long a broker waits until its shards have stored their records, so that the offsets of the others arrive in time.
OWN_TIMEOUT_S = 4.0

#: Restoring is tried again while a coordinator moves, loads, or does not know yet that the topic exists again.
ATTEMPTS_COUNT = 10
RETRY_DELAY_S = 0.3
#: Offsets of one group that are restored with one write of its coordinator, about 5 us each.
WRITE_COUNT_MAX = 500
#: Offsets that are restored before other clients are served. The work for a group itself counts as some offsets.
AT_ONCE_COUNT = 400
_OFFSETS_PER_GROUP = 20
#: Offsets that are decoded, or measured, between two checkpoints.
_DECODED_COUNT = 100
_RETRIABLE = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
    }
)

_log = get_logger("barnabas.groups")


class ClusterOffsets:
    """Reads and restores committed offsets by topic, at the coordinators of all brokers."""

    def __init__(
        self,
        broker_id: int,
        image: Callable[[], MetadataImage],
        groups: CoordinatorRuntime[GroupShard],
        client: BrokerClient,
    ) -> None:
        self._broker_id = broker_id
        self._image = image
        self._groups = groups
        self._client = client
        self._restoring: set[asyncio.Task[int]] = set()
        self.unanswered_count = 0  #: brokers whose offsets were not or not all available

    # Reading

    async def of_topics(
        self, topics: Collection[str], checkpoint: Callable[[], Awaitable[None]]
    ) -> Mapping[str, TopicOffsets]:
        """Return the committed offsets of topics, by topic name.

        Offsets of coordinators that are not available are left out, and all if there are more than `OFFSETS_MAX`. If
        they have more than `OFFSETS_BYTES_MAX`, those of the groups with the most bytes are left out. That is logged.
        """
        if not topics:
            return {}
        coordinators = self._coordinators()
        if NO_LEADER in coordinators:
            _log.warning("cannot keep all offsets of deleted topics: some groups have no coordinator")
        others = sorted(coordinators - {NO_LEADER, self._broker_id})
        found = await asyncio.gather(
            self._own(topics, checkpoint), *(self._of_broker(broker_id, topics) for broker_id in others)
        )
        count = sum(map(len, found))
        if count > OFFSETS_MAX:
            _log.warning("cannot keep the offsets of deleted topics: too many", count_max=OFFSETS_MAX)
            return {}
        offsets: dict[str, dict[str, dict[int, CommittedOffset]]] = {}
        for offset in await _fitting([*itertools.chain.from_iterable(found)], checkpoint):
            of_group = offsets.setdefault(offset.topic, {}).setdefault(offset.group_id, {})
            of_group[offset.partition] = offset.committed
        return offsets

    async def here(
        self, topics: Collection[str], checkpoint: Callable[[], Awaitable[None]]
    ) -> tuple[list[GroupOffset], KafkaError | None]:
        """Return the committed offsets of topics in the groups that this broker coordinates.

        Stop after OFFSETS_MAX + 1 offsets, which are too many to keep, and leave out groups whose offsets have too many
        bytes. If a shard cannot be read, because it is loading
        or its records are not stored in time, its offsets are missing, and its error is returned beside the others.
        """
        encoded_topics = frozenset(map(encode_topic, topics))
        by_shard = await self._groups.query_each(
            lambda shard, now_ms: shard.offsets.of_topics(encoded_topics), checkpoint, OWN_TIMEOUT_S
        )
        found = [part for part in by_shard.values() if not isinstance(part, KafkaError)]
        errors = [part for part in by_shard.values() if isinstance(part, KafkaError)]
        offsets: list[GroupOffset] = []
        for encoded in itertools.islice(itertools.chain.from_iterable(found), OFFSETS_MAX + 1):
            offsets.append(encoded.decoded())
            if not len(offsets) % _DECODED_COUNT:
                await checkpoint()
        return await _fitting(offsets, checkpoint), errors[0] if errors else None

    async def _own(
        self, topics: Collection[str], checkpoint: Callable[[], Awaitable[None]]
    ) -> Sequence[GroupOffset]:
        found, error = await self.here(topics, checkpoint)
        if error is not None:
            self._note_missing(self._broker_id, error)
        return found

    async def _of_broker(self, broker_id: int, topics: Collection[str]) -> Sequence[GroupOffset]:
        try:
            response: DescribeTopicOffsetsResponse = await self._send(
                broker_id, DescribeTopicOffsetsRequest(topics=sorted(topics))
            )
        except (BrokerConnectionError, KafkaError, TimeoutError) as error:
            self._note_missing(broker_id, error)
            return ()
        if response.error_code:
            self._note_missing(broker_id, KafkaError(ErrorCode.of(response.error_code)))
        return [
            GroupOffset(offset.group_id, topic.name, offset.partition_index, from_message(offset))
            for topic in response.topics
            for offset in topic.offsets
        ]

    def _note_missing(self, broker_id: int, error: Exception) -> None:
        self.unanswered_count += 1
        _log.warning(
            "cannot keep all offsets of deleted topics that a broker coordinates",
            broker_id=broker_id,
            why=_why(error),
        )

    # Restoring

    async def restore(self, trashed: TrashRecord) -> int:
        """Commit the offsets of an undeleted topic again, each at its coordinator; return how many.

        Errors are logged: they do not prevent the restoration of the topic. It is completed even if the caller is
        cancelled, because no other copy of the offsets is left.
        """
        if not trashed.offsets:
            return 0
        restoring = asyncio.get_running_loop().create_task(self._restore(trashed))
        self._restoring.add(restoring)
        restoring.add_done_callback(self._restoring.discard)
        return await asyncio.shield(restoring)

    async def stop(self) -> None:
        """Abandon restorations that are not complete."""
        for restoring in self._restoring:
            restoring.cancel()
        await asyncio.gather(*self._restoring, return_exceptions=True)

    async def _restore(self, trashed: TrashRecord) -> int:
        remaining = dict(trashed.offsets)
        restored_count = 0
        for attempt in range(ATTEMPTS_COUNT):
            if attempt:
                await asyncio.sleep(RETRY_DELAY_S)
            by_coordinator: defaultdict[int | None, list[str]] = defaultdict(list)
            for group_id in remaining:
                by_coordinator[coordinator_of(self._image(), GROUP_TOPIC, group_id)].append(group_id)
            results = await asyncio.gather(
                *(
                    self._restore_at(broker_id, trashed, group_ids)
                    for broker_id, group_ids in by_coordinator.items()
                )
            )
            for group in itertools.chain.from_iterable(results):
                restored_count += group.offset_count
                is_retriable = group.error_code in _RETRIABLE
                if not is_retriable:
                    del remaining[group.group_id]
                if group.error_code and (not is_retriable or attempt == ATTEMPTS_COUNT - 1):
                    _log.warning(
                        "cannot restore the committed offsets of a topic",
                        group=group.group_id,
                        topic=trashed.name,
                        error=ErrorCode.of(group.error_code).name,
                    )
            if not remaining:
                break
        return restored_count

    async def restore_here(self, topic: str, topic_id: bytes, offsets: TopicOffsets) -> list[RestoredGroup]:
        """Commit offsets of groups that this broker coordinates again; they wait together until they are stored.

        The error of a group is UNKNOWN_TOPIC_ID if this broker does not know yet that the topic exists again: it would
        delete the offsets when it learns of the deletion.
        """
        restoring: list[asyncio.Future[RestoredGroup]] = []
        started_count = 0
        for group_id, of_group in offsets.items():
            restored = self._restore_group(topic, topic_id, group_id, of_group)
            restoring.append(asyncio.ensure_future(restored))
            started_count += _OFFSETS_PER_GROUP + len(of_group)
            if started_count >= AT_ONCE_COUNT:
                await asyncio.sleep(0)
                started_count = 0
        # Most are done by now, and `gather` would call back for each of them in one turn of the loop.
        return [await each for each in restoring]

    async def _restore_group(
        self, topic: str, topic_id: bytes, group_id: str, offsets: Mapping[int, CommittedOffset]
    ) -> RestoredGroup:
        remaining, restored_count = iter(offsets.items()), 0
        while part := dict(itertools.islice(remaining, WRITE_COUNT_MAX)):
            if self._image().topic_by_id(topic_id) is None:
                return RestoredGroup(group_id, ErrorCode.UNKNOWN_TOPIC_ID, restored_count)
            try:
                restored_count += await self._restore_part(topic, topic_id, group_id, part)
            except KafkaError as error:
                return RestoredGroup(group_id, error.code, restored_count)
            if len(part) == WRITE_COUNT_MAX:
                await asyncio.sleep(0)  # if one broker stores the offsets, nothing has waited
        return RestoredGroup(group_id, ErrorCode.NONE, restored_count)

    async def _restore_part(
        self, topic: str, topic_id: bytes, group_id: str, offsets: Mapping[int, CommittedOffset]
    ) -> int:
        of_topic = {index: committed._replace(topic_id=topic_id) for index, committed in offsets.items()}

        def restore(shard: GroupShard, result: CoordinatorResult, pending: Pending[int]) -> None:
            shard.offsets.restore(result, pending, group_id, topic, of_topic)

        return await self._groups.handle_request(group_id, restore)

    async def _restore_at(
        self, broker_id: int | None, trashed: TrashRecord, group_ids: Sequence[str]
    ) -> Sequence[RestoredGroup]:
        if broker_id == self._broker_id:
            own = {group_id: trashed.offsets[group_id] for group_id in group_ids}
            return await self.restore_here(trashed.name, trashed.topic_id, own)
        if broker_id is None or broker_id == NO_LEADER:
            return _failed(group_ids, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        offsets = [
            to_message(group_id, index, committed)
            for group_id in group_ids
            for index, committed in trashed.offsets[group_id].items()
        ]
        try:
            response: RestoreTopicOffsetsResponse = await self._send(
                broker_id, RestoreTopicOffsetsRequest(trashed.name, trashed.topic_id, offsets)
            )
        except (BrokerConnectionError, TimeoutError):
            self.unanswered_count += 1
            return _failed(group_ids, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        except KafkaError as error:  # a broker of an older version
            return _failed(group_ids, error.code)
        return _failed(group_ids, response.error_code) if response.error_code else response.groups

    # Brokers

    async def _send(self, broker_id: int, request: Message) -> Any:
        return await asyncio.wait_for(self._client.send(broker_id, request), REQUEST_TIMEOUT_S)

    def _coordinators(self) -> set[int]:
        """Return the brokers that lead partitions of the group coordinators' topic; NO_LEADER if one has none."""
        image = self._image()
        topic = image.topics.get(GROUP_TOPIC)
        if topic is None:
            return set()
        return {image.partition(topic, index).leader for index in range(topic.partition_count)}

    def statistics(self) -> dict[str, int]:
        return {"unanswered_count": self.unanswered_count}


async def _fitting(
    offsets: list[GroupOffset], checkpoint: Callable[[], Awaitable[None]]
) -> list[GroupOffset]:
    """Return the offsets that can be stored: of the largest groups, none are."""
    sizes_bytes: dict[tuple[str, str], int] = {}
    for number, offset in enumerate(offsets, 1):
        key = offset.topic, offset.group_id
        size_bytes = sizes_bytes[key] if key in sizes_bytes else group_bytes(offset.group_id)
        sizes_bytes[key] = size_bytes + offset_bytes(offset.partition, offset.committed)
        if not number % _DECODED_COUNT:
            await checkpoint()
    left_out = too_large(sizes_bytes, OFFSETS_BYTES_MAX)
    if not left_out:
        return offsets
    topic, group_id = max(left_out, key=lambda key: sizes_bytes[key])
    _log.warning(
        "cannot keep the offsets of some groups in deleted topics: they are too large",
        groups_count=len(left_out),
        largest_group=group_id,
        topic=topic,
        size_bytes=sizes_bytes[topic, group_id],
        bytes_max=OFFSETS_BYTES_MAX,
    )
    return [offset for offset in offsets if (offset.topic, offset.group_id) not in left_out]


def to_message(group_id: str, partition: int, committed: CommittedOffset) -> GroupPartitionOffset:
    """Return an offset as brokers send it."""
    return GroupPartitionOffset(
        group_id,
        partition,
        committed.offset,
        committed.leader_epoch,
        committed.metadata,
        committed.commit_timestamp_ms,
        committed.expire_timestamp_ms,
        committed.topic_id,
    )


def from_message(offset: GroupPartitionOffset) -> CommittedOffset:
    return CommittedOffset(
        offset.committed_offset,
        offset.committed_leader_epoch,
        offset.metadata,
        offset.commit_timestamp,
        offset.expire_timestamp,
        offset.topic_id,
    )


def by_group(offsets: Iterable[GroupPartitionOffset]) -> dict[str, dict[int, CommittedOffset]]:
    groups: defaultdict[str, dict[int, CommittedOffset]] = defaultdict(dict)
    for offset in offsets:
        groups[offset.group_id][offset.partition_index] = from_message(offset)
    return groups


def _failed(group_ids: Iterable[str], code: int) -> list[RestoredGroup]:
    return [RestoredGroup(group_id, code) for group_id in group_ids]


def _why(error: Exception) -> str:
    if isinstance(error, KafkaError):
        return error.code.name
    return str(error) or f"no answer within {REQUEST_TIMEOUT_S:g} seconds"
