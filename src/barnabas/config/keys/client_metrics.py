"""Keys of client metrics subscriptions (KIP-714)."""

from barnabas.config.definition import ConfigKey, table
from barnabas.config.keys import CLUSTER_WIDE, HONOURED, INT, LIST
from barnabas.config.validators import ANY_LIST, MetricMatch, Range

_ATTRIBUTES = (
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)

# fmt: off
_KEYS: tuple[ConfigKey, ...] = (
    ConfigKey("interval.ms", INT, 300_000, Range(100, 3_600_000), CLUSTER_WIDE, HONOURED,
              "How often the clients of the subscription push their metrics."),
    ConfigKey("match", LIST, (), MetricMatch(_ATTRIBUTES), CLUSTER_WIDE, HONOURED,
              "The clients to which the subscription applies, as attribute=pattern entries; empty for all."),
    ConfigKey("metrics", LIST, (), ANY_LIST, CLUSTER_WIDE, HONOURED,
              "Prefixes of the names of the metrics to push; * for all."),
)
# fmt: on

CLIENT_METRICS_KEYS = table(_KEYS)
