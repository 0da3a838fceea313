"""Broker keys: transactions, and the windows over which quotas are measured."""

from barnabas.config.definition import ConfigKey
from barnabas.config.keys import (
    BOOLEAN,
    CLASS,
    CLUSTER_WIDE,
    HONOURED,
    INT,
    NO_EFFECT,
    READ_ONLY,
    SHORT,
)
from barnabas.config.validators import AT_LEAST_0, AT_LEAST_1

# fmt: off
TRANSACTION_KEYS: tuple[ConfigKey, ...] = (
    ConfigKey("add.partitions.to.txn.retry.backoff.ms", INT, 20, AT_LEAST_1, READ_ONLY, HONOURED,
              "First wait before partitions are added again to a transaction that is being completed."),
    ConfigKey("add.partitions.to.txn.retry.backoff.max.ms", INT, 100, AT_LEAST_0, READ_ONLY, HONOURED,
              "Longest wait before partitions are added again to a transaction that is being completed."),
    ConfigKey("transaction.abort.timed.out.transaction.cleanup.interval.ms", INT, 10_000,
              AT_LEAST_1, READ_ONLY, HONOURED,
              "How often transactions are checked for their timeout."),
    ConfigKey("transaction.max.timeout.ms", INT, 900_000, AT_LEAST_1, READ_ONLY, HONOURED,
              "Maximum transaction timeout that a producer may request."),
    ConfigKey("transaction.partition.verification.enable", BOOLEAN, True, None, CLUSTER_WIDE, HONOURED,
              "Whether the coordinator is asked if a transaction is open before its records are appended "
              "to a partition."),
    ConfigKey("transaction.remove.expired.transaction.cleanup.interval.ms", INT, 3_600_000,
              AT_LEAST_1, READ_ONLY, HONOURED,
              "How often transactional ids are checked for expiry."),
    ConfigKey("transaction.state.log.load.buffer.size", INT, 5_242_880, AT_LEAST_1, READ_ONLY, NO_EFFECT,
              "Bytes read at a time when the state of transactions is loaded."),
    ConfigKey("transaction.state.log.min.isr", INT, 2, AT_LEAST_1, READ_ONLY, HONOURED,
              "The min.insync.replicas of the topic of transaction state."),
    ConfigKey("transaction.state.log.num.partitions", INT, 50, AT_LEAST_1, READ_ONLY, HONOURED,
              "Partitions of the topic of transaction state."),
    ConfigKey("transaction.state.log.replication.factor", SHORT, 3, AT_LEAST_1, READ_ONLY, HONOURED,
              "Replication factor of the topic of transaction state. Unless it is set, at most the number "
              "of brokers."),
    ConfigKey("transaction.state.log.segment.bytes", INT, 104_857_600, AT_LEAST_1, READ_ONLY, HONOURED,
              "Size of a segment of the topic of transaction state in bytes."),
    ConfigKey("transaction.two.phase.commit.enable", BOOLEAN, False, None, READ_ONLY, HONOURED,
              "Whether producers may keep a transaction open without a timeout, for a two-phase commit."),
    ConfigKey("transactional.id.expiration.ms", INT, 604_800_000, AT_LEAST_1, READ_ONLY, HONOURED,
              "A transactional id that is not used for this time is removed."),
    ConfigKey("client.quota.callback.class", CLASS, None, None, READ_ONLY, NO_EFFECT,
              "The class that determines the quotas of clients."),
    ConfigKey("quota.window.num", INT, 11, AT_LEAST_1, READ_ONLY, HONOURED,
              "Number of windows over which the use of client quotas is measured."),
    ConfigKey("quota.window.size.seconds", INT, 1, AT_LEAST_1, READ_ONLY, HONOURED,
              "Length of one window over which the use of client quotas is measured, in seconds."),
    ConfigKey("replication.quota.window.num", INT, 11, AT_LEAST_1, READ_ONLY, HONOURED,
              "Number of windows over which throttled replication is measured."),
    ConfigKey("replication.quota.window.size.seconds", INT, 1, AT_LEAST_1, READ_ONLY, HONOURED,
              "Length of one window over which throttled replication is measured, in seconds."),
    ConfigKey("alter.log.dirs.replication.quota.window.num", INT, 11, AT_LEAST_1, READ_ONLY, NO_EFFECT,
              "Number of windows over which moves between log directories are measured."),
    ConfigKey("alter.log.dirs.replication.quota.window.size.seconds", INT, 1,
              AT_LEAST_1, READ_ONLY, NO_EFFECT,
              "Length of one window over which moves between log directories are measured, in seconds."),
    ConfigKey("controller.quota.window.num", INT, 11, AT_LEAST_1, READ_ONLY, HONOURED,
              "Number of windows over which topic and partition changes are measured."),
    ConfigKey("controller.quota.window.size.seconds", INT, 1, AT_LEAST_1, READ_ONLY, HONOURED,
              "Length of one window over which topic and partition changes are measured, in seconds."),
)
# fmt: on
