"""A broker's configuration as it stands now: what it was started with, under what has been set since."""

from collections.abc import Awaitable, Callable

from barnabas.config.broker_config import BrokerConfig, LayeredConfig
from barnabas.config.config_resource import EVERY_BROKER
from barnabas.config.definition import ConfigError
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.store import StoreChange
from barnabas.telemetry.logs import get_logger

#: Called with the configuration before and after a change; whoever made it is answered when all are done.
Follower = Callable[[BrokerConfig, BrokerConfig], Awaitable[None]]

_log = get_logger("barnabas.config")


class DynamicConfig:
    """Follows the image; the first listener of the metadata writer, so that the others see what holds by then."""

    def __init__(self, static: BrokerConfig) -> None:
        self.layers = LayeredConfig.of(static)  #: replaced as a whole
        self._followers: list[Follower] = []
        self._changes_count = 0

    @property
    def static(self) -> BrokerConfig:
        """As the broker was started."""
        return self.layers.static

    @property
    def current(self) -> BrokerConfig:
        """What holds now."""
        return self.layers.current

    def follow(self, follower: Follower) -> None:
        """Call `follower` with (before, after) on every change from now on."""
        self._followers.append(follower)

    def load(self, image: MetadataImage) -> None:
        """Take over the dynamic values of an image.

        Stored values that the static ones have made impossible are left out, with a line in the log: they must
        not keep a broker from its work.
        """
        of_broker = dict(image.broker_configs.get(str(self.static.node_id), {}))
        of_every_broker = dict(image.broker_configs.get(EVERY_BROKER, {}))
        self.layers = _fitting(self.static, of_broker, of_every_broker)

    async def apply(
        self, before: MetadataImage, after: MetadataImage, changes: tuple[StoreChange, ...]
    ) -> None:
        """Follow one commit: a listener of the metadata writer."""
        if after.broker_configs is not before.broker_configs:
            current = self.current
            self._changes_count += 1
            self.load(after)
            for follower in self._followers:
                try:
                    await follower(current, self.current)
                except Exception:  # whatever it is, cluster state must go on, and the other followers, too
                    _log.exception("a change of the broker's configuration could not be followed")

    def statistics(self) -> dict[str, int]:
        """How much is set dynamically, and how often that has changed since the start."""
        return {
            "of_broker_count": len(self.layers.of_broker),
            "of_every_broker_count": len(self.layers.of_every_broker),
            "changes_count": self._changes_count,
        }


def _fitting(
    static: BrokerConfig, of_broker: dict[str, str], of_every_broker: dict[str, str]
) -> LayeredConfig:
    """The layers without what does not fit."""
    while True:
        try:
            return LayeredConfig.of(static, of_broker, of_every_broker)
        except ConfigError as error:
            if error.key not in of_broker and error.key not in of_every_broker:
                _log.error(
                    "ignoring dynamic configs that conflict with the static configuration", key=error.key
                )
                return LayeredConfig.of(static)
            _log.error("a dynamic config does not fit the broker's own and is left out", key=error.key)
            of_broker.pop(error.key, None)
            of_every_broker.pop(error.key, None)
