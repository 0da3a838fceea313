"""Class names in configurations: names of Apache Kafka's classes select built-in parts, Python classes are kept."""

from typing import NamedTuple

from barnabas.config.definition import ConfigError
from barnabas.config.keys.broker import listener_base

_ASSIGNORS = "org.apache.kafka.coordinator.group.assignor."
_SECURITY = "org.apache.kafka.common.security."


class ClassKey(NamedTuple):
    """What a key accepts: class names of built-in parts, and the user's Python classes."""

    built_in: dict[str, str]
    python_ok: bool = False


REPLICA_SELECTOR_KEY = "replica.selector.class"
SELECTS_BY_RACK = "rack-aware"

#: The keys whose class has an effect in Barnabas; other CLASS keys accept any name.
CLASS_KEYS = {
    "authorizer.class.name": ClassKey(
        {"org.apache.kafka.metadata.authorizer.StandardAuthorizer": "standard"}, python_ok=True
    ),
    "principal.builder.class": ClassKey(
        {f"{_SECURITY}authenticator.DefaultKafkaPrincipalBuilder": "default"}, python_ok=True
    ),
    "create.topic.policy.class.name": ClassKey({}, python_ok=True),
    "alter.config.policy.class.name": ClassKey({}, python_ok=True),
    REPLICA_SELECTOR_KEY: ClassKey(
        {
            "org.apache.kafka.common.replica.LeaderSelector": "leader",
            "org.apache.kafka.common.replica.RackAwareReplicaSelector": SELECTS_BY_RACK,
        }
    ),
    "group.consumer.assignors": ClassKey(
        {
            "uniform": "uniform",
            "range": "range",
            f"{_ASSIGNORS}UniformAssignor": "uniform",
            f"{_ASSIGNORS}RangeAssignor": "range",
        }
    ),
    "group.share.assignors": ClassKey(
        {"simple": "simple", f"{_ASSIGNORS}SimpleAssignor": "simple"}, python_ok=True
    ),
}


def resolve_class(key: str, class_name: str) -> str:
    """Return the built-in part that `class_name` selects, or the Python class `package.module:Class` itself.

    :param key: May have a listener prefix.
    :raises ConfigError: When the key has an effect in Barnabas and the class is neither.
    """
    known = CLASS_KEYS.get(listener_base(key) or key)
    if known is None or not class_name:
        return class_name
    if class_name in known.built_in:
        return known.built_in[class_name]
    if known.python_ok and is_python_class(class_name):
        return class_name
    raise ConfigError(key, class_name, f"must be {_valid(known)}")


def is_python_class(class_name: str) -> bool:
    """Return whether a value has the form `package.module:Class`."""
    module, colon, qualified_name = class_name.partition(":")
    return bool(colon) and all(part.isidentifier() for part in f"{module}.{qualified_name}".split("."))


def _valid(known: ClassKey) -> str:
    names = list(known.built_in)
    if known.python_ok:
        names.append("a Python class as package.module:Class (a Java class cannot be loaded)")
    return " or ".join(names)
