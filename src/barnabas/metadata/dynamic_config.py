"""A broker's present configuration: the static one, overridden by dynamic configs."""

from collections.abc import Awaitable, Callable

from barnabas.config.broker_config import BrokerConfig, LayeredConfig
from barnabas.config.config_resource import EVERY_BROKER
from barnabas.config.definition import ConfigError
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.store import StoreChange
from barnabas.telemetry.logs import get_logger

#: Called with the configuration before and after a change. The request that changed it is answered when all calls are
#: done.
Follower = Callable[[BrokerConfig, BrokerConfig], Awaitable[None]]

_log = get_logger("barnabas.config")


class DynamicConfig:
    """Follows the image, as the first listener of `MetadataWriter`, so that the others see the new configuration."""

    def __init__(self, static: BrokerConfig) -> None:
        self.layers = LayeredConfig.of(static)  #: replaced as a whole
        self._followers: list[Follower] = []
        self._changes_count = 0

    @property
    def static(self) -> BrokerConfig:
        """The configuration at the start."""
        return self.layers.static

    @property
    def current(self) -> BrokerConfig:
        """The present configuration. Do not keep it: it is replaced when it changes."""
        return self.layers.current

    def follow(self, follower: Follower) -> None:
        """Call `follower` with (before, after) on every later change."""
        self._followers.append(follower)

    def load(self, image: MetadataImage) -> None:
        """Read the dynamic configs of an image.

        Stored values that conflict with static ones are ignored and logged, so that they cannot prevent the start.
        """
        of_broker = dict(image.broker_configs.get(str(self.static.node_id), {}))
        of_every_broker = dict(image.broker_configs.get(EVERY_BROKER, {}))
        self.layers = _fitting(self.static, of_broker, of_every_broker)

    async def apply(
        self, before: MetadataImage, after: MetadataImage, changes: tuple[StoreChange, ...]
    ) -> None:
        """Follow one commit; a listener of `MetadataWriter`."""
        if after.broker_configs is not before.broker_configs:
            current = self.current
            self._changes_count += 1
            self.load(after)
            for follower in self._followers:
                try:
                    await follower(current, self.current)
                except Exception:  # an error of one follower must not stop the others, or the metadata
                    _log.exception("a change of the broker's configuration could not be followed")

    def statistics(self) -> dict[str, int]:
        return {
            "of_broker_count": len(self.layers.of_broker),
            "of_every_broker_count": len(self.layers.of_every_broker),
            "changes_count": self._changes_count,
        }


def _fitting(
    static: BrokerConfig, of_broker: dict[str, str], of_every_broker: dict[str, str]
) -> LayeredConfig:
    """Return the layers without values that are not valid."""
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
