"""What groups look at besides their own state, and how they are called back."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeAlias

from barnabas.config.broker_config import BrokerConfig
from barnabas.coordinator.result import Step, TimerKey
from barnabas.coordinator.shard import RecordPlace
from barnabas.groups.statistics import GroupCounts
from barnabas.metadata.image import Image

#: Takes over one kind of record: its key, its value or None for a tombstone, where it stands.
Replay: TypeAlias = Callable[[Any, Any, RecordPlace], None]

#: Comes back to one kind of timer.
Expire: TypeAlias = Callable[[Step, TimerKey], None]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Configuration, cluster state, dice: as they are at the moment. And where all shards count."""

    config: Callable[[], BrokerConfig]  #: as it stands now
    image: Callable[[], Image]  #: cluster state as this node knows it now
    dice: Random
    counts: GroupCounts = field(default_factory=GroupCounts)
