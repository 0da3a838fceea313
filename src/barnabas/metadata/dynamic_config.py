"""A broker's present configuration: the static one, overridden by dynamic configs."""

from collections.abc import Awaitable, Callable, Set

from barnabas.config.broker_config import BrokerConfig, LayeredConfig
from barnabas.config.config_resource import EVERY_BROKER
from barnabas.config.definition import ConfigError
from barnabas.metadata.changed_keys import ChangedKeys
from barnabas.metadata.image import MetadataImage
from barnabas.telemetry.logs import get_logger

#: Called with the configuration before and after a change. The request that changed it is answered when all calls are
#: done.
ChangeCallback = Callable[[BrokerConfig, BrokerConfig], Awaitable[None]]

#: Called with the configuration after a change that is not stored yet; raises `ConfigError` to refuse it.
ChangeCheck = Callable[[BrokerConfig], None]

_LISTENER_KEYS = frozenset({"listeners", "listener.security.protocol.map"})

_log = get_logger("barnabas.config")


class DynamicConfig:
    """Reads the configs of each new image, as the first listener of `MetadataWriter`, so that the others see the new
    configuration.
    """

    def __init__(self, static: BrokerConfig) -> None:
        self.layers = LayeredConfig.of(static)  #: replaced as a whole
        self._callbacks: list[ChangeCallback] = []
        self._checks: list[ChangeCheck] = []
        self._changes_count = 0

    @property
    def static(self) -> BrokerConfig:
        """The configuration at the start."""
        return self.layers.static

    @property
    def current(self) -> BrokerConfig:
        """The present configuration. Do not keep it: it is replaced when it changes."""
        return self.layers.current

    def on_change(self, callback: ChangeCallback) -> None:
        """Call `callback` with (before, after) on every later change."""
        self._callbacks.append(callback)

    def on_check(self, check: ChangeCheck) -> None:
        """Call `check` before a later change is stored."""
        self._checks.append(check)

    def check(self, after: BrokerConfig) -> None:
        """:raises ConfigError: If a part of the broker cannot apply this configuration."""
        for check in self._checks:
            check(after)

    def load(self, image: MetadataImage) -> None:
        """Read the dynamic configs of an image.

        Stored values that conflict with static ones are ignored and logged, so that they cannot prevent the start.
        """
        of_broker = dict(image.broker_configs.get(str(self.static.node_id), {}))
        of_every_broker = dict(image.broker_configs.get(EVERY_BROKER, {}))
        self.layers = _valid_layers(self.static, of_broker, of_every_broker)

    async def apply(self, before: MetadataImage, after: MetadataImage, changed: ChangedKeys) -> None:
        """Apply one commit; a listener of `MetadataWriter`."""
        if after.broker_configs is not before.broker_configs:
            current = self.current
            self._changes_count += 1
            self.load(after)
            for callback in self._callbacks:
                try:
                    await callback(current, self.current)
                except Exception:  # an error of one callback must not stop the others, or the metadata
                    _log.exception("cannot apply a change of the broker's configuration")

    def statistics(self) -> dict[str, int]:
        return {
            "of_broker_count": len(self.layers.of_broker),
            "of_every_broker_count": len(self.layers.of_every_broker),
            "changes_count": self._changes_count,
        }


def _valid_layers(
    static: BrokerConfig, of_broker: dict[str, str], of_every_broker: dict[str, str]
) -> LayeredConfig:
    """Return the layers without values that are not valid."""
    while True:
        try:
            return LayeredConfig.of(static, of_broker, of_every_broker)
        except ConfigError as error:
            ignored = _keys_at_fault(error.key, of_broker.keys() | of_every_broker.keys())
            if not ignored:
                raise
            _log.error(
                "ignoring dynamic configs that are not valid with the static configuration",
                keys=ignored,
                why=str(error),
            )
            for key in ignored:
                of_broker.pop(key, None)
                of_every_broker.pop(key, None)


def _keys_at_fault(key: str, dynamic: Set[str]) -> list[str]:
    """Return the dynamic keys to ignore after an error of `key`: it, or else those of listeners, or else all.

    A static key is at fault if it does not fit to the dynamic listeners.
    """
    if key in dynamic:
        return [key]
    return sorted(filter(_is_of_listeners, dynamic)) or sorted(dynamic)


def _is_of_listeners(key: str) -> bool:
    return key in _LISTENER_KEYS or key.startswith("listener.name.")
