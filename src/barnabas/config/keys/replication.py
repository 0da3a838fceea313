"""Broker keys: replication and leadership."""

from barnabas.config.definition import ConfigKey
from barnabas.config.keys import (
    BOOLEAN,
    CLUSTER_WIDE,
    HONOURED,
    INT,
    LONG,
    NO_EFFECT,
    READ_ONLY,
    STRING,
)
from barnabas.config.validators import AT_LEAST_0, AT_LEAST_1, OneOf

# fmt: off
REPLICATION_KEYS: tuple[ConfigKey, ...] = (
    ConfigKey("default.replication.factor", INT, 1, None, READ_ONLY, HONOURED,
              "Replication factor of a topic that is created without one."),
    ConfigKey("replica.lag.time.max.ms", LONG, 30_000, None, READ_ONLY, HONOURED,
              "A follower that has not caught up with the leader for this time is removed from the in-sync "
              "replicas."),
    ConfigKey("replica.socket.timeout.ms", INT, 30_000, None, READ_ONLY, NO_EFFECT,
              "Socket timeout of a follower's fetch."),
    ConfigKey("replica.socket.receive.buffer.bytes", INT, 65_536, None, READ_ONLY, NO_EFFECT,
              "Receive buffer of a follower's socket in bytes."),
    ConfigKey("replica.fetch.max.bytes", INT, 1_048_576, AT_LEAST_0, READ_ONLY, HONOURED,
              "Bytes that a follower requests from each partition."),
    ConfigKey("replica.fetch.wait.max.ms", INT, 500, None, READ_ONLY, HONOURED,
              "Longest time that the leader delays the response to a follower if there is nothing to "
              "fetch."),
    ConfigKey("replica.fetch.min.bytes", INT, 1, None, READ_ONLY, NO_EFFECT,
              "Minimum number of bytes in the response to a follower's fetch."),
    ConfigKey("replica.fetch.response.max.bytes", INT, 10_485_760, AT_LEAST_0, READ_ONLY, HONOURED,
              "Bytes that a follower requests in one fetch."),
    ConfigKey("replica.fetch.backoff.ms", INT, 1_000, AT_LEAST_0, READ_ONLY, HONOURED,
              "Wait of a follower after a failed fetch."),
    ConfigKey("replica.high.watermark.checkpoint.interval.ms", LONG, 5_000, None, READ_ONLY, HONOURED,
              "How often the high watermarks are written to their checkpoint file."),
    ConfigKey("replica.selector.class", STRING, None, None, READ_ONLY, HONOURED,
              "The class that selects the replica for a consumer in another rack."),
    ConfigKey("num.replica.fetchers", INT, 1, AT_LEAST_1, CLUSTER_WIDE, NO_EFFECT,
              "Number of fetchers that replicate from each leader."),
    ConfigKey("num.replica.alter.log.dirs.threads", INT, None, None, READ_ONLY, HONOURED,
              "Threads that move replicas between log directories; by default one for each directory."),
    ConfigKey("fetch.purgatory.purge.interval.requests", INT, 1_000, None, READ_ONLY, NO_EFFECT,
              "How often Apache Kafka removes completed fetches from its purgatory, in requests."),
    ConfigKey("producer.purgatory.purge.interval.requests", INT, 1_000, None, READ_ONLY, NO_EFFECT,
              "How often Apache Kafka removes completed produce requests from its purgatory, in requests."),
    ConfigKey("delete.records.purgatory.purge.interval.requests", INT, 1, None, READ_ONLY, NO_EFFECT,
              "How often Apache Kafka removes completed DeleteRecords requests from its purgatory, in "
              "requests."),
    ConfigKey("auto.leader.rebalance.enable", BOOLEAN, True, None, READ_ONLY, HONOURED,
              "Whether leadership returns to preferred replicas automatically."),
    ConfigKey("leader.imbalance.check.interval.seconds", LONG, 300, AT_LEAST_1, READ_ONLY, HONOURED,
              "How often leaderships are checked for imbalance."),
    ConfigKey("unclean.leader.election.enable", BOOLEAN, False, None, CLUSTER_WIDE, HONOURED,
              "Whether a replica that is not in sync may become leader as a last resort, which loses "
              "records."),
    ConfigKey("unclean.leader.election.interval.ms", LONG, 300_000, AT_LEAST_1, READ_ONLY, NO_EFFECT,
              "How often partitions without a leader are checked for an unclean election.",
              internal=True),
    ConfigKey("follower.fetch.last.tiered.offset.enable", BOOLEAN, False, None, CLUSTER_WIDE, NO_EFFECT,
              "Whether a new follower of a tiered topic starts after the records in remote storage.",
              since="4.3"),
    ConfigKey("security.inter.broker.protocol", STRING, "PLAINTEXT",
              OneOf(("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")), READ_ONLY, HONOURED,
              "The security protocol between brokers, if inter.broker.listener.name is not set."),
    ConfigKey("inter.broker.listener.name", STRING, None, None, READ_ONLY, HONOURED,
              "The listener for connections between brokers."),
)
# fmt: on
