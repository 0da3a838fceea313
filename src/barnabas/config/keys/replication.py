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
              "Replicas of a topic whose creation names no count."),
    ConfigKey("replica.lag.time.max.ms", LONG, 30_000, None, READ_ONLY, NO_EFFECT,
              "A follower that has not caught up with the leader for so long is taken out of the in-sync "
              "replicas."),
    ConfigKey("replica.socket.timeout.ms", INT, 30_000, None, READ_ONLY, NO_EFFECT,
              "How long the fetch of a follower may take on its socket."),
    ConfigKey("replica.socket.receive.buffer.bytes", INT, 65_536, None, READ_ONLY, NO_EFFECT,
              "The kernel's receive buffer of a follower's connection in bytes."),
    ConfigKey("replica.fetch.max.bytes", INT, 1_048_576, AT_LEAST_0, READ_ONLY, NO_EFFECT,
              "Bytes that a follower asks for in each partition."),
    ConfigKey("replica.fetch.wait.max.ms", INT, 500, None, READ_ONLY, NO_EFFECT,
              "How long the leader may hold back the answer to a follower that has nothing new to read."),
    ConfigKey("replica.fetch.min.bytes", INT, 1, None, READ_ONLY, NO_EFFECT,
              "Bytes that the leader gathers for a follower before it answers."),
    ConfigKey("replica.fetch.response.max.bytes", INT, 10_485_760, AT_LEAST_0, READ_ONLY, NO_EFFECT,
              "Bytes that a follower asks for in one fetch."),
    ConfigKey("replica.fetch.backoff.ms", INT, 1_000, AT_LEAST_0, READ_ONLY, NO_EFFECT,
              "Pause of a follower after a failed fetch."),
    ConfigKey("replica.high.watermark.checkpoint.interval.ms", LONG, 5_000, None, READ_ONLY, HONOURED,
              "How often the high watermarks are written to their checkpoint."),
    ConfigKey("replica.selector.class", STRING, None, None, READ_ONLY, NO_EFFECT,
              "How the replica is chosen that a consumer in another rack reads from."),
    ConfigKey("num.replica.fetchers", INT, 1, AT_LEAST_1, CLUSTER_WIDE, NO_EFFECT,
              "Fetchers with which a follower reads from each leader."),
    ConfigKey("num.replica.alter.log.dirs.threads", INT, None, None, READ_ONLY, HONOURED,
              "Threads that move replicas between log directories; as many as there are directories when "
              "not set."),
    ConfigKey("fetch.purgatory.purge.interval.requests", INT, 1_000, None, READ_ONLY, NO_EFFECT,
              "How often Apache Kafka clears finished fetches from its waiting list, counted in requests."),
    ConfigKey("producer.purgatory.purge.interval.requests", INT, 1_000, None, READ_ONLY, NO_EFFECT,
              "How often Apache Kafka clears finished writes from its waiting list, counted in requests."),
    ConfigKey("delete.records.purgatory.purge.interval.requests", INT, 1, None, READ_ONLY, NO_EFFECT,
              "How often Apache Kafka clears finished deletions from its waiting list, counted in requests."),
    ConfigKey("auto.leader.rebalance.enable", BOOLEAN, True, None, READ_ONLY, NO_EFFECT,
              "Whether leadership goes back to preferred replicas by itself."),
    ConfigKey("leader.imbalance.check.interval.seconds", LONG, 300, AT_LEAST_1, READ_ONLY, NO_EFFECT,
              "How often leaderships are looked over for imbalance."),
    ConfigKey("unclean.leader.election.enable", BOOLEAN, False, None, CLUSTER_WIDE, NO_EFFECT,
              "Whether a replica that is not in sync may become leader as a last resort, at the price of "
              "lost records."),
    ConfigKey("unclean.leader.election.interval.ms", LONG, 300_000, AT_LEAST_1, READ_ONLY, NO_EFFECT,
              "How often partitions without a leader are looked over for an unclean election.",
              internal=True),
    ConfigKey("follower.fetch.last.tiered.offset.enable", BOOLEAN, False, None, CLUSTER_WIDE, NO_EFFECT,
              "Whether a new follower of a tiered topic begins after what is in the remote store.",
              since="4.3"),
    ConfigKey("security.inter.broker.protocol", STRING, "PLAINTEXT",
              OneOf(("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")), READ_ONLY, HONOURED,
              "The security protocol between brokers, when inter.broker.listener.name is not set."),
    ConfigKey("inter.broker.listener.name", STRING, None, None, READ_ONLY, HONOURED,
              "The listener over which brokers speak with one another."),
)
# fmt: on
