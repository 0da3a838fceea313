"""A broker's configuration: typed, immutable, with the source of each value."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from barnabas.config.class_names import resolve_class
from barnabas.config.definition import ConfigKey, Value
from barnabas.config.keys.broker import BROKER_KEYS, LISTENER_PREFIX, broker_synonyms, listener_base
from barnabas.config.keys.node import EMBEDDED_VALUES
from barnabas.config.keys.quota import BROKER_QUOTA_KEYS
from barnabas.config.listeners import (
    Listener,
    SecurityProtocol,
    advertise,
    check_ports,
    parse_endpoints,
    parse_protocol_map,
)
from barnabas.config.values import parse_value

#: Listener names that equal a protocol other than PLAINTEXT.
_PROTECTED = frozenset(SecurityProtocol.__members__) - {"PLAINTEXT"}


def find_broker_key(name: str) -> ConfigKey | None:
    """Return the definition of a broker key; includes dynamic-only keys and keys with a listener prefix."""
    key = BROKER_KEYS.get(name) or BROKER_QUOTA_KEYS.get(name)
    if key is None and (base := listener_base(name)):
        key = BROKER_KEYS.get(base)
    return key


class BrokerConfig:
    """The values of `originals`, then values that Barnabas sets because Kafka requires them, then the defaults.

    Read a value with the getter of its type; a wrong type or an unknown key is a bug of the caller.

    :raises ConfigError: When a value is invalid, or the listeners contradict one another.
    """

    __slots__ = ("_defaults", "_values", "controller_listeners", "listeners", "originals")

    #: The values that were set, as text, by key; includes unknown keys.
    originals: Mapping[str, str]
    #: The listeners for clients and brokers.
    listeners: tuple[Listener, ...]
    #: KRaft controller listeners: accepted, never opened.
    controller_listeners: tuple[Listener, ...]

    def __init__(self, originals: Mapping[str, str]) -> None:
        self.originals = _completed(originals)
        self._values = {
            name: parse_value(key._replace(name=name), text)
            for name, text in self.originals.items()
            if (key := find_broker_key(name))
        }
        self._defaults: dict[str, Value] = {}  #: found so far
        self._check_classes()
        self._set_listeners()

    def _check_classes(self) -> None:
        for name, value in self._values.items():
            for class_name in value if isinstance(value, tuple) else (value,):
                if isinstance(class_name, str):
                    resolve_class(name, class_name)

    def _set_listeners(self) -> None:
        protocols = self.security_protocols()
        entries = self.items("listeners")
        every = parse_endpoints("listeners", entries, protocols)
        check_ports(entries, every)
        advertised_entries = self.items_or_none("advertised.listeners")
        advertised = (
            None
            if advertised_entries is None
            else parse_endpoints("advertised.listeners", advertised_entries, protocols)
        )
        controllers = self._controller_names()
        self.controller_listeners = tuple(listener for listener in every if listener.name in controllers)
        self.listeners = tuple(
            advertise(
                [listener for listener in every if listener.name not in controllers],
                advertised and [listener for listener in advertised if listener.name not in controllers],
            )
        )

    def _controller_names(self) -> set[str]:
        return {name.upper() for name in self.items("controller.listener.names")}

    def security_protocols(self) -> dict[str, SecurityProtocol]:
        """Return the security protocol of each listener name.

        As in Kafka, controller listeners are PLAINTEXT if no map is set and no listener is protected.
        """
        key = "listener.security.protocol.map"
        protocols = parse_protocol_map(key, self.text(key))
        controllers = self._controller_names()
        names = controllers.union(entry.partition(":")[0].upper() for entry in self.items("listeners"))
        if key not in self.originals and names.isdisjoint(_PROTECTED):
            protocols.update(dict.fromkeys(controllers, SecurityProtocol.PLAINTEXT))
        return protocols

    def value(self, name: str) -> Value:
        """Return the parsed value of a key; None for no value."""
        if name in self._values:
            return self._values[name]
        if name not in self._defaults:
            key = find_broker_key(name)
            assert key is not None, f"{name} is not a configuration key"
            self._defaults[name] = self.value(key.name) if key.name != name else key.default
        return self._defaults[name]

    def is_set(self, name: str) -> bool:
        """Whether the key was set, to any value."""
        return name in self.originals

    def boolean(self, name: str) -> bool:
        """Return the value of a BOOLEAN key."""
        value = self.value(name)
        assert isinstance(value, bool), (name, value)
        return value

    def integer(self, name: str) -> int:
        """Return the value of a SHORT, INT or LONG key that has one."""
        value = self.value(name)
        assert type(value) is int, (name, value)
        return value

    def integer_or_none(self, name: str) -> int | None:
        """Return the value of a SHORT, INT or LONG key."""
        value = self.value(name)
        assert value is None or type(value) is int, (name, value)
        return value

    def number(self, name: str) -> float:
        """Return the value of a DOUBLE key."""
        value = self.value(name)
        assert isinstance(value, float), (name, value)
        return value

    def text(self, name: str) -> str:
        """Return the value of a STRING, CLASS or PASSWORD key that has one."""
        value = self.value(name)
        assert isinstance(value, str), (name, value)
        return value

    def text_or_none(self, name: str) -> str | None:
        """Return the value of a STRING, CLASS or PASSWORD key."""
        value = self.value(name)
        assert value is None or isinstance(value, str), (name, value)
        return value

    def items(self, name: str) -> tuple[str, ...]:
        """Return the value of a LIST key that has one."""
        value = self.value(name)
        assert isinstance(value, tuple), (name, value)
        return value

    def items_or_none(self, name: str) -> tuple[str, ...] | None:
        """Return the value of a LIST key."""
        value = self.value(name)
        assert value is None or isinstance(value, tuple), (name, value)
        return value

    def part(self, name: str) -> str:
        """Return the built-in class or Python class that a class key names; empty for none (see `class_names`)."""
        return resolve_class(name, self.text_or_none(name) or "")

    @property
    def node_id(self) -> int:
        return self.integer("node.id")

    @property
    def log_dirs(self) -> tuple[str, ...]:
        """The log directories: log.dirs, or else log.dir."""
        return self.items_or_none("log.dirs") or self.items("log.dir")

    @property
    def inter_broker_listener_name(self) -> str:
        """The listener for communication between brokers."""
        name = self.text_or_none("inter.broker.listener.name")
        return (name or self.text("security.inter.broker.protocol")).upper()

    def for_listener(self, listener_name: str) -> "BrokerConfig":
        """Return this configuration for one listener: its own values override the common ones."""
        return self._with_prefixes(f"{LISTENER_PREFIX}{listener_name.lower()}.")

    def for_mechanism(self, listener_name: str, mechanism: str) -> "BrokerConfig":
        """Return this configuration for a SASL mechanism of a listener, whose own values override the listener's."""
        listener = f"{LISTENER_PREFIX}{listener_name.lower()}."
        return self._with_prefixes(listener, f"{listener}{mechanism.lower()}.")

    def _with_prefixes(self, *prefixes: str) -> "BrokerConfig":
        own = {
            name.removeprefix(prefix): text
            for prefix in prefixes
            for name, text in self.originals.items()
            if name.startswith(prefix)
        }
        return BrokerConfig({**self.originals, **own}) if own else self

    def with_dynamic(
        self, dynamic_broker: Mapping[str, str], dynamic_default: Mapping[str, str]
    ) -> "BrokerConfig":
        """Return this configuration with dynamic values: those of this broker override those of the whole cluster.

        A dynamic value hides static values of its synonyms: a dynamic log.retention.hours overrides log.retention.ms.
        """
        if not dynamic_broker and not dynamic_default:
            return self
        merged = dict(self.originals)
        for dynamic in (dynamic_default, dynamic_broker):
            for name, text in dynamic.items():
                for synonym in broker_synonyms(name, with_listeners=False):
                    merged.pop(synonym, None)
                merged[name] = text
        return BrokerConfig(merged)


class LayeredConfig(NamedTuple):
    """A broker's configuration and its layers."""

    static: BrokerConfig  #: from the broker's start
    of_broker: Mapping[str, str]  #: dynamic values of this broker
    of_every_broker: Mapping[str, str]  #: dynamic values of all brokers
    current: BrokerConfig  #: the effective configuration

    @staticmethod
    def of(
        static: BrokerConfig,
        of_broker: Mapping[str, str] = MappingProxyType({}),
        of_every_broker: Mapping[str, str] = MappingProxyType({}),
    ) -> "LayeredConfig":
        """Combine the layers.

        :raises ConfigError: When the values contradict one another.
        """
        current = static.with_dynamic(of_broker, of_every_broker)
        return LayeredConfig(static, of_broker, of_every_broker, current)


def _completed(originals: Mapping[str, str]) -> dict[str, str]:
    """Return `originals` with the embedded values; node.id and broker.id take the value of the one that is set."""
    completed = dict(originals)
    node_id = originals.get("node.id", originals.get("broker.id", EMBEDDED_VALUES["node.id"]))
    completed.setdefault("node.id", node_id)
    completed.setdefault("broker.id", node_id)
    return {**EMBEDDED_VALUES, **completed}
