"""What stories of groups say about committed offsets."""

from collections.abc import Callable
from typing import Any

from barnabas.coordinator.result import CoordinatorResult, Pending, TransactionalProducer
from barnabas.coordinator.runner import ShardRunner
from barnabas.groups.shard import GroupShard
from barnabas.wire.coordinator_records.committed_offset import decode_partition, decode_value, split_key
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.offset_commit import OffsetCommitRequest
from barnabas.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from barnabas.wire.messages.offset_fetch import OffsetFetchRequestGroup
from barnabas.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from barnabas.wire.records.control import EndTransactionMarker
from support.offsets import codes, commit_topics
from support.shards import MemoryShardLog

NEWEST_VERSION = 9
Options = dict[str, str]


class OffsetCommands:
    """Verbs on the offsets of the group `g`; partitions are written as topic-index, offsets as topic-index:offset."""

    runner: ShardRunner[GroupShard] | None
    log: MemoryShardLog
    _speaker: Callable[[str], Any]
    _ask: Callable[
        [Any, Callable[[GroupShard, CoordinatorResult, Pending[Any]], None], Callable[[Any], str]], None
    ]
    _tell: Callable[[str], None]

    async def commit(self, words: list[str], options: Options) -> None:
        """commit A a-0:5 ... [generation=1] [id=x] [version=9] [retention=1000]: who has not joined is no member."""
        speaker, version = self._speaker(words[0]), int(options.get("version", NEWEST_VERSION))
        request = OffsetCommitRequest(
            "g",
            int(options.get("generation", speaker.generation)),
            options.get("id", speaker.member_id),
            speaker.instance_id,
            int(options.get("retention", -1)),
            commit_topics(_offsets(words[1:])),
        )
        self._ask(
            speaker,
            lambda shard, result, pending: shard.offsets.commit(result, pending, request, version),
            _told,
        )

    async def pledge(self, words: list[str], options: Options) -> None:
        """pledge A 7 a-0:5 ...: in the transaction of producer 7."""
        speaker, producer_id = self._speaker(words[0]), int(words[1])
        topics = [
            TxnOffsetCommitRequestTopic(
                topic,
                [TxnOffsetCommitRequestPartition(index, offset) for index, offset in partitions.items()],
            )
            for topic, partitions in _offsets(words[2:]).items()
        ]
        request = TxnOffsetCommitRequest(
            "tx", "g", producer_id, 0, speaker.generation, speaker.member_id, speaker.instance_id, topics
        )

        def event(shard: GroupShard, result: CoordinatorResult, pending: Pending[Any]) -> None:
            result.producer = TransactionalProducer("tx", producer_id, 0)
            shard.offsets.commit_in_transaction(result, pending, request, 5)

        self._ask(speaker, event, _told)

    async def marker(self, words: list[str], options: Options) -> None:
        """marker 7 commit | abort: the transaction of producer 7 ends."""
        assert self.runner is not None
        end = EndTransactionMarker(int(words[0]), 0, 0, words[1] == "commit", 0)
        self.log.end_transaction(end)
        self.runner.end_transaction(end)

    async def fetch(self, words: list[str], options: Options) -> None:
        """fetch [stable]: all that the group has committed."""
        assert self.runner is not None
        asked = OffsetFetchRequestGroup("g", topics=None)
        group = self.runner.shard.offsets.fetch(asked, require_stable="stable" in words)
        found = {
            f"{topic.name}-{each.partition_index}": each
            for topic in group.topics
            for each in topic.partitions
        }
        for name, each in sorted(found.items()):
            told = ErrorCode(each.error_code).name if each.error_code else each.committed_offset
            self._tell(f"{name}: {told}")
        if not found:
            self._tell("no offsets")

    async def unlearn(self, words: list[str], options: Options) -> None:
        """unlearn a-0 ...: an administrator deletes offsets."""
        partitions: dict[str, list[OffsetDeleteRequestPartition]] = {}
        for word in words:
            topic, _, index = word.rpartition("-")
            partitions.setdefault(topic, []).append(OffsetDeleteRequestPartition(int(index)))
        request = OffsetDeleteRequest("g", [OffsetDeleteRequestTopic(*each) for each in partitions.items()])
        self._ask(
            self._speaker("admin"),
            lambda shard, result, pending: shard.offsets.delete(result, pending, request),
            _told,
        )


def offset_line(key: bytes, value: bytes | None) -> str:
    """An offset's record for people."""
    group_id, partition = split_key(key)
    topic, index = decode_partition(partition)
    told = "none" if value is None else decode_value(value).offset
    return f"offset of {group_id} in {topic}-{index}: {told}"


def _offsets(words: list[str]) -> dict[str, dict[int, int]]:
    offsets: dict[str, dict[int, int]] = {}
    for word in words:
        tp, offset = word.split(":")
        topic, _, index = tp.rpartition("-")
        offsets.setdefault(topic, {})[int(index)] = int(offset)
    return offsets


def _told(answer: Any) -> str:
    return " ".join(
        f"{topic}-{index} {ErrorCode(code).name}" for (topic, index), code in codes(answer).items()
    )
