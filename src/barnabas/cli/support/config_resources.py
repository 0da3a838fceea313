"""Config resources as arguments: KIND and NAME."""

from enum import StrEnum

from barnabas.cli.support.failures import wrong_use
from barnabas.config.config_resource import EVERY_BROKER, Resource, ResourceKind

#: Name of the resource with the default configs of all brokers.
DEFAULT_NAME = "default"


class ConfigResourceKind(StrEnum):
    """Kind of a config resource, as in arguments."""

    TOPIC = "topic"
    BROKER = "broker"
    LOGGER = "logger"
    GROUP = "group"
    CLIENT_METRICS = "client-metrics"


RESOURCE_KINDS = {
    ConfigResourceKind.TOPIC: ResourceKind.TOPIC,
    ConfigResourceKind.BROKER: ResourceKind.BROKER,
    ConfigResourceKind.LOGGER: ResourceKind.BROKER_LOGGER,
    ConfigResourceKind.GROUP: ResourceKind.GROUP,
    ConfigResourceKind.CLIENT_METRICS: ResourceKind.CLIENT_METRICS,
}
KIND_ARGUMENTS = {kind: argument for argument, kind in RESOURCE_KINDS.items()}


def parse_resource(kind: ConfigResourceKind, name: str) -> Resource:
    """Return the config resource for the arguments of a command.

    :raises CommandError: For a broker id that is not a number.
    """
    resource_kind = RESOURCE_KINDS[kind]
    if resource_kind is ResourceKind.BROKER and name == DEFAULT_NAME:
        return Resource(resource_kind, EVERY_BROKER)
    if resource_kind in (ResourceKind.BROKER, ResourceKind.BROKER_LOGGER) and not name.isdecimal():
        message = f"{kind} '{name}': the broker id must be a number"
        hint = (
            f"use '{DEFAULT_NAME}' for the default of all brokers"
            if resource_kind is ResourceKind.BROKER
            else ""
        )
        raise wrong_use(message, hint)
    return Resource(resource_kind, name)
