"""One partition of `__consumer_offsets`: its groups and what they have committed."""

from collections.abc import Callable
from typing import Any, TypeAlias

from barnabas.coordinator.shard import RecordPlace
from barnabas.coordinator.step import Step, TimerKey
from barnabas.groups.consumer.manager import ConsumerGroups
from barnabas.groups.group import Group
from barnabas.groups.surroundings import Surroundings
from barnabas.metadata.image import Image
from barnabas.wire.coordinator_records.serde import AnyRecord, EncodedRecord
from barnabas.wire.records.control import EndMarker
from barnabas.wire.schema import Message

#: Takes over one kind of record: its key, its value or None for a tombstone, where it stands.
Replay: TypeAlias = Callable[[Any, Any, RecordPlace], None]

#: Comes back to one kind of timer.
Expire: TypeAlias = Callable[[Step, TimerKey], None]


class GroupShard:
    """Groups by id, their offsets, and who takes over which record and which timer."""

    def __init__(self, surroundings: Surroundings) -> None:
        self.surroundings = surroundings
        self.groups: dict[str, Group] = {}
        self.consumer = ConsumerGroups(self.groups, surroundings)
        self._replays: dict[type[Message], Replay] = {**self.consumer.replays}
        self._expiries: dict[object, Expire] = {**self.consumer.expiries}

    @property
    def follows_cluster(self) -> bool:
        """Whether there is anything that topics or group configs could matter to."""
        return bool(self.groups)

    def replay(self, record: AnyRecord, place: RecordPlace) -> None:
        """Take over a record that stands in the log."""
        assert not isinstance(record, EncodedRecord), record
        self._replays[type(record.key)](record.key, record.value, place)

    def replay_end_marker(self, marker: EndMarker) -> None:
        """Take over that a producer's transaction has ended."""

    def loaded(self, step: Step) -> None:
        """Begin to serve."""
        self.consumer.loaded(step)

    def expire(self, step: Step, key: TimerKey) -> None:
        """A timer is due; its first element says whose."""
        self._expiries[key[0]](step, key)

    def follow(self, step: Step, before: Image, after: Image) -> None:
        """Topics or group configs have changed."""
        self.consumer.follow(before, after)

    def unload(self) -> None:
        """Another broker takes over."""

    def statistics(self) -> dict[str, object]:
        """How many groups there are."""
        return {"groups_count": len(self.groups)}
