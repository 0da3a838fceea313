"""What groups look at besides their own state, and how they are called back."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeAlias

from barnabas.config.broker_config import BrokerConfig
from barnabas.coordinator.result import CoordinatorResult, TimerKey
from barnabas.coordinator.shard import RecordPosition
from barnabas.groups.statistics import GroupCounts
from barnabas.metadata.image import MetadataImage

#: Takes over one kind of record: its key, its value or None for a tombstone, where it stands.
Replay: TypeAlias = Callable[[Any, Any, RecordPosition], None]

#: Comes back to one kind of timer.
Expire: TypeAlias = Callable[[CoordinatorResult, TimerKey], None]


@dataclass(frozen=True, slots=True)
class GroupCoordinatorContext:
    """What groups read besides their own state: current config and metadata, the rng, counters of all shards."""

    config: Callable[[], BrokerConfig]  #: as it stands now
    image: Callable[[], MetadataImage]  #: cluster state as this node knows it now
    rng: Random
    counts: GroupCounts = field(default_factory=GroupCounts)
