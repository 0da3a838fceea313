"""When brokers joined the cluster or were fenced, as this broker has seen it. The metadata has no times."""

from barnabas.base.clock import Clock
from barnabas.metadata.brokers import BROKERS
from barnabas.metadata.changed_keys import ChangedKeys
from barnabas.metadata.image import MetadataImage

UNKNOWN_MS = -1


class BrokerTimes:
    """Follows the registrations; what happened before the start of this broker is not known."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since_ms: dict[int, int] = {}

    def since_ms(self, broker_id: int) -> int:
        """Return since when a broker is in its present epoch and fenced or not; UNKNOWN_MS if it was before."""
        return self._since_ms.get(broker_id, UNKNOWN_MS)

    async def apply(self, before: MetadataImage, after: MetadataImage, changed: ChangedKeys) -> None:
        """Apply the changes of one commit; this is a listener of the metadata writer."""
        for key in changed.of(BROKERS):
            earlier, broker = before.brokers.get(key), after.brokers.get(key)
            if broker is None:
                self._since_ms.pop(int(key), None)
            elif earlier is None or (earlier.epoch, earlier.fenced) != (broker.epoch, broker.fenced):
                self._since_ms[broker.broker_id] = self._clock.wall_ms()
