"""What a copy needs of the cluster: the topics, their ends, and the groups that read them."""

import time
from collections.abc import Collection, Mapping
from types import TracebackType
from typing import Self

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.admin import raise_errors
from barnabas.client.admin.group_messages import GroupDescription, OffsetAndMetadata
from barnabas.client.admin.model import ConfigSource, NewTopic
from barnabas.client.admin.offsets import EARLIEST, LATEST, Isolation, ListedOffset, OffsetSpec
from barnabas.client.blocking import BlockingClient
from barnabas.client.core.metadata import TopicInfo
from barnabas.config.alter_op import AlterConfigOp, OpType
from barnabas.config.config_resource import Resource, ResourceKind
from barnabas.wire.errors import ErrorCode, KafkaError
from pyspark_barnabas.jobs.rekey.order import RekeyError
from pyspark_barnabas.sink.protocol import is_sink_offset
from pyspark_barnabas.source.options import ConnectionOptions

#: While records are copied none may go, none may be merged, and times are those of the old records.
COPYING_SETTINGS = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "message.timestamp.type": "CreateTime",
    "message.timestamp.before.max.ms": str((1 << 63) - 1),
    "message.timestamp.after.max.ms": str((1 << 63) - 1),
}
_SETTLES_S = 60
_POLL_S = 0.05


class Topics:
    """Use as a context manager."""

    def __init__(self, connection: ConnectionOptions) -> None:
        self._client = BlockingClient(
            connection.bootstrap, client_id=f"{connection.client_id}-rekey", login=connection.login
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._client.close()

    def find(self, name: str) -> TopicInfo | None:
        """The topic; None when there is none.

        :raises KafkaError: Whatever else is wrong with it.
        """
        found = self._client.admin.describe_topics([name])[name]
        if isinstance(found, TopicInfo):
            return found
        if found.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return None
        raise found

    def own_settings(self, name: str) -> dict[str, str]:
        """The configs that were set for the topic itself."""
        resource = Resource(ResourceKind.TOPIC, name)
        entries = self._client.admin.describe_configs([resource])[resource]
        if isinstance(entries, KafkaError):
            raise entries
        return {
            each.name: each.value
            for each in entries
            if each.source is ConfigSource.DYNAMIC_TOPIC_CONFIG and each.value is not None
        }

    def create(self, name: str, partitions_count: int, like: TopicInfo) -> None:
        """The new topic, as the old one but for what a copy needs."""
        settings = {**self.own_settings(like.name), **COPYING_SETTINGS}
        factor = len(like.partitions[0].replicas)
        raise_errors(
            self._client.admin.create_topics([NewTopic(name, partitions_count, factor, settings)]).values()
        )

    def configure(self, name: str, settings: Mapping[str, str | None]) -> None:
        """Set configs of a topic, or with None leave them to the broker."""
        edits = [
            AlterConfigOp(key, OpType.DELETE if value is None else OpType.SET, value)
            for key, value in settings.items()
        ]
        raise_errors(self._client.admin.alter_configs({Resource(ResourceKind.TOPIC, name): edits}).values())

    def starts(self, name: str, count: int) -> dict[int, int]:
        """The first offset of each partition."""
        return self._offsets(name, count, EARLIEST, Isolation.READ_UNCOMMITTED)

    def ends(self, name: str, count: int, *, committed: bool) -> dict[int, int]:
        """The end of each partition: of everything, or before the first transaction that is open."""
        isolation = Isolation.READ_COMMITTED if committed else Isolation.READ_UNCOMMITTED
        return self._offsets(name, count, LATEST, isolation)

    def settled_ends(self, name: str, count: int) -> dict[int, int]:
        """The ends once no transaction is open any more: markers come a moment after a commit.

        :raises RekeyError: When one stays open.
        """
        deadline_s = time.monotonic() + _SETTLES_S
        while time.monotonic() < deadline_s:
            ends = self.ends(name, count, committed=False)
            if self.ends(name, count, committed=True) == ends:
                return ends
            time.sleep(_POLL_S)
        message = f"a transaction stays open in topic '{name}': see 'barnabas transactions list'"
        raise RekeyError(message)

    def positions(self, name: str, wanted: Collection[str] | None) -> dict[str, dict[int, int]]:
        """What groups have committed for the topic: of those, or of all that have committed any.

        :raises KafkaError: UNSTABLE_OFFSET_COMMIT while a transaction is open that commits for it.
        """
        names = sorted(wanted) if wanted else [each.group_id for each in self._client.groups.list()]
        found: dict[str, dict[int, int]] = {}
        for group in names:
            offsets = self._client.groups.offsets(group, stable=True)
            of_topic = {place.partition: each for place, each in offsets.items() if place.topic == name}
            raise_errors(of_topic.values())
            its = {
                partition: each.offset
                for partition, each in of_topic.items()
                if isinstance(each, OffsetAndMetadata) and not is_sink_offset(each)
            }
            if its or wanted:
                found[group] = its
        return found

    def check_stopped(self, groups: Collection[str]) -> None:
        """See to it that nobody consumes.

        :raises RekeyError: When a group has members.
        """
        for name, found in self._client.groups.describe(groups).items():
            if isinstance(found, GroupDescription) and found.members:
                message = (
                    f"group '{name}' has {len(found.members)} members: stop them, then cut over; their offsets are "
                    "not taken before they have stopped"
                )
                raise RekeyError(message)

    def commit(self, group: str, name: str, offsets: Mapping[int, int]) -> None:
        """Let a group without members go on there."""
        places = {TopicPartition(name, partition): offset for partition, offset in offsets.items()}
        raise_errors(self._client.groups.commit_offsets(group, places).values())

    def _offsets(self, name: str, count: int, spec: OffsetSpec, isolation: Isolation) -> dict[int, int]:
        places = {TopicPartition(name, partition): spec for partition in range(count)}
        found = self._client.admin.list_offsets(places, isolation)
        raise_errors(found.values())
        return {
            place.partition: each.offset for place, each in found.items() if isinstance(each, ListedOffset)
        }
