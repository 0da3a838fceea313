"""Cluster access of a copy: the topics, their ends, and the groups that read them."""

import time
from collections.abc import Collection, Mapping
from types import TracebackType
from typing import Self

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.admin import raise_errors
from barnabas.client.admin.group_messages import GroupDescription, OffsetAndMetadata
from barnabas.client.admin.model import NewTopic
from barnabas.client.admin.offsets import EARLIEST, LATEST, ListedOffset, OffsetSpec
from barnabas.client.blocking import BlockingClient
from barnabas.client.core.metadata import TopicInfo
from barnabas.config.alter_op import AlterConfigOp, OpType
from barnabas.config.config_resource import Resource, ResourceKind
from barnabas.config.config_source import ConfigSource
from barnabas.reading.connection import ConnectionOptions
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.isolation import Isolation
from pyspark_barnabas.jobs.rekey.order import RekeyError
from pyspark_barnabas.sink.protocol import is_sink_offset

#: During the copy no record may be removed or compacted, and timestamps are those of the old records.
COPYING_SETTINGS = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "message.timestamp.type": "CreateTime",
    "message.timestamp.before.max.ms": str((1 << 63) - 1),
    "message.timestamp.after.max.ms": str((1 << 63) - 1),
}
_TRANSACTIONS_END_S = 60
_POLL_S = 0.05


class Topics:
    """Client for topics and groups; use as a context manager."""

    def __init__(self, connection: ConnectionOptions) -> None:
        self._client = BlockingClient(
            connection.bootstrap,
            client_id=f"{connection.client_id}-rekey",
            login=connection.login,
            tls=connection.tls,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._client.close()

    def find(self, name: str) -> TopicInfo | None:
        """Return the topic, or None if it does not exist.

        :raises KafkaError: Describing it failed for another reason.
        """
        topic = self._client.admin.describe_topics([name])[name]
        if isinstance(topic, TopicInfo):
            return topic
        if topic.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return None
        raise topic

    def own_settings(self, name: str) -> dict[str, str]:
        """Return the configs that are set on the topic itself."""
        resource = Resource(ResourceKind.TOPIC, name)
        entries = self._client.admin.describe_configs([resource])[resource]
        if isinstance(entries, KafkaError):
            raise entries
        return {
            entry.name: entry.value
            for entry in entries
            if entry.source is ConfigSource.DYNAMIC_TOPIC_CONFIG and entry.value is not None
        }

    def create(self, name: str, partitions_count: int, like: TopicInfo) -> bytes:
        """Create the new topic with the configs of the old one, except for those that a copy needs; return its id."""
        settings = {**self.own_settings(like.name), **COPYING_SETTINGS}
        factor = len(like.partitions[0].replicas)
        created = self._client.admin.create_topics([NewTopic(name, partitions_count, factor, settings)])[name]
        if isinstance(created, KafkaError):
            raise created
        return created.topic_id

    def configure(self, name: str, settings: Mapping[str, str | None]) -> None:
        """Set configs of a topic; None resets a config to the broker's default."""
        ops = [
            AlterConfigOp(key, OpType.DELETE if value is None else OpType.SET, value)
            for key, value in settings.items()
        ]
        raise_errors(self._client.admin.alter_configs({Resource(ResourceKind.TOPIC, name): ops}).values())

    def starts(self, name: str, count: int) -> dict[int, int]:
        """Return the first offset of each partition."""
        return self._offsets(name, count, EARLIEST, Isolation.READ_UNCOMMITTED)

    def ends(self, name: str, count: int, *, committed: bool) -> dict[int, int]:
        """Return the end of each partition: the last stable offset if `committed`, else the high watermark."""
        isolation = Isolation.READ_COMMITTED if committed else Isolation.READ_UNCOMMITTED
        return self._offsets(name, count, LATEST, isolation)

    def stable_ends(self, name: str, count: int) -> dict[int, int]:
        """Wait until no transaction is open and return the ends; markers are written shortly after a commit.

        :raises RekeyError: A transaction stays open.
        """
        deadline_s = time.monotonic() + _TRANSACTIONS_END_S
        while time.monotonic() < deadline_s:
            ends = self.ends(name, count, committed=False)
            if self.ends(name, count, committed=True) == ends:
                return ends
            time.sleep(_POLL_S)
        message = (
            f"a transaction is still open in topic '{name}' after {_TRANSACTIONS_END_S} s: see "
            "'barnabas transactions list'"
        )
        raise RekeyError(message)

    def positions(self, name: str, groups: Collection[str] | None) -> dict[str, dict[int, int]]:
        """Return the offsets that groups have committed for the topic; without `groups`, those of all that have any.

        :raises KafkaError: UNSTABLE_OFFSET_COMMIT while a transaction that commits offsets of the group is open.
        """
        names = sorted(groups) if groups else [listing.group_id for listing in self._client.groups.list()]
        positions: dict[str, dict[int, int]] = {}
        for group in names:
            offsets = self._client.groups.offsets(group, stable=True)
            of_topic = {tp.partition: result for tp, result in offsets.items() if tp.topic == name}
            raise_errors(of_topic.values())
            committed = {
                partition: result.offset
                for partition, result in of_topic.items()
                if isinstance(result, OffsetAndMetadata) and not is_sink_offset(result)
            }
            if committed or groups:
                positions[group] = committed
        return positions

    def check_stopped(self, groups: Collection[str]) -> None:
        """Check that no group has members.

        :raises RekeyError: A group has members.
        """
        for name, group in self._client.groups.describe(groups).items():
            if isinstance(group, GroupDescription) and group.members:
                message = (
                    f"group '{name}' has {len(group.members)} members: stop them, then cut over; offsets are "
                    "translated only for groups without members"
                )
                raise RekeyError(message)

    def commit(self, group: str, name: str, offsets: Mapping[int, int]) -> None:
        """Commit offsets for a group without members."""
        by_partition = {TopicPartition(name, partition): offset for partition, offset in offsets.items()}
        raise_errors(self._client.groups.commit_offsets(group, by_partition).values())

    def _offsets(self, name: str, count: int, spec: OffsetSpec, isolation: Isolation) -> dict[int, int]:
        specs = {TopicPartition(name, partition): spec for partition in range(count)}
        listed = self._client.admin.list_offsets(specs, isolation)
        raise_errors(listed.values())
        return {
            tp.partition: result.offset for tp, result in listed.items() if isinstance(result, ListedOffset)
        }
