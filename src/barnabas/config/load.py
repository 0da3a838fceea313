"""Loads a broker's configuration: defaults < file < environment < `--set`."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from barnabas.config.authorization import ALLOW_IF_NO_ACL, SUPER_USERS
from barnabas.config.broker_config import BrokerConfig, find_broker_key
from barnabas.config.broker_validation import check_broker_config
from barnabas.config.definition import OWN_PREFIX, ConfigError
from barnabas.config.keys import NO_EFFECT
from barnabas.config.keys.broker import BROKER_KEYS
from barnabas.config.properties import parse_properties
from barnabas.config.providers import Variables, resolve_variables

_ENVIRONMENT_PREFIX = "BARNABAS_"
#: Variables with the prefix that are no keys: options of commands, and marks of supervised processes.
NOT_KEYS = (
    "BARNABAS_ADD_SCRAM",
    "BARNABAS_BOOTSTRAP",
    "BARNABAS_COMMAND_CONFIG",
    "BARNABAS_COMPLETION_TIMEOUT_MS",
    "BARNABAS_PASSWORD",
    "BARNABAS_REGISTRY",
    "BARNABAS_SPARK_DELEGATION_TOKENS",
    "BARNABAS_SUPERVISED",
    "BARNABAS_TABLES_PROCESS",
)
#: Keys of plug-ins, which Apache Kafka passes on unread.
_PLUGIN_KEYS = (SUPER_USERS, ALLOW_IF_NO_ACL)
_PLUGIN_PREFIXES = ("config.providers.", "rlmm.config.", "rsm.config.")


class ConfigWarning(NamedTuple):
    """An unknown key. `nearest` is a similar known key, if there is one."""

    name: str
    nearest: str | None
    origin: str

    def __str__(self) -> str:
        hint = f"; did you mean {self.nearest}?" if self.nearest else ""
        return f"Unknown configuration {self.name} ({self.origin}){hint}"


class LoadedConfig(NamedTuple):
    """A configuration and warnings about it."""

    config: BrokerConfig
    warnings: tuple[ConfigWarning, ...]
    without_effect: tuple[str, ...] = ()  #: keys that were set although they have no effect in Barnabas
    replaced: tuple[str, ...] = ()  #: warnings about settings that an option of the command line replaces
    variables: Variables = Variables()  #: what errors show instead of values


def read_properties(path: Path) -> dict[str, str]:
    """Return the keys and values of a .properties file.

    :raises ConfigError: When the file cannot be read or is malformed.
    """
    try:
        return parse_properties(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError("--config", path, f"must be a readable file: {error.strerror}") from None
    except ValueError as error:
        raise ConfigError("--config", path, f"must be a .properties file in UTF-8: {error}") from None


def load_broker_config(
    *,
    file: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
    settings: Iterable[str] = (),
) -> LoadedConfig:
    """Return the checked configuration of a broker.

    :param file: The result of `read_properties`.
    :param environment: Variables; those named BARNABAS_KEY_NAME count.
    :param settings: `key=value` texts of the command line, which win over the others.
    :raises ConfigError: With the key, the value and what is valid.
    """
    sources = {
        "file": dict(file or {}),
        "environment": _from_environment(environment or {}),
        "--set": dict(map(_parse_setting, settings)),
    }
    warnings = tuple(
        ConfigWarning(name, nearest_key(name), origin)
        for origin, properties in sources.items()
        for name in properties
        if not _is_known(name)
    )
    merged = {name: text for properties in sources.values() for name, text in properties.items()}
    properties, variables = resolve_variables(merged, environment or {})
    with variables.shown():
        config = BrokerConfig(properties)
        check_broker_config(config)
    without_effect = tuple(sorted(name for name in merged if _is_without_effect(name)))
    return LoadedConfig(config, warnings, without_effect, variables=variables)


def nearest_key(name: str) -> str | None:
    """Return the broker key spelled most like `name`; None if none is similar."""
    import difflib

    return next(iter(difflib.get_close_matches(name, BROKER_KEYS, n=1, cutoff=0.75)), None)


def environment_name(key: str) -> str:
    """Return the environment variable of a key: log.retention.ms is BARNABAS_LOG_RETENTION_MS."""
    return _ENVIRONMENT_PREFIX + key.removeprefix(OWN_PREFIX).upper().replace(".", "_").replace("-", "_")


def _from_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of Barnabas by key; an unknown one keeps the key that its name stands for."""
    variables = {
        name: text
        for name, text in environment.items()
        if name.startswith(_ENVIRONMENT_PREFIX) and name not in NOT_KEYS
    }
    if not variables:
        return {}
    keys = {environment_name(key): key for key in BROKER_KEYS}
    return {keys.get(name) or _guessed_key(name): text for name, text in variables.items()}


def _guessed_key(variable: str) -> str:
    return variable.removeprefix(_ENVIRONMENT_PREFIX).lower().replace("_", ".")


def _parse_setting(setting: str) -> tuple[str, str]:
    name, equals, text = setting.partition("=")
    if not equals or not name.strip():
        raise ConfigError("--set", setting, "must be key=value")
    return name.strip(), text


def _is_without_effect(name: str) -> bool:
    key = find_broker_key(name)
    return key is not None and key.effect is NO_EFFECT


def _is_known(name: str) -> bool:
    return find_broker_key(name) is not None or name in _PLUGIN_KEYS or name.startswith(_PLUGIN_PREFIXES)
