"""One partition of `__transaction_state`: its transactional ids."""

from collections.abc import Callable
from dataclasses import dataclass

from barnabas.config.broker_config import BrokerConfig
from barnabas.coordinator.shard import RecordPlace
from barnabas.coordinator.step import Step, TimerKey
from barnabas.metadata.image import Image
from barnabas.wire.coordinator_records.serde import AnyRecord
from barnabas.wire.records.control import EndMarker


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What transactions look at besides their own state."""

    config: Callable[[], BrokerConfig]  #: as it stands now
    image: Callable[[], Image]  #: cluster state as this node knows it now


class TransactionShard:
    """The transactions of one partition's transactional ids."""

    follows_cluster = False

    def __init__(self, surroundings: Surroundings) -> None:
        self.surroundings = surroundings

    def replay(self, record: AnyRecord, place: RecordPlace) -> None:
        """Take over a record that stands in the log."""

    def replay_end_marker(self, marker: EndMarker) -> None:
        """There are no transactions in this topic itself."""

    def loaded(self, step: Step) -> None:
        """Begin to serve."""

    def expire(self, step: Step, key: TimerKey) -> None:
        """A timer is due."""

    def follow(self, step: Step, before: Image, after: Image) -> None:
        """Nothing here depends on topics."""

    def unload(self) -> None:
        """Another broker takes over."""

    def statistics(self) -> dict[str, object]:
        """Nothing yet to tell."""
        return {}
