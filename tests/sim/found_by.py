"""The seeds that find planted bugs."""

#: Virtual seconds of a run, without its quiet phases.
DURATION_S = 20

#: Brokers of a cluster.
CLUSTER = 3

#: Every change of the product moves the faults in time: then a bug is found by one of the next seeds.
SEEDS_COUNT = 6

#: The first seed that finds a bug, and the number of brokers.
FOUND_BY = {
    "a-new-leader-of-the-audit-ignores-the-store": (1, CLUSTER),
    "a-reload-is-not-shown-to-the-listeners": (8, CLUSTER),
    "a-reload-misses-a-commit": (3, CLUSTER),
    "aborted-transactions-commit-their-offsets": (2, CLUSTER),
    "acks-all-is-answered-before-replication": (1, CLUSTER),
    "any-replica-may-lead": (1, CLUSTER),
    "brokers-stay-in-sync-after-a-power-failure": (7, CLUSTER),
    "dead-brokers-are-not-fenced": (2, CLUSTER),
    "directories-are-not-flushed": (3, 1),
    "epochs-without-records-are-kept": (2, CLUSTER),
    "followers-do-not-truncate": (2, CLUSTER),
    "followers-report-what-they-have-not-flushed": (3, CLUSTER),
    "followers-truncate-to-their-high-watermark": (1, CLUSTER),
    "gaps-between-segments-are-kept": (15, CLUSTER),
    "lagging-followers-are-removed-before-that-is-committed": (16, CLUSTER),
    "leaders-keep-their-epoch-after-a-power-failure": (7, CLUSTER),
    "logs-are-not-recovered-after-a-crash": (13, 1),
    "lost-sessions-are-not-noticed": (1, CLUSTER),
    "markers-are-dropped": (1, 1),
    "markers-are-not-retried-on-another-leader": (12, CLUSTER),
    "offsets-are-committed-before-replication": (2, CLUSTER),
    "old-generations-may-commit-offsets": (3, CLUSTER),
    "partitions-are-assigned-before-they-are-given-up": (1, CLUSTER),
    "positions-of-removed-followers-stay-dropped": (2, CLUSTER),
    "producers-are-forgotten-by-a-start": (1, 1),
    "producers-are-not-truncated": (1, CLUSTER),
    "recovery-accepts-torn-batches": (10, 1),
    "retries-are-not-recognized": (9, 1),
    "the-first-broker-forgets-a-deletion": (8, CLUSTER),
    "the-high-watermark-ignores-followers-that-are-being-added": (4, CLUSTER),
    "the-high-watermark-moves-without-enough-replicas": (1, CLUSTER),
    "unanswered-commits-are-taken-for-done": (2, 1),
    "unanswered-commits-are-taken-for-failed": (1, 1),
    "writes-are-acknowledged-before-they-are-flushed": (3, 1),
}

#: The bugs that one of the first seeds finds quickly, also after changes of the product. `make sim-bugs` tries all.
FOUND_BY_MOST_SEEDS = (
    "a-reload-misses-a-commit",
    "acks-all-is-answered-before-replication",
    "followers-truncate-to-their-high-watermark",
    "lagging-followers-are-removed-before-that-is-committed",
    "markers-are-dropped",
    "the-high-watermark-moves-without-enough-replicas",
    "unanswered-commits-are-taken-for-done",
    "unanswered-commits-are-taken-for-failed",
)
