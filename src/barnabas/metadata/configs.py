"""Configs that are set dynamically: what a resource overrides, key by key. A resource without any has no row."""

from collections.abc import Mapping

from barnabas.config.config_resource import ResourceKind
from barnabas.metadata.record_type import Noun

Overrides = Mapping[str, str]

#: topic name -> its overrides
TOPIC_CONFIGS: Noun[Overrides] = Noun("topic_configs", dict, dict)
#: broker id as text, or "" for every broker -> its overrides
BROKER_CONFIGS: Noun[Overrides] = Noun("broker_configs", dict, dict)
#: group id -> its overrides
GROUP_CONFIGS: Noun[Overrides] = Noun("group_configs", dict, dict)
#: subscription name -> its configs (KIP-714)
CLIENT_METRICS_CONFIGS: Noun[Overrides] = Noun("client_metrics_configs", dict, dict)

#: Levels of loggers are not kept here: they are a node's own, and gone when it ends.
CONFIG_NOUNS: Mapping[ResourceKind, Noun[Overrides]] = {
    ResourceKind.TOPIC: TOPIC_CONFIGS,
    ResourceKind.BROKER: BROKER_CONFIGS,
    ResourceKind.CLIENT_METRICS: CLIENT_METRICS_CONFIGS,
    ResourceKind.GROUP: GROUP_CONFIGS,
}
