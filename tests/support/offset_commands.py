"""Scenario verbs about committed offsets."""

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
    _client: Callable[[str], Any]
    _send: Callable[
        [Any, Callable[[GroupShard, CoordinatorResult, Pending[Any]], None], Callable[[Any], str]], None
    ]
    _report: Callable[[str], None]

    async def commit(self, words: list[str], options: Options) -> None:
        """commit A a-0:5 ... [generation=1] [id=x] [version=9] [retention=1000]: a client need not have joined."""
        client, version = self._client(words[0]), int(options.get("version", NEWEST_VERSION))
        request = OffsetCommitRequest(
            "g",
            int(options.get("generation", client.generation)),
            options.get("id", client.member_id),
            client.instance_id,
            int(options.get("retention", -1)),
            commit_topics(_offsets(words[1:])),
        )
        self._send(
            client,
            lambda shard, result, pending: shard.offsets.commit(result, pending, request, version),
            _format_answer,
        )

    async def txn_commit(self, words: list[str], options: Options) -> None:
        """txn_commit A 7 a-0:5 ...: in the transaction of producer 7."""
        client, producer_id = self._client(words[0]), int(words[1])
        topics = [
            TxnOffsetCommitRequestTopic(
                topic,
                [TxnOffsetCommitRequestPartition(index, offset) for index, offset in partitions.items()],
            )
            for topic, partitions in _offsets(words[2:]).items()
        ]
        request = TxnOffsetCommitRequest(
            "tx", "g", producer_id, 0, client.generation, client.member_id, client.instance_id, topics
        )

        def event(shard: GroupShard, result: CoordinatorResult, pending: Pending[Any]) -> None:
            result.producer = TransactionalProducer("tx", producer_id, 0)
            shard.offsets.commit_in_transaction(result, pending, request, 5)

        self._send(client, event, _format_answer)

    async def marker(self, words: list[str], options: Options) -> None:
        """marker 7 commit | abort: the transaction of producer 7 ends."""
        assert self.runner is not None
        end = EndTransactionMarker(int(words[0]), 0, 0, words[1] == "commit", 0)
        self.log.end_transaction(end)
        self.runner.end_transaction(end)

    async def fetch(self, words: list[str], options: Options) -> None:
        """fetch [stable]: all committed offsets of the group."""
        assert self.runner is not None
        requested = OffsetFetchRequestGroup("g", topics=None)
        group = self.runner.shard.offsets.fetch(requested, require_stable="stable" in words)
        found = {
            f"{topic.name}-{each.partition_index}": each
            for topic in group.topics
            for each in topic.partitions
        }
        for name, each in sorted(found.items()):
            formatted = ErrorCode(each.error_code).name if each.error_code else each.committed_offset
            self._report(f"{name}: {formatted}")
        if not found:
            self._report("no offsets")

    async def delete_offsets(self, words: list[str], options: Options) -> None:
        """delete_offsets a-0 ...: an administrator deletes offsets."""
        partitions: dict[str, list[OffsetDeleteRequestPartition]] = {}
        for word in words:
            topic, _, index = word.rpartition("-")
            partitions.setdefault(topic, []).append(OffsetDeleteRequestPartition(int(index)))
        request = OffsetDeleteRequest("g", [OffsetDeleteRequestTopic(*each) for each in partitions.items()])
        self._send(
            self._client("admin"),
            lambda shard, result, pending: shard.offsets.delete(result, pending, request),
            _format_answer,
        )


def offset_line(key: bytes, value: bytes | None) -> str:
    """Format an offset's record."""
    group_id, partition = split_key(key)
    topic, index = decode_partition(partition)
    formatted = "none" if value is None else decode_value(value).offset
    return f"offset of {group_id} in {topic}-{index}: {formatted}"


def _offsets(words: list[str]) -> dict[str, dict[int, int]]:
    offsets: dict[str, dict[int, int]] = {}
    for word in words:
        tp, offset = word.split(":")
        topic, _, index = tp.rpartition("-")
        offsets.setdefault(topic, {})[int(index)] = int(offset)
    return offsets


def _format_answer(answer: Any) -> str:
    return " ".join(
        f"{topic}-{index} {ErrorCode(code).name}" for (topic, index), code in codes(answer).items()
    )
