"""The environment of group state: configuration, metadata, callbacks."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeAlias

from barnabas.config.broker_config import BrokerConfig
from barnabas.coordinator.result import CoordinatorResult, TimerKey
from barnabas.coordinator.shard import RecordPosition
from barnabas.groups.statistics import GroupCounts
from barnabas.metadata.image import MetadataImage

#: Replays a type of record: key, value or None for a tombstone, position.
Replay: TypeAlias = Callable[[Any, Any, RecordPosition], None]

#: Handles a type of timer.
Expire: TypeAlias = Callable[[CoordinatorResult, TimerKey], None]


@dataclass(frozen=True, slots=True)
class GroupCoordinatorContext:
    """The state that groups read besides their own: current config and metadata, the rng, counters of all shards."""

    config: Callable[[], BrokerConfig]  #: returns the present configuration
    image: Callable[[], MetadataImage]  #: returns the present image
    rng: Random
    counts: GroupCounts = field(default_factory=GroupCounts)
