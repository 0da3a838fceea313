"""The environment of group state: configuration, metadata, callbacks."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeAlias

from barnabas.config.broker_config import BrokerConfig
from barnabas.coordinator.result import CoordinatorResult, TimerKey
from barnabas.coordinator.shard import RecordPosition
from barnabas.groups.rebalance_history import RebalanceHistory
from barnabas.groups.statistics import GroupCounts
from barnabas.metadata.image import MetadataImage

#: Replays a type of record: key, value or None for a tombstone, position.
Replay: TypeAlias = Callable[[Any, Any, RecordPosition], None]

#: Handles a type of timer.
Expire: TypeAlias = Callable[[CoordinatorResult, TimerKey], None]


@dataclass(frozen=True, slots=True)
class GroupCoordinatorContext:
    """What groups use besides their own state: current config and metadata, the rng, and what all shards share."""

    config: Callable[[], BrokerConfig]  #: returns the present configuration
    image: Callable[[], MetadataImage]  #: returns the present image
    rng: Random
    counts: GroupCounts = field(default_factory=GroupCounts)
    rebalances: RebalanceHistory = field(default_factory=RebalanceHistory)
