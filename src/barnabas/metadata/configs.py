"""Configs that are set dynamically: what a resource overrides, key by key. A resource without any has no row."""

from collections.abc import Mapping

from barnabas.config.config_resource import ResourceKind
from barnabas.metadata.record_type import RecordType

Overrides = Mapping[str, str]

#: topic name -> its overrides
TOPIC_CONFIGS: RecordType[Overrides] = RecordType("topic_configs", dict, dict)
#: broker id as text, or "" for every broker -> its overrides
BROKER_CONFIGS: RecordType[Overrides] = RecordType("broker_configs", dict, dict)
#: group id -> its overrides
GROUP_CONFIGS: RecordType[Overrides] = RecordType("group_configs", dict, dict)
#: subscription name -> its configs (KIP-714)
CLIENT_METRICS_CONFIGS: RecordType[Overrides] = RecordType("client_metrics_configs", dict, dict)

#: Levels of loggers are not kept here: they are a node's own, and gone when it ends.
CONFIG_RECORD_TYPES: Mapping[ResourceKind, RecordType[Overrides]] = {
    ResourceKind.TOPIC: TOPIC_CONFIGS,
    ResourceKind.BROKER: BROKER_CONFIGS,
    ResourceKind.CLIENT_METRICS: CLIENT_METRICS_CONFIGS,
    ResourceKind.GROUP: GROUP_CONFIGS,
}
