"""Quota keys: of clients, addresses, and brokers (dynamic only)."""

from barnabas.config.definition import ConfigKey, table
from barnabas.config.keys import (
    CLUSTER_WIDE,
    DOUBLE,
    HONOURED,
    INT,
    INT_MAX,
    LONG,
    LONG_MAX,
    NO_EFFECT,
    STRING,
)
from barnabas.config.validators import AT_LEAST_0

# fmt: off
_CLIENT_KEYS: tuple[ConfigKey, ...] = (
    ConfigKey("consumer_byte_rate", LONG, LONG_MAX, None, CLUSTER_WIDE, HONOURED,
              "Bytes per second that clients with this user or client id may fetch from a broker."),
    ConfigKey("controller_mutation_rate", DOUBLE, float(INT_MAX), None, CLUSTER_WIDE, HONOURED,
              "Partition changes per second that clients with this user or client id may request."),
    ConfigKey("producer_byte_rate", LONG, LONG_MAX, None, CLUSTER_WIDE, HONOURED,
              "Bytes per second that clients with this user or client id may produce to a broker."),
    ConfigKey("request_percentage", DOUBLE, float(INT_MAX), None, CLUSTER_WIDE, HONOURED,
              "Share of a broker's time, in percent, that requests with this user or client id may use."),
)

_SCRAM_KEYS: tuple[ConfigKey, ...] = (
    ConfigKey("SCRAM-SHA-256", STRING, None, None, CLUSTER_WIDE, NO_EFFECT,
              "The SCRAM-SHA-256 credential of the user."),
    ConfigKey("SCRAM-SHA-512", STRING, None, None, CLUSTER_WIDE, NO_EFFECT,
              "The SCRAM-SHA-512 credential of the user."),
)

_ADDRESS_KEYS: tuple[ConfigKey, ...] = (
    ConfigKey("connection_creation_rate", INT, INT_MAX, AT_LEAST_0, CLUSTER_WIDE, HONOURED,
              "Connections per second that a broker accepts from this address."),
)

_BROKER_KEYS: tuple[ConfigKey, ...] = (
    ConfigKey("follower.replication.throttled.rate", LONG, LONG_MAX, AT_LEAST_0, CLUSTER_WIDE, HONOURED,
              "Bytes per second that throttled followers of the broker may fetch."),
    ConfigKey("leader.replication.throttled.rate", LONG, LONG_MAX, AT_LEAST_0, CLUSTER_WIDE, HONOURED,
              "Bytes per second that throttled leaders of the broker may send to followers."),
    ConfigKey("replica.alter.log.dirs.io.max.bytes.per.second", LONG, LONG_MAX, AT_LEAST_0, CLUSTER_WIDE,
              HONOURED, "Bytes per second that moves between the broker's log directories may copy."),
)
# fmt: on

#: Quotas of users and client ids.
CLIENT_QUOTA_KEYS = table(_CLIENT_KEYS)
#: Credentials, which are listed with the quotas of a user.
SCRAM_KEYS = table(_SCRAM_KEYS)
#: Quotas of addresses.
ADDRESS_QUOTA_KEYS = table(_ADDRESS_KEYS)
#: Quotas of brokers; never in server.properties.
BROKER_QUOTA_KEYS = table(_BROKER_KEYS)
