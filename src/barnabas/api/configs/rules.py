"""The rules for alterations of configs."""

from collections.abc import Mapping

from barnabas.api.configs.resources import check_named
from barnabas.api.context import BrokerContext
from barnabas.config.broker_config import find_broker_key
from barnabas.config.client_metrics import validate_client_metrics
from barnabas.config.config_resource import EVERY_BROKER, Resource, ResourceKind
from barnabas.config.definition import ConfigError, ConfigKey, ConfigType
from barnabas.config.dynamic_validation import check_dynamic_change, check_dynamic_values
from barnabas.config.groups import validate_group_overrides
from barnabas.config.keys.topic import TOPIC_KEYS
from barnabas.config.topics import validate_topic_overrides
from barnabas.config.values import format_value
from barnabas.metadata.configs import AlterationRules, Overrides
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.topics import check_name, unknown_topic
from barnabas.wire.errors import ErrorCode, KafkaError


def alteration_rules(broker: BrokerContext, image: MetadataImage) -> AlterationRules:
    """Return the rules for alterations of an image's configs."""

    def check(resource: Resource, existing: Overrides, altered: Overrides) -> None:
        check_named(resource)
        match resource.kind:
            case ResourceKind.TOPIC:
                _check_topic(broker, image, resource.name, existing, altered)
            case ResourceKind.BROKER:
                _check_broker(broker, resource.name, altered)
            case ResourceKind.GROUP:
                validate_group_overrides(broker.config, altered)
            case ResourceKind.CLIENT_METRICS:
                validate_client_metrics(altered)

    return AlterationRules(list_default, check)


def list_default(resource: Resource, name: str) -> str | None:
    """Return the default of a LIST key of a topic or broker as text; None for other keys."""
    key: ConfigKey | None = None
    if resource.kind is ResourceKind.TOPIC:
        key = TOPIC_KEYS.get(name)
    elif resource.kind is ResourceKind.BROKER:
        key = find_broker_key(name)
    return (format_value(key.default) or "") if key and key.type is ConfigType.LIST else None


def _check_topic(
    broker: BrokerContext, image: MetadataImage, name: str, existing: Overrides, altered: Overrides
) -> None:
    if not name:
        message = "Defaults of all topics are broker configs: see the broker config of each topic config."
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)
    check_name(name)
    validate_topic_overrides(broker.config, altered, existing)
    if name not in image.topics:
        raise unknown_topic(name)


def _check_broker(broker: BrokerContext, name: str, altered: Mapping[str, str]) -> None:
    layers = broker.dynamic_config.layers
    every_broker = name == EVERY_BROKER
    try:
        check_dynamic_values(altered, every_broker=every_broker)
        after = layers.static.with_dynamic(
            layers.of_broker if every_broker else altered, altered if every_broker else layers.of_every_broker
        )
        check_dynamic_change(layers.current, after)
        broker.dynamic_config.check(after)
    except ConfigError as error:
        raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from None
